"""Timelines of the vendor's model → commands and Trace: the same nouns as of every other run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...analysis.timeline.over_time import Bins
from ...core.meaning import Does, LaneRole
from ...core.provenance import Provenance
from ...program.program import (
    COMMAND,
    NO_OP,
    NO_ROUTE,
    Detail,
)
from ...recording.recording import OpRecord, Placed
from ...recording.run import CommandTable
from ...recording.trace import COUNTER, EDGE, NONE, CounterTrack, Lane, OpCounts, SpanKind, Trace, blank_spans
from .importers.timeline import DMA, ENGINES, FOREGROUND, HLX, HMX, HVX, Thread, Timeline
from .kernel_words import does_of
from .node_path import Order
from .node_times import is_wait
from .nodes import GraphNodes

VTCM = "VTCM used"
_BYTES = {  # in the words of the vendor's traces, as all that is counted of a span
    "DDR read bytes": "dram_read",
    "DDR write bytes": "dram_write",
    "VTCM read bytes": "vtcm_read",
    "VTCM write bytes": "vtcm_write",
}
_COUNTED = ("ID", "Start Cycle", *_BYTES)
_LARGEST = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class _Rows:
    """Spans of all graphs, in the order of commands: by lane, then by time."""

    graph: npt.NDArray[np.int64]
    span: npt.NDArray[np.int64]  # position in the graph's timeline
    lane: npt.NDArray[np.int64]


def build_trace(
    graphs: Sequence[GraphNodes], op_of: Mapping[tuple[int, int], int]
) -> tuple[CommandTable, Trace] | None:
    """One graph after the other on one axis; None: a graph has no timeline.

    Args:
        op_of: graph and row of its naming → position in `Recording.ops`, as `ops_of` has it.
    """
    lines = [graph.graph.timeline for graph in graphs]
    timelines = [line for line in lines if line is not None]
    if not timelines or len(timelines) != len(graphs):
        return None
    lanes = tuple(
        dict.fromkeys(line.lanes[lane] for line in timelines for lane in np.unique(line.work["lane"]).tolist())
    )
    rows = _rows(timelines, lanes)
    kinds, details, columns = _Words(graphs, timelines).columns(rows)
    commands = _commands(rows, timelines, lanes, columns, op_of, graphs)
    commands["does"] = _does(rows, timelines)
    groups = tuple(dict.fromkeys(lane.name for lane in lanes))
    table = CommandTable.from_details(commands, details, kinds=kinds, groups=groups)
    return table, _trace(rows, timelines, lanes, table, _edges(rows, graphs), _waits_on(rows, graphs))


def ops_of(
    nodes: Sequence[OpRecord], graphs: Sequence[GraphNodes]
) -> tuple[tuple[OpRecord, ...], dict[tuple[int, int], int]]:
    """Nodes, with rows of compiled graphs that no node is but that spans belong to; and the place of every row."""
    ops, known = list(nodes), {node.name: number for number, node in reversed(list(enumerate(nodes)))}
    place: dict[tuple[int, int], int] = {}
    for number, graph in enumerate(graphs):
        for row in dict.fromkeys(graph.row_of_span) if graph.graph.timeline is not None else ():
            name = graph.naming.rows[row]
            if name not in known:
                known[name] = len(ops)
                ops.append(OpRecord(name, placed=Placed.INSERTED, reason="what belongs to no node", calls=0))
            place[number, row] = known[name]
    return tuple(ops), place


def _rows(timelines: Sequence[Timeline], lanes: tuple[Thread, ...]) -> _Rows:
    number = {lane: place for place, lane in enumerate(lanes)}
    parts = []
    for graph, line in enumerate(timelines):
        work = line.work
        kept = np.flatnonzero(~work["bookkeeping"] | (work["end"] > work["start"]))
        lane = np.array([number.get(place, NONE) for place in line.lanes], np.int64)[work["lane"][kept]]
        parts.append((np.full(len(kept), graph, np.int64), kept, lane, work["start"][kept]))
    graph_of, span, lane, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, graph_of, lane))
    return _Rows(graph_of[order], span[order], lane[order])


class _Words:
    """What is said of commands: kinds and details, each once."""

    def __init__(self, graphs: Sequence[GraphNodes], timelines: Sequence[Timeline]) -> None:
        self.graphs, self.timelines = graphs, timelines

    def columns(self, rows: _Rows) -> tuple[tuple[str, ...], tuple[Detail, ...], npt.NDArray[np.int64]]:
        kinds: dict[str, int] = {}
        details: dict[Detail, int] = {}
        columns = np.zeros((len(rows.span), 2), np.int64)
        work = [line.work[["kernel", "id", "dram_read", "dram_write"]].tolist() for line in self.timelines]
        for place, (graph, span) in enumerate(zip(rows.graph.tolist(), rows.span.tolist(), strict=True)):
            nodes, (number, op_id, read, write) = self.graphs[graph], work[graph][span]
            node, kernel = nodes.naming.rows[nodes.row_of_span[span]], self.timelines[graph].kernels[number]
            columns[place, 0] = kinds.setdefault(f"{node} · {kernel}", len(kinds))
            detail = _detail(nodes, op_id, node, kernel, outer=read + write > 0)
            columns[place, 1] = details.setdefault(detail, len(details))
        return tuple(kinds), tuple(details), columns


def _detail(nodes: GraphNodes, op_id: int, node: str, kernel: str, *, outer: bool) -> Detail:
    """What is known of a kernel; attributes are lines of NAME=VALUE, in the words of the vendor's traces."""
    op, given = nodes.graph.schematic.ops.get(op_id), nodes.naming.given(op_id)
    said = {"HTP Op Type": kernel} | ({} if given is None else {"QNN Op Name": given.name, "QNN Op Type": given.type})
    return Detail(
        name=node,
        memory="DDR" if outer else "VTCM",
        types=op.dtype if op else "",
        shape="x".join(map(str, op.dims)) if op else "",
        operands=(),
        attributes="\n".join(f"{name}={text}" for name, text in said.items()),
    )


