"""What a bakeoff found: a row per chip, source and precision; rows of one kind of number are ranked, no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..fleet.schema import OK
from ..gate.budget import parse_budget
from ..gate.offload import LeftToCpu
from ..machine.entry import WHY
from ..recording.quantized import CopyError
from ..recording.summary import Energy, Latency

AS_IS = "as-is"  # the word of `--precision` for the model as it is


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What the model takes of one memory of a chip."""

    name: str
    peak_bytes: int | None
    capacity_bytes: int | None

    @property
    def share(self) -> float | None:
        """Of its size; None: one of them is not known."""
        if self.peak_bytes is None or not self.capacity_bytes:
            return None
        return self.peak_bytes / self.capacity_bytes


@dataclass(frozen=True, slots=True)
class BakeoffRow:
    """One model on one chip, as one source tells it. None is not known."""

    target: str
    title: str
    group: str
    backend: str
    version: str = ""  # of the tool behind the backend
    precision: str = AS_IS
    status: str = OK
    reason: str = ""  # why there are no figures
    provenance: Provenance | None = None  # of the latency; None: there are no figures
    basis: str = ""  # what it rests on, where that is more than the provenance says
    latency: Latency | None = None
    peak_bytes: int | None = None  # most bytes in use in one memory
    memories: tuple[MemoryNeed, ...] = ()
    energy: Energy | None = None
    time_share: float | None = None  # of the clock that an accelerator takes
    op_share: float | None = None  # of the ops
    cpu_ops: tuple[LeftToCpu, ...] = ()
    unknown: str = ""  # ops whose cost is not known: then there are no totals
    compile_s: float | None = None
    copy: CopyError | None = None  # None: the model itself was profiled, or nobody compared the copy with it
    caveats: tuple[str, ...] = ()
    seconds: float | None = None  # that it took to find out
    is_on_front: bool = False

    @property
    def latency_ns(self) -> int | None:
        return None if self.latency is None else self.latency.value_ns

    @property
    def fits(self) -> bool | None:
        """Whether every memory has room; None: nobody knows of any."""
        shares = [need.share for need in self.memories if need.share is not None]
        return all(share <= 1 for share in shares) if shares else None

    @property
    def tightest(self) -> MemoryNeed | None:
        """The memory of which it takes the largest share."""
        known = [need for need in self.memories if need.share is not None]
        return max(known, key=lambda need: need.share or 0, default=None)

    @property
    def costs(self) -> tuple[float, float, float]:
        """What is weighed: latency, peak memory, energy. What is not known counts as the worst, and so does an energy
        that leaves something out: it cannot be held against one that does not."""
        energy = inf if self.energy is None or self.energy.note else self.energy.value_j
        return self.latency_ns or inf, inf if self.peak_bytes is None else self.peak_bytes, energy


@dataclass(frozen=True, slots=True)
class Bakeoff:
    """One model on many chips."""

    model: str  # for people
    path: str
    sha256: str
    rows: tuple[BakeoffRow, ...]  # with figures by kind, each kind in order; then those without
    notes: tuple[str, ...] = ()
    cells_run: int = 0  # that the store did not have

    @property
    def kinds(self) -> dict[Provenance, list[BakeoffRow]]:
        """Rows with a latency by how it was obtained, best kind first."""
        found: dict[Provenance, list[BakeoffRow]] = {}
        for row in self.rows:
            if row.provenance is not None:
                found.setdefault(row.provenance, []).append(row)
        return found

    @property
    def without(self) -> list[BakeoffRow]:
        """Rows that have no latency, with the reason."""
        return [row for row in self.rows if row.provenance is None]


def ranked(rows: Sequence[BakeoffRow]) -> tuple[BakeoffRow, ...]:
    """By kind of number, each by latency, those without figures last; rows on the front of their kind are marked."""
    kinds = list(WHY)
    place = {kind: number for number, kind in enumerate(kinds)}
    ordered = sorted(rows, key=lambda row: (len(kinds) if row.provenance is None else place[row.provenance], row.costs))
    return tuple(replace(row, is_on_front=_is_on_front(row, ordered)) for row in ordered)


