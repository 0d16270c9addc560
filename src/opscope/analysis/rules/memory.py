"""Outer memory: transfers that are not hidden, tensors read again, tensors moved out and back, memory left empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...core.columns import Numbers, distinct
from ...core.units import format_bytes, format_counted, format_ns, format_percent
from ...program.program import NO_ROUTE
from ...recording.finding import Finding
from ...recording.run import OUTER_BYTES_PER_S
from ...recording.summary import MemoryTotal, Placement
from ...recording.trace import NONE
from ..causes import HOST_LINK, LINK, MEMORY
from ..data_types import computed_in_floats
from ..outer_memory import TensorTraffic
from ..run_analysis import RunAnalysis
from ..timeline.activities import NO_LANE
from ..timeline.gaps import routes_of
from ..timeline.intervals import most_open, union
from .draft import Draft, cause_cost, path_cost, start_cost
from .flow import flow_of, moved_bytes

EXPOSED_SHARE = 0.01  # of the wall time, that the critical path runs through transfers
AGAIN_SHARE = 0.05  # of all bytes read
LOW_FILL = 0.6  # of local memory, at its fullest
RESIDENCY_SHARE = 0.05  # of the wall time, that the critical path runs through transfers
FEWER_BYTES = "the memory gives nearly all it can; move less: operands kept in local memory, a larger batch"
EARLIER_BYTES = "fetch earlier, while something is computed; move less: operands kept in local memory"
RESIDENT = ", or weights that stay resident between inferences"
NEARER = "keep their operands in faster memory, or use them more often while they are there: larger tiles"
LESS_HANDED_OVER = "split the work so that less is handed over, or send it while something is computed"
LESS_FROM_HOST = "keep on the device what the next inference needs, and send it while something is computed"
SERIAL_TRANSFERS = 8  # of one route on one device, before never overlapping is no accident
SERIAL_SHARE = 0.02  # of the wall time, on the critical path


def exposed_transfers(analysis: RunAnalysis) -> Iterator[Draft]:
    """Transfers that the critical path runs through, to memory and over links."""
    for cause, rule, what in (
        (MEMORY, "memory-transfers", "outer memory"),
        (LINK, "link-transfers", "other cores and devices"),
        (HOST_LINK, "host-transfers", "the host"),
    ):
        positions = np.flatnonzero(
            (analysis.work.cause == cause) & ~analysis.on_host
        )  # stages of the host: `host_stages`
        cost = cause_cost(analysis, positions)
        if analysis.wall_ns and cost >= EXPOSED_SHARE * analysis.wall_ns:
            on_path = positions[analysis.caused_ns[positions] > 0]
            share, ops = format_percent(cost / analysis.wall_ns), analysis.costliest_ops(on_path, analysis.caused_ns)
            title = f"transfers to and from {what} take {share} of the critical path"
            if not analysis.moves[positions].any():
                title = f"ops limited by transfers to and from {what} take {share} of the critical path"
            detail, action = _seen(analysis, cause, positions, on_path)
            yield Draft(
                Finding(
                    rule,
                    title,
                    f"{detail}{start_cost(analysis, positions)}",
                    ops,
                    cost,
                    action=action,
                    spans=analysis.rows(on_path, analysis.caused_ns),
                    bytes=moved_bytes(analysis, on_path),
                ),
                positions,
            )


def _seen(analysis: RunAnalysis, cause: int, positions: Numbers, on_path: Numbers) -> tuple[str, str]:
    """What of transfers, or of work that waits for bytes, was seen; and what to do about it."""
    if not analysis.moves[positions].any():
        held = len(distinct(analysis.work.op[on_path]))
        return (
            f"{format_counted(held, 'op')} whose bytes take longer than {'its' if held == 1 else 'their'} MACs",
            NEARER,
        )
    moved = moved_bytes(analysis, on_path)
    amount = f" of {format_bytes(moved)}" if moved else ""
    seen = f"{format_counted(len(on_path), 'transfer')}{amount} on the path, of {len(positions):,} in all"
    if cause != MEMORY:
        return seen, LESS_HANDED_OVER if cause == LINK else LESS_FROM_HOST
    flow = flow_of(analysis, positions)
    narrower = ", a smaller data type" if computed_in_floats(analysis.run) else ""
    full = flow is not None and flow.is_full
    action = f"{FEWER_BYTES if full else EARLIER_BYTES}{narrower}"
    return seen + ("" if flow is None else f"; {flow}"), action


def reads_again(analysis: RunAnalysis) -> Iterator[Draft]:
    """Tensors that were read from outer memory more often than once."""
    found = analysis.traffic
    tensors = sorted((t for t in found if t.again_bytes and not t.is_spill), key=lambda t: -t.again_bytes)
    again, whole = sum(t.again_bytes for t in tensors), sum(t.read_bytes for t in found)
    if not again or again < AGAIN_SHARE * whole:
        return
    worst = tensors[0]
    positions = _transfers_of(analysis, [t.read_commands for t in tensors])
    left = _left_after_once(analysis, tensors, positions)
    cost = int((analysis.path_ns[positions] * (1 - left)).sum())
    if not _worth_a_line(analysis, again, cost):
        return
    yield Draft(
        Finding(
            "read-again",
            f"{format_bytes(again)} of {format_bytes(whole)} read from outer memory were read before",
            f"{format_counted(len(tensors), 'tensor')}; {worst.tensor} ({format_bytes(worst.size_bytes)}) is read "
            f"{worst.read_bytes / (worst.size_bytes or 1):.1f} times",
            analysis.costliest_ops(positions, analysis.work.ns),
            cost,
            action="read once and multicast to the other cores, or keep it in local memory between its uses",
            spans=analysis.rows(positions, analysis.work.ns),
            bytes=again,
        ),
        positions,
        (analysis.work.ns[positions] * left).astype(np.int64),
    )


def _left_after_once(
    analysis: RunAnalysis, tensors: list[TensorTraffic], positions: Numbers
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of every transfer, what would be left of it if its tensor were read once."""
    left = np.ones(len(analysis.run.commands.rows))
    for tensor in tensors:
        left[tensor.read_commands] = (tensor.size_bytes or 0) / tensor.read_bytes
    return left[analysis.work.command[positions]]