def _commands(  # noqa: PLR0917 – the columns come from as many places
    rows: _Rows,
    timelines: Sequence[Timeline],
    lanes: tuple[Thread, ...],
    columns: npt.NDArray[np.int64],
    op_of: Mapping[tuple[int, int], int],
    graphs: Sequence[GraphNodes],
) -> npt.NDArray[np.void]:
    """A command per span: where it ran, the op it belongs to, its cycles and bytes."""
    groups = {name: number for number, name in enumerate(dict.fromkeys(lane.name for lane in lanes))}
    table = np.zeros(len(rows.span), COMMAND)
    table["route"], table["op"] = NO_ROUTE, NO_OP
    table["core"] = np.array([lane.core for lane in lanes], np.int64)[rows.lane]
    table["group"] = np.array([groups[lane.name] for lane in lanes], np.int64)[rows.lane]
    table["kind"], table["detail"] = columns[:, 0], columns[:, 1]
    for graph, line in enumerate(timelines):
        here = rows.graph == graph
        work = line.work[rows.span[here]]
        table["cycles"][here] = np.minimum(work["end"] - work["start"], _LARGEST)
        table["out_bytes"][here] = work["dram_write"] + work["vtcm_write"]
        table["moved_bytes"][here] = work["dram_read"] + work["dram_write"]
        rows_of = graphs[graph].row_of_span
        table["op"][here] = [op_of[graph, rows_of[span]] for span in rows.span[here].tolist()]
    starts = np.flatnonzero(np.concatenate(([True], rows.lane[1:] != rows.lane[:-1])))
    table["ordinal"] = np.arange(len(table)) - np.repeat(starts, np.diff(np.append(starts, len(table))))
    return table


