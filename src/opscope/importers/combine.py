"""Several files about the same run → one Recording: ops joined by name, totals side by side, checks across files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..recording.language_model import LanguageModel
from ..recording.recording import CLOCK, CYCLES, LATENCY, Check, Metric, OpRecord, Recording, empty_trace
from .overlay import find_pair, overlay
from .power_join import Align, is_power_log, join_power

_MOST = 2**50
FACT = Provenance.COMPILER_FACT  # goes with numbers of any origin: it has no times


def combine(parts: Sequence[Recording], align: Align | None = None) -> Recording:
    """What all parts tell. Files that measured, and files that modelled, go into one run only as two timelines.

    `align` says how a log of power is brought to the axis of the timeline; None: as its times let one think.
    """
    logs = [part for part in parts if is_power_log(part)]
    if logs and len(logs) < len(parts):
        if len(logs) > 1:
            raise UsageError(f"{logs[0].source}, {logs[1].source}: two logs of power; expected one per run")
        return join_power(combine([part for part in parts if part is not logs[0]]), logs[0], align)
    if align is not None:
        raise UsageError("--align: no log of power beside a timeline; expected one of each")
    if len(parts) == 1:
        return _with_times(_believable(parts[0]))
    pair = find_pair(parts)
    if pair is not None:  # a model of what the other measured: both in one picture
        return combine([overlay(*pair), *(part for part in parts if not any(part is one for one in pair))])
    return _with_times(_believable(_joined(parts)))


def _joined(parts: Sequence[Recording]) -> Recording:
    """Several files of one execution, of which one at the most has a timeline."""
    timed = [part for part in parts if part.provenance != FACT] or list(parts)
    _only_one("provenance", [(part.source, part.provenance) for part in timed])
    lines = [part for part in parts if len(part.trace.spans)]
    if len(lines) > 1:
        raise UsageError(
            f"{lines[0].source}, {lines[1].source}: two timelines; expected one per run: import them apart"
        )
    first = lines[0] if lines else timed[0]
    provenance = timed[0].provenance
    sampled = sorted(parts, key=lambda part: not part.samples_ns)  # a latency that has samples goes before a sum
    return Recording(
        maker=" + ".join(dict.fromkeys(part.maker for part in parts)),
        source=" + ".join(part.source for part in parts),
        tool=" + ".join(dict.fromkeys(part.tool for part in parts)),
        provenance=provenance,
        trace=first.trace if lines and first.provenance == provenance else empty_trace(provenance),
        ops=_join([first, *(part for part in parts if part is not first)]),
        metrics=tuple(_metrics(sampled)),
        checks=(*(check for part in parts for check in part.checks), *_across(parts)),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        target=next((part.target for part in parts if part.target), None),
        model=next((part.model for part in parts if part.model), None),
        inferences=first.inferences,
        samples_ns=sampled[0].samples_ns,
        tables=tuple(table for part in parts for table in part.tables),
        host=next((part.host for part in parts if part.host), ()),
        language_model=_points_of(parts),
        caveats=tuple(dict.fromkeys(caveat for part in parts for caveat in part.caveats)),
    )


def _points_of(parts: Sequence[Recording]) -> LanguageModel | None:
    """Points of all files, as of one benchmark for each concurrency."""
    found = [part.language_model for part in parts if part.language_model is not None]
    if not found:
        return None
    _only_one("language model", [(part.source, part.language_model.model) for part in parts if part.language_model])
    points = tuple(point for each in found for point in each.points)
    return replace(found[0], points=points, notes=tuple(dict.fromkeys(note for each in found for note in each.notes)))


def _believable(whole: Recording) -> Recording:
    """Counts that no op can have are unknown: a run with them in its tables could not be read again."""
    wrong = sum(
        value is not None and not 0 <= value < _MOST
        for op in whole.ops
        for value in (op.macs, op.cycles, op.in_bytes, op.out_bytes, op.parameter_bytes, op.memory_bytes)
    )
    if not wrong:
        return whole
    ops = tuple(
        replace(
            op,
            macs=_bounded(op.macs),
            cycles=_bounded(op.cycles),
            in_bytes=_bounded(op.in_bytes),
            out_bytes=_bounded(op.out_bytes),
            parameter_bytes=_bounded(op.parameter_bytes),
            memory_bytes=_bounded(op.memory_bytes),
        )
        for op in whole.ops
    )
    note = f"{wrong} counts of ops are negative or beyond 2^50, and taken for unknown"
    return replace(whole, ops=ops, notes=(*whole.notes, note))


def _bounded(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < _MOST else None


def _only_one(what: str, found: Sequence[tuple[str, str]]) -> None:
    for source, value in found[1:]:
        if value != found[0][1]:
            words = f"{found[0][0]} is {found[0][1]}, {source} is {value}"
            raise UsageError(f"{words}; expected files of one {what}: import them apart and compare the runs")


def _join(parts: Sequence[Recording]) -> tuple[OpRecord, ...]:
    """Ops of the first part that has any, each with what the op of the same name elsewhere adds."""
    with_ops = [part for part in parts if part.ops]
    if not with_ops:
        return ()
    result = list(with_ops[0].ops)
    for part in with_ops[1:]:
        known: dict[str, OpRecord] = {}
        for op in part.ops:
            known.setdefault(op.name, op)
        names = {op.name for op in result}
        result = [_filled(op, known.get(op.name)) for op in result] + [op for op in part.ops if op.name not in names]
    return tuple(result)


def _filled(op: OpRecord, other: OpRecord | None) -> OpRecord:
    """The first record, its unknown fields filled in from the other."""
    if other is None:
        return op
    missing = [field.name for field in fields(op) if getattr(op, field.name) in (None, (), "")]
    return replace(op, **{name: getattr(other, name) for name in missing})


def _metrics(parts: Sequence[Recording]) -> Iterator[Metric]:
    """Each name once; where files differ, the later ones carry their file's format."""
    seen: dict[str, float | None] = {}
    for part in parts:
        for metric in part.metrics:
            if metric.name not in seen:
                seen[metric.name] = metric.value
                yield metric
            elif seen[metric.name] != metric.value:
                yield replace(metric, name=f"{metric.name} ({part.maker})")


