"""Models of transformers from a local config, without their weights: `hf:FOLDER`, `hf:config.json`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError, first_line, printable
from ...graph.graph import Note
from ..usual_sizes import Purpose
from .model import TorchModel, torch_model

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

MOST_BYTES = 1 << 33  # of random weights


def load_config(path: Path, place: str, *, weights: bool) -> TorchModel:
    """The model on `meta`; with `weights` with those of the folder, or with random ones."""
    from .sources import name_of, needed

    transformers, source = needed("transformers", str(path)), str(path)
    folder = Path(place)
    if not folder.exists():
        raise ModelError(source, "", "there is no such folder or config; expected one on this machine")
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config.use_cache = False  # one step, with nothing of earlier ones
        kind = _kind(config)
        with _on_meta():
            model = _random(kind, config)
        if weights:
            model = _with_weights(kind, folder, config, model, source)
    except ModelError:
        raise
    except Exception as error:  # of any class of transformers
        raise ModelError(
            source, "", f"transformers refuses it ({first_line(error, 200)}); expected the config of a model"
        ) from error
    inputs, note = _inputs(model.eval(), config, source)
    found = torch_model(model, inputs, name=name_of(path), source=source)
    return replace(found, notes=(note,), has_random_weights=weights and not _has_weights(folder))


def _kind(config: PretrainedConfig) -> type[PreTrainedModel]:
    """The class that the config names; without a name, what is inside of all of them."""
    import transformers

    names = getattr(config, "architectures", None) or ()
    found: type[PreTrainedModel] = transformers.AutoModel
    return next((known for name in names if (known := getattr(transformers, name, None))), found)


@contextmanager
def _on_meta() -> Iterator[None]:
    import torch

    with torch.device("meta"):
        yield


def _has_weights(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*.safetensors"))


def _with_weights(
    kind: type[PreTrainedModel], folder: Path, config: PretrainedConfig, model: PreTrainedModel, source: str
) -> PreTrainedModel:
    if _has_weights(folder):
        return kind.from_pretrained(folder, local_files_only=True, use_safetensors=True)
    size = sum(value.nbytes for value in model.parameters())
    if size > MOST_BYTES:
        problem = (
            f"has no weights here, and {size:,} bytes of random ones are too many; expected at most {MOST_BYTES:,}"
        )
        raise ModelError(source, "", f"{problem}, or --backend sim or estimate, which need none")
    return _random(kind, config)


def _random(kind: type[PreTrainedModel], config: PretrainedConfig) -> PreTrainedModel:
    """As transformers begins a training; on `meta` nothing is drawn."""
    return kind._from_config(config) if hasattr(kind, "_from_config") else kind.from_config(config)


def _inputs(model: PreTrainedModel, config: PretrainedConfig, source: str) -> tuple[dict[str, Tensor], Note]:
    """Tokens or an image, on the device of the model; of other inputs shapes have to be given."""
    import torch

    device, name = model.device, model.main_input_name
    if name == "input_ids":
        shape: tuple[int, ...] = (1, Purpose.TOKENS.size)
        names = [name for name in model.dummy_inputs if name.endswith("input_ids")]
        found = {each: torch.zeros(shape, dtype=torch.int64, device=device) for each in names}
    elif name == "pixel_values" and isinstance(getattr(config, "image_size", None), int):
        shape = (1, getattr(config, "num_channels", 3), config.image_size, config.image_size)
        found = {name: torch.zeros(shape, dtype=model.dtype, device=device)}
    else:
        raise ModelError(
            source, "", f"takes {printable(name)}, of no usual shape; expected a factory with example inputs"
        )
    size = "x".join(map(str, shape))
    note = f"the config leaves input sizes open; read at {name} {size}, --shape {name}=… for another"
    return found, Note("example-inputs", note)
