"""Points of a language model → what a Run carries of them: the rows, and a timeline of one prompt and one token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.meaning import Carries, Does, LaneRole
from ..core.provenance import Provenance
from ..machine.target import Holds, Target
from ..program.program import COMMAND, NO_ROUTE, Detail, OpCycles
from ..recording.build import lane_totals, op_totals
from ..recording.language_model import LanguageModel, Ranged, TokenPoint, scaled
from ..recording.recording import OpRecord, Recording
from ..recording.run import CommandTable, RunRoute
from ..recording.summary import Energy, Latency, MemoryTotal, Summary
from ..recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans
from .point import Phase, Point, Spread

MAKER = "llm"  # who tells, in runs and stores
PREFILL, DECODE = "prefill", "decode"
_MEMORY, _LINK, _LAUNCH, _COMPUTE = "memory", "link", "launch", "compute"  # of recording.finding.BOUNDS
_DOES = {_COMPUTE: Does.COMPUTE, _MEMORY: Does.COMPUTE, _LINK: Does.MOVE, _LAUNCH: Does.LAUNCH}
_ROUTES = (RunRoute(_LINK, Carries.LINK),)
_MS = 1e6  # ns


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
        shares_prefill=dict(point.prefill.shares),
        shares_decode=dict(point.decode.shares),
    )


def _ranged(found: Spread | None) -> Ranged | None:
    return None if found is None else Ranged(found.value, found.low, found.high)


@dataclass(frozen=True, slots=True)
class _Work:
    """One block of a phase: a stretch of the timeline."""

    phase: str
    block: str
    start_ns: int
    end_ns: int
    bound: str

    @property
    def name(self) -> str:
        return f"{self.phase}/{self.block}"


def step_recording(
    found: LanguageModel, point: Point, target: Target, *, model: str, options: Mapping[str, str | int]
) -> Recording:
    """The prompt and one further token of a point as a timeline, block by block, with all points beside it."""
    work = list(_work(point))
    ops = tuple(
        OpRecord(
            each.name,
            type=each.block,
            does=_DOES.get(each.bound, Does.UNKNOWN),
            bound=each.bound,
            calls=1,
            time_ns=each.end_ns - each.start_ns,
        )
        for each in work
    )
    trace = _trace(work, point.provenance)
    return Recording(
        maker=MAKER,
        provenance=point.provenance,
        trace=trace,
        ops=ops,
        model=model,
        network=found.model,
        target=found.target,
        options={**options, "prompt": point.prompt, "context": point.context},
        clocks_hz={"core": target.clocks.core_hz.value},
        devices=found.devices,
        cores=round(target.topology.cores.value),
        batch=point.batch,
        inferences=1,
        numbers=(0,),
        commands=_commands(work, target),
        totals=_totals(point, ops, trace, target),
        language_model=found,
        notes=found.notes,
        caveats=("latency is that of the prompt and one further token",),
    )


def _work(point: Point) -> Iterator[_Work]:
    """Blocks in the order in which a phase names them; none of a phase whose time is not known."""
    start = 0.0
    for name, phase in ((PREFILL, point.prefill), (DECODE, point.decode)):
        if phase.time_ms is None:
            return
        whole = phase.time_ms.value * _MS
        rest = 1 - sum(phase.shares.values())
        shares = {**phase.shares, **({"other": rest} if rest > 1e-6 else {})}
        for block, share in shares.items():
            end = start + whole * share
            if round(end) > round(start):
                yield _Work(name, block, round(start), round(end), phase.bound)
            start = end


def _trace(work: Sequence[_Work], provenance: Provenance) -> Trace:
    lanes = tuple(Lane(0, 0, phase, role=LaneRole.ENGINE) for phase in dict.fromkeys(each.phase for each in work))
    places = {lane.name: number for number, lane in enumerate(lanes)}
    spans = blank_spans(len(work))
    for number, each in enumerate(work):
        row = spans[number]
        row["lane"], row["kind"], row["op"], row["command"], row["name"] = (
            places[each.phase],
            SpanKind.OP,
            number,
            number,
            number,
        )
        row["start_ns"], row["end_ns"], row["does"] = each.start_ns, each.end_ns, _DOES.get(each.bound, Does.UNKNOWN)
        row["route"] = 0 if each.bound == _LINK else NONE
    edges = np.zeros(max(len(work) - 1, 0), EDGE)
    edges["source"], edges["target"], edges["data"] = np.arange(len(edges)), np.arange(len(edges)) + 1, True
    names = tuple(each.name for each in work)
    return Trace(lanes, names, spans, edges, (), np.zeros(0, COUNTER), provenance)


def _commands(work: Sequence[_Work], target: Target) -> CommandTable:
    """One per block, with what binds it: by that analysis knows work that waits for memory from work that computes."""
    rows = np.zeros(len(work), COMMAND)
    rows["op"] = rows["detail"] = rows["ordinal"] = np.arange(len(work))
    rows["route"] = NO_ROUTE
    rows["does"] = [_DOES.get(each.bound, Does.UNKNOWN) for each in work]
    details = [Detail(each.name, "", "", "", (), "") for each in work]
    per_ns = target.clocks.core_hz.value / 1e9
    cycles = tuple(
        OpCycles(number, each.bound, each.bound == _MEMORY, round((each.end_ns - each.start_ns) * per_ns))
        for number, each in enumerate(work)
        if each.bound in (_COMPUTE, _MEMORY)
    )
    return CommandTable.from_details(rows, details, routes=_ROUTES, op_cycles=cycles)


def _totals(point: Point, ops: Sequence[OpRecord], trace: Trace, target: Target) -> Summary:
    phases = point.prefill, point.decode
    times = [phase.time_ms for phase in phases]
    latency = _sum(times)
    energy = _sum([phase.energy_mj for phase in phases])
    return Summary(
        latency=Latency(*_times_ns(latency), provenance=point.provenance),
        throughput_per_s=None,
        batch=point.batch,
        lanes=lane_totals(trace),
        memory=(_memory(point, target, phases),),
        ops=op_totals(ops),
        energy=_joules(energy, point.provenance),
    )


def _times_ns(found: Spread | None) -> tuple[int | None, int | None, int | None]:
    if found is None:
        return None, None, None
    return round(found.value * _MS), round(found.low * _MS), round(found.high * _MS)


def _joules(found: Spread | None, provenance: Provenance) -> Energy | None:
    if found is None:
        return None
    return Energy(found.value / 1e3, found.low / 1e3, found.high / 1e3, provenance)


def _memory(point: Point, target: Target, phases: Sequence[Phase]) -> MemoryTotal:
    """Where weights and cache are; what a step reads of them is of both phases."""
    read = [phase.read_bytes for phase in phases]
    total = None if None in read else sum(each or 0 for each in read)
    peak = point.weight_bytes + point.kv_bytes
    return MemoryTotal(target.home(Holds.CONSTANTS).name, 0, None, peak, None, point.capacity_bytes, total, None)


def _sum(parts: Sequence[Spread | None]) -> Spread | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Spread(*(sum(getattr(part, name) for part in known) for name in ("value", "low", "high")))
