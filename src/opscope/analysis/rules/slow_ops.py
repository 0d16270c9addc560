"""Ops that take much of the critical path, and ops far above the least time they could take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers, distinct
from ...core.meaning import Does
from ...core.units import format_counted, format_ns, format_percent
from ...recording.finding import Finding
from ...recording.trace import NONE
from ..causes import CAUSES, COMPUTE, HOST, HOST_LINK, LAUNCH, LAYOUT, LINK, MEMORY, cause_of_op, does_of
from ..data_types import computed_in_floats
from ..op_bounds import bound_by_bytes
from ..roofline import roofline
from ..run_analysis import RunAnalysis
from ..structure import NOT_REPEATED
from ..timeline.intervals import total
from .draft import Draft
from .flow import flow_of
from .wasted import doubted

SLOW_SHARE = 0.05  # of the critical path: a block above it is worth a line
MOST_BLOCKS = 3
FAR_FACTOR = 2.0  # times its lower bound
FAR_SHARE = 0.02  # of the wall time, that all such ops lose together
MOST_NAMES = 200  # a what-if makes all of them free
MOST_ENGINES = 2  # that are named
PART_SHARE = 0.05  # of the time of such ops, that a cause of it is named from
KEPT = "keep its operands in local memory"
EARLIER = "fetch its operands earlier, or keep them in local memory"
LOOK = "look at it first: nothing else takes as long"
_ANY_EXCESS = "look for small tiles, poor engine use or conversions around them"
_EXCESS = {  # what takes most beyond the bound → what to do
    COMPUTE: "engines work below their peak: larger tiles, by a larger batch or fewer cores for these ops",
    LAYOUT: "avoid the conversions around them: neighbours in the layout that the engine takes",
    LAUNCH: "fuse them with their neighbours, or give each start more work: a larger batch",
    LINK: "split them so that less is handed between cores, or use fewer cores",
    MEMORY: "their bytes come more slowly than the memory could send them: fetch them earlier, keep them in local "
    "memory, or have fewer others that use the memory at the same time",
}
_ACTIONS = {
    LINK: "split it so that less is handed between cores",
    HOST: "launch it ahead, or fuse it with its neighbours",
}


def slow_ops(analysis: RunAnalysis) -> Iterator[Draft]:
    """The blocks – one op, or the same op of every layer – with most of the critical path; else with most time."""
    times = analysis.op_path_ns if analysis.has_timeline else _own_times(analysis)
    whole = (analysis.wall_ns or 0) if analysis.has_timeline else int(times.sum())
    blocks = list(dict.fromkeys(analysis.structure.blocks))
    number = {block: place for place, block in enumerate(blocks)}
    of_op = np.array([number[block] for block in analysis.structure.blocks], np.int64)
    told = doubted(analysis)  # of those the time is in question, not the form
    sums = total(of_op, np.where(told, 0, times), len(blocks))
    for place in np.argsort(-sums, kind="stable")[:MOST_BLOCKS].tolist():
        if not whole or sums[place] < SLOW_SHARE * whole:
            return
        draft = _slow(analysis, blocks[place], np.flatnonzero(of_op == place), times, whole)
        if blocks[place] != NOT_REPEATED and draft is not None:
            yield draft


def _own_times(analysis: RunAnalysis) -> Numbers:
    """Without a timeline: the time of every op that does work; those that are waits are no ops of the network."""
    return np.array([0 if does_of(op) is Does.SYNC else op.busy_ns or 0 for op in analysis.ops], np.int64)


def _slow(analysis: RunAnalysis, block: str, ops: Numbers, times: Numbers, whole: int) -> Draft | None:
    """None: a change of layout, or nothing but transfers, which have rules of their own."""
    cost, costliest = int(times[ops].sum()), ops[np.argsort(-times[ops], kind="stable")]
    first = int(costliest[0])
    name = analysis.run.ops[first].name if len(ops) == 1 else block
    chosen = np.zeros(len(analysis.run.ops), np.bool_)
    chosen[ops] = True
    positions = analysis.of_ops(chosen)
    sums = np.bincount(analysis.work.cause[positions], analysis.path_ns[positions], minlength=len(CAUSES))
    cause = (
        int(sums.argmax())
        if analysis.has_timeline
        else cause_of_op(analysis.ops[first], slow_bytes=first in bound_by_bytes(analysis.run))
    )
    if cause == LAYOUT or (cause in (MEMORY, HOST_LINK) and len(positions) and analysis.moves[positions].all()):
        return None
    of = "the critical path" if analysis.has_timeline else "the time of all ops"
    kind = f"{analysis.run.ops[first].type} op".strip()
    finding = Finding(
        "slow-op",
        f"{name} takes {format_percent(cost / whole)} of {of}",
        f"{format_counted(len(ops), kind)}{_engines(analysis, costliest)}: {format_ns(cost)}, mostly {CAUSES[cause]}",
        tuple(dict.fromkeys(analysis.run.ops[op].name for op in costliest.tolist()))[:MOST_NAMES],
        cost,
        cost / whole,
        action=_action(analysis, cause, chosen, positions),
        spans=analysis.rows(positions, analysis.path_ns),
    )
    return Draft(finding, positions if analysis.has_timeline else None)


def _engines(analysis: RunAnalysis, ops: Numbers) -> str:
    """What these ops run on, costliest first; nothing where that is not told, or too much to say."""
    names = list(dict.fromkeys(analysis.ops[op].engine for op in ops.tolist() if analysis.ops[op].engine))
    return f" on {' and '.join(names)}" if 0 < len(names) <= MOST_ENGINES else ""


def _action(analysis: RunAnalysis, cause: int, chosen: npt.NDArray[np.bool_], positions: Numbers) -> str:
    if cause == COMPUTE:
        return _cheaper(analysis, chosen, positions)
    if cause == MEMORY:
        narrower = ", or a smaller data type" if computed_in_floats(analysis.run, chosen) else ""
        flow = flow_of(analysis, np.flatnonzero((analysis.work.cause == MEMORY) & ~analysis.on_host))
        return (KEPT if flow is not None and flow.is_full else EARLIER) + narrower
    return _ACTIONS.get(cause, LOOK)


def _cheaper(analysis: RunAnalysis, chosen: npt.NDArray[np.bool_], positions: Numbers) -> str:
    """What would make these ops compute for less time, of what the run tells: their types, and where they ran."""
    ways = ["a cheaper form of the op"]
    if computed_in_floats(analysis.run, chosen):
        ways.append("a smaller data type")
    lanes = [analysis.run.trace.lanes[lane] for lane in distinct(analysis.work.own_lane[positions]).tolist()]
    places = Counter(
        device for device, core in {(lane.device, lane.core) for lane in lanes} if NONE not in (device, core)
    )
    cores = max(places.values(), default=0)
    if 0 < cores < analysis.run.info.cores:
        ways.append(f"more cores for it: it runs on {cores} of {analysis.run.info.cores}")
    return ", or ".join([", ".join(ways[:-1]), ways[-1]]) if len(ways) > 1 else ways[0]


def far_from_bound(analysis: RunAnalysis) -> Iterator[Draft]:
    """Ops that take much longer than their MACs and bytes alone would."""
    bounds = {row.op: row.bound_ns for row in roofline(analysis) if row.bound_ns is not None}
    far: dict[int, float] = {}
    for place, op in enumerate(analysis.ops):
        bound = bounds.get(op.name)
        if bound and op.wall_ns and op.macs and op.wall_ns > FAR_FACTOR * bound:
            far[place] = bound / op.wall_ns
    loss = {place: round(int(analysis.op_path_ns[place]) * (1 - share)) for place, share in far.items()}
    cost = sum(loss.values())
    if not analysis.wall_ns or cost < FAR_SHARE * analysis.wall_ns:
        return
    worst = sorted(loss, key=lambda place: -loss[place])
    first = analysis.ops[worst[0]]
    left = np.zeros(len(analysis.run.ops))
    left[list(far)] = list(far.values())
    positions = analysis.of_ops(left > 0)
    parts = _parts(analysis, positions)
    excess = parts.copy()  # beyond what the bound asks for, which is computing or moving bytes
    excess[COMPUTE if parts[COMPUTE] >= parts[MEMORY] else MEMORY] -= int(parts.sum()) - cost
    yield Draft(
        Finding(
            "far-from-bound",
            f"{format_counted(len(far), 'op')} take more than {FAR_FACTOR:g} × their lower bound",
            f"{first.name} takes {format_ns(first.wall_ns or 0)}, "
            f"its MACs and bytes alone {format_ns(bounds[first.name] or 0)}{_in_words(parts)}",
            tuple(dict.fromkeys(analysis.ops[place].name for place in worst))[:MOST_NAMES],
            cost,
            action=_EXCESS.get(int(excess.argmax()), _ANY_EXCESS),
            spans=analysis.rows(positions, analysis.path_ns),
        ),
        positions,
        np.rint(analysis.work.ns[positions] * left[analysis.work.op[positions]]).astype(np.int64),
    )


def _parts(analysis: RunAnalysis, positions: Numbers) -> Numbers:
    """What some activities are on the critical path, by cause; their starts are launches."""
    path, caused = analysis.path_ns[positions], analysis.caused_ns[positions]
    parts = np.bincount(analysis.work.cause[positions], caused, minlength=len(CAUSES)).astype(np.int64)
    parts[LAUNCH] += int((path - caused).sum())
    return parts


def _in_words(parts: Numbers) -> str:
    """What takes the time of these ops, longest first; nothing where it is one thing alone."""
    found = [f"{CAUSES[cause]} {format_ns(int(parts[cause]))}" for cause in np.argsort(-parts, kind="stable")]
    count = int((parts > PART_SHARE * parts.sum()).sum())
    return f"; all of them on the critical path: {', '.join(found[:count])}" if count > 1 else ""
