"""Op table of tt-metal's profiler (ops_perf_results_*.csv) → Recording: every op of every device, with its operands.

Clocks: every device counts cycles of its own from its own start, and the host nanoseconds of another. No column joins
them, so each device is laid from its first op on, and the host's time of an op is a figure beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from ...core.errors import ImportFileError, printable
from ...core.meaning import Direction, Does, LaneRole
from ...core.provenance import Provenance
from ...core.sums import whole_sum
from ...graph.kinds import what_kind_does
from ...importers.column_trace import Clock, SpanColumns, column_trace
from ...importers.reading import Unread
from ...program.program import COMMAND, NO_ROUTE, Detail, MemoryInfo, Operand
from ...recording.recording import LATENCY, Metric, OpRecord, Recording, empty_trace
from ...recording.run import MACS_PER_S, CommandTable
from ...recording.trace import NONE, Lane, Trace
from .kinds import is_told, kind_of, label_of, operands_of, shapes_of, types_of
from .rows import LONGEST_NS, Row, Table, read_table
from .work import ARCHITECTURES, MACS_PER_CYCLE, PASSES, macs_of

_ENGINE = "Tensix"
_PLACES = (MemoryInfo("DRAM", True), MemoryInfo("L1", False))
_LARGEST = 2**32 - 1
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which op a row is of. Devices, and replays of one trace, that run the same ops one after the other share them."""

    op: list[int]  # of every row
    members: list[list[Row]]  # of every op
    sessions: tuple[str, ...]  # replays, in order; empty: the file tells none
    is_shared: bool


class TenstorrentOps:
    """One row per op and device."""

    name = "tenstorrent-ops"

    def read(self, path: Path) -> Recording:
        """Ops in the order of their device, kernels on one lane per device."""
        unread = Unread("rows")
        table = read_table(path, unread)
        if not table.rows:
            raise ImportFileError(str(path), "", "no op of a device that can be read; expected an op table of tt-metal")
        layout = _laid_out(table.rows)
        devices = sorted({row.device for row in table.rows})
        clock = _clock(table.rows)
        starts = None if clock is None else _starts(table.rows, clock)
        commands = _commands(table.rows, layout, devices)
        macs = [_of_devices(members, macs_of) for members in layout.members]
        return Recording(
            maker=self.name,
            source=str(path),
            tool="tt-metal profiler",
            provenance=Provenance.MEASURED,
            trace=_trace(table.rows, starts, layout, devices),
            ops=tuple(_op(n, members, macs[n], layout) for n, members in enumerate(layout.members)),
            commands=commands,
            metrics=tuple(_metrics(table.rows, starts, layout, macs, clock)),
            notes=(*_notes(table, layout, starts, devices), *unread.notes()),
            target=", ".join(dict.fromkeys(row.architecture for row in table.rows if row.architecture)) or None,
            devices=len(devices),
            inferences=len(layout.sessions) or None,
            clocks_hz={} if clock is None else {"core": float(clock.hz)},
            limits=_limits(table.rows, clock, len(devices)),
        )


def _laid_out(rows: Sequence[Row]) -> _Layout:
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[row.device, row.session].append(number)
    orders = {tuple(rows[number].code for number in members) for members in groups.values()}
    told = all(row.session for row in rows)
    sessions = tuple(dict.fromkeys(row.session for row in rows)) if told and len(orders) == 1 else ()
    op = list(range(len(rows)))
    if len(orders) == 1:
        for members in groups.values():
            for place, number in enumerate(members):
                op[number] = place
    found: list[list[Row]] = [[] for _ in range(max(op) + 1)]
    for number, row in zip(op, rows, strict=True):
        found[number].append(row)
    return _Layout(op, found, sessions, len(orders) == 1 and len(groups) > 1)


def _clock(rows: Sequence[Row]) -> Clock | None:
    """Cycles of the firmware over its nanoseconds, to a megahertz: the tool made the second of the first."""
    known = [row for row in rows if _cycles(row) > 0 and row.firmware_ns]
    cycles, ns = sum(map(_cycles, known)), sum(row.firmware_ns or 0 for row in known)
    hz = round(cycles * 1e3 / ns) * 10**6 if ns else 0
    return Clock(hz) if 10**7 <= hz < 10**11 else None


def _starts(rows: Sequence[Row], clock: Clock) -> list[int] | None:
    """Of every row, in ns since the first of its device; None: some row has none."""
    first: dict[int, int] = {}
    for row in rows:
        if row.start_cycle is None:
            return None
        first[row.device] = min(first.get(row.device, row.start_cycle), row.start_cycle)
    cycles = np.array([(row.start_cycle or 0) - first[row.device] for row in rows], np.int64)
    return clock.ns(cycles).tolist() if cycles.max() < LONGEST_NS * (clock.hz / 1e9) else None


