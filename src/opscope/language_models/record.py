"""Points of a language model → what a Run carries of them: the rows, and a timeline of one prompt and one token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..core.meaning import Carries, Does, LaneRole
from ..core.provenance import Provenance
from ..core.sums import whole_sum
from ..estimate.recorded import spent_until
from ..machine.target import Holds, Target
from ..program.program import COMMAND, NO_ROUTE, Detail, OpCycles
from ..recording.build import lane_totals, op_totals
from ..recording.language_model import LanguageModel, Ranged, TokenPoint, scaled
from ..recording.recording import OpRecord, Recording, Value
from ..recording.run import CommandTable, RunRoute
from ..recording.summary import Energy, Latency, MemoryTotal, Summary
from ..recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans
from .architecture import Architecture
from .cell import BACKEND
from .estimated_step import LINK
from .point import Phase, Point, Spread
from .step_ops import DECODE, PREFILL, StepOp, StepOps, in_order

_ROUTES = (RunRoute(LINK, Carries.LINK),)
_MS, _S = 1e6, 1e9  # ns
_OTHER_LANE = "device"  # of work that belongs to no engine


def token_point(point: Point) -> TokenPoint:
    """A point as runs have it."""
    return TokenPoint(
        batch=point.batch,
        prompt=point.prompt,
        context=point.context,
        ttft_ms=_ranged(point.ttft_ms),
        tpot_ms=_ranged(point.tpot_ms),
        prefill_tokens_per_s=_ranged(point.prefill_tokens_per_s),
        decode_tokens_per_s=_ranged(point.decode_tokens_per_s),
        weight_bytes=point.weight_bytes,
        kv_bytes=point.kv_bytes,
        capacity_bytes=point.capacity_bytes,
        fits=point.fits,
        bound_prefill=point.prefill.bound,
        bound_decode=point.decode.bound,
        energy_per_token_mj=scaled(_ranged(point.decode.energy_mj), 1 / point.batch),
        provenance=point.provenance,
        shares_prefill=_shares(point.prefill),
        shares_decode=_shares(point.decode),
        decode_read_bytes=_ranged(point.decode.read_bytes),
    )


def _shares(phase: Phase) -> dict[str, float]:
    """Numbers of the simulated device are numpy's, which no file takes."""
    return {block: float(share) for block, share in phase.shares.items()}


def _ranged(found: Spread | None) -> Ranged | None:
    return None if found is None else Ranged(float(found.value), float(found.low), float(found.high))


def step_recording(
    found: LanguageModel,
    point: Point,
    steps: StepOps,
    model: Architecture,
    target: Target,
    *,
    path: str,
    options: Mapping[str, Value],
) -> Recording:
    """The prompt and one further token of a point as a timeline, with all points beside it."""
    runs = list(_runs(steps.ops, model))
    trace = _trace(steps.ops, runs, point.provenance)
    ops = tuple(
        _record(op, [end - start for place, start, end in runs if place == number])
        for number, op in enumerate(steps.ops)
    )
    return Recording(
        maker=BACKEND,
        provenance=point.provenance,
        trace=trace,
        ops=ops,
        model=path,
        network=found.model,
        target=found.target,
        words=target.words,
        options={**options, "prompt": point.prompt, "context": point.context},
        limits=steps.limits,
        clocks_hz={"core": target.clocks.core_hz.value},
        devices=found.devices,
        cores=round(target.topology.cores.value),
        batch=point.batch,
        inferences=1,
        numbers=(0,),
        commands=_commands(steps.ops, runs),
        totals=_totals(point, ops, trace, target),
        language_model=found,
        notes=found.notes,
        caveats=("latency is that of the prompt and one further token",),
    )


_Run = tuple[int, int, int]  # position of an op, start and end in ns


def _runs(ops: Sequence[StepOp], model: Architecture) -> Iterator[_Run]:
    """Every run of every op, one behind the other; rounded sums, not sums of rounded parts."""
    different = list(model.repeats)
    layers = [different.index(layer) for layer in model.layers]
    at = 0.0
    for phase in (PREFILL, DECODE):
        first = next((number for number, op in enumerate(ops) if op.phase == phase), 0)
        for number, seconds in in_order([op for op in ops if op.phase == phase], layers):
            start, at = at, at + seconds * _S
            if round(at) > round(start):
                yield first + number, round(start), round(at)


def _record(op: StepOp, times_ns: Sequence[int]) -> OpRecord:
    return OpRecord(
        op.full_name,
        type=op.type,
        kind=op.kind,
        location=f"{op.phase}/{op.block}",
        does=op.does,
        placed=op.placed,
        engines=(op.engine,) if op.engine else (),
        calls=len(times_ns) or None,
        time_ns=sum(times_ns),
        macs=op.macs,
        outer_bytes=op.moved_bytes,
    )


