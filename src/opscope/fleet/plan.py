"""Spec → the cells of a sweep, each with the key of everything that its figures depend on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import product
from pathlib import Path

import msgspec

from .. import __version__
from ..backends import environments
from ..backends import registry as backends
from ..core.errors import ProfilerError, UsageError, did_you_mean, printable
from ..core.files import sha256_of
from ..core.keys import code_of, digest_of
from ..core.manifest import Option
from ..language_models.cell import BACKEND as LANGUAGE_MODELS
from ..language_models.cell import OPTIONS as OF_LANGUAGE_MODELS
from ..language_models.config import FILE as CONFIG_FILE
from ..machine import catalogue as targets
from ..machine.target import Target
from ..options import shapes_text
from ..workflows import catalogue
from ..workflows.own_backends import OWN
from .rows import options_text, series_of
from .spec import Spec, Value, spelt

MOST_CELLS = 10_000_000
OURS = {**OWN, LANGUAGE_MODELS: OF_LANGUAGE_MODELS}  # backends that take a target, with their options
TARGET, BACKEND, MODEL, SHAPE = "target", "backend", "model", "shape"
CODE = (  # what figures are made by; pages and command lines are not
    *("core", "options", "graph", "machine", "program", "recording", "readers", "estimate", "simulation", "compiler"),
    *("device", "decode", "analysis", "changes", "quantization", "conversion", "workflows", "backends", "importers"),
    *("plugins", "language_models"),
)

Versions = Callable[[str], str]  # backend → version of the tool behind it


class Cell(msgspec.Struct, frozen=True):
    """One profile of a sweep."""

    id: str
    key: str
    series: str
    model: str  # for people
    path: str  # of its file
    shown_path: str  # as the store has it: from the folder of the spec where the file is below it
    sha256: str
    target: str  # an entry of the catalogue, or the path of a file; empty: the backend has its own choice
    target_name: str  # for people
    backend: str
    options: dict[str, Value]
    version: str = ""  # of the tool behind the backend
    resources: dict[str, float] = {}  # what it needs of a worker of a cluster


def planned(spec: Spec, *, versions: Versions | None = None, again: str = "") -> list[Cell]:
    """Every cell, models outermost, so that a worker that takes them in order reads a model once.

    `again` marks cells that are to be profiled although the store has them.
    """
    told = versions or tool_version
    choices = [_with_target_file(choice, spec.folder) for choice in _choices(spec)]
    context = _Context({}, {}, code_digest(), again)
    by_format: dict[str, list[dict[str, Value]]] = {}
    cells: dict[str, Cell] = {}
    for path in _models(spec):
        model = _Model(path, _shown(path, spec.folder), _fingerprint(path))
        form = _format_of(path)
        if form not in by_format:  # who tells about a target may depend on it
            sources = Sources(path if form else None)
            by_format[form] = list(_applied(choices, sources))
            context.machines.update(sources.machines)
            used = {(str(choice[BACKEND]), _tool(choice)) for choice in by_format[form]} - context.tools.keys()
            context.tools.update({(name, tool): told(name) for name, tool in used if versions or not tool})
            context.tools.update(
                {(name, tool): _version_at(name, tool) for name, tool in used if tool and not versions}
            )
        for choice in by_format[form]:
            words = {MODEL: _name(path), **{name: spelt(value) for name, value in choice.items()}}
            if not _is_wanted(spec, words, model.shown):
                continue
            shapes = {
                name: shape for pattern, found in spec.shapes if pattern.fits(words) for name, shape in found.items()
            }
            cell = _cell(model, {**choice, SHAPE: shapes_text(shapes)} if shapes else choice, context)
            needs = {name: n for pattern, needs in spec.resources if pattern.fits(words) for name, n in needs.items()}
            cells.setdefault(cell.id, msgspec.structs.replace(cell, resources=needs) if needs else cell)
            if len(cells) > MOST_CELLS:
                raise UsageError(f"sweep: more than {MOST_CELLS:,} cells; expected fewer values or models")
    if not cells:
        raise UsageError("sweep: every combination is excluded; expected at least one cell")
    return list(cells.values())


def tool_version(backend: str) -> str:
    """Of what is installed here; our own backends have that of opscope, which is in every key."""
    return "" if backend in OURS else backends.load(backend).state().version


def _tool(choice: Mapping[str, Value]) -> str:
    """Where the programs of a backend are to be taken from; empty: where it finds them."""
    return str(choice.get(backends.TOOL.name) or "")


def _version_at(backend: str, tool: str) -> str:
    return environments.version(environments.found(backends.find(backend).environment, tool))


def code_digest() -> str:
    """Of the code that figures are made by."""
    return code_of(*CODE)


@dataclass(frozen=True, slots=True)
class _Context:
    """What all cells of a plan share."""

    machines: dict[str, Target]  # by target, where a file describes it
    tools: dict[tuple[str, str], str]  # backend, and where its programs are → version of the tool behind it
    code: str
    again: str


@dataclass(frozen=True, slots=True)
class _Model:
    path: Path
    shown: str
    sha256: str


def _cell(model: _Model, choice: Mapping[str, Value], context: _Context) -> Cell:
    backend, target = str(choice[BACKEND]), str(choice.get(TARGET, ""))
    options = {name: value for name, value in choice.items() if name not in (BACKEND, TARGET)}
    machine, version = context.machines[target] if backend in OURS else None, context.tools[backend, _tool(options)]
    name = (target or _part(backend, options)) if machine is None else machine.name
    what = repr(machine or target)
    key = digest_of(model.sha256, what, backend, options_text(options), __version__, context.code, version)
    series = series_of(model.shown, name, backend, options)
    return Cell(
        id=digest_of(key, series, context.again),  # two models of the same bytes are two rows
        key=key,
        series=series,
        model=_name(model.path),
        path=str(model.path),
        shown_path=model.shown,
        sha256=model.sha256,
        target=target,
        target_name=name,
        backend=backend,
        options=options,
        version=version,
    )


def _choices(spec: Spec) -> Iterator[dict[str, Value]]:
    """Every combination of the axes."""
    together = {name: group for group in spec.zipped for name in group}
    groups = list(dict.fromkeys(together.get(name, (name,)) for name in spec.axes))
    lists: list[Sequence[tuple[Value, ...]]] = [
        list(zip(*(spec.axes[name] for name in group), strict=True)) for group in groups
    ]
    for found in product(*lists):
        yield {
            name: value
            for group, values in zip(groups, found, strict=True)
            for name, value in zip(group, values, strict=True)
        }


def _with_target_file(choice: dict[str, Value], folder: Path) -> dict[str, Value]:
    """The file of a target is named from the folder of the spec, and by its whole path to other machines."""
    name = str(choice.get(TARGET, ""))
    return {**choice, TARGET: str((folder / name).resolve())} if name.endswith(".toml") else choice


class Sources:
    """Who tells about the targets of a sweep, for models of one format: as `opscope profile` chooses."""

    def __init__(self, model: Path | None) -> None:
        self.machines: dict[str, Target] = {}  # of our own backends, by target
        self._model = model
        self._found: dict[tuple[object, ...], tuple[str, str]] = {}
        self._parts = {entry.part for entry in backends.entries() if entry.part}

    def backend_and_target(self, choice: Mapping[str, Value]) -> tuple[str, str]:
        """Of a choice; the target is empty where a runtime has its own choice of hardware."""
        target, backend = str(choice.get(TARGET, "")), str(choice.get(BACKEND, ""))
        options = {name: value for name, value in choice.items() if name not in (TARGET, BACKEND)}
        parts = {name: value for name, value in options.items() if name in self._parts}
        if not target and backend in OURS:
            raise UsageError(f"backend {backend}: needs a target; expected --target NAME,…")
        if not (target or backend or parts):
            raise UsageError("sweep: no target and no backend; expected --target NAME,… or --backend of a runtime")
        key = target, backend, tuple(options), tuple(parts.items())
        if key not in self._found:
            self._found[key] = self._choose(target, backend, options)
        return self._found[key]

    def _choose(self, target: str, backend: str, options: Mapping[str, Value]) -> tuple[str, str]:
        if backend == LANGUAGE_MODELS:
            self.machines[target] = targets.load(target)
            return backend, target
        if target and backend and backend not in OURS:
            known = {source.backend for source in catalogue.find(target).sources}
            if backend not in known:  # the target is for other backends of the sweep
                return backends.find(backend).name, ""
        found = catalogue.choose(target or None, backend=backend or None, options=options, model=self._model)
        if found.target is not None:
            target = target or found.target.name
            self.machines[target] = found.target
        return found.backend, target


def _applied(choices: Sequence[Mapping[str, Value]], sources: Sources) -> Iterator[dict[str, Value]]:
    """With a backend each, and without what that backend does not have; an axis that none has is an error."""
    seen: set[str] = set()
    left: set[str] = set()
    done: set[str] = set()
    for choice in choices:
        backend, target = sources.backend_and_target(choice)
        offered = _offered(backend)
        applied: dict[str, Value] = {BACKEND: backend}
        if target:
            applied[TARGET] = target
        for name, value in choice.items():
            if name in offered:
                applied[name] = _converted(offered[name], value)
        seen |= applied.keys()
        left |= choice.keys()
        text = options_text(applied)
        if text not in done:
            done.add(text)
            yield applied
    for name in sorted(left - seen):
        known = sorted({option for choice in choices for option in _offered(str(choice.get(BACKEND) or "sim"))})
        hint = did_you_mean(name, known)
        raise UsageError(
            f"axis {printable(name)}: no backend of the sweep has it; {hint}expected of {', '.join(known)}"
        )


def _part(backend: str, options: Mapping[str, Value]) -> str:
    """The part that an option of the backend's own asks for."""
    return "" if backend in OURS else str(options.get(backends.find(backend).part, ""))


