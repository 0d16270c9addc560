"""Model file → Recording, through a real runtime or a vendor's compiler. Manifests of plug-ins say which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ..core.converting_options import CONVERTING
from ..core.errors import UsageError, did_you_mean, printable
from ..core.manifest import MODULES, BackendEntry, Can, Option, Value
from ..core.plugins import load_place, manifests

if TYPE_CHECKING:
    from ..readers.torch import TorchModel
    from ..recording.recording import Recording
    from ..recording.what_if import WhatIf

TOOL = Option("tool", "one of the programs of the backend, or their folder", metavar="PATH")

Shapes = Mapping[str, tuple[int, ...]]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BackendState:
    """Whether a backend works on this machine."""

    name: str
    title: str
    works: bool
    version: str  # empty: not installed
    detail: str  # what it can do here, or what is missing
    install: str = ""  # the command that brings it


def package_state(entry: BackendEntry, package: str, install: str, detail: Callable[[], str]) -> BackendState:
    """Of a backend that is a Python package: looks without loading it; `detail` is what it can do here."""
    from importlib.metadata import PackageNotFoundError, version  # which takes longer than `opscope --help`

    try:
        found = version(package)
    except PackageNotFoundError:
        return BackendState(entry.name, entry.title, False, "", f"{package} is not installed", install)
    return BackendState(entry.name, entry.title, True, found, detail())


class Backend(Protocol):
    """A runtime that can profile a model."""

    def state(self) -> BackendState: ...

    def profile(self, model: Path, options: Mapping[str, Value], *, shapes: Shapes | None = None) -> Recording: ...


class Modules(Protocol):
    """A backend that runs modules of PyTorch (MODULES among its models); it takes no file."""

    def profile_module(self, model: TorchModel, options: Mapping[str, Value]) -> Recording: ...


class Executing(Protocol):
    """A backend that can run a model for its outputs (Can.EXECUTE)."""

    def execute(
        self,
        model: Path,
        options: Mapping[str, Value],
        output: Path,
        *,
        inputs: Path | None = None,
        shapes: Shapes | None = None,
    ) -> None: ...


class WhatIfs(Protocol):
    """Other choices of a backend, tried (Can.ADVISE and Can.WHAT_IF)."""

    def advise(
        self,
        model: Path,
        recording: Recording,
        options: Mapping[str, Value],
        *,
        shapes: Shapes,
        progress: Progress | None = None,
    ) -> Recording:
        """The recording, with causes that name the choices which make it faster."""

    def grid(
        self,
        model: Path,
        axes: Mapping[str, Sequence[str]],
        *,
        shapes: Shapes,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> WhatIf:
        """Every combination of the values of each option."""


def entries() -> tuple[BackendEntry, ...]:
    """Every backend that is known, with the options that its entry gives it without declaring them.

    One that starts programs of an environment has `--tool`; one that says which models it takes, and makes no copies
    itself, has those of conversion.
    """
    return tuple(
        entry._replace(options=(*entry.options, *(TOOL,) * bool(entry.environment), *_converting(entry)))
        for manifest in manifests()
        for entry in manifest.backends
    )


def _converting(entry: BackendEntry) -> tuple[Option, ...]:
    declared = {option.name for option in entry.options}
    converts = entry.models and MODULES not in entry.models
    return CONVERTING if converts and declared.isdisjoint(option.name for option in CONVERTING) else ()


def converts(entry: BackendEntry) -> bool:
    """Whether models are brought to the form that the backend takes before it sees them."""
    return CONVERTING[0] in entry.options


def names(can: Can | None = None) -> tuple[str, ...]:
    """Of every backend that is known; of those that can do something."""
    return tuple(entry.name for entry in entries() if can is None or can in entry.can)


def find(name: str, can: Can | None = None) -> BackendEntry:
    """The entry of a backend; one that lacks an ability that is asked for is an error."""
    found = next((entry for entry in entries() if entry.name == name), None)
    if found is None:
        hint = did_you_mean(name, names())
        raise UsageError(f"backend {printable(name)!r}: not known; {hint}known: {', '.join(names()) or 'none'}")
    if can is not None and can not in found.can:
        raise UsageError(f"--{can}: backend {name} cannot; expected {', '.join(names(can)) or 'a plug-in that can'}")
    return found


def load(name: str) -> Backend:
    """The backend called `name`."""
    entry = find(name)
    return cast("Backend", _object(entry, entry.place))


def state_now(name: str) -> BackendState:
    """Whether the backend called `name` works here; one that cannot be loaded, or is misled, does not."""
    try:
        return load(name).state()
    except UsageError as error:
        return BackendState(name, find(name).title, False, "", str(error))


@cache  # what is installed does not change while a program runs, and many entries of the catalogue ask
def state(name: str) -> BackendState:
    """The same, looked at once."""
    return state_now(name)


def load_modules(name: str) -> Modules:
    """The backend called `name`, which runs modules of PyTorch."""
    entry = find(name)
    return cast("Modules", _object(entry, entry.place))


def load_executing(name: str) -> Executing:
    """The backend called `name`, which can run a model for its outputs."""
    entry = find(name, Can.EXECUTE)
    return cast("Executing", _object(entry, entry.place))


def load_what_ifs(name: str, can: Can) -> WhatIfs:
    """The part of the backend called `name` that tries other choices."""
    entry = find(name, can)
    return cast("WhatIfs", _object(entry, entry.what_if))


def load_recipe(name: str) -> object | None:
    """How copies are quantised for the backend called `name`; None: it has no wishes."""
    entry = find(name)
    return _object(entry, entry.recipe) if entry.recipe else None


def _object(entry: BackendEntry, place: str) -> object:
    (manifest,) = (m for m in manifests() if entry.name in {backend.name for backend in m.backends})
    found = load_place(manifest, place)
    return found() if isinstance(found, type) else found
