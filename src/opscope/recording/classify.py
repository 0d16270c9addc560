"""Words → meaning: what commands, spans, routes, lanes and ops of a foreign file, or of an old run, do.

A source that knows better fills the columns itself; what is filled is left alone here. An op does what its kind does;
without one what its type says, and only what has no type is told from its name, which is its author's.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Carries, Direction, Does, LaneRole, Party
from ..core.words import (
    carries_of,
    carries_of_copy,
    does_of_call,
    does_of_kernel,
    does_of_type,
    engine_of_lane,
    is_cpu,
    is_dma,
    is_flush,
    is_memory,
    names_floats,
)
from ..graph.kinds import what_kind_does
from ..program.program import NO_ROUTE, MemoryInfo, OpCycles, Operand, OpInfo
from .host_times import STAGE_MEANING
from .recording import Placed
from .run import CommandTable, Run, RunRoute
from .summary import HostStage, OpTotal, Summary
from .trace import NONE, Lane, SpanKind, Trace

_DEEPER = re.compile(r"(.+) \d+")  # "thread 2" holds calls inside those of "thread"
_EXECUTION = "Execution"
_UNKNOWN = Does.UNKNOWN.label
_CYCLES = re.compile(r"([A-Za-z][\w -]*)=(\d+)")  # "DPU=120 DRAM=80"
_OPERAND = re.compile(r"(in|out) (\S+) (\S+) (.+) (\S+) <(\d{1,18}(?: x \d{1,18})*|)>(?: (\d{1,15})KB)?")
_SAID = frozenset(where.value for where in Placed if where not in (Placed.UNKNOWN, Placed.INSERTED))  # who runs an op
_MOST_CYCLES = 120  # characters of such a text

# ---- one op ---------------------------------------------------------------------------------------------------------


def does_of_work(name: str, type_: str = "", kind: str = "") -> Does:
    """Of an op, by its kind, else by the type that its source states; a name is read of what has no type."""
    by_kind = what_kind_does(kind)
    if by_kind is not Does.UNKNOWN:
        return by_kind
    return does_of_type(type_) if type_ else does_of_kernel(name)


def does_of_command(name: str, op: OpInfo) -> Does:
    """Of work that bears the name of its op, what the op does; else of a kernel that ran for it, which knows better."""
    own = bool(op.name) and name.startswith(op.name) and not name[len(op.name) :][:1].isalnum()
    of_op = does_of_work(name if own else "", op.type, op.kind)
    found = Does.UNKNOWN if own else does_of_kernel(name)
    if found is Does.UNKNOWN or (found is Does.COMPUTE and of_op is Does.LAYOUT):  # "elementwise_kernel" of a copy
        return of_op
    return found


# ---- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Classified:
    """Tables with meanings that were read off names filled in, and of how many rows of which table they were."""

    trace: Trace
    commands: CommandTable
    rows: Mapping[str, int]


def classify(trace: Trace, ops: Sequence[OpInfo], commands: CommandTable) -> Classified:
    """Fill what nobody filled: of commands, routes, lanes and spans."""
    filled = _commands(commands, ops)
    lanes = tuple(_owned(trace.lanes))
    whole = replace(trace, lanes=lanes)
    spans, routes = _spans(whole, ops, filled)
    types = np.isin(commands.rows["detail"], list(filled.floats - commands.floats))
    moves = np.any([spans[key] != trace.spans[key] for key in ("does", "route")], axis=0)
    rows = {
        "commands": int(((filled.rows["does"] != commands.rows["does"]) | types).sum()),
        "routes": _unlike(filled.routes, commands.routes),
        "lanes": _unlike(lanes, trace.lanes),
        "spans": int(moves.sum()),
    }
    return Classified(replace(whole, spans=spans), replace(filled, routes=routes), _known(rows))


def _unlike(now: Sequence[object], before: Sequence[object]) -> int:
    """How many rows differ."""
    return sum(one != other for one, other in zip(now, before, strict=True))


def _known(rows: Mapping[str, int]) -> dict[str, int]:
    return {table: count for table, count in rows.items() if count}


def _commands(commands: CommandTable, ops: Sequence[OpInfo]) -> CommandTable:
    routes = tuple(
        replace(route, carries=carries_of(route.name)) if route.carries is Carries.UNKNOWN else route
        for route in commands.routes
    )
    commands = replace(commands, routes=routes, floats=commands.floats | _floats(commands))
    rows = commands.rows
    open_ = np.flatnonzero(rows["does"] == Does.UNKNOWN)
    if not len(open_) or not any(commands.kinds):
        return commands
    rows = rows.copy()
    does = _of_pairs(commands.kinds, rows["kind"][open_], ops, rows["op"][open_])
    moves = (rows["route"][open_] != NO_ROUTE) & (does != Does.STATS)
    rows["does"][open_] = np.where(moves, Does.MOVE, does)
    return replace(commands, rows=rows)


def _floats(commands: CommandTable) -> frozenset[int]:
    """Details whose data types are told in a word alone, which is one for floats."""
    words = enumerate(zip(commands.types, commands.operands, strict=True))
    return frozenset(detail for detail, (types, operands) in words if not operands and names_floats(types))


def _of_pairs(
    names: Sequence[str], name: npt.NDArray[np.generic], ops: Sequence[OpInfo], op: npt.NDArray[np.generic]
) -> Numbers:
    """What work does by its name and its op; every pair is asked once."""
    count, nothing = len(ops) + 1, OpInfo("", "", "", "")
    codes, place = np.unique(name.astype(np.int64) * count + op.astype(np.int64) + 1, return_inverse=True)
    owner = [nothing, *ops]  # of NO_OP, then of every op
    found = [does_of_command(names[code // count], owner[code % count]) for code in codes.tolist()]
    of_pair: Numbers = np.array([int(does) for does in found] or [0], np.int64)
    return of_pair[place.reshape(-1)]


def _owned(lanes: Sequence[Lane]) -> Sequence[Lane]:
    """Lanes with a role: `thread 2` holds deeper calls of `thread`."""
    place = {(lane.device, lane.core, lane.thread, lane.name): number for number, lane in enumerate(lanes)}
    return [_with_role(lane, place) for lane in lanes]


def _with_role(lane: Lane, place: dict[tuple[int, int, int, str], int]) -> Lane:
    if lane.role is not LaneRole.UNKNOWN:
        return lane
    deeper = _DEEPER.fullmatch(lane.name)
    owner = NONE if deeper is None else place.get((lane.device, lane.core, lane.thread, deeper[1]), NONE)
    if owner != NONE:
        return replace(lane, role=LaneRole.NESTED, owner=owner)
    return replace(lane, role=_role(lane))


def _role(lane: Lane) -> LaneRole:
    if lane.name == _EXECUTION:
        return LaneRole.EXECUTION
    if lane.device == NONE:
        return LaneRole.HOST
    if is_dma(lane.name):
        return LaneRole.TRANSFER
    return LaneRole.MARKER if lane.name.startswith("Host_IO_Port") else LaneRole.ENGINE


def _spans(
    trace: Trace, ops: Sequence[OpInfo], commands: CommandTable
) -> tuple[npt.NDArray[np.void], tuple[RunRoute, ...]]:
    spans = trace.spans
    work = np.isin(spans["kind"], (SpanKind.OP, SpanKind.TRANSFER, SpanKind.HOST)) & (spans["does"] == Does.UNKNOWN)
    waits = np.isin(spans["kind"], (SpanKind.WAIT, SpanKind.BARRIER)) & (spans["does"] == Does.UNKNOWN)
    copies = (spans["kind"] == SpanKind.TRANSFER) & (spans["route"] == NONE)
    if not (work.any() or waits.any() or copies.any()):
        return spans, commands.routes
    spans = spans.copy()
    spans["does"][waits] = Does.SYNC
    known = _command_rows(spans["command"], len(commands.rows))
    for kind, rule in ((SpanKind.OP, _of_ops), (SpanKind.TRANSFER, _of_transfers), (SpanKind.HOST, _of_host)):
        open_ = np.flatnonzero(work & (spans["kind"] == kind))
        if len(open_):
            spans["does"][open_] = rule(trace, open_, ops, commands, known[open_])
    return spans, _routed(spans, np.flatnonzero(copies), trace.names, commands, known)


def _command_rows(command: Numbers, count: int) -> Numbers:
    """The row of every command that the table tells of; NONE."""
    return np.where((command >= 0) & (command < count), command, NONE)


def _of_ops(trace: Trace, rows: Numbers, ops: Sequence[OpInfo], commands: CommandTable, known: Numbers) -> Numbers:
    """Of engines at work: that a command starts a transfer, or that a lane moves bytes, says more than a name."""
    spans = trace.spans
    does = _of_pairs(trace.names, spans["name"][rows], ops, spans["op"][rows])
    of_command = commands.rows["does"][known].astype(np.int64) if len(commands.rows) else np.zeros(len(rows), np.int64)
    of_command = np.where(known == NONE, Does.UNKNOWN, of_command)
    does = np.where((of_command != Does.UNKNOWN) & np.isin(does, (Does.UNKNOWN, Does.COMPUTE)), of_command, does)
    dma = np.array([is_dma(lane.name) for lane in trace.lanes] or [False])[spans["lane"][rows]]
    does[np.isin(does, (Does.UNKNOWN, Does.COMPUTE, Does.LAYOUT, Does.SYNC)) & dma] = Does.MOVE
    if len(commands.rows):
        issues = (known != NONE) & (commands.rows["route"][known] != NO_ROUTE) & (does != Does.STATS)
        does[issues] = Does.LAUNCH
    return does


def _of_transfers(
    trace: Trace, rows: Numbers, _ops: Sequence[OpInfo], _commands: CommandTable, _known: Numbers
) -> Numbers:
    flush = _by_name(trace.names, trace.spans["name"][rows], is_flush)
    return np.where(flush == 1, Does.STATS, Does.MOVE)


def _of_host(trace: Trace, rows: Numbers, _ops: Sequence[OpInfo], _commands: CommandTable, _known: Numbers) -> Numbers:
    return _by_name(trace.names, trace.spans["name"][rows], does_of_call)


def _by_name(names: Sequence[str], used: npt.NDArray[np.generic], rule: Callable[[str], int]) -> Numbers:
    """What a rule says of the name of every span; of each name that is used, it is asked once."""
    found = np.zeros(max(len(names), 1), np.int64)
    for number in np.flatnonzero(np.bincount(used.astype(np.int64), minlength=len(names))).tolist():
        found[number] = int(rule(names[number]))
    of_span: Numbers = found[used]
    return of_span


def _routed(
    spans: npt.NDArray[np.void], copies: Numbers, names: Sequence[str], commands: CommandTable, known: Numbers
) -> tuple[RunRoute, ...]:
    """Give transfers the route of their command, else one that their name tells of; and return all routes."""
    if len(commands.rows):
        spans["route"][copies] = np.where(known[copies] != NONE, commands.rows["route"][known[copies]], NONE)
    copies = copies[spans["route"][copies] == NONE]
    routes = list(commands.routes)
    ways = (Carries.HOST, Carries.LINK)
    way = _by_name(names, spans["name"][copies], lambda word: _place_of(carries_of_copy(word), ways))
    for number, (carries, name) in enumerate(zip(ways, ("host link", "device link"), strict=True)):
        own = copies[way == number]
        if len(own):
            spans["route"][own] = len(routes)
            routes.append(RunRoute(name, carries))
    return tuple(routes)


def _place_of(carries: Carries, ways: tuple[Carries, ...]) -> int:
    return ways.index(carries) if carries in ways else NONE


def with_meaning(run: Run, unplaced: Collection[int] = ()) -> Run:
    """A Run whose source does not tell what everything does, with what words tell filled in and marked.

    Args:
        unplaced: ops of which the source does not tell who runs them.
    """
    found = classify(run.trace, run.ops, run.commands)
    told = _by_kind(_as_spans_tell(run.summary, run.ops, found.trace), run.ops)
    summary = classified_summary(_on_cpu(told, set(unplaced)), run.ops)
    info = run.info.with_classified(found.rows)
    before = run.summary.ops if "spans" in info.classified else told.ops  # what such spans tell of totals counts, too
    totals = _known({"summary": _unlike(summary.ops, before) + _told_of_others(summary, told)})
    return replace(
        run,
        info=info.with_classified(totals),
        commands=found.commands,
        trace=found.trace,
        summary=summary,
    )


def classified_summary(summary: Summary, ops: Sequence[OpInfo]) -> Summary:
    """Totals of ops with what they do and which op they are of, of lanes with their engine: where they do not say."""
    totals = tuple(_by_words(total) if total.does == _UNKNOWN else total for total in _by_kind(summary, ops).ops)
    lanes = tuple(lane if lane.engine else replace(lane, engine=engine_of_lane(lane.name)) for lane in summary.lanes)
    host = tuple(map(_stage_by_words, summary.host))
    same = (totals, lanes, host) == (summary.ops, summary.lanes, summary.host)
    return summary if same else replace(summary, ops=totals, lanes=lanes, host=host)


def _on_cpu(summary: Summary, unplaced: Collection[int]) -> Summary:
    """Totals of ops with whether the name of their engine is that of a CPU, where nobody says who runs them."""
    ops = tuple(replace(row, on_cpu=is_cpu(row.engine)) if row.op in unplaced else row for row in summary.ops)
    return replace(summary, ops=ops)


def _stage_by_words(stage: HostStage) -> HostStage:
    """A stage that says neither whose it is nor what is done in it: one of ours in an old run, or a tool's."""
    if stage.party is not Party.UNKNOWN or stage.does != _UNKNOWN:
        return stage
    party, does = STAGE_MEANING.get(stage.name, (Party.UNKNOWN, does_of_call(stage.name)))
    return replace(stage, party=party, does=does.label)


