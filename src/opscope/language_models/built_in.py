"""Models by name: the fields of their public configs that a description needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A model that is known by name."""

    name: str
    source: str  # where its config is published
    parameters: float  # as published, in billions
    config: Mapping[str, object]


_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)


def _llama(sizes: tuple[int, ...], **more: object) -> dict[str, object]:
    """The fields that most configs have, in the order of `_SIZES`."""
    return {"model_type": "llama", **dict(zip(_SIZES, sizes, strict=True)), **more}


def _opt(hidden: int, layers: int, heads: int, **more: object) -> dict[str, object]:
    return {
        "model_type": "opt",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "ffn_dim": 4 * hidden,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": hidden,
        **more,
    }


_TIED = {"tie_word_embeddings": True}
_QWEN2 = {"model_type": "qwen2"}
_QWEN3 = {"model_type": "qwen3", "head_dim": 128}

_ROWS = (
    BuiltIn("llama-2-7b", "meta-llama/Llama-2-7b-hf", 6.738, _llama((4096, 32, 32, 32, 11008, 32000, 4096))),
    BuiltIn("llama-2-13b", "meta-llama/Llama-2-13b-hf", 13.016, _llama((5120, 40, 40, 40, 13824, 32000, 4096))),
    BuiltIn("llama-2-70b", "meta-llama/Llama-2-70b-hf", 68.977, _llama((8192, 80, 64, 8, 28672, 32000, 4096))),
    BuiltIn("llama-3.1-8b", "meta-llama/Llama-3.1-8B", 8.030, _llama((4096, 32, 32, 8, 14336, 128256, 131072))),
    BuiltIn("llama-3.1-70b", "meta-llama/Llama-3.1-70B", 70.554, _llama((8192, 80, 64, 8, 28672, 128256, 131072))),
    BuiltIn(
        "llama-3.2-1b",
        "meta-llama/Llama-3.2-1B",
        1.236,
        _llama((2048, 16, 32, 8, 8192, 128256, 131072), head_dim=64, **_TIED),
    ),
    BuiltIn(
        "llama-3.2-3b",
        "meta-llama/Llama-3.2-3B",
        3.213,
        _llama((3072, 28, 24, 8, 8192, 128256, 131072), head_dim=128, **_TIED),
    ),
    BuiltIn(
        "mistral-7b",
        "mistralai/Mistral-7B-v0.1",
        7.242,
        _llama((4096, 32, 32, 8, 14336, 32000, 32768), model_type="mistral", sliding_window=4096),
    ),
    BuiltIn("qwen2-0.5b", "Qwen/Qwen2-0.5B", 0.494, _llama((896, 24, 14, 2, 4864, 151936, 131072), **_QWEN2, **_TIED)),
    BuiltIn("qwen3-0.6b", "Qwen/Qwen3-0.6B", 0.596, _llama((1024, 28, 16, 8, 3072, 151936, 40960), **_QWEN3, **_TIED)),
    BuiltIn("qwen3-4b", "Qwen/Qwen3-4B", 4.022, _llama((2560, 36, 32, 8, 9728, 151936, 40960), **_QWEN3, **_TIED)),
    BuiltIn("opt-2.7b", "facebook/opt-2.7b", 2.652, _opt(2560, 32, 32)),
    BuiltIn(
        "gpt-j-6b",
        "EleutherAI/gpt-j-6b",
        6.053,
        {"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "vocab_size": 50400},
    ),
    BuiltIn("amber-7b", "LLM360/Amber", 6.738, _llama((4096, 32, 32, 32, 11008, 32000, 2048))),
)
BUILT_IN: Mapping[str, BuiltIn] = {row.name: row for row in _ROWS}