def _across(parts: Sequence[Recording]) -> Iterator[Check]:
    """A total that two files give is the same in both."""
    first: dict[str, tuple[float, str]] = {}
    for part in parts:
        for metric in part.metrics:
            if metric.unit in ("cycles", "1") and metric.name in ("cycles", "MACs"):
                value, source = first.setdefault(metric.name, (metric.value or 0, part.maker))
                if source != part.maker:
                    detail = f"{value:.0f} in {source}, {metric.value or 0:.0f} in {part.maker}"
                    yield Check(f"total {metric.name} of both files agree", value == metric.value, detail)


def with_clock(whole: Recording, clock_hz: float) -> Recording:
    """Times from cycles, at a clock that the user knows and the files do not tell."""
    if clock_hz <= 0:
        raise UsageError(f"--clock: {clock_hz:g} Hz; expected more than 0")
    if whole.provenance is Provenance.EMULATED:
        raise UsageError("--clock: cycles of an emulator are no time at any clock; expected a profile of a board")
    if whole.value(CLOCK) or any(op.time_ns is not None for op in whole.ops):
        raise UsageError("--clock: the files tell times themselves; expected files with cycles alone")
    if not any(op.cycles is not None for op in whole.ops):
        raise UsageError("--clock: the files have no cycles of ops; expected files with cycles")
    metrics = [*whole.metrics, Metric(CLOCK, clock_hz, "Hz", note="as given")]
    cycles = whole.value(CYCLES)
    if cycles is not None and whole.latency_ns is None:
        metrics.append(Metric(LATENCY, round(cycles * 1e9 / clock_hz), "ns", note="its cycles at the clock"))
    return _with_times(replace(whole, metrics=tuple(metrics)))


def _with_times(whole: Recording) -> Recording:
    """Times from cycles, where a clock is known; the latency from them, where every op has one."""
    clock = whole.value(CLOCK)
    if not clock or not whole.ops or any(op.time_ns is not None for op in whole.ops):
        return whole
    ops = tuple(op if op.cycles is None else replace(op, time_ns=round(op.cycles * 1e9 / clock)) for op in whole.ops)
    note = f"times of ops are cycles at {clock:.0f} Hz"
    unknown = any(op.time_ns is None for op in ops)
    metrics = tuple(metric for metric in whole.metrics if metric.name != LATENCY) if unknown else whole.metrics
    more = (
        ("latency is withheld: it leaves out ops without cycles",)
        if unknown and len(metrics) < len(whole.metrics)
        else ()
    )
    return replace(whole, ops=ops, metrics=metrics, notes=(*whole.notes, note, *more))
