"""Spec: what a sweep is asked to profile, from a TOML file or a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..core.errors import UsageError, did_you_mean, printable
from ..core.files import read_whole
from ..options import Shapes, extents

Value = str | int | bool
LARGEST_BYTES = 1 << 24


class _Needs(msgspec.Struct, forbid_unknown_fields=True):
    needs: dict[str, float]
    when: dict[str, Value | list[Value]] = {}


class _Shaped(msgspec.Struct, forbid_unknown_fields=True):
    shape: dict[str, str | int]
    when: dict[str, Value | list[Value]] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    models: list[str]
    axes: dict[str, Value | list[Value]] = {}
    zip: list[list[str]] = []
    exclude: list[dict[str, Value | list[Value]]] = []
    only: list[dict[str, Value | list[Value]]] = []
    resources: list[_Needs] = []
    shapes: list[_Shaped] = []


@dataclass(frozen=True, slots=True)
class Pattern:
    """Cells that have one of the values for every axis that is named."""

    values: Mapping[str, tuple[str, ...]]

    def fits(self, cell: Mapping[str, str]) -> bool:
        """Text against text; a * stands for anything."""
        return all(any(_like(cell.get(axis, ""), value) for value in values) for axis, values in self.values.items())


def _like(text: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Spec:
    """Models, and the values of every axis; each combination is a cell."""

    models: tuple[str, ...]  # files, or patterns of them, below `folder`
    folder: Path
    axes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)  # target, backend, and options of backends
    zipped: tuple[tuple[str, ...], ...] = ()  # axes that go together, first value with first value
    exclude: tuple[Pattern, ...] = ()
    only: tuple[Pattern, ...] = ()  # where there are any, a cell fits one of them
    resources: tuple[tuple[Pattern, Mapping[str, float]], ...] = ()  # what cells need of a worker of a cluster
    shapes: tuple[tuple[Pattern, Shapes], ...] = ()  # of inputs, for dimensions that models leave open

    def __post_init__(self) -> None:
        if not self.models:
            raise UsageError("sweep: no models; expected at least one file or pattern, such as models/*.onnx")
        for name, values in self.axes.items():
            if not values:
                raise UsageError(f"axis {printable(name)}: has no value; expected at least one")
        seen: list[str] = []
        for group in self.zipped:
            self._check_zip(group)
            seen += group
        if len(set(seen)) < len(seen):
            raise UsageError("zip: an axis is named twice; expected each in one list at the most")
        for group in (*self.zipped, *((name,) for name in self.axes if name not in seen)):
            together = list(zip(*(map(repr, self.axes[name]) for name in group), strict=True))
            if len(set(together)) < len(together):
                raise UsageError(f"axis {printable(', '.join(group))}: has a value twice; expected each once")

    def _check_zip(self, group: Sequence[str]) -> None:
        for name in group:
            if name not in self.axes:
                known = f"{did_you_mean(name, self.axes)}expected of {', '.join(self.axes) or 'no axes at all'}"
                raise UsageError(f"zip: {printable(name)!r} is no axis of the sweep; {known}")
        lengths = {name: len(self.axes[name]) for name in group}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {count}" for name, count in lengths.items())
            raise UsageError(f"zip: lists of different lengths ({told}); expected as many values of each")


def read_spec(path: Path) -> Spec:
    """Of a TOML file; patterns of models are taken from its folder."""
    raw = read_whole(path, "a sweep in TOML", most_bytes=LARGEST_BYTES)
    try:
        found = msgspec.toml.decode(raw, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        known = "models, axes, zip, exclude, only, shapes, resources (see docs/fleet.md)"
        raise UsageError(f"{path}: {printable(str(error), 300)}; expected {known}") from error
    return Spec(
        models=tuple(found.models),
        folder=path.parent,
        axes={name: _listed(values) for name, values in found.axes.items()},
        zipped=tuple(map(tuple, found.zip)),
        exclude=tuple(pattern(table) for table in found.exclude),
        only=tuple(pattern(table) for table in found.only),
        resources=tuple((pattern(entry.when), entry.needs) for entry in found.resources),
        shapes=tuple((pattern(entry.when), _shapes(entry.shape)) for entry in found.shapes),
    )


def _shapes(found: Mapping[str, str | int]) -> Shapes:
    return {name: extents(str(text), f"shape of {printable(name)}") for name, text in found.items()}


def pattern(table: Mapping[str, Value | list[Value]]) -> Pattern:
    """Of a table of the file."""
    return Pattern({name: tuple(spelt(value) for value in _listed(values)) for name, values in table.items()})


def spelt(value: Value) -> str:
    """As a command line has it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(values: Value | list[Value]) -> tuple[Value, ...]:
    return tuple(values) if isinstance(values, list) else (values,)