def _by_kind(summary: Summary, ops: Sequence[OpInfo]) -> Summary:
    """Totals with the op that they are of, and what the kind of that op does: neither is read from a word."""
    totals = summary.ops
    if all(total.op is None for total in totals):
        totals = _numbered(totals, ops)
    kinds = (Does.UNKNOWN if total.op is None else what_kind_does(ops[total.op].kind) for total in totals)
    return replace(
        summary,
        ops=tuple(
            replace(total, does=does.label) if total.does == _UNKNOWN and does is not Does.UNKNOWN else total
            for total, does in zip(totals, kinds, strict=True)
        ),
    )


def _told_of_others(summary: Summary, before: Summary) -> int:
    """Of how many lanes and stages words told; that a lane is an engine by itself is nothing that a word tells."""
    pairs = zip(summary.lanes, before.lanes, strict=True)
    lanes = sum(one.engine not in (other.engine, other.name) for one, other in pairs)
    return lanes + _unlike(summary.host, before.host)


def _as_spans_tell(summary: Summary, ops: Sequence[OpInfo], trace: Trace) -> Summary:
    """Totals of ops with what their spans do for most of the time, where there are any."""
    spans = trace.own_spans
    spans = spans[(spans["op"] >= 0) & np.isin(spans["kind"], (SpanKind.OP, SpanKind.TRANSFER))]
    if not len(spans) or any(total.does != Does.UNKNOWN.label for total in summary.ops):
        return summary
    code = spans["op"].astype(np.int64) * len(Does) + spans["does"]
    length = spans["end_ns"] - spans["start_ns"]
    times = np.bincount(code, length, minlength=len(ops) * len(Does)).reshape(len(ops), len(Does))
    most = times.argmax(axis=1).tolist()
    totals = _numbered(summary.ops, ops) if all(total.op is None for total in summary.ops) else summary.ops
    return replace(
        summary,
        ops=tuple(total if total.op is None else replace(total, does=Does(most[total.op]).label) for total in totals),
    )


