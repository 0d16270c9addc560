"""ETDump and ETRecord of ExecuTorch → Recording: instructions of every run, and what delegates did inside of theirs.

The runtime writes an event per instruction (OPERATOR_CALL, DELEGATE_CALL), one for the kernel inside of it
(native_call_NAME), those that a delegate adds under names of its own, and one around them all (Method::execute). Its
clock ticks in nanoseconds on every system that has a clock; delegates convert their own times to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.column_trace import SpanColumns, column_trace
from ...importers.reading import LONGEST_NS, Unread, read_bytes
from ...importers.trace_build import LONGEST_AXIS_NS
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording, empty_trace
from ...recording.trace import NONE, Lane, SpanKind, Trace
from .dump import Block, DumpEvent, read_dump
from .record import Node, Record, read_record

TOOL = "ExecuTorch"
_EXECUTE, _OPERATOR, _DELEGATE, _NATIVE = "Method::execute", "OPERATOR_CALL", "DELEGATE_CALL", "native_call_"
_Key = tuple[int, str]  # instruction, and who inside of its delegate; empty: itself


@dataclass(slots=True)
class _Op:
    """What was seen of one op."""

    key: _Key
    kernel: str = ""
    is_call: bool = False  # of a delegate
    times: list[int] = field(default_factory=list)  # of every run that it ran in
    calls: int = 0


@dataclass(slots=True)
class _Span:
    event: DumpEvent
    op: int
    run: int
    kind: SpanKind
    lane: int  # 0: the runtime, 1: delegates


@dataclass(slots=True)
class _Seen:
    """Ops in the order in which they first ran, and all spans."""

    ops: dict[_Key, _Op] = field(default_factory=dict)
    spans: list[_Span] = field(default_factory=list)
    elsewhere: int = 0  # events of delegates that lie outside of their call: of another clock
    sums: list[int] = field(default_factory=list)  # of instructions, of every run

    @property
    def is_one_session(self) -> bool:
        """Whether all of it can stand on one axis."""
        return (
            max(span.event.end for span in self.spans) - min(span.event.start for span in self.spans) < LONGEST_AXIS_NS
        )


class EtDump:
    """Times of instructions, and of what delegates tell."""

    name = "executorch-etdump"

    def read(self, path: Path, beside: Sequence[Path] = ()) -> Recording:
        """Every run of the method; names and lines of the model where its ETRecord is given too."""
        unread = Unread("events")
        blocks = [_sound(block, unread) for block in read_dump(read_bytes(path), source=str(path))]
        runs = [block for block in blocks if any(event.name == _EXECUTE for event in block.events)]
        if not runs:
            raise ImportFileError(str(path), "", "no run of a method in it; expected the events of at least one")
        record = read_record(beside[0]) if beside else Record()
        seen = _walk(runs)
        samples = [_length(_whole(run)) for run in runs]
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            trace=_trace(seen),
            ops=tuple(_records(seen, record, len(runs))),
            metrics=tuple(_metrics(blocks, samples)),
            samples_ns=tuple(samples),
            checks=(_check(seen, samples),),
            inferences=len(runs),
            notes=(*_notes(blocks, runs, seen, has_record=bool(beside)), *unread.notes()),
        )


class EtRecord:
    """Alone: what the model consists of."""

    name = "executorch-etrecord"

    def read(self, path: Path) -> Recording:
        """A row per op of the program, without times."""
        record = read_record(path)
        ops = tuple(replace(_about((node,), node.name), name=node.name) for node in record.nodes if not node.is_call)
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.COMPILER_FACT,
            ops=ops,
            metrics=(Metric("ops", len(ops), "1"),),
            notes=("no times: give the ETDump of a run too",),
        )


def _sound(block: Block, unread: Unread) -> Block:
    kept = []
    for number, event in enumerate(block.events):
        if event.start <= event.end < LONGEST_NS and _length(event) < LONGEST_AXIS_NS:
            kept.append(event)
        else:
            unread.add(
                f"event {number} of {block.name}", f"{event.name or event.delegate}: {event.start} to {event.end}"
            )
    return replace(block, events=tuple(kept))


def _length(event: DumpEvent) -> int:
    return event.end - event.start


def _whole(run: Block) -> DumpEvent:
    return next(event for event in run.events if event.name == _EXECUTE)


def _walk(runs: Sequence[Block]) -> _Seen:
    seen = _Seen()
    places: dict[_Key, int] = {}
    for number, run in enumerate(runs):
        _walk_run(run, number, seen, places)
    return seen


def _walk_run(run: Block, number: int, seen: _Seen, places: dict[_Key, int]) -> None:
    """Instructions with what ran inside of them: events of a delegate come before the call that made them."""
    inside: dict[int, list[DumpEvent]] = {}
    kernels: dict[int, str] = {}
    taken: dict[_Key, int] = {}
    total = 0
    for event in run.events:
        if event.delegate:
            inside.setdefault(event.instruction, []).append(event)
        elif event.name.startswith(_NATIVE):
            kernels[event.instruction] = event.name.removeprefix(_NATIVE)
        elif event.name in (_OPERATOR, _DELEGATE):
            total += _length(event)
            parts = inside.pop(event.instruction, [])
            _take(event, parts, number, seen, places, taken)
            seen.ops[event.instruction, ""].kernel = kernels.pop(event.instruction, "")
            seen.ops[event.instruction, ""].is_call = event.name == _DELEGATE
        elif event.name == _EXECUTE:
            seen.spans.append(_Span(event, NONE, number, SpanKind.PHASE, 0))
    seen.elsewhere += sum(map(len, inside.values()))
    for key, time in taken.items():
        seen.ops[key].times.append(time)
    seen.sums.append(total)


def _take(  # noqa: PLR0917 – one event and all that it adds to
    event: DumpEvent,
    parts: Sequence[DumpEvent],
    run: int,
    seen: _Seen,
    places: dict[_Key, int],
    taken: dict[_Key, int],
) -> None:
    """A call of a delegate is what its parts leave, on the timeline too; one without parts is work like any."""
    own = sorted(
        (part for part in parts if event.start <= part.start and part.end <= event.end), key=lambda part: part.start
    )
    seen.elsewhere += len(parts) - len(own)
    left = list(_left(event, own))
    shown = [((event.instruction, ""), left, SpanKind.HOST if own else SpanKind.OP, 0)]
    shown += [((part.instruction, part.delegate), [part], SpanKind.OP, 1) for part in own]
    for key, spans, kind, lane in shown:
        op = places.setdefault(key, len(places))
        seen.ops.setdefault(key, _Op(key)).calls += 1
        taken[key] = taken.get(key, 0) + sum(map(_length, spans))
        seen.spans += [_Span(span, op, run, kind, lane) for span in spans]


def _left(event: DumpEvent, parts: Sequence[DumpEvent]) -> Iterator[DumpEvent]:
    """The stretches of an event in which none of its parts ran."""
    free = event.start
    for part in parts:
        if part.start > free:
            yield replace(event, start=free, end=part.start)
        free = max(free, part.end)
    if event.end > free:
        yield replace(event, start=free, end=event.end)


def _trace(seen: _Seen) -> Trace:
    """The runtime's lane holds the method and its instructions; delegates have one of their own."""
    if not seen.is_one_session:
        return empty_trace(Provenance.MEASURED)
    names: dict[str, int] = {}
    name = [names.setdefault(span.event.delegate or span.event.name, len(names)) for span in seen.spans]
    columns = SpanColumns(
        lane=np.array([span.lane for span in seen.spans], np.int64),
        name=np.array(name, np.int64),
        start_ns=np.array([span.event.start for span in seen.spans], np.int64),
        end_ns=np.array([span.event.end for span in seen.spans], np.int64),
        op=np.array([span.op for span in seen.spans], np.int64),
        kind=np.array([span.kind for span in seen.spans], np.int64),
        inference=np.array([span.run for span in seen.spans], np.int64),
    )
    lanes = [Lane(NONE, NONE, "runtime"), Lane(NONE, NONE, "delegates")]
    return column_trace(columns, lanes, list(names), provenance=Provenance.MEASURED)


