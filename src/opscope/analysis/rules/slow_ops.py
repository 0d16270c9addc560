"""Ops that take much of the critical path, and ops far above the least time they could take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...finding import Finding
from ...units import format_percent
from ..activities import Numbers
from ..bound_words import CAUSES, COMPUTE, HOST, LAYOUT, LINK, MEMORY, WAIT, cause_of_work
from ..facts import Facts
from ..op_bounds import names_bound_by_bytes
from ..repeats import NOT_REPEATED
from ..roofline import roofline
from .claim import Claim, count, time

SLOW_SHARE = 0.05  # of the critical path: a block above it is worth a line
MOST_BLOCKS = 3
FAR_FACTOR = 2.0  # times its lower bound
FAR_SHARE = 0.02  # of the wall time, that all such ops lose together
MOST_NAMES = 200  # a what-if makes all of them free
_ACTIONS = {
    COMPUTE: "a cheaper form of the op; a smaller data type, or more cores for it, where the target has them",
    MEMORY: "fetch its operands earlier, or keep them in local memory",
    LINK: "split it so that less is handed between cores",
    HOST: "launch it ahead, or fuse it with its neighbours",
}


def slow_ops(facts: Facts) -> Iterator[Claim]:
    """The blocks – one op, or the same op of every layer – with most of the critical path; else with most time."""
    times = facts.op_path_ns if facts.has_timeline else _own_times(facts)
    whole = (facts.wall_ns or 0) if facts.has_timeline else int(times.sum())
    blocks = list(dict.fromkeys(facts.structure[1]))
    number = {block: place for place, block in enumerate(blocks)}
    of_op = np.array([number[block] for block in facts.structure[1]], np.int64)
    sums = np.rint(np.bincount(of_op, times, minlength=len(blocks))).astype(np.int64)
    for place in np.argsort(-sums, kind="stable")[:MOST_BLOCKS].tolist():
        if not whole or sums[place] < SLOW_SHARE * whole:
            return
        claim = _slow(facts, blocks[place], np.flatnonzero(of_op == place), times, whole)
        if blocks[place] != NOT_REPEATED and claim is not None:
            yield claim


def _own_times(facts: Facts) -> Numbers:
    """Without a timeline: the time of every op that does work; those that are waits are no ops of the network."""
    return np.array([0 if cause_of_work(op.type or op.name) == WAIT else op.busy_ns or 0 for op in facts.ops], np.int64)


def _slow(facts: Facts, block: str, ops: Numbers, times: Numbers, whole: int) -> Claim | None:
    """None: a change of layout, which has a rule of its own."""
    cost, costliest = int(times[ops].sum()), ops[np.argsort(-times[ops], kind="stable")]
    first = int(costliest[0])
    name = facts.run.ops[first].name if len(ops) == 1 else block
    engine = f" on {facts.ops[first].engine}" if facts.ops[first].engine else ""
    chosen = np.zeros(len(facts.run.ops), np.bool_)
    chosen[ops] = True
    positions = facts.of_ops(chosen)
    sums = np.bincount(facts.work.cause[positions], facts.path_ns[positions], minlength=len(CAUSES))
    cause = int(sums.argmax()) if facts.has_timeline else _cause(facts, first)
    if cause == LAYOUT:
        return None
    of = "the critical path" if facts.has_timeline else "the time of all ops"
    kind = f"{facts.run.ops[first].type} op".strip()
    finding = Finding(
        "slow-op", f"{name} takes {format_percent(cost / whole)} of {of}",
        f"{count(len(ops), kind)}{engine}: {time(cost)}, mostly {CAUSES[cause]}",
        tuple(dict.fromkeys(facts.run.ops[op].name for op in costliest.tolist()))[:MOST_NAMES], cost, cost / whole,
        action=_ACTIONS.get(cause, "look at it first: nothing else takes as long"),
        spans=facts.rows(positions, facts.path_ns),
    )  # fmt: skip
    return Claim(finding, positions if facts.has_timeline else None)


def _cause(facts: Facts, op: int) -> int:
    """Without a timeline: what the time of an op counts as."""
    info = facts.run.ops[op]
    cause = cause_of_work(info.type or info.name)
    return MEMORY if cause == COMPUTE and info.name in names_bound_by_bytes(facts.run) else cause


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
            "far-from-bound", f"{count(len(far), 'op')} take more than {FAR_FACTOR:g} × their lower bound",
            f"{first.name} takes {time(first.wall_ns or 0)}, its MACs and bytes alone "
            f"{time(bounds[first.name] or 0)}",
            tuple(dict.fromkeys(facts.ops[place].name for place in worst))[:MOST_NAMES], cost,
            action="look for small tiles, poor engine use or conversions around them",
            spans=facts.rows(positions, facts.path_ns),
        ),
        positions, np.rint(facts.work.ns[positions] * left[facts.work.op[positions]]).astype(np.int64),
    )  # fmt: skip