def spills(analysis: RunAnalysis) -> Iterator[Draft]:
    """Intermediate results that did not fit local memory."""
    tensors = sorted((t for t in analysis.traffic if t.is_spill), key=lambda t: -(t.read_bytes + t.write_bytes))
    if not tensors:
        return
    out, back = sum(t.write_bytes for t in tensors), sum(t.read_bytes for t in tensors)
    positions = _transfers_of(analysis, [c for t in tensors for c in (t.read_commands, t.write_commands)])
    cost = path_cost(analysis, positions)
    if not _worth_a_line(analysis, out + back, cost):
        return
    yield Draft(
        Finding(
            "spill",
            f"{format_bytes(out)} moved out of local memory and {format_bytes(back)} read back",
            f"{format_counted(len(tensors), 'tensor')} did not fit or were not kept, most of {tensors[0].tensor}",
            analysis.costliest_ops(positions, analysis.work.ns),
            cost,
            action=f"results that stay local: {_smaller(analysis)}",
            spans=analysis.rows(positions, analysis.work.ns),
            bytes=out + back,
        ),
        positions,
    )


def _worth_a_line(analysis: RunAnalysis, moved: int, cost: int) -> bool:
    """On the critical path, or that many bytes that the memory is kept busy with them; else it is noise."""
    wall, most = analysis.wall_ns or 0, analysis.run.info.limits.get(OUTER_BYTES_PER_S)
    return cost >= EXPOSED_SHARE * wall or most is None or moved * 1e9 / most >= EXPOSED_SHARE * wall


def _smaller(analysis: RunAnalysis) -> str:
    """What makes results fit local memory."""
    ways = ["smaller tiles"]
    ways += ["a smaller batch"] if (analysis.run.info.batch or 1) > 1 else []
    ways += ["a smaller data type"] if computed_in_floats(analysis.run) else []
    return ", ".join(ways)


