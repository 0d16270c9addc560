"""A prediction beside a measurement → the families of ops that it is off for: by how much, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..core.errors import printable
from ..core.provenance import Provenance
from .figures import Figures, OpFigure

_OBSERVED = (Provenance.MEASURED, Provenance.EMULATED)
_MOST_NAMED, _WORTH_SAYING = 3, 0.01  # families that a note names, and what share of the time they must be off by

Pair = tuple[Sequence[int], Sequence[int]]  # positions of ops that are the same work, in either run


@dataclass(frozen=True, slots=True)
class Family:
    """Ops of one type that both runs have."""

    name: str
    ops: int  # of the prediction
    predicted_ns: float
    measured_ns: float

    @property
    def ratio(self) -> float:
        """Measured over predicted: above 1 they take longer than was said."""
        return self.measured_ns / self.predicted_ns

    @property
    def change_ns(self) -> float:
        return self.measured_ns - self.predicted_ns


def families_of(base: Figures, new: Figures, pairs: Iterable[Pair]) -> tuple[Family, ...]:
    """Of a prediction and a measurement, what is off most in time first; nothing of any other two runs."""
    if base.provenance in _OBSERVED or new.provenance != Provenance.MEASURED:
        return ()
    sums: dict[str, tuple[int, float, float]] = {}
    for ours, theirs in pairs:
        predicted, measured = _time(base.ops, ours), _time(new.ops, theirs)
        if predicted and measured:
            costliest = max(ours, key=lambda place: base.ops[place].wall_ns or 0)
            count, one, other = sums.get(base.ops[costliest].type, (0, 0.0, 0.0))
            sums[base.ops[costliest].type] = count + len(ours), one + predicted, other + measured
    found = (Family(name, *row) for name, row in sums.items())
    return tuple(sorted(found, key=lambda family: (-abs(family.change_ns), family.name)))


def farthest(found: Sequence[Family], provenance: Provenance) -> Iterable[str]:
    """A line that names those that are off most."""
    whole = sum(family.measured_ns for family in found)
    said = [
        f"{printable(family.name)} ×{family.ratio:.2f} ({family.measured_ns / whole:.0%} of the time)"
        for family in found[:_MOST_NAMED]
        if abs(family.change_ns) > _WORTH_SAYING * whole
    ]
    if said:
        yield f"measured over {provenance}, by type, farthest off first: {', '.join(said)}"


def _time(ops: Sequence[OpFigure], places: Sequence[int]) -> int:
    return sum(ops[place].wall_ns or 0 for place in places)