def _records(seen: _Seen, record: Record, runs: int) -> Iterator[OpRecord]:
    """Of every op the mean over the runs that it ran in; each name once."""
    named = [(op, *_named(op, record)) for op in seen.ops.values()]
    counts = Counter(about.name for _, about, _ in named)
    for op, about, backend in named:
        several = len(op.times) > 1
        yield replace(
            about,
            name=about.name if counts[about.name] == 1 else f"{about.name} @{op.key[0]}",
            kernel=op.kernel,
            engines=(backend,) if backend else (),
            calls=op.calls / runs,
            time_ns=round(fmean(op.times)),
            median_ns=round(median(op.times)) if several else None,
            low_ns=min(op.times) if several else None,
            high_ns=max(op.times) if several else None,
        )


def _named(op: _Op, record: Record) -> tuple[OpRecord, str]:
    """What the model says of an op, or what the runtime calls it; and the delegate that it ran in."""
    instruction, inside = op.key
    if inside:
        backend = record.backend(instruction) or "delegate"
        nodes = record.inside(instruction, inside)
        found = _about(nodes, inside if not inside.isdigit() else f"{backend} {inside}")
        return replace(found, type=found.type or inside.partition(" #")[0]), backend
    nodes = record.nodes_of(instruction)
    if op.is_call:
        name = f"{record.backend(instruction) or 'delegate'}#{instruction}"
        return replace(_about(nodes, name), name=name, type="delegate", covers=tuple(node.name for node in nodes)), ""
    base = op.kernel.partition(".")[0]
    first = [node for node in nodes if f".{base}." in f".{node.type}."]
    found = _about((*first, *(node for node in nodes if node not in first)), f"{base or 'instruction'}#{instruction}")
    return (found if found.type else replace(found, type=base)), ""


