"""How the time of a timeline is shared among nodes: wall, waits of the foreground thread, overlap with others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from .importers.timeline import ENGINES, FOREGROUND, Timeline

_WAITING = ("dma_sync", "hvx_validate", "hmx_validate", "hlx_validate")


@dataclass(slots=True)
class NodeCycles:
    """Cycles of every node of one timeline; a node is a number."""

    wall: dict[int, int] = field(default_factory=dict)
    alone: dict[int, int] = field(default_factory=dict)
    wait: Counter[int] = field(default_factory=Counter)
    busy: dict[int, Counter[str]] = field(default_factory=dict)  # by engine
    kernels: dict[int, Counter[str]] = field(default_factory=dict)  # by name, without bookkeeping
    threads: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # lanes of an engine it used
    engine_threads: Counter[str] = field(default_factory=Counter)  # lanes that an engine has


def is_wait(timeline: Timeline) -> npt.NDArray[np.bool_]:
    """Spans in which the foreground thread stands still for another: behind all work it only takes note of its end."""
    work = timeline.work
    until = work["end"][~work["bookkeeping"]].max(initial=0)
    result: npt.NDArray[np.bool_] = _awaits(timeline) & (work["start"] < until)
    return result


def _awaits(timeline: Timeline) -> npt.NDArray[np.bool_]:
    """Steps of the foreground thread behind which work of another thread is done."""
    waiting = np.array([kernel.startswith(_WAITING) for kernel in timeline.kernels] or [False])
    result: npt.NDArray[np.bool_] = waiting[timeline.work["kernel"]] & timeline.work["bookkeeping"]
    return result


def node_cycles(timeline: Timeline, node_of: Sequence[int]) -> NodeCycles:
    """`node_of` has the node of every span."""
    work, result = timeline.work, NodeCycles()
    nodes = np.asarray(node_of, np.int64)
    real = ~work["bookkeeping"]
    _sweep(nodes[real], work["start"][real], work["end"][real], result)
    lengths = (work["end"] - work["start"]).tolist()
    columns = (nodes.tolist(), work["engine"].tolist(), work["kernel"].tolist(), work["bookkeeping"].tolist(), lengths)
    for node, engine, kernel, keeps, length in zip(*columns, strict=True):
        result.busy.setdefault(node, Counter())[ENGINES[engine]] += length
        if not keeps:
            result.kernels.setdefault(node, Counter())[timeline.kernels[kernel]] += length
    used = np.unique(np.stack((nodes[real], work["engine"][real], work["lane"][real]), axis=1), axis=0)
    for node, engine, _ in used.tolist():
        result.threads[node][ENGINES[engine]] += 1
    for engine, _ in np.unique(used[:, 1:], axis=0).tolist():
        result.engine_threads[ENGINES[engine]] += 1
    _waits(timeline, nodes, result)
    return result


def _sweep(nodes: Numbers, start: Numbers, end: Numbers, result: NodeCycles) -> None:
    """One pass over all starts and ends: who is at work between them."""
    lasting = end > start
    nodes, start, end = nodes[lasting], start[lasting], end[lasting]
    moments = np.concatenate((start, end))
    steps = np.repeat(np.array([1, -1]), len(start))
    owners = np.concatenate((nodes, nodes))
    order = np.argsort(moments, kind="stable")
    active: Counter[int] = Counter()
    wall, alone = Counter[int](), Counter[int]()
    last = 0
    for moment, step, node in zip(moments[order].tolist(), steps[order].tolist(), owners[order].tolist(), strict=True):
        if moment > last:
            for other in active:
                wall[other] += moment - last
            if len(active) == 1:
                alone[next(iter(active))] += moment - last
            last = moment
        active[node] += step
        if not active[node]:
            del active[node]
    result.wall, result.alone = dict(wall), dict(alone)


def _waits(timeline: Timeline, nodes: Numbers, result: NodeCycles) -> None:
    """Gaps and waits of the foreground thread belong to the node that it goes on with."""
    work, waits = timeline.work, _awaits(timeline)
    for lane, thread in enumerate(timeline.lanes):
        if thread.unit != FOREGROUND:
            continue
        chosen = np.flatnonzero(work["lane"] == lane)
        order = chosen[np.lexsort((work["end"][chosen], work["start"][chosen]))]
        until = 0
        for span in order.tolist():
            begin, end = int(work["start"][span]), int(work["end"][span])
            stood = max(0, begin - until) + (end - begin if waits[span] else 0)
            if stood:
                result.wait[int(nodes[span])] += stood
            until = max(until, end)


def merged(start: Numbers, end: Numbers) -> int:
    """Cycles in which at least one of the spans is open."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    first, last = start[order], np.maximum.accumulate(end[order])
    begin = np.maximum(first, np.concatenate(([first[0]], last[:-1])))
    return int(np.maximum(last - begin, 0).sum())