def _does(rows: _Rows, timelines: Sequence[Timeline]) -> npt.NDArray[np.int64]:
    """What every span does: bookkeeping starts work or waits for it, the rest is told by its kernel."""
    result = np.zeros(len(rows.span), np.int64)
    for graph, line in enumerate(timelines):
        work, waits = line.work, is_wait(line)
        pairs = {(kernel, engine) for kernel, engine in work[["kernel", "engine"]].tolist()}
        told = {pair: int(does_of(line.kernels[pair[0]], ENGINES[pair[1]])) for pair in pairs}
        own = np.array([told[pair] for pair in work[["kernel", "engine"]].tolist()] or [0], np.int64)
        own = np.select([waits, work["bookkeeping"]], [int(Does.SYNC), int(Does.LAUNCH)], own)
        result[rows.graph == graph] = own[rows.span[rows.graph == graph]]
    return result


def _edges(rows: _Rows, graphs: Sequence[GraphNodes]) -> npt.NDArray[np.void]:
    """From work to the work that needs it, or that is started only when it is done."""
    command = {key: place for place, key in enumerate(zip(rows.graph.tolist(), rows.span.tolist(), strict=True))}
    found = []
    for number, graph in enumerate(graphs):
        order, timeline = graph.order, graph.graph.timeline
        if order is None or timeline is None:
            continue
        work = timeline.work
        needed = [
            (cause, span, True)
            for span in np.flatnonzero(~work["bookkeeping"]).tolist()
            for cause in order.producers(int(work["id"][span]), of_work=True)
        ]
        ends, starts = work["end"].tolist(), work["start"].tolist()
        for cause, span, data in (*needed, *_started_after(order, timeline)):
            if ends[cause] <= starts[span]:
                found.append((command[number, cause], command[number, span], data))
    edges = np.array(found, EDGE)
    return edges[np.argsort(edges["target"], kind="stable")]


def _started_after(order: Order, timeline: Timeline) -> Iterator[tuple[int, int, bool]]:
    """The foreground thread starts work in order: when its own work and all that it awaited until then is done."""
    work, waits = timeline.work, is_wait(timeline)
    lanes = [lane for lane, thread in enumerate(timeline.lanes) if thread.unit == FOREGROUND]
    chosen = np.flatnonzero(np.isin(work["lane"], lanes))
    last, ends = NONE, work["end"].tolist()

    def later(*places: int) -> int:
        return max(places, key=lambda place: -1 if place == NONE else ends[place])

    for span in chosen[np.lexsort((work["order"][chosen], work["start"][chosen]))].tolist():
        op, keeps = int(work["id"][span]), bool(work["bookkeeping"][span])
        if waits[span]:
            last = later(last, *order.producers(op, of_work=True))
            continue
        begun = order.done_by.get(op, span) if keeps else span
        if last not in (NONE, begun) and not (keeps and begun == span):
            yield last, begun, False
        last = last if keeps else later(last, span)


def _waits_on(rows: _Rows, graphs: Sequence[GraphNodes]) -> npt.NDArray[np.int64]:
    """The command that each wait of the foreground thread is for: of several, the one that ends last."""
    command = {key: place for place, key in enumerate(zip(rows.graph.tolist(), rows.span.tolist(), strict=True))}
    result = np.full(len(rows.span), NONE, np.int64)
    for number, graph in enumerate(graphs):
        order, timeline = graph.order, graph.graph.timeline
        if order is None or timeline is None:
            continue
        ends = timeline.work["end"]
        for span in np.flatnonzero(is_wait(timeline)).tolist():
            causes = order.producers(int(timeline.work["id"][span]), of_work=True)
            last = max(causes, key=lambda cause: int(ends[cause]), default=NONE)
            if last != NONE and (number, span) in command:
                result[command[number, span]] = command[number, last]
    return result