def _about(nodes: Sequence[Node], name: str) -> OpRecord:
    """The first of the nodes; where several are one, the others too."""
    if not nodes:
        return OpRecord(name)
    first = nodes[0]
    return OpRecord(
        first.name,
        type=first.type,
        module=first.module,
        line=first.line,
        shape=first.shape,
        covers=tuple(node.name for node in nodes[1:]),
        engines=(first.backend,) if first.backend else (),
    )


def _metrics(blocks: Sequence[Block], samples: Sequence[int]) -> Iterator[Metric]:
    yield Metric(LATENCY, float(median(samples)), "ns")
    if len(samples) > 1:
        yield Metric("latency, least", min(samples), "ns")
        yield Metric("latency, most", max(samples), "ns")
    yield Metric("first run", samples[0], "ns")
    yield Metric("runs", len(samples), "1")
    seen: set[str] = set()
    for event in (event for block in blocks for event in block.events):
        if event.name.startswith(("Method::", "Program::")) and event.name not in (_EXECUTE, *seen):
            seen.add(event.name)
            yield Metric(event.name, _length(event), "ns")
    allocated: Counter[str] = Counter()
    for block in blocks:
        allocated.update(dict(block.allocated))
    for name, size in allocated.items():
        if size < 2**48:
            yield Metric(f"allocated, {name}", size, "bytes")


def _check(seen: _Seen, samples: Sequence[int]) -> Check:
    """Instructions run one after the other, inside of the method."""
    wrong = [n for n, (part, whole) in enumerate(zip(seen.sums, samples, strict=True)) if part > whole]
    detail = f"{len(samples) - len(wrong)} of {len(samples)} runs" + (f"; not {wrong[0]}" if wrong else "")
    return Check("sum of instructions ≤ time of the method", not wrong, detail)


def _notes(blocks: Sequence[Block], runs: Sequence[Block], seen: _Seen, *, has_record: bool) -> Iterator[str]:
    yield "times are ticks of the runtime's clock, taken for nanoseconds: so it counts wherever there is a system clock"
    if not has_record:
        yield "no ETRecord was given: ops are named by the runtime, without the lines of the model"
    calls = sum(event.name.startswith(_NATIVE) for run in runs for event in run.events)
    if calls:
        yield f"{calls} calls of kernels are part of their instructions, and name them"
    if seen.elsewhere:
        yield f"{seen.elsewhere} events of delegates lie outside of any call and are not kept: another clock"
    if not seen.is_one_session:
        yield "events lie further apart than any session lasts: there is no timeline"
    others = sum(len(block.events) for block in blocks) - sum(len(run.events) for run in runs)
    if others:
        yield f"{others} events of loading are figures, and not on the timeline"
    debug = sum(block.debug_events for block in blocks)
    if debug:
        yield f"{debug} values of tensors are not kept"
