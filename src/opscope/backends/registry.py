"""Model file → Recording, through a real runtime. One module per runtime; plug-ins are found by entry point.

A backend is an object with the members of `Backend`. A package offers one under the entry point group
`opscope.backends`; the entry's name is the backend's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from ..core.errors import UsageError, did_you_mean, printable
from ..recording.recording import Recording

Value = str | int | bool | None

_BUILT_IN = {  # name → module, class
    "htp": ("qnn", "HtpBackend"),
    "ort": ("ort", "OrtBackend"),
    "vela": ("ethosu", "VelaBackend"),
    "litert": ("litert", "LitertBackend"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """A choice that a backend offers, as the command line shows it."""

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: Value = None
    is_flag: bool = False
    is_number: bool = False
    metavar: str = "V"


@dataclass(frozen=True, slots=True)
class BackendState:
    """Whether a backend works on this machine."""

    name: str
    title: str
    works: bool
    version: str  # empty: not installed
    detail: str  # what it can do here, or what is missing
    install: str = ""  # the command that brings it


class Backend(Protocol):
    """A runtime that can profile a model."""

    name: str
    title: str
    options: tuple[Option, ...]

    def state(self) -> BackendState: ...

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording: ...


def names() -> tuple[str, ...]:
    """Every backend that is known: built in first, then plug-ins."""
    return tuple(dict.fromkeys((*_BUILT_IN, *(name for name, _ in _plugins()))))


def load(name: str) -> Backend:
    """The backend called `name`."""
    if name in _BUILT_IN:
        module, kind = _BUILT_IN[name]
        backend: Backend = getattr(import_module(f"opscope.plugins.{module}.backend"), kind)()
        return backend
    for known, place in _plugins():
        if known == name:
            found: Backend = place.load()  # type: ignore[attr-defined]
            return found() if isinstance(found, type) else found
    hint = did_you_mean(name, names())
    raise UsageError(f"backend {printable(name)!r}: not known; {hint}known: {', '.join(names())}")


def _plugins() -> Iterator[tuple[str, object]]:
    from importlib.metadata import entry_points

    for entry in entry_points(group="opscope.backends"):
        yield entry.name, entry