def _by_words(total: OpTotal) -> OpTotal:
    """The total with its meaning; what runs on an engine that moves bytes moves them."""
    does = does_of_work(total.name, total.type)
    if is_dma(total.engine) or total.engine.lower().startswith("dma"):
        does = Does.MOVE if does in (Does.COMPUTE, Does.LAYOUT, Does.UNKNOWN) else does
    carries = carries_of_copy(total.type or total.name).value if does is Does.MOVE else total.carries
    on_cpu = total.on_cpu or (total.placed not in _SAID and is_cpu(total.engine))
    return replace(total, does=does.label, on_cpu=on_cpu, carries=carries)


def _numbered(totals: Sequence[OpTotal], ops: Sequence[OpInfo]) -> tuple[OpTotal, ...]:
    """Each with the op of its name; of several of one name, in turn."""
    places: dict[str, deque[int]] = defaultdict(deque)
    for number, op in enumerate(ops):
        places[op.name].append(number)
    return tuple(replace(total, op=places[total.name].popleft() if places[total.name] else None) for total in totals)


# ---- texts of old runs ----------------------------------------------------------------------------------------------


def operand_of(text: str, memories: dict[str, int]) -> Operand | None:
    """`in DDR Src0 NAME f16 <8 x 128> 2KB`; memories are numbered as they come up."""
    match = _OPERAND.fullmatch(text)
    if match is None:
        return None
    way, memory, role, tensor, dtype, extents, kilobytes = match.groups()
    shape = tuple(int(extent) for extent in extents.split(" x ") if extent.strip())
    place = memories.setdefault(memory, len(memories))
    return Operand(
        Direction(way), role, tensor, place, dtype, shape, None if kilobytes is None else int(kilobytes) * 1024
    )