def _transfers_of(analysis: RunAnalysis, commands: list[Numbers]) -> Numbers:
    wanted = np.concatenate(commands) if commands else np.zeros(0, np.int64)
    return np.flatnonzero(np.isin(analysis.work.command, wanted) & (analysis.work.command != NONE))


def residency(analysis: RunAnalysis) -> Iterator[Draft]:
    """Local memory that stays empty while operands are fetched from outer memory."""
    local = [m for m in analysis.run.summary.memory if m.peak_bytes is not None and m.capacity_bytes]
    placed = _readers(analysis)
    outer_ns = sum(p.outer_ns for p in placed)
    all_ns = outer_ns + sum(p.local_ns for p in placed)
    if not local or not all_ns or not _memory_matters(analysis):
        return
    fullest = max(local, key=lambda m: (m.peak_bytes or 0) / (m.capacity_bytes or 1))
    fill = (fullest.peak_bytes or 0) / (fullest.capacity_bytes or 1)
    if fill < LOW_FILL and outer_ns > all_ns / 2:
        worst = max(placed, key=lambda p: p.outer_ns)
        yield Draft(
            Finding(
                "residency",
                f"{fullest.name} is at most {format_percent(fill)} full, and "
                f"{format_percent(outer_ns / all_ns)} of the work reads operands from outer memory",
                f"{worst.kind} on {worst.group} has one in {worst.outer_memory} for "
                f"{format_ns(worst.outer_ns)} of all lanes",
                action=f"larger tiles{RESIDENT if _fits(analysis, local) else ''}",
                bytes=(fullest.capacity_bytes or 0) - (fullest.peak_bytes or 0),
            )
        )


def _readers(analysis: RunAnalysis) -> list[Placement]:
    """Where operands of work lie; those of transfers have to lie outside."""
    commands = analysis.run.commands
    moving = distinct(commands.rows["kind"][commands.rows["route"] != NO_ROUTE].astype(np.int64)).tolist()
    kinds = {commands.kinds[number] for number in moving}
    return [placed for placed in analysis.run.summary.placement if placed.kind not in kinds]


def _fits(analysis: RunAnalysis, local: Sequence[MemoryTotal]) -> bool:
    """What is read from outer memory has room in all that is local, as far as sizes are known."""
    return sum(t.size_bytes or t.read_bytes for t in analysis.traffic) <= sum(m.capacity_bytes or 0 for m in local)


def _memory_matters(analysis: RunAnalysis) -> bool:
    """A timeline on whose critical path hardly any transfer lies has nothing to gain from local memory."""
    transfers = np.flatnonzero((analysis.work.cause == MEMORY) & ~analysis.on_host)
    return not len(transfers) or path_cost(analysis, transfers) >= RESIDENCY_SHARE * analysis.work.wall_ns


def serial_transfers(analysis: RunAnalysis) -> Iterator[Draft]:
    """Routes on which never two transfers were in flight at once, though there are many of them."""
    work = analysis.work
    moves = np.flatnonzero((work.lane == NO_LANE) & np.isin(work.cause, (MEMORY, LINK, HOST_LINK)))
    route = routes_of(analysis, moves)
    moves, route = moves[route != NONE], route[route != NONE]
    names = [route.name for route in analysis.run.routes]
    most = most_open(route, work.start[moves], work.end[moves], len(names))
    busy = union(route, work.start[moves], work.end[moves]).total(len(names))
    for number in distinct(route).tolist():
        own = moves[route == number]
        cost = path_cost(analysis, own)
        if most[number] > 1 or len(own) < SERIAL_TRANSFERS or cost < SERIAL_SHARE * work.wall_ns:
            continue
        flow = flow_of(analysis, own[work.cause[own] == MEMORY])
        if flow is not None and flow.is_saturated:
            continue
        yield Draft(
            Finding(
                "serial-transfers",
                f"{format_counted(len(own), 'transfer')} over {names[number]} come one after the other",
                f"never two at once, {format_ns(int(busy[number]))} in all",
                analysis.costliest_ops(own, analysis.path_ns),
                cost,
                action="issue the next transfer before the last has arrived: double buffering, several queues",
                spans=analysis.rows(own, analysis.path_ns),
                bytes=moved_bytes(analysis, own),
            ),
            own,
        )
