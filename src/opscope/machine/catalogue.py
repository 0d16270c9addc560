"""Name or file → Target: the folders of targets that plug-ins have, and a user's own TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from ..core.entries import called, known_entries, name_key, typed
from ..core.errors import TargetError, did_you_mean, printable
from ..core.plugins import target_files
from ..core.target_words import OUR_WORDS, TargetWords
from ..graph.graph import DType
from ..graph.kinds import KINDS, Family
from ..graph.work_families import WorkFamily
from .inheritance import KEY, Document, merged, with_bases
from .target import ANY, Figure, Target

SCHEMA = "opscope.target/1"
MAX_FILE_BYTES = 1 << 16  # a target file is a page or two; parsing a hostile one takes time quadratic in its size
MAX_NAME = 200  # of what may be meant

_DTYPES = {dtype.label for dtype in DType} | {ANY}
_DIVISORS = {  # figures that something is divided by
    "core_hz",
    "stats_hz",
    "integer_hz",
    "cores",
    "devices",
    "macs_per_cycle",
    "element_ops_per_cycle",
    "output_elements_per_cycle",
    "lookup_elements_per_cycle",
    "vector_bytes_per_cycle",
    "reached",
    "tile_extent",
    "produced_extent",
    "row_extent",
    "rows",
    "channels",
    "reduction_parts",
    "operand_bytes_per_cycle",
    "tap_extent",
    "efficiency",
    "write_efficiency",
    "bytes_per_second",
    "bytes_per_cycle",
    "core_bytes_per_second",
    "call_bytes_per_second",
    "link_bytes_per_second",
    "memory_bytes_per_second",
    "beats",
    "request_bytes",
    "burst_bytes",
    "block_commands",
    "ratio",
    "decoded_bytes_per_cycle",
}
_VARIANTS = {  # forms of kinds that cost differently
    f"{form}_{kind}" for form in ("scalar", "broadcast", "constant") for kind in ("add", "mul")
} | {"odd_transpose"}
_WORK = {family.value for family in WorkFamily}
_OPS = set(KINDS) | {family.value for family in Family} | {ANY}


_FIT = "calibration"  # the table that a fit writes
_TOLD_BY_FIT = (_FIT, "validation", "energy", "ram", "language_models")
_FITTED = "fit"  # the source of figures that it sets


def catalogue() -> dict[str, Path]:
    """Name → file of every target that is known without a path: those in the folders that plug-ins name."""
    return {name: path for name, (_, path) in target_files().items()}


def load(name: str) -> Target:
    """The target called `name`, or the one described by the file at that path."""
    if is_path(name):
        return read(Path(name))
    path = file_of(name)
    if path is None:
        raise unknown(name)
    return installed(path)


@cache  # as above: several stages of one command ask for the same target
def installed(path: Path) -> Target:
    """The target of a file of the catalogue, read once."""
    return read(path)


def words_of(carried: TargetWords | None, target: str) -> TargetWords:
    """The words that a program or a run carries; one of an earlier version has none, and gets those of its target."""
    if carried is not None:
        return carried
    path = catalogue().get(target)
    return OUR_WORDS if path is None else installed(path).words


def data_sheet(name: str) -> Target:
    """The target called `name` without what a fit to measurements wrote into it: the figures of its data sheet."""
    import msgspec

    path = file_of(name)
    if path is None:
        raise unknown(name)

    def document(at: Path) -> Document:
        found = _document(_bytes_of(at), str(at))
        return _without_fit(found) if _FIT in found else found

    return msgspec.convert(merged(with_bases(document(path), str(path), catalogue(), document)), Target)


def _without_fit(document: Document) -> Document:
    """The tables of a file that a fit wrote, without its figures and without what it says of itself."""
    return {key: _unfitted(value) for key, value in document.items() if key not in _TOLD_BY_FIT and not _is_fit(value)}


def _unfitted(value: object) -> object:
    if isinstance(value, list):
        return [_unfitted(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: _unfitted(part) for key, part in value.items() if not _is_fit(part)}


def _is_fit(value: object) -> bool:
    return isinstance(value, dict) and value.get("source") == _FITTED and "value" in value


def is_path(name: str) -> bool:
    """Whether a user means a file of his own, and not a name."""
    return name.endswith(".toml") or "/" in name or "\\" in name


def file_of(name: str) -> Path | None:
    """The file of the target of that name; or of the one target that is called like a part that has the name too."""
    known = catalogue()
    if name in known:
        return known[name]
    paths = files_called([name]) or files_called([word for each in called(name) for word in each.words])
    return paths[0] if len(paths) == 1 else None


def files_called(names: Iterable[str]) -> list[Path]:
    """The files of targets of which one of some names is the name, however it is written."""
    wanted = {name_key(name) for name in names}
    return [path for name, path in catalogue().items() if name_key(name) in wanted]


def unknown(name: str) -> TargetError:
    """What to say of a name that has no target file: who can tell of it, or what may be meant, among all entries."""
    found, listed = called(name), "(see `opscope targets`), or a path to your own .toml"
    same = [path.stem for path in files_called([word for each in found for word in each.words])]
    if same:
        return TargetError(
            printable(name), "", f"is called like several target files; expected one of {', '.join(same)}"
        )
    if found:
        able = " or ".join(dict.fromkeys(each.backend.name for each in found))
        problem = f"has no target file: only `opscope profile` can tell (--backend {able})"
        return TargetError(printable(name), "", f"{problem}; expected a target that has one {listed}")
    if name in {each.backend.name for each in known_entries()}:
        return TargetError(name, "", f"is a backend; expected --backend {name}, or a target {listed}")
    names = [*catalogue(), *(typed(word) for each in known_entries() for word in each.names)]
    hint = did_you_mean(typed(name[:MAX_NAME]), names)
    return TargetError(printable(name), "", f"no such target; {hint}expected one of the catalogue {listed}")


def read(path: Path) -> Target:
    """Read and check one target file."""
    return parse(_bytes_of(path), source=str(path))


def _bytes_of(path: Path) -> bytes:
    source = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TargetError(source, "", f"cannot be read ({error.strerror}); expected a target TOML file") from error
    if len(raw) > MAX_FILE_BYTES:
        raise TargetError(source, "", f"larger than {MAX_FILE_BYTES} bytes; expected a target TOML file")
    return raw


def parse(raw: bytes, *, source: str) -> Target:
    """Bytes of a target file, and the files it extends → Target; every problem names the line or the key."""
    layers = [(raw, source)]

    def read_base(path: Path) -> Document:
        layers.append((_bytes_of(path), str(path)))
        return _document(*layers[-1])

    document = _document(raw, source)
    if KEY in document:
        with_bases(document, source, catalogue(), read_base)
    return _target(tuple(layers))


@lru_cache(maxsize=16)
def _target(layers: tuple[tuple[bytes, str], ...]) -> Target:
    """The target of a file and those it extends, itself first. The same bytes are converted once."""
    import msgspec

    source = layers[0][1]
    try:
        target = msgspec.convert(merged([_document(*layer) for layer in layers]), Target)
    except (msgspec.ValidationError, OverflowError) as error:
        raise TargetError(source, *_place(printable(str(error), 400))) from error
    _check_vocabulary(target, source)
    _check_names(target, source)
    _check_figures(target, source)
    _check_language_models(target, source)
    return target


@lru_cache(maxsize=32)
def _document(raw: bytes, source: str) -> Document:
    """The tables of one file, each of its keys known; nobody changes them."""
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise TargetError(source, f"byte {error.start:#x}", "not UTF-8 text; expected a target TOML file") from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise TargetError(source, "", f"not valid TOML: {printable(str(error), 200)}") from error
    if document.get("schema") != SCHEMA:
        found = printable(repr(document.get("schema")))
        raise TargetError(source, "key schema", f"found {found}; expected {SCHEMA!r}")
    if "name" not in document:
        raise TargetError(source, "key name", "is missing; expected a name of the target's own")
    own = {key: value for key, value in document.items() if key != KEY}
    for place, problem in _KeyCheck().unknown(own, Target, ""):
        raise TargetError(source, f"key {printable(place)}", problem)
    return document


def _place(message: str) -> tuple[str, str]:
    """Key and problem from a message of msgspec, `Expected … - at `$.engines[0].name``."""
    match = re.fullmatch(r"(.*?) - at `(?:key in )?\$\.?(.*)`", message, flags=re.DOTALL)
    text = match[1] if match else message
    return (f"key {match[2]}" if match and match[2] else "", text[:1].lower() + text[1:])


class _KeyCheck:
    """Finds keys that the schema does not have: a typo must not be ignored silently."""

    def __init__(self) -> None:
        self._hints: dict[type, dict[str, object]] = {}  # a file has many figures of one class

    def unknown(self, value: object, kind: object, place: str) -> Iterator[tuple[str, str]]:
        """Yield key and problem of everything in a value of a TOML document that its type does not know."""
        origin = get_origin(kind)
        if origin in (Union, UnionType):
            (kind,) = (part for part in get_args(kind) if part is not type(None))
            origin = get_origin(kind)
        if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
            yield from self._in_table(value, kind, place)
        elif isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str):
            known = [str(member.value) for member in kind]
            if value not in known:
                hint = did_you_mean(value, known).strip() or f"expected one of {', '.join(known)}"
                yield place, f"{printable(repr(value))} is not known; {hint}"
        elif origin is tuple and isinstance(value, list):
            for number, part in enumerate(value):
                yield from self.unknown(part, get_args(kind)[0], f"{place}[{number}]")
        elif origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
            for key, part in value.items():
                yield from self.unknown(part, get_args(kind)[1], f"{place}.{key}")

    def _in_table(self, table: dict[str, object], kind: type, place: str) -> Iterator[tuple[str, str]]:
        if kind not in self._hints:
            self._hints[kind] = get_type_hints(kind)
        known = self._hints[kind]
        for key, part in table.items():
            where = f"{place}.{key}" if place else key
            if key in known:
                yield from self.unknown(part, known[key], where)
                continue
            hint = did_you_mean(key, known).strip() or f"expected one of {', '.join(known)}"
            yield where, f"is not a key of the schema; {hint}"


def _check_vocabulary(target: Target, source: str) -> None:
    for place, words, known in _vocabulary(target):
        for word in words:
            if word not in known:
                hint = did_you_mean(word, known).strip() or f"expected one of {', '.join(sorted(known))}"
                raise TargetError(source, f"key {place}", f"{printable(repr(word))} is not known; {hint}")


def _vocabulary(target: Target) -> Iterator[tuple[str, Iterable[str], Collection[str]]]:
    """Key, the words found there, and the words that have a meaning there."""
    for number, engine in enumerate(target.engines):
        place = f"engines[{number}]"
        yield f"{place}.ops", engine.ops, _OPS
        yield f"{place}.kernels", engine.kernels, _OPS | _VARIANTS
        yield f"{place}.macs_per_cycle", engine.macs_per_cycle, _DTYPES
        yield f"{place}.element_ops_per_cycle", engine.element_ops_per_cycle, _DTYPES
        yield f"{place}.output_elements_per_cycle", engine.output_elements_per_cycle, _DTYPES
        yield f"{place}.commands", engine.commands, _OPS
        yield f"{place}.shared_work", engine.shared_work, _WORK
        for name, shapes in (("array_shapes", engine.array_shapes), ("output_blocks", engine.output_blocks)):
            for shape in shapes:
                yield f"{place}.{name}.work", shape.work, _WORK
        yield f"{place}.reached", engine.reached, _WORK | set(KINDS)
        for family, table in engine.reached.items():
            yield f"{place}.reached.{family}", table, _DTYPES
        yield f"{place}.picojoules_per_mac", engine.picojoules_per_mac, _DTYPES
        yield f"{place}.picojoules_per_element_op", engine.picojoules_per_element_op, _DTYPES
    yield "call_seconds", target.call_seconds, _DTYPES
    yield "runtime.in_place", target.runtime.in_place, KINDS
    yield "runtime.fuses", target.runtime.fuses, KINDS
    yield "runtime.reorders", target.runtime.reorders, _WORK
    yield "runtime.rescales", target.runtime.rescales, KINDS
    yield "runtime.floats", target.runtime.floats, KINDS
    yield "runtime.planes", target.runtime.planes, KINDS
    yield "support.dtypes", target.support.dtypes, _DTYPES - {ANY}
    yield "precision", (*target.precision, *target.precision.values()), _DTYPES - {ANY}


def _check_names(target: Target, source: str) -> None:
    """Refuse two engines, two memories or two routes of one name: people could not tell apart what each takes, and
    totals are kept by name."""
    parts = (
        ("engines", [engine.name for engine in target.engines]),
        ("memories", [memory.name for memory in target.memories]),
        ("routes", [route.name for route in target.routes]),
    )
    for key, names in parts:
        for number, name in enumerate(names):
            if name in names[:number]:
                found = printable(repr(name))
                raise TargetError(source, f"key {key}[{number}].name", f"{found} is taken; expected a name of its own")


def _check_figures(target: Target, source: str) -> None:
    for place, figure in figures(target):
        if figure.source not in target.sources:
            found, known = printable(repr(figure.source)), ", ".join(target.sources)
            problem = f"{found} is not a key of [sources]; expected one of {printable(known, 400)}"
            raise TargetError(source, f"key {printable(place)}.source", problem)
        divides = not _DIVISORS.isdisjoint(re.split(r"[.\[]", place)) or place.endswith("].bytes")
        if not (isfinite(figure.largest) and (figure.smallest > 0 or (figure.smallest == 0 and not divides))):
            expected = "a number above 0" if divides else "0 or a number above it"
            found = f"{figure.smallest:g}" if figure.smallest <= 0 else f"{figure.largest:g}"
            raise TargetError(source, f"key {printable(place)}", f"found {found}; expected {expected}")


def _check_language_models(target: Target, source: str) -> None:
    """Figures for language models replace figures that are there, or add a data type beside the others."""
    new = target.language_models.figures if target.language_models is not None else {}
    known = [key for key, _ in figures(replace(target, language_models=None))] if new else []
    tables = {table for table, _, leaf in (key.rpartition(".") for key in known) if leaf in _DTYPES}
    for key in new:
        table, _, leaf = key.rpartition(".")
        if key not in known and not (table in tables and leaf in _DTYPES):
            hint = did_you_mean(key, known).strip() or "expected the key of a figure of the target"
            raise TargetError(source, f"key language_models.figures.{printable(key)}", f"is not there; {hint}")


def figures(noun: object, place: str = "") -> Iterator[tuple[str, Figure]]:
    """Yield every figure of a target with its key, in the order of the fields."""
    if isinstance(noun, Figure):
        yield place, noun
    elif is_dataclass(noun) and not isinstance(noun, type):
        for part in fields(noun):
            yield from figures(getattr(noun, part.name), f"{place}.{part.name}" if place else part.name)
    elif isinstance(noun, Mapping):
        for key, value in noun.items():
            yield from figures(value, f"{place}.{key}")
    elif isinstance(noun, tuple):
        for number, value in enumerate(noun):
            yield from figures(value, f"{place}[{number}]")


def for_language_models(target: Target) -> Target:
    """The target as language models meet it: with the figures, and the fit to measurements, that hold for them.

    Of all their weights next to nothing stays in local memory, however much of one layer would.
    """
    found = target.language_models
    if target.tiling is not None:
        target = replace(target, tiling=replace(target.tiling, keeps_constants=False))
    if any(memory.resident_share is not None for memory in target.memories):
        target = replace(target, memories=tuple(replace(each, resident_share=None) for each in target.memories))
    if found is None:
        return target
    fitted = found.calibration is not None
    return replace(
        with_figures(target, found.figures),
        calibration=found.calibration if fitted or found.figures else target.calibration,
        validation=found.validation if fitted or found.figures else target.validation,
    )


def with_figures(target: Target, new: Mapping[str, Figure]) -> Target:
    """A target with other figures at some keys."""
    import msgspec

    document = msgspec.to_builtins(target)
    for key, figure in new.items():
        place = document
        *path, leaf = _steps(key)
        for step in path:
            place = place[step]
        place[leaf] = msgspec.to_builtins(figure)
    return msgspec.convert(document, Target)


def _steps(key: str) -> list[str | int]:
    steps: list[str | int] = []
    for word in key.replace("[", ".[").split("."):
        steps.append(int(word[1:-1]) if word.startswith("[") else word)
    return steps
