"""What the vendor's summary leaves out: the same inference by op and layer, lane, transfer, producer and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from ...recording.summary import DeviceSummary, OpTotal, Summary
from .columns import columns

_BAR = 40


def write_sections(summary: DeviceSummary, out: TextIO, *, top: int) -> None:
    """Everything behind the layout of the vendor's text; each section says what it counts."""
    for row_set in _op_pmu(summary):
        _table(out, *row_set)
    totals = summary.totals
    if totals is not None:
        out.write(f"\n---- Beyond the op table ({totals.latency.provenance}; end-of-stats flush left out) ----\n")
        for title, header, rows in _sections(totals, top):
            _table(out, title, header, rows)
    if summary.notes:
        out.write("\nNot in this capture\n")
        for note in summary.notes:
            out.write(f"  {note}\n")


Section = tuple[str, Sequence[str], Sequence[Sequence[str]]]


def _op_pmu(summary: DeviceSummary) -> Iterable[Section]:
    if summary.op_pmu:
        rows = [
            (f"c{row.core}", f"0x{row.event:X}", row.name, str(row.value), str(row.commands), row.kind)
            for row in summary.op_pmu
        ]
        yield "Extended PMU stats, by kind of op", ("core", "event", "counter", "value", "count", "opkind"), rows


def _sections(totals: Summary, top: int) -> Iterable[Section]:
    yield from _wall(totals)
    yield from _lanes(totals)
    rollups = (("graph op", totals.ops), ("layer", totals.layers), ("block: the same op in every layer", totals.blocks))
    for word, found in rollups:
        title = f"By {word} ({min(top, len(found))} of {len(found)})"
        yield title, _OP_HEADER, [_op_row(row) for row in found[:top]]
    yield from _transfers(totals)
    yield from _waits(totals, top)
    yield from _memory(totals)
    yield from _balance(totals)
    yield from _placement(totals, top)
    yield from _histogram(totals)


def _wall(totals: Summary) -> Iterable[Section]:
    rows = [(part.cause, _us(part.ns), _share(part.share)) for part in totals.occupancy]
    yield "Wall time, mean over cores: disjoint parts that add up", ("part", "us", "share"), rows


def _lanes(totals: Summary) -> Iterable[Section]:
    rows = [
        (
            f"d{lane.device} c{lane.core} {lane.name}",
            _us(lane.busy_ns),
            _us(lane.wait_ns),
            _us(lane.idle_ns),
            _us(lane.barrier_ns),
            _share(lane.utilization),
        )
        for lane in totals.lanes
    ]
    header = ("engine", "busy us", "wait us", "idle us", "barrier us", "busy")
    title = "Engines: busy + wait + idle = wall; barrier is part of busy (mean of the threads); "
    yield title + "of transfers busy is their issue, see below for bytes that move", header, rows


_OP_HEADER = ("busy us", "share", "wall us", "wait us", "count", "out KB", "moved KB", "engine", "operands", "name")


def _op_row(row: OpTotal) -> Sequence[str]:
    return (
        _us(row.busy_ns),
        _share(row.share),
        _us(row.wall_ns),
        _us(row.wait_ns),
        str(row.commands),
        _kb(row.out_bytes),
        _kb(row.moved_bytes),
        row.engine,
        row.placed,
        row.name,
    )


def _transfers(totals: Summary) -> Iterable[Section]:
    """Bytes, time and rate of every route."""
    rows = [
        (
            f"d{row.device}" + ("" if row.core is None else f" c{row.core}"),
            row.route,
            str(row.transfers),
            f"{row.bytes / 1024:.1f}",
            _us(row.busy_ns),
            "—" if not totals.latency.value_ns else _share(row.busy_ns / totals.latency.value_ns),
            _rate(row.gigabytes_per_s),
            str(row.most_in_flight),
        )
        for row in totals.routes
    ]
    header = ("where", "route", "count", "KB", "busy us", "busy", "GB/s", "most in flight")
    yield (
        "Transfers: busy is the time in which at least one is in flight; the op table adds all of them up",
        header,
        rows,
    )


def _waits(totals: Summary, top: int) -> Iterable[Section]:
    rows = [(_us(row.wait_ns), str(row.count), row.group, row.cause) for row in totals.waits]
    yield "Waiting, by whom it waits for", ("us", "count", "engine", "waits for"), rows
    longest = [
        (_us(row.wait_ns), str(row.count), f"d{row.device} c{row.core} {row.group}", row.kind, row.op)
        for row in totals.producers[:top]
    ]
    yield "Waited for longest, by engines", ("us", "count", "producer", "opkind", "op"), longest


def _memory(totals: Summary) -> Iterable[Section]:
    """Peak, mean and traffic of every memory, against its capacity."""
    rows = [
        (
            row.name,
            f"d{row.device}" + ("" if row.core is None else f" c{row.core}"),
            _kb(row.peak_bytes),
            _kb(row.mean_bytes),
            _kb(row.capacity_bytes),
            _kb(row.read_bytes),
            _kb(row.write_bytes),
        )
        for row in totals.memory
    ]
    header = ("memory", "where", "peak KB", "mean KB", "capacity KB", "read KB", "written KB")
    yield (
        "Memory: peak as placed; mean of weights that stay, and of outputs until the last known reader is done",
        header,
        rows,
    )


def _balance(totals: Summary) -> Iterable[Section]:
    rows = [
        (f"d{row.device} c{row.core}", str(row.busy_pcycles), f"{row.ratio:.3f}", _us(row.end_ns))
        for row in totals.balance
    ]
    yield "Balance of cores, by pcycles at work", ("core", "pcycles", "of mean", "last op ends us"), rows


def _placement(totals: Summary, top: int) -> Iterable[Section]:
    """Commands whose operands are all in local memory, and those with one outside."""
    rows = [
        (
            row.kind,
            row.group,
            str(row.local_count),
            _us(row.local_ns),
            str(row.outer_count),
            _us(row.outer_ns),
            row.outer_memory or "-",
        )
        for row in totals.placement[:top]
    ]
    header = ("opkind", "engine", "all local", "us", "one outside", "us", "where")
    yield "Where operands live", header, rows


def _histogram(totals: Summary) -> Iterable[Section]:
    most = max((bucket.count for bucket in totals.histogram), default=0)
    rows = [
        (
            f"< {bucket.high_ns / 1000:g}",
            str(bucket.count),
            _us(bucket.busy_ns),
            "#" * -(-bucket.count * _BAR // most) if most else "",
        )
        for bucket in totals.histogram
    ]
    yield "Operations by duration", ("us", "count", "busy us", ""), rows


def _table(out: TextIO, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Numbers to the right, words to the left; nothing at all where there are no rows."""
    if not rows:
        return
    align = "".join(">" if all(_is_number(cell) for cell in column) else "<" for column in zip(*rows, strict=True))
    out.write(f"\n{title}\n")
    for line in columns(header, rows, align=align, limits={}):
        out.write(f"  {line}\n")


def _is_number(text: str) -> bool:
    return text in ("-", "—") or text.strip("%").replace(".", "", 1).isdecimal()


def _us(ns: float | None) -> str:
    return "—" if ns is None else f"{ns / 1000:.2f}"


def _kb(size: float | None) -> str:
    return "—" if size is None else f"{size / 1024:.1f}"


def _rate(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.2f}%"
