"""Figures × Figures → Comparison: every difference, what explains the change, and the verdict of the limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from ..core.errors import UsageError, printable
from .bootstrap import FEWEST, ratio_interval, spread_of_sum
from .comparison import (
    ADDED,
    FUSED,
    LOCATION,
    NAME,
    REMOVED,
    SPLIT,
    Comparison,
    Difference,
    Explanation,
    Interval,
    Match,
    OpDifference,
    Part,
)
from .families import families_of
from .figures import NS, PER_SECOND, Figure, Figures, Labels, OpFigure, Row, Spread, caveats_of, known_labels
from .limits import Limit, judge
from .matching import match_ops
from .metrics import METRICS
from .op_causes import cause_of

_Runs = tuple[Figures, Figures]
_Ops = tuple[Sequence[OpFigure], Sequence[OpFigure]]
_Spreads = tuple[Spread | None, Spread | None]

_NOT_KNOWN = ("", "unknown")
REST = "not explained by ops"
FEW_OPS = 0.5  # share of the ops of a run that an earlier one of the same model has in common with it, or more
_MOST_INTERVALS = 300  # of the largest changes of ops: a bootstrap takes a millisecond


def compare(
    base: Figures,
    new: Figures,
    *,
    limits: Sequence[Limit] = (),
    allow: Collection[str] = (),
    labels: Mapping[str, Labels],
    seed: int = 0,
) -> Comparison:
    """Everything that differs.

    Args:
        limits: that the change must stay within.
        allow: of core.meaning.ALLOWABLE: differences that are insisted on, and then noted.
        labels: rollup → labels of the ops of a run.
        seed: of the bootstrap.
    """
    matches = match_ops(base.ops, new.ops, same_model=base.sha256 is not None and base.sha256 == new.sha256)
    notes = _check_comparable(base, new, matches, allow)
    metrics = tuple(_metrics((base, new), seed))
    wanted = {limit.name.partition(":")[2] for limit in limits}
    runs = (base, new)
    ops = _ops(runs, matches, wanted, seed)
    rollups = {name: _rollup(runs, label, wanted, seed) for name, label in known_labels(labels, base, new).items()}
    verdict = judge(limits, *_by_name(metrics, ops, rollups), unknown=(base.unknown, new.unknown))
    notes += [*caveats_of(runs), *(f"{m.name}: {m.note}" for m in metrics if m.note and m.name == "latency")]
    families = families_of(base, new, ((match.base, match.new) for match in matches))
    explained = explain(base, new, {"op": ops, **rollups})
    return Comparison(base, new, metrics, ops, rollups, explained, verdict, tuple(notes), families)


def _check_comparable(base: Figures, new: Figures, matches: Sequence[Match], allow: Collection[str]) -> list[str]:
    """Notes on what was insisted on. Anything else that makes a comparison meaningless is an error."""
    notes = []
    for what, problem in _obstacles(base, new, matches):
        if what not in allow:
            way = f", or --allow {what}" if what != "unit" else ""
            names = f"{printable(base.label)} and {printable(new.label)}"
            raise UsageError(f"{names}: not comparable: {problem}; expected the same{way}")
        notes.append(f"compared in spite of this: {problem}")
    if (base.target in _NOT_KNOWN) is not (new.target in _NOT_KNOWN):
        notes.append("the target of one of the two is not known")
    sure = sum(len(match.base) for match in matches if match.new and _is_sure(match, new))
    if 0 < sure < FEW_OPS * len(base.ops):  # with none, it was insisted on
        notes.append(f"only {sure} of {len(base.ops)} ops of {base.label} are in {new.label}: another model?")
    silent = [run.label for run in (base, new) if not run.tells_op_times]
    if len(silent) == 1:
        notes.append(f"{silent[0]} tells no times of ops")
    if (base.devices, base.cores) != (new.devices, new.cores):
        notes.append(f"cores: {base.devices} × {base.cores} and {new.devices} × {new.cores}")
    return notes


def _obstacles(base: Figures, new: Figures, matches: Sequence[Match]) -> Iterable[tuple[str, str]]:
    for what, one, other in (
        ("target", base.target, new.target),
        ("provenance", base.provenance, new.provenance),
        ("batch", str(base.batch or ""), str(new.batch or "")),
    ):
        if one != other and one not in _NOT_KNOWN and other not in _NOT_KNOWN:
            yield what, f"{what} is {printable(one)} and {printable(other)}"
    units = {metric.name: metric.unit for metric in base.metrics}
    for metric in new.metrics:
        if units.get(metric.name, metric.unit) != metric.unit:
            yield "unit", f"{printable(metric.name)} is in {printable(units[metric.name])} and {metric.unit}"
    if base.ops and new.ops and not any(_is_sure(match, new) for match in matches):
        models = f"{printable(base.model)} and {printable(new.model)}"
        yield "model", f"no op of the two models, {models}, has the same name or place"


def _is_sure(match: Match, new: Figures) -> bool:
    return match.how in (NAME, LOCATION, FUSED, SPLIT) and new.ops[match.new[0]].row is not Row.NO_OP


def _metrics(runs: _Runs, seed: int) -> Iterable[Difference]:
    """In report order; what only one of the two has is shown, and not judged."""
    old, now = ({metric.name: metric for metric in figures.metrics} for figures in runs)
    places = {name: place for place, name in enumerate(METRICS)}
    names = dict.fromkeys((*old, *now))
    for name in sorted(names, key=lambda name: places[name.partition(":")[0]]):
        yield _difference(old.get(name), now.get(name), runs, seed)


def _difference(one: Figure | None, other: Figure | None, runs: _Runs, seed: int) -> Difference:
    some = other or one
    if some is None:
        raise ValueError("a figure that neither run has")
    spreads = (one.spread if one else None, other.spread if other else None)
    interval = _interval(spreads, seed)
    can_be_noise = one is not None and other is not None and None not in (one.value, other.value)
    is_time = some.unit in (NS, PER_SECOND) and can_be_noise
    return Difference(
        name=some.name,
        base=one.value if one else None,
        new=other.value if other else None,
        unit=some.unit,
        base_provenance=one.provenance if one else runs[0].provenance,
        new_provenance=other.provenance if other else runs[1].provenance,
        better=METRICS[some.name.partition(":")[0]].better,
        interval=interval,
        note="" if interval or not is_time else noise_note(runs, spreads),
    )


def _interval(spreads: _Spreads, seed: int) -> Interval | None:
    one, other = spreads
    return None if one is None or other is None else ratio_interval(one, other, seed=seed)


def noise_note(runs: _Runs, spreads: _Spreads) -> str:
    """Why there is no interval, where there should be one."""
    if all(run.is_exact for run in runs):
        return ""
    counts = [spread.count if spread else 1 for spread in spreads]
    return f"noise is not known: {counts[0]} and {counts[1]} samples, {FEWEST} of each are needed; compared as if exact"


def _ops(runs: _Runs, matches: Sequence[Match], wanted: Set[str], seed: int) -> tuple[OpDifference, ...]:
    """Largest change first; the largest, and those that are `wanted`, with the interval that their samples allow."""
    rows: list[tuple[OpDifference, _Ops]] = []
    for match in matches:
        ops = [runs[0].ops[p] for p in match.base], [runs[1].ops[p] for p in match.new]
        row = _op_difference(_name(*ops), match.how, ops, runs)
        rows.append((replace(row, cause=cause_of(*ops) if all(ops) else ""), ops))
    return _judged(rows, runs, wanted, seed)


def _judged(
    rows: list[tuple[OpDifference, _Ops]], runs: _Runs, wanted: Set[str], seed: int
) -> tuple[OpDifference, ...]:
    rows.sort(key=lambda found: _size(found[0]))
    return tuple(
        _with_noise(row, ops, runs, seed)
        if place < _MOST_INTERVALS or not wanted.isdisjoint((row.name, *row.base_names, *row.new_names))
        else row
        for place, (row, ops) in enumerate(rows)
    )


def _name(old: Sequence[OpFigure], now: Sequence[OpFigure]) -> str:
    old, now = ([op for op in ops if op.is_timed] or ops for ops in (old, now))  # what was folded in goes unsaid
    shown = now if now and len(now) <= max(len(old), 1) else old
    return shown[0].name if len(shown) == 1 else f"{shown[0].name} and {len(shown) - 1} more"


def _op_difference(name: str, how: str, ops: _Ops, runs: _Runs) -> OpDifference:
    old, now = ops
    of = (NS, runs[0].provenance, runs[1].provenance, "less")
    sides = list(zip(ops, runs, strict=True))
    walls = [_sum([op.wall_ns for op in found], run) for found, run in sides]
    parts = [_sum([op.own_ns for op in found], run) for found, run in sides]
    return OpDifference(
        name=name,
        type=(now or old)[0].type,
        how=how,
        base_names=tuple(op.name for op in old),
        new_names=tuple(op.name for op in now),
        time=Difference(name, walls[0], walls[1], *of),
        own=Difference(name, parts[0], parts[1], *of),
    )


def _with_noise(row: OpDifference, ops: _Ops, runs: _Runs, seed: int) -> OpDifference:
    """With what repeated samples say about the time; or with a note that they say nothing."""
    if all(run.is_exact for run in runs) or row.time.change is None:
        return row
    spreads = (_spread(ops[0]), _spread(ops[1]))
    interval = _interval(spreads, seed)
    note = "" if interval else noise_note(runs, spreads)
    return replace(row, time=replace(row.time, interval=interval, note=note))


def _spread(ops: Sequence[OpFigure]) -> Spread | None:
    """Of all together; None where one that has a time has no samples."""
    timed = [op for op in ops if op.wall_ns is not None]
    found = [op.spread for op in timed if op.spread is not None]
    return spread_of_sum(found) if found and len(found) == len(timed) else None


def _sum(values: Sequence[int | None], run: Figures) -> int | None:
    """Of what is known. An op that is not there takes no time in a run that has times of ops; else it is not known.

    A sum with an op of unknown cost in it is not known either.
    """
    if run.unknown and None in values:
        return None
    known = [value for value in values if value is not None]
    return sum(known) if known or (not values and run.tells_op_times) else None


def _rollup(runs: _Runs, labels: Labels, wanted: Set[str], seed: int) -> tuple[OpDifference, ...]:
    groups: dict[str, tuple[list[OpFigure], list[OpFigure]]] = {}
    for side, figures in enumerate(runs):
        for op, label in zip(figures.ops, labels(figures), strict=True):
            groups.setdefault(label, ([], []))[side].append(op)
    rows: list[tuple[OpDifference, _Ops]] = [
        (_op_difference(name, "" if all(ops) else ADDED if ops[1] else REMOVED, ops, runs), ops)
        for name, ops in groups.items()
    ]
    return _judged(rows, runs, wanted, seed)


def _size(row: OpDifference) -> tuple[float, float, str]:
    """Sorts the largest change first."""
    moved = row.own.change if row.own.change is not None else row.time.change
    return -abs(moved or 0), -(row.time.new or 0), row.name


def _by_name(
    metrics: Iterable[Difference], ops: Iterable[OpDifference], rollups: Mapping[str, Sequence[OpDifference]]
) -> tuple[dict[str, Difference], dict[str, list[str]]]:
    """What a limit can be on, by its full name; and the selectors there are, by metric."""
    found = {metric.name: metric for metric in metrics}
    for row in ops:
        for name in dict.fromkeys((*row.base_names, *row.new_names)):
            found.setdefault(f"op:{name}", row.time)
    for rollup, rows in rollups.items():
        found |= {f"{rollup}:{row.name}": row.time for row in rows}
    names: dict[str, list[str]] = {}
    for name in found:
        metric, _, selector = name.partition(":")
        if selector:
            names.setdefault(metric, []).append(selector)
    return found, names


def explain(base: Figures, new: Figures, rows: Mapping[str, Sequence[OpDifference]]) -> dict[str, Explanation]:
    """For ops and for every rollup: changes of their parts of the clock; what is missing to the change is the rest.

    Where a run has no timeline, the times that it gives for ops take the place of their parts.
    """
    before, after = base.latency_ns, new.latency_ns
    if before is None or after is None:
        return {}
    has_parts = all(any(op.own_ns is not None for op in figures.ops) for figures in (base, new))
    return {by: _explanation(after - before, found, has_parts=has_parts) for by, found in rows.items()}


def _explanation(change_ns: float, rows: Sequence[OpDifference], *, has_parts: bool) -> Explanation:
    parts = []
    for row in rows:
        found: Difference = row.own if has_parts else row.time
        if found.change:
            parts.append(Part(row.name, found.change, row.how, row))
    parts.sort(key=lambda part: (-abs(part.ns), part.name))
    rest = change_ns - sum(part.ns for part in parts)
    return Explanation(change_ns, tuple(parts), Part(REST, rest))