def _trace(rows: Sequence[Row], starts: list[int] | None, layout: _Layout, devices: Sequence[int]) -> Trace:
    """Kernels stand at the start of their firmware's window, which is longer by a microsecond at the most."""
    if starts is None:
        return empty_trace(Provenance.MEASURED)
    place = {device: number for number, device in enumerate(devices)}
    lanes = [Lane(number, 0, _ENGINE, role=LaneRole.ENGINE) for number in range(len(devices))]
    code = {name: number for number, name in enumerate(dict.fromkeys(row.code for row in rows))}
    session = {name: number for number, name in enumerate(layout.sessions)}
    begin = np.array(starts, np.int64)
    columns = SpanColumns(
        lane=np.array([place[row.device] for row in rows], np.int64),
        name=np.array([code[row.code] for row in rows], np.int64),
        start_ns=begin,
        end_ns=begin + np.array([row.kernel_ns for row in rows], np.int64),
        op=np.array(layout.op, np.int64),
        inference=np.array([session.get(row.session, 0) for row in rows], np.int64),
        cycles=np.array([_cycles(row) for row in rows], np.int64),
        does=np.array([_does(row) for row in rows], np.int64),
    )
    trace = column_trace(columns, lanes, list(code), provenance=Provenance.MEASURED)
    trace.spans["command"] = np.arange(len(rows))
    return trace


def _cycles(row: Row) -> int:
    """Of its firmware's window, which holds its kernels."""
    if row.start_cycle is None or row.end_cycle is None or row.end_cycle < row.start_cycle:
        return NONE
    return row.end_cycle - row.start_cycle


def _does(row: Row) -> Does:
    return what_kind_does(kind_of(row))


def _op(number: int, members: Sequence[Row], macs: int | None, layout: _Layout) -> OpRecord:
    """Over devices the slowest, and over replays the mean of that; calls are of one of them, work is that of all."""
    row = members[0]
    times = _by_session(members, lambda each: each.kernel_ns)
    several = len(members) > 1
    return OpRecord(
        f"{row.code}#{number}",
        type=row.code,
        kind=kind_of(row),
        engines=(_ENGINE,),
        kernel=row.kernel,
        shape=shapes_of(row),
        dtype=types_of(row) if is_told(row) else "",
        calls=len(members) / len({each.device for each in members}) / max(len(layout.sessions), 1),
        time_ns=round(fmean(times)),
        median_ns=round(median(times)) if len(times) > 1 else None,
        low_ns=min(each.kernel_ns for each in members) if several else None,
        high_ns=max(each.kernel_ns for each in members) if several else None,
        wait_ns=_mean([each.gap_ns for each in members]),
        host_ns=_mean([each.host_ns for each in members]),
        estimated_ns=row.ideal_ns,
        macs=macs,
        in_bytes=_of_devices(members, lambda each: _bytes(each, is_input=True)),
        out_bytes=_of_devices(members, lambda each: _bytes(each, is_input=False)),
        threads=row.cores,
        engine_threads=row.available,
        cores=row.cores,
    )


def _by_session(members: Sequence[Row], value: Callable[[Row], int]) -> list[int]:
    found: dict[str, int] = {}
    for row in members:
        found[row.session] = max(found.get(row.session, 0), value(row))
    return list(found.values())


def _of_devices(members: Sequence[Row], value: Callable[[Row], int | None]) -> int | None:
    """What all devices do for an op, once: shapes are those of each."""
    return whole_sum(value(row) for row in members if row.session == members[0].session)


def _bytes(row: Row, *, is_input: bool) -> int | None:
    return whole_sum(tensor.bytes for tensor in operands_of(row) if tensor.is_input is is_input)


