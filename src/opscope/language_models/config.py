"""A model by its name, its `config.json` or the folder that has one → Architecture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..core.errors import ModelError, UsageError, did_you_mean, printable
from .architecture import Architecture, Mixture
from .built_in import BUILT_IN
from .families import FAMILIES, NESTED
from .families.fields import Fields

FILE = "config.json"
_LARGEST_BYTES = 4 << 20  # configs of the largest models have some 10 KB, with maps of labels some 100
_NESTED = ("text_config", "language_config", "llm_config")  # where a model of several kinds of input has its decoder
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_BY_LAYER = "per_layer_config"
_GEMMA_4 = "gemma4_text"
_MOST_PARAMETERS = 1e14  # the largest published models have some 1e12
# Sizes that a nested decoder leaves out where they are those of its config class (LLaVA 1.5 and 1.6, VipLLaVA).
_CLASS_SIZES: Mapping[str, Mapping[str, int]] = {
    "llama": {"hidden_size": 4096, "intermediate_size": 11008, "vocab_size": 32000},
    "mistral": {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 32000, "num_key_value_heads": 8},
}
_CLASS_LAYERS: Mapping[str, int] = {"num_hidden_layers": 32, "num_attention_heads": 32}


def load(what: str | Path) -> Architecture:
    """The model that a user names: a file, a folder or a built-in name."""
    path = Path(what)
    try:
        if path.is_dir() and str(what):
            return read_config(path / FILE)
        if path.is_file():
            return read_config(path)
    except (OSError, ValueError):  # no path can have this name
        pass
    return _built_in(str(what))


def _built_in(name: str) -> Architecture:
    found = BUILT_IN.get(name.lower()) or next((row for row in BUILT_IN.values() if row.source == name), None)
    if found is None:
        hint = did_you_mean(name.lower(), BUILT_IN)
        raise UsageError(
            f"{printable(name)}: neither a file nor a built-in model; {hint}expected a {FILE}, a folder with one, or a "
            "name of `opscope llm --list`"
        )
    return describe(found.config, source=found.name, name=found.name)


def read_config(path: Path) -> Architecture:
    """The model that a config describes; it is called as its folder is."""
    source = str(path)
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            raise ModelError(source, "", f"is {size:,} bytes; expected at most {_LARGEST_BYTES:,}")
        raw = path.read_bytes()
    except OSError as error:
        raise ModelError(source, "", f"{error.strerror or error}; expected a {FILE}") from error
    values = _parsed(raw, source)
    name = path.absolute().parent.name if path.name == FILE else path.stem
    return describe(values, source=source, name=name)


def _parsed(raw: bytes, source: str) -> Mapping[str, object]:
    """The object of a config; `Infinity` and `NaN` are what Hugging Face writes for limits of a state space's steps."""
    try:
        values = json.loads(raw.decode())
    except RecursionError as error:
        raise ModelError(source, "", "nested too deep; expected the JSON of a config") from error
    except json.JSONDecodeError as error:
        what = (
            f"cut short after {len(raw)} bytes"
            if error.pos >= len(error.doc.rstrip())
            else f"byte {error.pos:#x}: {error.msg}"
        )
        raise ModelError(source, "", f"{what}; expected JSON") from error
    except ValueError as error:  # not UTF-8, or a number of thousands of digits
        raise ModelError(source, "", f"{printable(str(error), 100)}; expected JSON") from error
    if not isinstance(values, dict):
        raise ModelError(source, "", f"is a {type(values).__name__}; expected an object of fields")
    return values


def describe(values: Mapping[str, object], *, source: str, name: str = "") -> Architecture:
    """The model of a config's fields; a family that is not known is refused by its name."""
    fields = _decoder(Fields(source, values))
    family = fields.word("model_type")
    known = ", ".join(sorted(FAMILIES))
    if not family:
        raise fields.error("model_type", f"is missing; expected one of {known}")
    if family not in FAMILIES:
        hint = did_you_mean(family, FAMILIES)
        raise fields.error("model_type", f"{printable(family)} is not known; {hint}expected one of {known}")
    found = FAMILIES[family](fields)
    _check_is_whole(fields, found)
    return replace(found, name=printable(name) or found.name, notes=tuple(_notes(fields)))


def _check_is_whole(fields: Fields, found: Architecture) -> None:
    """Refuse what a config says and the family is not read with: a model without it would be another one."""
    has_experts = any(isinstance(layer.feed_forward, Mixture) for layer in found.repeats)
    if found.parameters > _MOST_PARAMETERS:
        said = f"make {found.parameters:.1e} parameters; expected at most {_MOST_PARAMETERS:.0e}"
        raise ModelError(fields.source, fields.place, f"sizes {said}")
    if found.family == _GEMMA_4:  # has a switch for its experts, and says what differs by layer
        return
    for name in _EXPERTS:
        count = fields.values.get(name)
        if not has_experts and isinstance(count, int) and count > 1 and not isinstance(count, bool):
            raise fields.error(name, f"is {count}; {found.family} is known without experts: expected 0, 1 or null")
    if fields.has(_BY_LAYER):
        raise fields.error(_BY_LAYER, f"is not known for {found.family}; expected equal layers")


def _notes(fields: Fields) -> Iterator[str]:
    if fields.count("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, least=0):
        yield "layers that guess further tokens are left out"


def _decoder(fields: Fields) -> Fields:
    """The fields of the decoder, which models with several kinds of input nest; a tied head may be said outside."""
    family = fields.word("model_type")
    place = next((name for name in _NESTED if fields.has(name)), "")
    if not place:
        return fields
    inner = fields.inner(place)
    outside = {
        "tie_word_embeddings": fields.values.get("tie_word_embeddings"),
        "model_type": NESTED.get(family, family),
    }
    said = {name: value for name, value in inner.values.items() if value is not None}
    own = inner.word("model_type")
    if own in NESTED:  # a decoder that bears the name of the whole
        said["model_type"] = NESTED[own]
    sizes = _CLASS_SIZES.get(str(said.get("model_type", outside["model_type"])), {})
    defaults = {**sizes, **_CLASS_LAYERS} if sizes else {}
    return replace(inner, values={**inner.values, **defaults, **outside, **said})