def old_operands(commands: CommandTable, texts: Sequence[str]) -> CommandTable:
    """Of a run without a table of operands: those that its texts tell of, and cycles by resource."""
    memories: dict[str, int] = {}
    operands = []
    for text in texts:
        found = (operand_of(line, memories) for line in text.split("\n")) if text else ()
        operands.append(tuple(operand for operand in found if operand is not None))
    outer = np.array([*(carries_of(route.name).is_outer for route in commands.routes), False])
    used = np.unique(commands.rows["detail"][outer[commands.rows["route"]]]).tolist()
    outside = {commands.memories[detail] for detail in used}
    first = {int(detail): int(op) for detail, op in zip(commands.rows["detail"], commands.rows["op"], strict=True)}
    cycles = [
        row
        for d, text in enumerate(commands.attributes)
        if first.get(d, NONE) >= 0
        for row in op_cycles_of(first[d], text)
    ]
    return replace(
        commands,
        operands=tuple(operands),
        places=tuple(MemoryInfo(name, name in outside) for name in memories),
        op_cycles=() if commands.routes else tuple(cycles),
    )


def op_cycles_of(op: int, attributes: str) -> list[OpCycles]:
    """`NPU=12, SRAM=7` of an old run."""
    return [
        OpCycles(op, name, is_memory(name), int(cycles)) for name, cycles in _CYCLES.findall(attributes[:_MOST_CYCLES])
    ]
