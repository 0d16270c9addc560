"""A model by its name, its `config.json` or the folder that has one → Architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from ..core.errors import ImportFileError, ModelError, UsageError, did_you_mean, printable
from ..core.json_files import decode_json
from .architecture import Architecture
from .built_in import BUILT_IN
from .families import FAMILIES, NESTED
from .families.fields import Fields

FILE = "config.json"
_LARGEST_BYTES = 4 << 20  # configs of the largest models have some 10 KB, with maps of labels some 100
_NESTED = ("text_config", "language_config", "llm_config")  # where a model of several kinds of input has its decoder
_JSON = msgspec.json.Decoder(dict[str, object])


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
    try:
        values = decode_json(raw, _JSON, source=source)
    except ImportFileError as error:
        raise ModelError(source, "", str(error).removeprefix(f"{source}: ")) from error
    name = path.absolute().parent.name if path.name == FILE else path.stem
    return describe(values, source=source, name=name)


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
    return replace(found, name=printable(name) or found.name, notes=tuple(_notes(fields)))


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
    if said.get("model_type") in NESTED:  # a decoder that bears the name of the whole
        said["model_type"] = NESTED[str(said["model_type"])]
    return replace(inner, values={**inner.values, **outside, **said})