def _format_of(path: Path) -> str:
    """Of a model; empty where it cannot be told: the cell says why when it runs."""
    try:
        return catalogue.format_of(path)
    except ProfilerError:
        return ""


def _offered(backend: str) -> dict[str, Option]:
    rows = OURS[backend] if backend in OURS else backends.find(backend).options
    return {option.name: option for option in rows}


def _converted(option: Option, value: Value) -> Value:
    """As the backend takes it; what cannot be is an error before anything runs."""
    text = spelt(value)
    if option.is_flag:
        if text not in ("true", "false"):
            raise UsageError(f"axis {option.name}: {printable(text)!r}; expected true or false")
        return text == "true"
    if option.is_number:
        if not text.isdecimal() or not 0 < int(text) < 1 << 31:
            raise UsageError(f"axis {option.name}: {printable(text)!r}; expected a whole number of at least 1")
        return int(text)
    if option.choices and text not in option.choices:
        known = ", ".join(option.choices)
        raise UsageError(f"axis {option.name}: {printable(text)!r}: not known; expected one of {known}")
    return text


def _models(spec: Spec) -> Iterator[Path]:
    """Files in order, each once; a pattern that finds nothing is an error."""
    found: dict[Path, None] = {}
    for text in spec.models:
        place = spec.folder / text
        pattern = has_magic(text)
        names = sorted(glob(str(place), recursive=True)) if pattern else [str(place)]  # noqa: PTH207 - also absolute
        files = [Path(os.path.normpath(name)) for name in names if Path(name).is_file()]
        if not files:
            raise UsageError(f"{printable(str(place))}: no such file; expected a model, or a pattern such as *.onnx")
        found |= dict.fromkeys(files)
    return iter(path.resolve() for path in found)


def _name(path: Path) -> str:
    """For people: every config has the same name, and is told by its folder."""
    return path.parent.name if path.name == CONFIG_FILE else path.stem


def _shown(path: Path, folder: Path) -> str:
    top = folder.resolve()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.as_posix()


def _fingerprint(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected a model file") from error


def _is_wanted(spec: Spec, words: Mapping[str, str], shown: str) -> bool:
    """`model` is matched by its name, or by its path where the pattern has a slash."""
    by_path = {**words, MODEL: shown}
    either = [any(pattern.fits(form) for form in (words, by_path)) for pattern in spec.only]
    return (not either or any(either)) and not any(
        pattern.fits(form) for pattern in spec.exclude for form in (words, by_path)
    )