def _trace(ops: Sequence[StepOp], runs: Sequence[_Run], provenance: Provenance) -> Trace:
    names = dict.fromkeys(ops[number].engine or _OTHER_LANE for number, _, _ in runs)
    # a lane stands for the engines of all cores and devices
    lanes = tuple(Lane(0, NONE, name, role=LaneRole.ENGINE) for name in names)
    places = {name: number for number, name in enumerate(names)}
    rows = list(_rows(ops, runs))
    spans = blank_spans(len(rows))
    spans["kind"] = SpanKind.OP
    if rows:
        table = np.array(rows, np.int64).T
        spans["command"], spans["op"], spans["name"], spans["does"], spans["start_ns"], spans["end_ns"] = table
    spans["lane"] = [places[ops[row[1]].engine or _OTHER_LANE] for row in rows]
    spans["route"] = np.where(spans["does"] == Does.MOVE, 0, NONE)
    words = (*(op.full_name for op in ops), PREFILL, DECODE, *(does.label for does in Does))
    marks = _marks(ops, runs, lane=len(lanes), name=len(ops))
    edges = np.zeros(max(len(runs) - 1, 0), EDGE)
    edges["source"], edges["target"], edges["data"] = np.arange(len(edges)), np.arange(len(edges)) + 1, True
    all_lanes = (*lanes, Lane(0, NONE, "phases", role=LaneRole.MARKER))
    return Trace(all_lanes, words, np.concatenate((spans, marks)), edges, (), np.zeros(0, COUNTER), provenance)


def _rows(ops: Sequence[StepOp], runs: Sequence[_Run]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Command, op, name, what it does, start and end of every span: of each run, what comes before work, and work."""
    for command, (number, begin, end) in enumerate(runs):
        parts = spent_until(ops[number].spent, begin, end)
        starts = (begin, *(until for _, until in parts))
        for (does, until), start in zip(parts[:-1], starts, strict=False):
            yield command, number, len(ops) + 2 + does, does, start, until
        yield command, number, number, parts[-1][0], starts[-2], end


def _marks(ops: Sequence[StepOp], runs: Sequence[_Run], *, lane: int, name: int) -> npt.NDArray[np.void]:
    """From where to where each phase goes."""
    marks = blank_spans(2)
    for number, phase in enumerate((PREFILL, DECODE)):
        own = [(start, end) for op, start, end in runs if ops[op].phase == phase]
        if own:
            marks[number]["start_ns"], marks[number]["end_ns"] = own[0][0], own[-1][1]
    marks["lane"], marks["kind"], marks["name"] = lane, SpanKind.PHASE, (name, name + 1)
    return marks[marks["end_ns"] > marks["start_ns"]]


def _commands(ops: Sequence[StepOp], runs: Sequence[_Run]) -> CommandTable:
    """One for each run of an op."""
    rows = np.zeros(len(runs), COMMAND)
    numbers = [number for number, _, _ in runs]
    rows["op"] = rows["detail"] = numbers
    rows["ordinal"], rows["route"] = np.arange(len(runs)), NO_ROUTE
    rows["does"] = [ops[number].does for number in numbers]
    details = [Detail(op.full_name, "", "", "", (), "") for op in ops]
    cycles = tuple(
        OpCycles(number, row.resource, row.is_memory, row.cycles) for number, op in enumerate(ops) for row in op.cycles
    )
    return CommandTable.from_details(rows, details, routes=_ROUTES, op_cycles=cycles)


def _totals(point: Point, ops: Sequence[OpRecord], trace: Trace, target: Target) -> Summary:
    phases = point.prefill, point.decode
    return Summary(
        latency=Latency(*_times_ns(_sum([phase.time_ms for phase in phases])), provenance=point.provenance),
        throughput_per_s=None,
        batch=point.batch,
        lanes=lane_totals(trace, named_by_engine=True),
        memory=(_memory(point, target, phases),),
        ops=op_totals(ops),
        energy=_joules(_sum([phase.energy_mj for phase in phases]), point.provenance),
    )


def _times_ns(found: Spread | None) -> tuple[int | None, int | None, int | None]:
    if found is None:
        return None, None, None
    return round(found.value * _MS), round(found.low * _MS), round(found.high * _MS)


def _joules(found: Spread | None, provenance: Provenance) -> Energy | None:
    if found is None:
        return None
    return Energy(float(found.value) / 1e3, float(found.low) / 1e3, float(found.high) / 1e3, provenance)


def _memory(point: Point, target: Target, phases: Sequence[Phase]) -> MemoryTotal:
    """Where weights and cache are; what a step reads of them is of both phases."""
    total = whole_sum(None if phase.read_bytes is None else round(phase.read_bytes.value) for phase in phases)
    peak = point.weight_bytes + point.kv_bytes
    return MemoryTotal(target.home(Holds.CONSTANTS).name, 0, None, peak, None, point.capacity_bytes, total, None)


def _sum(parts: Sequence[Spread | None]) -> Spread | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Spread(*(sum(getattr(part, name) for part in known) for name in ("value", "low", "high")))