def _mean(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(fmean(known)) if known else None


def _commands(rows: Sequence[Row], layout: _Layout, devices: Sequence[int]) -> CommandTable:
    """A command per row: it has the operands of its op, and where they lie."""
    kinds = {code: number for number, code in enumerate(dict.fromkeys(row.code for row in rows))}
    place = {device: number for number, device in enumerate(devices)}
    table = np.zeros(len(rows), COMMAND)
    table["device"] = [place[row.device] for row in rows]
    table["route"], table["op"], table["detail"] = NO_ROUTE, layout.op, np.arange(len(rows))
    table["kind"], table["ordinal"] = [kinds[row.code] for row in rows], np.arange(len(rows))
    table["cycles"] = [min(max(_cycles(row), 0), _LARGEST) for row in rows]
    table["macs"] = [macs_of(row) or 0 for row in rows]
    table["out_bytes"] = [_bytes(row, is_input=False) or 0 for row in rows]
    table["does"] = [_does(row) for row in rows]
    details = [_detail(op, row) for op, row in zip(layout.op, rows, strict=True)]
    return CommandTable.from_details(table, details, kinds=tuple(kinds), groups=(_ENGINE,), places=_PLACES)


def _detail(number: int, row: Row) -> Detail:
    """What it writes comes first. Tensors have no names in the file: each is of its op and device alone.

    Shapes of operands are as they lie in memory, whole tiles. Attributes are lines of NAME=VALUE.
    """
    said: dict[str, str | int | None] = {"cores": row.cores, "fidelity": row.fidelity or None}
    operands = []
    for tensor in sorted(operands_of(row), key=lambda tensor: tensor.is_input):
        role = f"{'Src' if tensor.is_input else 'Dest'}{tensor.number}"
        way = Direction.IN if tensor.is_input else Direction.OUT
        name = f"{row.code}#{number}.{role}@{row.device}"
        place = 0 if tensor.is_outer else 1
        operands.append(Operand(way, role, name, place, label_of(tensor), tensor.padded, tensor.bytes))
        said[role] = printable(tensor.memory, 60) or None
    said["attributes"] = printable(row.attributes, 2000) or None
    memory = next((_PLACES[operand.memory].name for operand in operands), "")
    types = ", ".join(dict.fromkeys(operand.dtype for operand in operands))
    text = "\n".join(f"{name}={value}" for name, value in said.items() if value is not None)
    return Detail(f"{row.code}#{number}", memory, types, "", tuple(operands), text)


def _limits(rows: Sequence[Row], clock: Clock | None, devices: int) -> Mapping[str, float]:
    """Of all cores that ops could have had, in the lowest fidelity: nothing multiplies faster."""
    cores = max((row.available or 0 for row in rows), default=0)
    if clock is None or not 0 < cores < 2**16 or any(row.architecture not in ARCHITECTURES for row in rows):
        return {}
    return {MACS_PER_S: float(cores * MACS_PER_CYCLE * clock.hz * devices)}


def _metrics(
    rows: Sequence[Row], starts: list[int] | None, layout: _Layout, macs: Sequence[int | None], clock: Clock | None
) -> Iterator[Metric]:
    """A replay of a trace is an inference; a capture without one holds whatever was profiled."""
    if starts is not None:
        walls = _walls(rows, starts)
        if layout.sessions:
            runs = [max(wall for (_, session), wall in walls.items() if session == name) for name in layout.sessions]
            yield Metric(LATENCY, float(median(runs)), "ns")
        else:
            yield Metric("wall", max(walls.values()), "ns")
    together = "of all devices together" if len({row.device for row in rows}) > 1 else ""
    yield Metric("device kernel time", sum(row.kernel_ns for row in rows), "ns", note=together)
    for name, values in (("op to op", [r.gap_ns for r in rows]), ("host time", [r.host_ns for r in rows])):
        known = [value for value in values if value is not None]
        if known:
            yield Metric(name, sum(known), "ns", note=together)
    yield Metric(
        "MACs", sum(filter(None, macs)), "1", note=f"of {sum(m is not None for m in macs)} matmuls and convolutions"
    )
    share = _utilization(rows, clock)
    if share is not None:
        yield Metric("matrix engine utilization", share, "share", note="of the cores and fidelity that each op had")


def _walls(rows: Sequence[Row], starts: Sequence[int]) -> dict[tuple[int, str], int]:
    """From the first kernel to the end of the last, of every device and replay."""
    ends: dict[tuple[int, str], tuple[int, int]] = {}
    for row, start in zip(rows, starts, strict=True):
        low, high = ends.get((row.device, row.session), (start, start))
        ends[row.device, row.session] = min(low, start), max(high, start + row.kernel_ns)
    return {key: high - low for key, (low, high) in ends.items()}


def _utilization(rows: Sequence[Row], clock: Clock | None) -> float | None:
    """Cycles that the MACs need on the cores of their op over those that the op took."""
    needed = taken = 0.0
    for row in rows:
        macs, passes = macs_of(row), PASSES.get(row.fidelity)
        if clock is not None and macs and passes and row.cores and row.architecture in ARCHITECTURES:
            needed += macs * passes / (MACS_PER_CYCLE * row.cores)
            taken += row.kernel_ns * clock.hz / 1e9
    return needed / taken if taken else None


def _notes(table: Table, layout: _Layout, starts: list[int] | None, devices: Sequence[int]) -> Iterator[str]:
    if len(devices) > 1:
        yield f"{len(devices)} devices with clocks of their own: each is laid from its first op on"
    if layout.is_shared:
        yield "devices and replays run the same ops in one order: the time of an op is that of its slowest device"
    elif len(devices) > 1:
        yield "devices run different ops: every row is an op of its own"
    if starts is None:
        yield "no cycle counters in some rows: there is no timeline"
    if not layout.sessions:
        yield "the file tells no inferences: times are of the whole capture, and there is no latency"
    if table.signposts:
        names = dict.fromkeys(table.signposts)
        shown = "; ".join(printable(name, 40) for name in list(names)[:_SHOWN])
        yield f"{len(table.signposts)} signposts are not kept: {shown}{' …' if len(names) > _SHOWN else ''}"
    if table.host_ops:
        yield f"{table.host_ops} ops of the host are not kept: they have no time on a device"
    yield "host times are of another clock, and stand beside the times of ops"