def _trace(  # noqa: PLR0917
    rows: _Rows,
    timelines: Sequence[Timeline],
    lanes: tuple[Thread, ...],
    table: CommandTable,
    edges: npt.NDArray[np.void],
    waits_on: npt.NDArray[np.int64],
) -> Trace:
    """Spans of all graphs, one behind the other, in nanoseconds, and VTCM in use as a counter."""
    spans = blank_spans(len(rows.span))
    spans["lane"], spans["command"], spans["op"] = rows.lane, np.arange(len(spans)), table.rows["op"]
    spans["kind"], spans["waits_on"], spans["name"] = SpanKind.OP, waits_on, table.rows["kind"]
    spans["counts"], spans["does"] = np.arange(len(spans)), table.rows["does"]
    work = np.zeros(len(spans), timelines[0].work.dtype)
    usage = []
    shift = 0
    for graph, line in enumerate(timelines):
        here = rows.graph == graph
        chosen = rows.span[here]
        scale = 1e9 / line.clock_hz
        work[here] = line.work[chosen]
        for key, column in (("start", "start_ns"), ("end", "end_ns")):
            spans[column][here] = shift + np.rint(line.work[key][chosen] * scale).astype(np.int64)
        cycles = line.work["end"][chosen] - line.work["start"][chosen]
        spans["ucycles"][here] = spans["pcycles"][here] = cycles
        spans["kind"][here] = np.where(is_wait(line)[chosen], SpanKind.WAIT, SpanKind.OP)
        usage.append(np.column_stack((shift + np.rint(line.usage[:, 0] * scale), line.usage[:, 1])))
        shift += round(line.end * scale)
        usage.append(np.array([(shift, 0)], np.float64))
    threads = tuple(dict.fromkeys(lane for line in timelines for lane in line.lanes))
    counters, samples = _counters(spans, work, lanes, threads, np.concatenate(usage))
    return Trace(
        lanes=tuple(Lane(0, lane.core, lane.name, role=lane.role) for lane in lanes),
        names=table.kinds,
        spans=spans,
        edges=edges,
        counters=counters,
        samples=samples,
        provenance=Provenance.VENDOR_MODEL,
        op_counts=_counts(work),
    )


def _counts(work: npt.NDArray[np.void]) -> OpCounts:
    """What the vendor's model tells of every span; bookkeeping has no bytes of its own."""
    counted = [work["id"].astype(np.int64), work["start"]]
    counted += [np.where(work["bookkeeping"], NONE, work[column]) for column in _BYTES.values()]
    return OpCounts(_COUNTED, np.column_stack(counted))


def _counters(
    spans: npt.NDArray[np.void],
    work: npt.NDArray[np.void],
    lanes: tuple[Thread, ...],
    threads: tuple[Thread, ...],
    usage: npt.NDArray[np.float64],
) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    """VTCM in use; then of every core how busy its engines are and how fast it reads and writes DDR, over time.

    Args:
        threads: all lanes that there are; `lanes` are those with spans.
    """
    held = np.zeros(len(usage), COUNTER)
    held["time_ns"], held["value"] = usage.T
    tracks, blocks = [CounterTrack(0, 0, VTCM, "bytes")], [held]
    bins = Bins.over(int(spans["end_ns"].max(initial=0)) + 1)  # what takes no time has its bytes in a nanosecond
    core_of = np.array([lane.core for lane in lanes])[spans["lane"]]
    transfers = np.array([lane.role is LaneRole.TRANSFER for lane in lanes])[spans["lane"]]
    for core in dict.fromkeys(lane.core for lane in lanes):
        for engine in (HVX, HMX, HLX, DMA):
            own = (core_of == core) & (work["engine"] == ENGINES.index(engine)) & ~work["bookkeeping"]
            count = sum(thread.core == core and thread.unit == engine for thread in threads)
            if own.any() or count:
                values = bins.busy_percent(spans["start_ns"][own], spans["end_ns"][own], max(count, 1))
                blocks.append(bins.samples(len(tracks), values))
                tracks.append(CounterTrack(0, core, f"{engine} utilisation, {bins.label}", "%"))
        for word, column in (("read", "dram_read"), ("write", "dram_write")):
            own = (core_of == core) & transfers
            values = bins.per_ns(spans["start_ns"][own], spans["end_ns"][own], work[column][own])
            blocks.append(bins.samples(len(tracks), values))
            tracks.append(CounterTrack(0, core, f"DDR {word}, {bins.label}", "GB/s"))
    return tuple(tracks), np.concatenate(blocks)
