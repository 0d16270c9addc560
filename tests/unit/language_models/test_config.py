"""Configs: read with the defaults of their classes, or refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import ProfilerError, UsageError
from opscope.language_models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    LinearAttention,
    Mixture,
    NormPlace,
    Positions,
    QueryNorm,
    ShortConvolution,
    StateSpace,
)
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import describe, load
from opscope.language_models.families import FAMILIES

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}


def read(tmp_path: Path, text: str | bytes) -> Architecture:
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path)


def made(**changes: object) -> Architecture:
    values = {key: value for key, value in {**LLAMA, **changes}.items() if value != "gone"}
    return describe(values, source="config.json", name="x")


def attention(model: Architecture, number: int = 0) -> Attention:
    mixer = model.layers[number].mixer
    assert isinstance(mixer, Attention)
    return mixer


def test_a_file_and_its_folder_are_the_same_model(tmp_path: Path) -> None:
    model = read(tmp_path, json.dumps(LLAMA))
    assert load(tmp_path) == model
    assert load(str(tmp_path / "config.json")) == model
    assert model.name == tmp_path.name
    assert (model.hidden, len(model.layers), model.longest_context) == (64, 2, 512)


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_config_of_a_built_in_model_gives_it_back(name: str, tmp_path: Path) -> None:
    written = read(tmp_path, json.dumps(dict(BUILT_IN[name].config)))
    assert replace(written, name=name) == load(name)


def test_names_are_known_in_any_case() -> None:
    assert load("Llama-3.2-1B") == load("meta-llama/Llama-3.2-1B") == load("llama-3.2-1b")


# ---- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_size", "gone", "config.json: hidden_size: is missing; expected a whole number from 1 to 1048576"),
        ("hidden_size", None, "config.json: hidden_size: is missing; expected a whole number from 1 to 1048576"),
        ("hidden_size", -64, "config.json: hidden_size: is -64; expected a whole number from 1 to 1048576"),
        ("hidden_size", 0, "config.json: hidden_size: is 0; expected a whole number from 1 to 1048576"),
        (
            "hidden_size",
            10**30,
            "config.json: hidden_size: is 1000000000000000000000000000000; expected a whole number",
        ),
        ("hidden_size", "64", "config.json: hidden_size: is '64'; expected a whole number from 1 to 1048576"),
        ("hidden_size", 64.0, "config.json: hidden_size: is 64.0; expected a whole number from 1 to 1048576"),
        ("hidden_size", True, "config.json: hidden_size: is True; expected a whole number from 1 to 1048576"),
        ("hidden_size", [64], "config.json: hidden_size: is [64]; expected a whole number from 1 to 1048576"),
        ("hidden_size", float("nan"), "config.json: hidden_size: is nan; expected a whole number from 1 to 1048576"),
        ("hidden_size", 63, "config.json: num_attention_heads: is 4; expected a divisor of the hidden_size, 63"),
        ("num_hidden_layers", 1001, "config.json: num_hidden_layers: is 1001; expected a whole number from 1 to 1000"),
        ("num_attention_heads", 5, "config.json: num_key_value_heads: is 2; expected a divisor of attention heads, 5"),
        ("num_key_value_heads", 3, "config.json: num_key_value_heads: is 3; expected a divisor of attention heads, 4"),
        ("vocab_size", 1 << 30, "config.json: vocab_size: is 1073741824; expected a whole number from 1 to 16777216"),
        ("hidden_act", "magic", "config.json: hidden_act: is 'magic'; expected one of silu, "),
        ("tie_word_embeddings", "yes", "config.json: tie_word_embeddings: is 'yes'; expected true or false"),
        ("partial_rotary_factor", 2, "config.json: partial_rotary_factor: is 2; expected a number above 0 and up to 1"),
        ("rope_parameters", 7, "config.json: rope_parameters: is 7; expected an object"),
        ("model_type", "gone", "config.json: model_type: is missing; expected one of "),
        ("model_type", 7, "config.json: model_type: is 7; expected a word"),
        ("model_type", "lama", "config.json: model_type: lama is not known; did you mean llama? expected one of "),
        ("model_type", "mamba2", "config.json: model_type: mamba2 is not known; "),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, said: str) -> None:
    with pytest.raises(ProfilerError) as caught:
        made(**{field: value})
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "qwen3", "layer_types": ["full_attention"]}, "layer_types: has 1 words; expected 2"),
        ({"model_type": "qwen3", "layer_types": ["full_attention", "odd"]}, "layer_types: has 'odd'; expected"),
        ({"model_type": "gemma3_text", "sliding_window": 0}, "sliding_window: is 0; expected"),
        ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5}, "num_experts_per_tok: is 5; exp"),
        ({"model_type": "mixtral", "num_experts_per_tok": 2}, "num_local_experts: is missing; expected"),
        ({"model_type": "deepseek_v3"}, "kv_lora_rank: is missing; expected"),
    ],
)
def test_fields_of_a_family_are_checked(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ProfilerError, match=r"^config\.json: ") as caught:
        made(**changes)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected JSON"),
        (b"[1, 2]", "expected"),
        (b'{"model_type": "llama"', "cut short after"),
        (b'{"model_type": NaN}', "model_type: is nan; expected a word"),
        (b'{"model_type": ' + b"9" * 5000 + b"}", "expected JSON"),
        (b'"llama"', "is a str; expected an object of fields"),
        (b'{"a":' * 100_000, "expected"),
        (b"\xff\xfe{}", "expected JSON"),
        (b'{"a": "' + b"x" * (5 << 20) + b'"}', "expected at most 4,194,304"),
        (b'{"model_type": "\\u001b[31mred\\n"}', "is not known"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ProfilerError) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'config.json'}: ")
    assert said in message
    assert message.isprintable()


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match=r"config\.json: No such file or directory; expected a config\.json"):
        load(tmp_path)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"^llama-3-1-8b: neither a file .* did you mean llama-3"):
        load("llama-3-1-8b")


def test_names_that_no_path_can_have_are_refused() -> None:
    for name in ("x" * 5000, "a\0b", ""):
        with pytest.raises(ProfilerError):
            load(name)


# ---- what families say ----------------------------------------------------------------------------------------------


def test_null_is_a_field_that_is_not_there() -> None:
    assert made(num_key_value_heads=None).layers == made(num_key_value_heads=4).layers
    assert made(head_dim=None) == made()


def test_a_window_that_is_null_is_none_and_one_that_is_left_out_is_the_default() -> None:
    assert attention(made(model_type="mistral", sliding_window=None)).window is None
    assert attention(made(model_type="mistral")).window == 4096


def test_gemma_3_leaves_out_what_its_class_says() -> None:
    """As its published configs do: heads, their size and the vocabulary."""
    sparse = made(
        model_type="gemma3_text",
        num_attention_heads="gone",
        num_key_value_heads="gone",
        vocab_size="gone",
        num_hidden_layers=12,
        sliding_window=16,
    )
    assert (attention(sparse).heads, attention(sparse).kv_heads, attention(sparse).head_size) == (8, 4, 256)
    assert (sparse.vocabulary, sparse.tied, sparse.norm_place) == (262208, True, NormPlace.AROUND)
    assert [attention(sparse, n).window for n in range(7)] == [16, 16, 16, 16, 16, None, 16]


def test_a_nested_decoder_is_read() -> None:
    inner = {**LLAMA, "model_type": "qwen3_vl_text", "head_dim": 16}
    outer = {"model_type": "qwen3_vl", "text_config": inner, "vision_config": {"depth": 3}, "tie_word_embeddings": True}
    model = describe(outer, source="config.json")
    assert (model.family, model.tied, attention(model).query_norm) == ("qwen3_vl_text", True, QueryNorm.HEAD)
    del inner["model_type"]
    assert describe(outer, source="config.json") == model
    inner["hidden_size"] = -1
    with pytest.raises(ProfilerError, match=r"^config\.json: text_config\.hidden_size: is -1; "):
        describe(outer, source="config.json")


def test_a_decoder_without_a_name_of_its_own_has_that_of_its_family() -> None:
    """As DeepSeek-OCR has it: sizes of latent attention are 0 or null, since there is none."""
    none = {"kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0}
    experts = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 2}
    inner = {**LLAMA, **none, **experts, "use_mla": False, "first_k_dense_replace": 1}
    del inner["model_type"]
    model = describe({"model_type": "deepseek_vl_v2", "language_config": inner}, source="config.json")
    assert attention(model).kv_heads == 2
    assert model.layers[1].feed_forward == Mixture(8, 2, 32, shared=64)


def test_qwen_3_5_has_a_cache_in_every_fourth_layer() -> None:
    kinds = [type(layer.mixer) for layer in load("qwen3.5-0.8b").layers]
    assert kinds[:4] == [LinearAttention] * 3 + [Attention]
    assert kinds.count(Attention) == 6


def test_gemma_4_shares_caches_between_its_last_layers() -> None:
    sizes = {"hidden_size": 1536, "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1}
    sizes |= {"intermediate_size": 6144, "head_dim": 256, "global_head_dim": 512, "sliding_window": 512}
    sizes |= {"sliding_window_pattern": 5, "num_kv_shared_layers": 20}
    model = made(model_type="gemma4_text", use_double_wide_mlp=True, **sizes)
    mixers = [attention(model, number) for number in range(35)]
    assert [mixer.reuses for mixer in mixers] == [False] * 15 + [True] * 20
    assert [mixer.head_size for mixer in mixers[:6]] == [256] * 4 + [512, 256]
    assert {layer.feed_forward.intermediate for layer in model.layers[15:]} == {2 * 6144}
    with pytest.raises(ProfilerError, match=r"num_kv_shared_layers: is 1; expected layers of the same kind before"):
        made(model_type="gemma4_text", num_kv_shared_layers=1, sliding_window_pattern=2)


def test_layers_that_guess_further_tokens_are_left_out_and_said_so() -> None:
    assert made(num_nextn_predict_layers=1).notes == ("layers that guess further tokens are left out",)
    assert made().notes == ()


def test_lfm_2_makes_its_inner_features_of_the_number_in_its_config() -> None:
    model = load("lfm2-350m")
    assert {layer.feed_forward.intermediate for layer in model.layers} == {4608}  # 6656 × 2 / 3, up to 256
    kinds = [isinstance(layer.mixer, ShortConvolution) for layer in model.layers]
    assert kinds[:4] == [True, True, False, True]
    assert kinds.count(False) == 6


def test_words_of_earlier_configs_for_kinds_of_layers() -> None:
    hybrid = made(
        model_type="granitemoehybrid", layer_types=["mamba", "attention"], mamba_n_heads=8, num_local_experts=0
    )
    assert [type(layer.mixer) for layer in hybrid.layers] == [StateSpace, Attention]
    assert attention(hybrid, 1).rotary_size == 0
    with pytest.raises(ProfilerError, match=r"attn_layer_indices: is \[2\]; expected numbers of layers, 0 to 1"):
        made(model_type="bamba", attn_layer_indices=[2], mamba_n_heads=8)


def test_deepseek_has_dense_layers_first() -> None:
    model = load("deepseek-v3")
    assert [isinstance(layer.feed_forward, Mixture) for layer in model.layers[:5]] == [False] * 3 + [True] * 2
    assert isinstance(model.layers[0].mixer, LatentAttention)
    assert model.active_parameters == pytest.approx(37e9, rel=0.03)  # published: 37 G


def test_infinity_is_read_as_hugging_face_writes_it(tmp_path: Path) -> None:
    text = json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")]})
    assert "Infinity" in text
    assert read(tmp_path, text).hidden == 64


def test_a_nested_decoder_may_leave_out_the_sizes_of_its_class() -> None:
    """As LLaVA 1.5 does."""
    model = describe({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}}, source="c")
    assert (model.hidden, len(model.layers), model.vocabulary) == (4096, 32, 32064)
    with pytest.raises(ProfilerError, match="num_attention_heads: is missing"):
        describe({"model_type": "llama", "vocab_size": 32064}, source="c")


def test_sizes_that_no_model_has_together_are_refused() -> None:
    with pytest.raises(ProfilerError, match=r"^config\.json: sizes make .*e\+15 parameters; expected at most 1e\+14"):
        made(hidden_size=1 << 20, intermediate_size=1 << 20, num_hidden_layers=1000)


def test_the_name_of_a_nested_decoder_is_a_word() -> None:
    with pytest.raises(ProfilerError, match=r"^c: text_config\.model_type: is \[\]; expected a word"):
        describe({"model_type": "llava", "text_config": {**LLAMA, "model_type": []}}, source="c")


def test_layers_with_a_window_are_named_by_letters_too() -> None:
    exaone = made(model_type="exaone4", num_hidden_layers=8, sliding_window=16, sliding_window_pattern="LLLG")
    assert [attention(exaone, number).window for number in range(4)] == [16, 16, 16, None]
    assert exaone == made(model_type="exaone4", num_hidden_layers=8, sliding_window=16, sliding_window_pattern=4)
    with pytest.raises(ProfilerError, match=r"sliding_window_pattern: is 'LX'; expected a number, or letters L and G"):
        made(model_type="exaone4", sliding_window_pattern="LX")


def test_gemma_4_says_what_differs_by_layer_in_newer_files() -> None:
    sizes = {"num_hidden_layers": 6, "head_dim": 16, "attention_k_eq_v": True}
    older = made(model_type="gemma4_text", global_head_dim=32, num_global_key_value_heads=1, **sizes)
    newer = made(model_type="gemma4_text", per_layer_config={"05": {"head_dim": 32, "num_key_value_heads": 1}}, **sizes)
    assert older == newer
    assert attention(newer, 5).kv_heads == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_experts": 8}, "num_experts: is 8; llama is known without experts: expected 0, 1 or null"),
        ({"per_layer_config": {"0": {"head_dim": 8}}}, "per_layer_config: is not known for llama; expected equal"),
        (
            {
                "model_type": "glm4_moe",
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 8,
                "mlp_layer_types": ["dense", "odd"],
            },
            "mlp_layer_types: has 'odd'; expected 2 words, dense or sparse",
        ),
    ],
)
def test_what_a_family_is_not_read_with_is_refused(changes: dict[str, object], said: str) -> None:
    """A model without it would be another one."""
    with pytest.raises(ProfilerError) as caught:
        made(**changes)
    assert said in str(caught.value)


def test_dense_layers_are_named_one_by_one_or_counted() -> None:
    sizes = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "num_hidden_layers": 3}
    counted = made(model_type="glm4_moe", first_k_dense_replace=1, **sizes)
    assert counted == made(model_type="glm4_moe", mlp_layer_types=["dense", "sparse", "sparse"], **sizes)
    assert [isinstance(layer.feed_forward, Mixture) for layer in counted.layers] == [False, True, True]


def test_gpt_takes_the_names_of_later_families() -> None:
    own = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, "n_positions": 32}
    later = {"model_type": "gpt2", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    later |= {"vocab_size": 100, "max_position_embeddings": 32}
    assert describe(own, source="c") == describe(later, source="c")


def test_minicpm_may_have_experts() -> None:
    model = made(model_type="minicpm", num_experts=8, num_experts_per_tok=2)
    assert model.layers[0].feed_forward == Mixture(8, 2, 96)


def test_families_before_rotary_positions() -> None:
    assert load("opt-2.7b").positions is Positions.LEARNED
    assert load("bloom-560m").positions is Positions.ALIBI
    assert load("gpt-j-6b").parallel
    assert load("gpt-j-6b").shared_norm
    assert attention(load("gpt-j-6b")).rotary_size == 64
    assert not load("gpt-neox-20b").shared_norm
    assert attention(load("gpt-neox-20b")).rotary_size == 24
    assert attention(load("falcon-7b")).kv_heads == 1


def test_every_family_refuses_an_empty_config_in_one_line() -> None:
    for family in FAMILIES:
        with pytest.raises(ProfilerError, match="is missing; expected"):
            describe({"model_type": family}, source="config.json")


@pytest.mark.parametrize("junk", [-1, 0, 1.5, "word", [], {}, True, float("inf"), 10**18])
def test_any_field_may_be_junk(junk: object) -> None:
    """Every field of every built-in model in turn: a model, or a line."""
    for name in ("llama-3.2-1b", "qwen3.5-0.8b", "deepseek-v2-lite", "gpt-oss-20b", "opt-350m", "chatglm3-6b"):
        config = dict(BUILT_IN[name].config)
        said = [refusal({**config, field: junk}) for field in config]
        assert all(line.startswith("config.json: ") and "expected " in line for line in said if line)


def refusal(config: dict[str, object]) -> str:
    try:
        describe(config, source="config.json")
    except ProfilerError as error:
        return str(error)
    return ""


def test_every_family_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    section = page.partition("## Language models\n")[2].partition("\n## ")[0]
    assert [family for family in FAMILIES if f"`{family}`" not in section] == []
