"""Words → meaning: what commands, spans, routes, lanes and ops of a foreign file, or of an old run, do.

The only module that reads words. Whoever knows better fills the columns himself; what is filled is left alone here,
and what no word tells stays unknown.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Carries, Direction, Does, LaneRole
from ..program.program import NO_ROUTE, MemoryInfo, OpCycles, Operand, OpInfo
from .run import CommandTable, Run, RunRoute
from .summary import OpTotal, Summary
from .trace import NONE, Lane, SpanKind, Trace


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# ---- the words ------------------------------------------------------------------------------------------------------
#
# Patterns are searched in the lower-case head of a name. `_by_words` asks them in this order, and the first that fits
# decides, because names hold several of these words:
#
#   1. _STATS, _SYNC, _LAUNCH     work about other work:     "dma_start" launches, though it is about a DMA
#   2. _LAYOUT but _LAYOUT_NOT    same values, other form:   "Transpose" is; "ConvTranspose", "fused…" are not
#   3. _COMPUTING                 parts of words:            "xmma_fprop", "Convolution", "reduce_max"
#   4. _MULTICAST                 moves bytes
#   5. _MOVING, _MOVING_PARTS     same values, other place:  "Reshape", "GatherV2"; not "allgather"
#   6. _COMPUTING_WORDS           whole words alone:         "Add" computes, "Address" says nothing
#
# What none of them fits stays unknown.

_MOST_READ = 120  # characters of a name: what it does stands at its head
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of a name: "GatherV2" → Gather, V; "LRNOp" → LRN, Op

# work about other work
_STATS = re.compile(r"endcyclestats|end_of_stats")
_SYNC = re.compile(r"synchroni[sz]e|^sync\b|\bbarrier\b|^wait|\bwait\b|semaphore|multicast\w*_in$")
_LAUNCH = re.compile(r"dma_start|_start\b|^start$|enqueue|launch")

# the same values in another form: order of axes, data type, tiling
_LAYOUT = re.compile(
    r"transpose|permute|convert|\bcast|_cast|reformat|reorder|relayout|tolayout|swizzle|im2col|(de|re)?quanti[sz]e"
    r"|nchw.?to|nhwc.?to|to.?nchw|to.?nhwc|^copy|copy_|\bcopy\b|slice_pad|depth.?to.?space|space.?to.?depth"
    r"|flat_(to|from)|crouton|^pack|unpack",
)
_LAYOUT_NOT = re.compile(r"fused|conv(olution)?_?(2d|d32)?$|conv\w*transpose|transpose_?conv|deconv")  # these compute

# the same values in another place or shape
_MOVING = _set_of(
    "squeeze unsqueeze reshape flatten slice concat concatenate concatenation gather scatter split pad padding expand "
    "tile identity view shape shuffle cast cat strided reverse unstack stack roll chunk clone contiguous fill"
)
_MOVING_PARTS = re.compile(r"(?<!all)(?<!all_)gather|(?<!reduce)(?<!reduce_)scatter|reshape|concat|squeeze|copy")

# new values: parts of names, wherever they stand, and words that say so only as a whole
_COMPUTING = re.compile(
    r"conv|gemm|gemv|matmul|mat_mul|addmm|bmm|\bmm\b|element|splat|broadcast(add|sub|mul|div)|fullyconnected"
    r"|fully_connected|inner_?product|einsum|attention|sdpa|lstm|winograd"
    r"|pool|resize|resample|upsampl|interpolat|softmax|norm|reduc|argm(ax|in)|topk|cumsum|nonmaxsup|elementwise|eltwise"
    r"|elemwise|relu|gelu|silu|swish|sigmoid|tanh|softplus|logistic|sqrt|recip|trigon|depthwise|pointwise|fprop|dgrad"
    r"|wgrad|xmma|cublas|cudnn|cutlass|foreignnode|myelin|dispatch|squared|lookup|leaky|activation|embedding|dropout"
)
_COMPUTING_WORDS = _set_of(
    "add sub mul div pow min max minimum maximum mean sum neg negate abs exp log erf floor ceil round sign sin cos tan "
    "equal greater less not and or xor where select clip clamp elu mish square linear dense fc dot gru rnn fft dft mlp "
    "bias scale lrn binary unary subtract multiply divide mod compare logical rotary prelu lut random"
)

# routes and copies: between which places bytes go
_MULTICAST = re.compile(r"multicast")
_HOST_LINK = re.compile(r"htod|dtoh|host.?to.?device|device.?to.?host")
_LINK = re.compile(r"ptop|p2p|multicast|all.?reduce|all.?gather|nccl|peer")
_OUTER = re.compile(r"\b(read|write)\b")
_CARRIES = (  # words of a route, the first that fits: "DDR read" reads from outer memory
    (re.compile(r"\bread\b|\bin\b"), Carries.READ),
    (re.compile(r"\bwrite\b|\bout\b"), Carries.WRITE),
    (_HOST_LINK, Carries.HOST),
    (_MULTICAST, Carries.MULTICAST),
    (_LINK, Carries.LINK),
)

# lanes, engines and stages of the host
_DMA_LANE = re.compile(r"(^|\W)dma($|\W)")
_CPU = re.compile(r"^(cpu|host)|cpuexecutionprovider|\bcpu\b")
_TRANSFER_STAGE = re.compile(r"^(in|out)put transfer")
_QUEUE_STAGE = re.compile(r"^device queue")
_THREAD_NUMBER = re.compile(r"[ #_]t?\d+$")  # "vector t3" is a thread of "vector"
_DEEPER = re.compile(r"(.+) \d+")  # "thread 2" holds calls inside those of "thread"
_EXECUTION = "Execution"

# resources, data types, and texts of runs of earlier versions
_MEMORY = re.compile(r"s?d?ram|flash|ddr", re.IGNORECASE)
_FLOAT = re.compile(r"\bb?f(loat)?(16|32|64)?\b", re.IGNORECASE)
_CYCLES = re.compile(r"([A-Za-z][\w -]*)=(\d+)")  # "DPU=120 DRAM=80"
_OPERAND = re.compile(r"(in|out) (\S+) (\S+) (.+) (\S+) <(\d{1,18}(?: x \d{1,18})*|)>(?: (\d{1,15})KB)?")


# ---- one name -------------------------------------------------------------------------------------------------------


def does_of_work(name: str, type_: str = "") -> Does:
    """Of an engine at work, by the name of what it does and the type of the op that it is for."""
    found = _by_words(name)
    if found not in (Does.UNKNOWN, Does.COMPUTE):
        return found
    typed = _by_words(type_) if type_ else Does.UNKNOWN
    return typed if typed is Does.LAYOUT or (found is Does.UNKNOWN and typed is Does.COMPUTE) else found


def does_of_op_work(name: str, op: OpInfo | None) -> Does:
    """Of work that is called like its op, as in `/block/conv_kernel_time`, the type of the op says what it does.

    Nodes are called as people like: a Conv in a block called `transpose` changes no layout. Where the type says
    nothing, or the work has a name of its own, as a kernel has, that name does.
    """
    if op is None:
        return does_of_work(name)
    rest = name[len(op.name) :]
    is_called_so = bool(op.name and op.type) and name.startswith(op.name) and not rest[:1].isalnum()
    found = does_of_work(rest, op.type) if is_called_so else Does.UNKNOWN
    return does_of_work(name, op.type) if found is Does.UNKNOWN else found


def does_of_kernel(name: str) -> Does:
    """Of what a source calls a kernel: it computes, unless its name says that it does something else."""
    found = _by_words(name)
    return Does.COMPUTE if found is Does.UNKNOWN else found


def _by_words(name: str) -> Does:
    head = name[:_MOST_READ]
    word = head.lower()
    for pattern, does in ((_STATS, Does.STATS), (_SYNC, Does.SYNC), (_LAUNCH, Does.LAUNCH)):
        if pattern.search(word):
            return does
    if _LAYOUT.search(word) and not _LAYOUT_NOT.search(word):
        return Does.LAYOUT
    if _COMPUTING.search(word):
        return Does.COMPUTE
    if _MULTICAST.search(word):
        return Does.MOVE
    parts = {part.lower() for part in _WORDS.findall(head)}
    if parts & _MOVING or _MOVING_PARTS.search(word):
        return Does.LAYOUT
    return Does.COMPUTE if parts & _COMPUTING_WORDS else Does.UNKNOWN


def does_of_call(name: str) -> Does:
    """Of a call or a stage on the host."""
    word = name[:_MOST_READ].lower()
    if _TRANSFER_STAGE.search(word):
        return Does.MOVE
    return Does.SYNC if _SYNC.search(word) or _QUEUE_STAGE.search(word) else Does.HOST


def carries_of(name: str) -> Carries:
    """Of a route, or of a copy, by its name."""
    word = name[:_MOST_READ].lower()
    return next((carries for pattern, carries in _CARRIES if pattern.search(word)), Carries.UNKNOWN)


def carries_of_copy(name: str) -> Carries:
    """Of a copy that names no route: between host and device, between devices, or not known."""
    word = name[:_MOST_READ].lower()
    if _HOST_LINK.search(word):
        return Carries.HOST
    return Carries.LINK if _LINK.search(word) and not _OUTER.search(word) else Carries.UNKNOWN


def is_memory(resource: str) -> bool:
    """A resource that bytes are moved from or to."""
    return bool(_MEMORY.search(resource))


def names_floats(types: str) -> bool:
    """Data types as a foreign file prints them."""
    return bool(_FLOAT.search(types))


def is_dma(lane: str) -> bool:
    return bool(_DMA_LANE.search(lane.lower()))


def is_cpu(engine: str) -> bool:
    return bool(_CPU.search(engine.lower()))


def engine_of_lane(lane: str) -> str:
    """The name without the number of a thread: `vector t3` is a `vector`."""
    return _THREAD_NUMBER.sub("", lane) or lane


def does_of_total(total: OpTotal) -> Does:
    """Of an op that is known by its total alone."""
    found = does_of_work(total.type or total.name)
    moves = is_dma(total.engine) or total.engine.lower().startswith("dma")
    return Does.MOVE if moves and found in (Does.COMPUTE, Does.LAYOUT, Does.UNKNOWN) else found


# ---- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Classified:
    """Tables with meanings that were read off names filled in, and the names of the tables that gained any."""

    trace: Trace
    commands: CommandTable
    tables: tuple[str, ...]


def classify(trace: Trace, ops: Sequence[OpInfo], commands: CommandTable) -> Classified:
    """Fill what nobody filled: of commands, routes, lanes and spans."""
    filled = _commands(commands, ops)
    lanes = tuple(_owned(trace.lanes))
    whole = replace(trace, lanes=lanes)
    spans, routes = _spans(whole, ops, filled)
    changed = (
        ("commands", bool((filled.rows["does"] != commands.rows["does"]).any())),
        ("routes", filled.routes != commands.routes),
        ("lanes", lanes != trace.lanes),
        ("spans", any(bool((spans[key] != trace.spans[key]).any()) for key in ("does", "route"))),
    )
    return Classified(
        replace(whole, spans=spans), replace(filled, routes=routes), tuple(name for name, found in changed if found)
    )


def _commands(commands: CommandTable, ops: Sequence[OpInfo]) -> CommandTable:
    routes = tuple(
        replace(route, carries=carries_of(route.name)) if route.carries is Carries.UNKNOWN else route
        for route in commands.routes
    )
    rows = commands.rows
    open_ = np.flatnonzero(rows["does"] == Does.UNKNOWN)
    if not len(open_) or not any(commands.kinds):
        return replace(commands, routes=routes)
    rows = rows.copy()
    does = _of_pairs(commands.kinds, rows["kind"][open_], ops, rows["op"][open_])
    moves = (rows["route"][open_] != NO_ROUTE) & (does != Does.STATS)
    rows["does"][open_] = np.where(moves, Does.MOVE, does)
    return replace(commands, routes=routes, rows=rows)


def _of_pairs(
    names: Sequence[str], name: npt.NDArray[np.generic], ops: Sequence[OpInfo], op: npt.NDArray[np.generic]
) -> Numbers:
    """What work does by its name and its op; every pair is asked once."""
    known, count = (*ops, None), len(ops) + 1
    of = op.astype(np.int64)  # none is the last of them
    codes, place = np.unique(name.astype(np.int64) * count + np.where(of == NONE, len(ops), of), return_inverse=True)
    found = [does_of_op_work(names[code // count], known[code % count]) for code in codes.tolist()]
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
    flush = _by_name(trace.names, trace.spans["name"][rows], lambda name: int(bool(_STATS.search(name.lower()))))
    return np.where(flush == 1, Does.STATS, Does.MOVE)


def _of_host(trace: Trace, rows: Numbers, _ops: Sequence[OpInfo], _commands: CommandTable, _known: Numbers) -> Numbers:
    return _by_name(trace.names, trace.spans["name"][rows], does_of_call)


def does_of_kernels(names: Sequence[str], used: npt.NDArray[np.generic]) -> Numbers:
    """Of spans that a source calls kernels; `used`: position of the name of every one."""
    return _by_name(names, used, does_of_kernel)


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


def with_meaning(run: Run) -> Run:
    """A Run whose source does not tell what everything does, with what words tell filled in and marked."""
    found = classify(run.trace, run.ops, run.commands)
    summary = classified_summary(_as_spans_tell(run.summary, run.ops, found.trace), run.ops)
    tables = (*found.tables, "summary") if _tells_more(summary, run.summary) else found.tables
    return replace(
        run,
        info=replace(run.info, classified=tuple(dict.fromkeys((*run.info.classified, *tables)))),
        commands=found.commands,
        trace=found.trace,
        summary=summary,
    )


def classified_summary(summary: Summary, ops: Sequence[OpInfo]) -> Summary:
    """Totals of ops with what they do and which op they are of, of lanes with their engine: where they do not say."""
    totals = summary.ops
    if all(total.op is None for total in totals):
        totals = _numbered(totals, ops)
    unknown = Does.UNKNOWN.label
    totals = tuple(_by_name_of_total(total) if total.does == unknown else total for total in totals)
    lanes = tuple(lane if lane.engine else replace(lane, engine=engine_of_lane(lane.name)) for lane in summary.lanes)
    same = totals == summary.ops and lanes == summary.lanes
    return summary if same else replace(summary, ops=totals, lanes=lanes)


def _tells_more(summary: Summary, before: Summary) -> bool:
    """Whether words told something; that a lane is an engine by itself is nothing that a word tells."""
    pairs = zip(summary.lanes, before.lanes, strict=True)
    return summary.ops != before.ops or any(one.engine not in (other.engine, other.name) for one, other in pairs)


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


def _by_name_of_total(total: OpTotal) -> OpTotal:
    does = does_of_total(total)
    carries = carries_of_copy(total.type or total.name).value if does is Does.MOVE else total.carries
    return replace(total, does=does.label, on_cpu=total.on_cpu or is_cpu(total.engine), carries=carries)


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
        OpCycles(op, name, is_memory(name), int(cycles)) for name, cycles in _CYCLES.findall(attributes[:_MOST_READ])
    ]