def _is_on_front(row: BakeoffRow, rows: Sequence[BakeoffRow]) -> bool:
    """Whether no row of the same kind that fits is as good in everything and better in something."""
    if row.provenance is None or row.fits is False:
        return False
    rivals = (other for other in rows if other.provenance is row.provenance and other.fits is not False)
    return not any(dominates(other.costs, row.costs) for other in rivals)


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def with_figures(row: BakeoffRow, found: Mapping[str, object]) -> BakeoffRow:
    """With what a row of the store says of its cell."""
    if found["status"] != OK:
        return replace(row, status=str(found["status"]), reason=str(found["reason"]), seconds=_number(found["seconds"]))
    latency = _number(found["latency_ns"])
    kind = Provenance(str(found["latency_provenance"] or found["provenance"]))
    low, high = (_number(found[name]) for name in ("latency_low_ns", "latency_high_ns"))
    value_j = _number(found["energy_j"])
    unknown = str(found["unknown"] or "")
    copy = _copy(found["copy"])
    return replace(
        row,
        precision=copy.precision if copy is not None and row.precision == AS_IS else row.precision,
        reason="" if latency is not None else unknown or f"its times are {kind}, and no latency",
        provenance=None if latency is None else kind,
        basis=str(found["basis"] or ""),
        latency=None
        if latency is None
        else Latency(round(latency), None if low is None else round(low), None if high is None else round(high), kind),
        peak_bytes=_whole(found["peak_memory_bytes"]),
        memories=tuple(
            MemoryNeed(str(each["name"]), _whole(each["peak_bytes"]), _whole(each["capacity_bytes"]))
            for each in _listed(found["memories"])
        ),
        energy=None
        if value_j is None
        else Energy(
            value_j,
            _number(found["energy_low_j"]),
            _number(found["energy_high_j"]),
            Provenance(str(found["provenance"])),
            str(found["energy_note"] or ""),
        ),
        time_share=_number(found["accelerator_time_share"]),
        op_share=_number(found["accelerator_op_share"]),
        cpu_ops=tuple(
            LeftToCpu(str(each["type"]), _whole(each["count"]) or 0, str(each["reason"] or ""))
            for each in _listed(found["cpu_ops"])
        ),
        unknown=unknown,
        compile_s=_number(found["compile_s"]),
        copy=copy,
        caveats=tuple(map(str, found["caveats"] or ())),  # type: ignore[call-overload]
        seconds=_number(found["seconds"]),
    )


def _copy(found: object) -> CopyError | None:
    if not isinstance(found, dict) or found.get("precision") is None:
        return None
    return CopyError(
        str(found["precision"]), _number(found["sqnr_db"]), _number(found["cosine"]), str(found["data"] or "")
    )


def _listed(found: object) -> list[dict[str, object]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: object) -> int | None:
    return round(value) if isinstance(value, int | float) else None


_MEASURES: dict[str, Callable[[BakeoffRow], float | None]] = {
    "latency": lambda row: None if row.latency_ns is None else row.latency_ns / 1e9,
    "ram": lambda row: row.peak_bytes,
    "energy": lambda row: row.energy.value_j if row.energy and not row.energy.note else None,
    "cpu-share": lambda row: None if row.time_share is None else 1 - row.time_share,
}


def parse_limits(text: str) -> dict[str, float]:
    """Limits that rows have a figure for, in base units."""
    limits = parse_budget(text)
    for name in limits:
        if name not in _MEASURES:
            raise UsageError(f"--budget {name}: rows do not have it; expected of {', '.join(_MEASURES)}")
    return limits


def within(row: BakeoffRow, limits: Mapping[str, float]) -> bool:
    """Whether a row fits its chip and meets every limit; what is not known does not."""
    found = {name: _MEASURES[name](row) for name in limits}
    return row.fits is not False and all(value is not None and value <= limits[name] for name, value in found.items())
