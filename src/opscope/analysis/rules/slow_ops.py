"""Ops that take much of the critical path, and ops far above the least time they could take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import distinct
from ...core.meaning import Does
from ...core.units import format_percent
from ...recording.finding import Finding
from ...recording.trace import NONE
from ..causes import CAUSES, COMPUTE, HOST, HOST_LINK, LAYOUT, LINK, MEMORY, cause_of_op, does_of
from ..data_types import computed_in_floats
from ..facts import Facts
from ..op_bounds import bound_by_bytes
from ..roofline import roofline
from ..structure import NOT_REPEATED
from ..timeline.activities import Numbers
from .claim import Claim, count, time
from .flow import flow_of

SLOW_SHARE = 0.05  # of the critical path: a block above it is worth a line
MOST_BLOCKS = 3
FAR_FACTOR = 2.0  # times its lower bound
FAR_SHARE = 0.02  # of the wall time, that all such ops lose together
MOST_NAMES = 200  # a what-if makes all of them free
MOST_ENGINES = 2  # that are named
KEPT = "keep its operands in local memory"
EARLIER = "fetch its operands earlier, or keep them in local memory"
LOOK = "look at it first: nothing else takes as long"
_ACTIONS = {
    LINK: "split it so that less is handed between cores",
    HOST: "launch it ahead, or fuse it with its neighbours",
}


def slow_ops(facts: Facts) -> Iterator[Claim]:
    """The blocks – one op, or the same op of every layer – with most of the critical path; else with most time."""
    times = facts.op_path_ns if facts.has_timeline else _own_times(facts)
    whole = (facts.wall_ns or 0) if facts.has_timeline else int(times.sum())
    blocks = list(dict.fromkeys(facts.structure.blocks))
    number = {block: place for place, block in enumerate(blocks)}
    of_op = np.array([number[block] for block in facts.structure.blocks], np.int64)
    sums = np.rint(np.bincount(of_op, times, minlength=len(blocks))).astype(np.int64)
    for place in np.argsort(-sums, kind="stable")[:MOST_BLOCKS].tolist():
        if not whole or sums[place] < SLOW_SHARE * whole:
            return
        claim = _slow(facts, blocks[place], np.flatnonzero(of_op == place), times, whole)
        if blocks[place] != NOT_REPEATED and claim is not None:
            yield claim


def _own_times(facts: Facts) -> Numbers:
    """Without a timeline: the time of every op that does work; those that are waits are no ops of the network."""
    return np.array([0 if does_of(op) is Does.SYNC else op.busy_ns or 0 for op in facts.ops], np.int64)


def _slow(facts: Facts, block: str, ops: Numbers, times: Numbers, whole: int) -> Claim | None:
    """None: a change of layout, or nothing but transfers, which have rules of their own."""
    cost, costliest = int(times[ops].sum()), ops[np.argsort(-times[ops], kind="stable")]
    first = int(costliest[0])
    name = facts.run.ops[first].name if len(ops) == 1 else block
    chosen = np.zeros(len(facts.run.ops), np.bool_)
    chosen[ops] = True
    positions = facts.of_ops(chosen)
    sums = np.bincount(facts.work.cause[positions], facts.path_ns[positions], minlength=len(CAUSES))
    cause = (
        int(sums.argmax())
        if facts.has_timeline
        else cause_of_op(facts.ops[first], slow_bytes=first in bound_by_bytes(facts.run))
    )
    if cause == LAYOUT or (cause in (MEMORY, HOST_LINK) and len(positions) and facts.moves[positions].all()):
        return None
    of = "the critical path" if facts.has_timeline else "the time of all ops"
    kind = f"{facts.run.ops[first].type} op".strip()
    finding = Finding(
        "slow-op",
        f"{name} takes {format_percent(cost / whole)} of {of}",
        f"{count(len(ops), kind)}{_engines(facts, costliest)}: {time(cost)}, mostly {CAUSES[cause]}",
        tuple(dict.fromkeys(facts.run.ops[op].name for op in costliest.tolist()))[:MOST_NAMES],
        cost,
        cost / whole,
        action=_action(facts, cause, chosen, positions),
        spans=facts.rows(positions, facts.path_ns),
    )
    return Claim(finding, positions if facts.has_timeline else None)


def _engines(facts: Facts, ops: Numbers) -> str:
    """What these ops run on, costliest first; nothing where that is not told, or too much to say."""
    names = list(dict.fromkeys(facts.ops[op].engine for op in ops.tolist() if facts.ops[op].engine))
    return f" on {' and '.join(names)}" if 0 < len(names) <= MOST_ENGINES else ""


def _action(facts: Facts, cause: int, chosen: npt.NDArray[np.bool_], positions: Numbers) -> str:
    if cause == COMPUTE:
        return _cheaper(facts, chosen, positions)
    if cause == MEMORY:
        narrower = ", or a smaller data type" if computed_in_floats(facts.run, chosen) else ""
        flow = flow_of(facts, np.flatnonzero((facts.work.cause == MEMORY) & ~facts.on_host))
        return (KEPT if flow is not None and flow.is_full else EARLIER) + narrower
    return _ACTIONS.get(cause, LOOK)


def _cheaper(facts: Facts, chosen: npt.NDArray[np.bool_], positions: Numbers) -> str:
    """What would make these ops compute for less time, of what the run tells: their types, and where they ran."""
    ways = ["a cheaper form of the op"]
    if computed_in_floats(facts.run, chosen):
        ways.append("a smaller data type")
    lanes = [facts.run.trace.lanes[lane] for lane in distinct(facts.work.own_lane[positions]).tolist()]
    places = Counter(
        device for device, core in {(lane.device, lane.core) for lane in lanes} if NONE not in (device, core)
    )
    cores = max(places.values(), default=0)
    if 0 < cores < facts.run.info.cores:
        ways.append(f"more cores for it: it runs on {cores} of {facts.run.info.cores}")
    return ", or ".join([", ".join(ways[:-1]), ways[-1]]) if len(ways) > 1 else ways[0]


def far_from_bound(facts: Facts) -> Iterator[Claim]:
    """Ops that take much longer than their MACs and bytes alone would."""
    bounds = {row.op: row.bound_ns for row in roofline(facts) if row.bound_ns is not None}
    far: dict[int, float] = {}
    for place, total in enumerate(facts.ops):
        bound = bounds.get(total.name)
        if bound and total.wall_ns and total.macs and total.wall_ns > FAR_FACTOR * bound:
            far[place] = bound / total.wall_ns
    loss = {place: round(int(facts.op_path_ns[place]) * (1 - share)) for place, share in far.items()}
    cost = sum(loss.values())
    if not facts.wall_ns or cost < FAR_SHARE * facts.wall_ns:
        return
    worst = sorted(loss, key=lambda place: -loss[place])
    first = facts.ops[worst[0]]
    left = np.zeros(len(facts.run.ops))
    left[list(far)] = list(far.values())
    positions = facts.of_ops(left > 0)
    yield Claim(
        Finding(
            "far-from-bound",
            f"{count(len(far), 'op')} take more than {FAR_FACTOR:g} × their lower bound",
            f"{first.name} takes {time(first.wall_ns or 0)}, its MACs and bytes alone {time(bounds[first.name] or 0)}",
            tuple(dict.fromkeys(facts.ops[place].name for place in worst))[:MOST_NAMES],
            cost,
            action="look for small tiles, poor engine use or conversions around them",
            spans=facts.rows(positions, facts.path_ns),
        ),
        positions,
        np.rint(facts.work.ns[positions] * left[facts.work.op[positions]]).astype(np.int64),
    )
