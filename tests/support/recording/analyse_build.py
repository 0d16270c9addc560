"""Small Runs typed by hand or drawn at random, and slow, obvious answers to what the analysis asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opscope.analysis import analyse as analysing
from opscope.analysis.laws import laws_of
from opscope.analysis.run_analysis import RunAnalysis
from opscope.core.meaning import Carries, Direction, Does
from opscope.program.program import COMMAND, NO_ROUTE, MemoryInfo, Operand, OpInfo
from opscope.recording.classify import classified_summary, classify
from opscope.recording.finding import Finding, Findings, LawCheck
from opscope.recording.run import CommandTable, Run, RunInfo, RunRoute
from opscope.recording.summary import HostStage, Latency, OpTotal, Summary
from opscope.recording.trace import COUNTER, EDGE, NONE, Lane, SpanKind, Trace, blank_spans

HVX, HMX, DMA = Lane(0, 0, "HVX"), Lane(0, 0, "HMX"), Lane(0, 0, "HVX DMA DDR read")
HOST = Lane(NONE, NONE, "thread")
ROUTES = (
    RunRoute("DDR read", Carries.READ, "DDR"),
    RunRoute("DDR write", Carries.WRITE, "DDR"),
    RunRoute("multicast", Carries.MULTICAST, "VTCM"),
)
CAUSE_OF_RULE = {  # findings that say what one cause takes of the critical path
    "layout": "layout",
    "memory-transfers": "memory",
    "link-transfers": "link",
    "host-transfers": "host-link",
    "launch": "launch",
    "small-ops": "launch",
    "host-bound": "host",
    "gap": "unknown",
}
A, B, C = (OpInfo(name, kind, "", "") for name, kind in (("a", "MatMul"), ("b", "Transpose"), ("c", "Softmax")))


@dataclass(frozen=True)
class Span:
    lane: int
    start: int
    end: int
    kind: SpanKind = SpanKind.OP
    op: int = NONE
    command: int = NONE
    waits_on: int = NONE
    name: str = "matmul"
    inference: int = 0
    does: Does | None = None  # None: what the words say


@dataclass(frozen=True)
class Command:
    """What of a command the analysis looks at."""

    op: int = 0
    route: int = NO_ROUTE
    moved: int = 0
    macs: int = 0
    tensor: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = "f16"
    device: int = 0


def total(name: str, busy: int | None = None, **fields: object) -> OpTotal:
    known: dict[str, object] = {
        "type": "",
        "wall_ns": busy,
        "busy_ns": busy,
        "wait_ns": None,
        "share": None,
        "commands": None,
        "out_bytes": None,
        "moved_bytes": None,
        "macs": None,
        "engine": "",
        "placed": "",
    }
    return OpTotal(name, **(known | fields))  # type: ignore[arg-type]


def run_of(
    spans: Sequence[Span] = (),
    *,
    lanes: Sequence[Lane] = (HVX, HMX, DMA),
    ops: Sequence[OpInfo] = (),
    edges: Sequence[tuple[int, int]] = (),
    commands: Sequence[Command] = (),
    totals: Sequence[OpTotal] = (),
    limits: Mapping[str, float] | None = None,
    latency: int | None = None,
    host: Sequence[HostStage] = (),
    summary: Summary | None = None,
    options: Mapping[str, str] | None = None,
) -> Run:
    names = list(dict.fromkeys(span.name for span in spans))
    rows = blank_spans(len(spans))
    for row, span in zip(rows, spans, strict=True):
        row["lane"], row["kind"], row["inference"] = span.lane, span.kind, span.inference
        row["op"], row["command"], row["waits_on"] = span.op, span.command, span.waits_on
        row["start_ns"], row["end_ns"], row["name"] = span.start, span.end, names.index(span.name)
        row["does"] = Does.UNKNOWN if span.does is None else span.does
    between = np.array([(source, target, True) for source, target in edges], EDGE)
    trace = Trace(tuple(lanes), tuple(names), rows, between, (), np.zeros(0, COUNTER), "simulated")
    info = RunInfo(
        (),
        "2026-01-01T00:00:00",
        "model.onnx",
        None,
        "chip",
        "simulated",
        "net",
        1,
        1,
        1,
        {},
        tuple(sorted({span.inference for span in spans if span.inference != NONE})),
        dict(options or {}),
        dict(limits or {}),
    )
    known = summary or Summary(Latency(latency, None, None, "simulated"), None, 1, ops=tuple(totals), host=tuple(host))
    told = classify(trace, tuple(ops), _table(commands))
    return Run(info, tuple(ops), told.commands, told.trace, classified_summary(known, ops))


def _table(commands: Sequence[Command]) -> CommandTable:
    rows = np.zeros(len(commands), COMMAND)
    for number, (row, command) in enumerate(zip(rows, commands, strict=True)):
        row["op"], row["route"], row["detail"], row["device"] = command.op, command.route, number, command.device
        row["moved_bytes"], row["macs"], row["out_bytes"] = command.moved, command.macs, command.moved
    empty = ("",) * len(commands)
    operands = tuple(
        (Operand(Direction.IN, "Src", command.tensor, 0, command.dtype, command.shape),) if command.tensor else ()
        for command in commands
    )
    routes, places = (ROUTES if commands else ()), (MemoryInfo("DDR", is_outer=True),)
    return CommandTable(rows, ("HVX",), routes, ("work",), empty, empty, empty, empty, operands, empty, places)


def analyse(run: Run) -> Findings:
    return analysing.analyse(RunAnalysis(run))


def check_laws(run: Run) -> tuple[LawCheck, ...]:
    return laws_of(RunAnalysis(run))


def finding(run: Run, rule: str) -> Finding:
    return next(found for found in analyse(run).findings if found.id == rule)


def ids(run: Run) -> set[str]:
    return {found.id for found in analyse(run).findings}


def copy(start: int, end: int, command: int, *, lane: int = 2) -> tuple[Span, Span]:
    """The issue, and the bytes in flight."""
    return Span(1, start, start + 1, command=command), Span(
        lane, start + 1, end, SpanKind.TRANSFER, command=command, name="copy"
    )


@dataclass(frozen=True)
class Act:
    """One activity, as the reference sees it."""

    row: int
    span: Span
    lane: int | None  # None: beside the lanes


def reference_acts(spans: Sequence[Span]) -> list[Act]:
    """Spans of work of a device in order of time; a transfer of a command that a lane issued keeps no lane."""
    work = [(row, span) for row, span in enumerate(spans) if span.kind in (SpanKind.OP, SpanKind.TRANSFER)]
    issued = {span.command for _, span in work if span.kind == SpanKind.OP and span.command != NONE}
    acts = [
        Act(row, span, None if span.kind == SpanKind.TRANSFER and span.command in issued else span.lane)
        for row, span in work
    ]
    return sorted(acts, key=lambda act: (act.span.start, act.span.end > act.span.start, act.row))


def reference_pairs(
    acts: Sequence[Act], spans: Sequence[Span], edges: Sequence[tuple[int, int]]
) -> set[tuple[int, int]]:
    """(first, second) positions: lane order, issue before flight, edges and waits, and what is assumed."""
    lane_pairs: set[tuple[int, int]] = set()
    for lane in {act.lane for act in acts if act.lane is not None}:
        lane_pairs |= set(pairwise([place for place, act in enumerate(acts) if act.lane == lane]))
    told: set[tuple[int, int]] = set()
    for place, act in enumerate(acts):
        if act.lane is None:
            issues = [p for p, a in enumerate(acts) if a.lane is not None and a.span.command == act.span.command]
            told.add((issues[-1], place))
    waits = [(s.waits_on, s.command) for s in spans if s.kind == SpanKind.WAIT and NONE not in (s.waits_on, s.command)]
    for source, target in [*edges, *waits]:
        before = [place for place, act in enumerate(acts) if act.span.command == source]
        after = [place for place, act in enumerate(acts) if act.span.command == target]
        if before and after:
            last = max(before, key=lambda place: (acts[place].span.end, place))
            told.add((last if last < after[0] else before[0], after[0]))
    told = {(first, second) for first, second in told if first < second}
    return lane_pairs | told | _assumed(acts, lane_pairs, {second for _, second in told})


def _assumed(acts: Sequence[Act], lane_pairs: set[tuple[int, int]], told: set[int]) -> set[tuple[int, int]]:
    begin = min(act.span.start for act in acts)
    found = set()
    for second, act in enumerate(acts):
        free = max([begin, *(acts[first].span.end for first, other in lane_pairs if other == second)])
        ended = [p for p, a in enumerate(acts) if a.span.end <= act.span.start and a.span.end > a.span.start]
        if second not in told and act.span.start > free and ended:
            last = max(ended, key=lambda place: (acts[place].span.end, place))
            if last < second:
                found.add((last, second))
    return found


class Reference:
    """The schedule, one activity at a time; and the longest path by trying every path."""

    def __init__(self, spans: Sequence[Span], edges: Sequence[tuple[int, int]]) -> None:
        self.acts = reference_acts(spans)
        self.pairs = reference_pairs(self.acts, spans, edges)
        every = [s for s in spans if s.kind in (SpanKind.OP, SpanKind.TRANSFER, SpanKind.WAIT)]
        self.begin, self.end = min(s.start for s in every), max(s.end for s in every)
        self.durations = [act.span.end - act.span.start for act in self.acts]
        self.parts = {
            (first, second): min(self.acts[first].span.end, self.acts[second].span.start) - self.acts[first].span.start
            for first, second in self.pairs
        }
        self.lags = [act.span.start - self.ready(place) for place, act in enumerate(self.acts)]

    def ready(self, place: int) -> int:
        reached = [self.acts[f].span.start + part for (f, second), part in self.parts.items() if second == place]
        return max([self.begin, *reached])

    def every_path(self, place: int, durations: Sequence[int], lags: Sequence[int]) -> list[int]:
        """Lengths of all paths that end where this activity starts."""
        lengths = [0]
        for (first, second), part in self.parts.items():
            if second == place:
                share = min(part, durations[first])
                lengths += [length + share for length in self.every_path(first, durations, lags)]
        return [length + lags[place] for length in lengths]

    def wall(self, durations: Sequence[int] | None = None, lags: Sequence[int] | None = None) -> int:
        """The longest of all paths, and what comes after the last activity."""
        ns, late = durations or self.durations, lags or self.lags
        longest = max(max(self.every_path(place, ns, late)) + ns[place] for place in range(len(self.acts)))
        return longest + self.end - max(act.span.end for act in self.acts)
