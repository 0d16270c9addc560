"""What the QNN library leaves of a compilation, made of a few kernels: log, CSV, timeline, schematic, op trace.

A graph is a list of kernels; a small scheduler lays them on the foreground thread, four HVX threads and the DMA engine,
as the vendor's model draws them. Every figure that a reader should find can be added up from the kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from opscope.plugins.qnn.importers.events import (
    EXECUTE,
    FINALIZE,
    FINALIZE_TIME,
    HVX_THREADS,
    Event,
    Message,
)
from support.plugins.qnn.qnn_files import csv_text, log_bytes, with_repeats

MHZ = 1497.6
GAP, DMA_CALL, VALIDATE = 6, 150, 50  # cycles: between spans of a thread, of a DMA start or sync, until an end is seen
HVX_LANES = 4
TIDS = {"FG": 0, **{f"HVX {number}": number for number in range(1, HVX_LANES + 1)}, "DMA": 5}
FLAGS = {"HVX": "for_hvx", "HMX": "uses_hmx", "DMA": "for_dma"}
LONGER = 6  # the estimate is so much longer than the timeline
INPUT, OUTPUT, CONST = 2, 3, 4


@dataclass(frozen=True, slots=True)
class Kernel:
    """One compiled op."""

    op: int  # of the graph before compilation
    operation: str
    unit: str  # HVX, HMX or DMA
    cycles: int
    after: tuple[int, ...] = ()  # places of the kernels that it needs
    dram_read: int = 0
    dram_write: int = 0
    holds: int = 0  # bytes of VTCM, from its start to its last user


@dataclass(frozen=True, slots=True)
class Node:
    """An op that the compiler got."""

    id: int
    name: str
    type: str
    inputs: tuple[int, ...]
    nodes: tuple[str, ...]  # of the ONNX model


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    lane: str
    start: int
    end: int
    id: int
    place: int  # in the run list
    flag: str
    kernel: Kernel


@dataclass(frozen=True)
class Graph:
    name: str
    nodes: tuple[Node, ...]
    kernels: tuple[Kernel, ...]
    shape: tuple[int, ...] = (1, 8, 32, 32)

    @cached_property
    def schedule(self) -> Schedule:
        made = Schedule(self.kernels)
        made.run()
        return made

    @property
    def end(self) -> int:
        return max(span.end for span in self.schedule.spans)

    @property
    def cycles(self) -> int:
        """As the vendor's model estimates it."""
        return self.end + LONGER

    def total(self, column: str) -> int:
        return sum(getattr(kernel, column) for kernel in self.kernels)

    @property
    def peak(self) -> int:
        return max(size for _, size in self.schedule.usage())


@dataclass(slots=True)
class Schedule:
    """Spans in the order in which the foreground thread comes to them."""

    kernels: tuple[Kernel, ...]
    spans: list[Span] = field(default_factory=list)
    steps: list[tuple[int, int, str, int, tuple[int, ...]]] = field(
        default_factory=list
    )  # number, id, name, place, after
    now: int = -GAP
    ends: dict[int, int] = field(default_factory=dict)  # kernel → end
    awaited: set[int] = field(default_factory=set)
    free: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        for number in range(len(self.kernels)):
            for need in self.kernels[number].after:
                self.wait(need)
            self.start(number)
        for number, kernel in enumerate(self.kernels):
            if kernel.unit == "DMA":
                self.wait(number)

    def step(self, number: int, op_id: int, name: str, after: tuple[int, ...]) -> int:
        self.steps.append((number, op_id, name, len(self.steps), after))
        return len(self.steps) - 1

    def foreground(self, name: str, number: int, op_id: int, *, start: int, length: int, place: int) -> int:
        """Add a span of the foreground thread; returns its end."""
        kernel = self.kernels[number]
        flag = "scalar" if name.startswith("default_") else FLAGS[kernel.unit]
        self.spans.append(Span(name, "FG", start, start + length, op_id, place, flag, kernel))
        self.now = start + length
        return self.now

    def wait(self, number: int) -> None:
        """The foreground thread stands still until a kernel of another thread is done; once per kernel."""
        kernel = self.kernels[number]
        if number in self.awaited or kernel.unit == "HMX":
            return
        self.awaited.add(number)
        op_id = sync_id(number, kernel)
        place = self.step(sync_number(number), op_id, f"q::{kernel.operation}", (step_number(number),))
        if kernel.unit == "DMA":
            start = max(self.now + GAP, self.ends[number] + 1)
            self.foreground(
                f"default_dma_sync (q::{kernel.operation})", number, op_id, start=start, length=DMA_CALL, place=place
            )
        else:
            start = max(self.now + GAP, self.ends[number] + VALIDATE)
            self.foreground(
                f"default_hvx_validate (q::{kernel.operation})", number, op_id, start=start, length=0, place=place
            )

    def start(self, number: int) -> None:
        kernel = self.kernels[number]
        op_id, name = kernel_id(number, kernel), f"q::{kernel.operation}"
        needs = tuple(sync_number(n) if self.kernels[n].unit != "HMX" else step_number(n) for n in kernel.after)
        place = self.step(step_number(number), op_id, name, needs)
        begin = self.now + GAP
        if kernel.unit == "HMX":
            self.ends[number] = self.foreground(name, number, op_id, start=begin, length=kernel.cycles, place=place)
            return
        called, shown, lane = f"default_hvx_spawn ({name})", name, f"HVX {1 + number % HVX_LANES}"
        if kernel.unit == "DMA":
            called, shown, lane = f"default_dma_start ({name})", f"default_dma ({name})", "DMA"
        length = DMA_CALL if kernel.unit == "DMA" else 0
        ready = self.foreground(called, number, op_id, start=begin, length=length, place=place) + GAP
        first = max(ready, self.free.get(lane, 0) + 1)
        self.ends[number] = self.free[lane] = first + kernel.cycles
        self.spans.append(Span(shown, lane, first, first + kernel.cycles, op_id, place, FLAGS[kernel.unit], kernel))

    def usage(self) -> Iterator[tuple[int, int]]:
        """Cycle and bytes of VTCM in use, at every step of the run list; obvious and slow."""
        place = {number: place for number, _, _, place, _ in self.steps}
        moment = {span.place: span.start for span in reversed(self.spans)}
        for at in range(len(self.steps)):
            live = 0
            for number, kernel in enumerate(self.kernels):
                users = [place[step_number(n)] for n, other in enumerate(self.kernels) if number in other.after]
                live += kernel.holds * (place[step_number(number)] <= at <= max(users, default=-1))
            yield moment[at], live


def kernel_id(number: int, kernel: Kernel) -> int:
    return 0x4010 + number << 32 | kernel.op


def sync_id(number: int, kernel: Kernel) -> int:
    return 0x4110 + number << 32 | kernel.op


def step_number(kernel: int) -> int:
    return 1 + kernel


def sync_number(kernel: int) -> int:
    return 1000 + kernel


def timeline_json(graph: Graph) -> bytes:
    """What the vendor's model draws; times are cycles."""
    events: list[dict[str, object]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": f"{lane}:"}}
        for lane, tid in TIDS.items()
    ]
    for span in graph.schedule.spans:
        kernel = span.kernel
        moved = {"dram_read": kernel.dram_read, "dram_write": kernel.dram_write, "is_dma": int(kernel.unit == "DMA")}
        near = {"vtcm_read": kernel.dram_write, "vtcm_write": kernel.dram_read + kernel.holds}
        args = {"id": f"{span.id:#x}", "runlist_idx": span.place, "flags": [span.flag], "bw_info": moved | near}
        where = {"pid": 0, "tid": TIDS[span.lane], "ts": span.start, "dur": span.end - span.start}
        events.append({"name": span.name, "ph": "X", **where, "args": args})
    events += [
        {"name": "TCM usage", "ph": "C", "pid": 0, "ts": at, "args": {"Bytes": size}}
        for at, size in (*graph.schedule.usage(), (graph.cycles, 0))
    ]
    settings = {"sim_base_soc": "Kailua", "vtcm_size_in_bytes": 8 << 20, "hvx_threads": 4, "sim_core_freq": MHZ}
    origin = {"Version": "1.1.0", "Hexagon-NN SHA": "v2"}
    whole = {"traceEvents": events, "Trace Provenance": origin, "Hextimate Configuration": settings}
    return json.dumps(whole).encode()


def schematic_text(graph: Graph) -> str:
    """What the compiler decided, as Python literals."""
    ends = [Node(INPUT, "", "q::Input", (), ()), Node(OUTPUT, "", "q::Output", (graph.nodes[-1].id,), ())]
    before: list[tuple[int, str, tuple[int, ...]]] = [
        (node.id, node.type, node.inputs) for node in (*ends, *graph.nodes)
    ]
    ids = [kernel_id(number, kernel) for number, kernel in enumerate(graph.kernels)]
    after: list[tuple[int, str, tuple[int, ...]]] = [(CONST, "$Const", ())]
    for number, kernel in enumerate(graph.kernels):
        weights = (CONST,) if kernel.unit == "DMA" and kernel.dram_read and kernel.op != INPUT else ()
        after.append((ids[number], f"q::{kernel.operation}", (*weights, *(ids[n] for n in kernel.after))))
    parts = [
        _ops_text("graph_before_optimization", before, graph.shape),
        _ops_text("graph_after_optimization", after, graph.shape),
        "bandwidth_information = [",
        *(
            f'{{"opid" : {op:#018x} , "dram_read": {kernel.dram_read} , "dram_write": {kernel.dram_write} , '
            f'"vtcm_read": {kernel.dram_write} , "vtcm_write": {kernel.dram_read + kernel.holds}, '
            f'"is_dma": {int(kernel.unit == "DMA")}}},'
            for op, kernel in zip(ids, graph.kernels, strict=True)
        ),
        "]",
        *_flag_lines(graph, ids),
        "qnn_name_translations = {",
        *(f"{node.id:#018x}: '{node.name}'," for node in graph.nodes),
        "}",
        f'qnn_graph_name = "{graph.name}"',
        *_memory_lines(graph),
        *_step_lines(graph),
    ]
    return "\n".join(parts) + "\n"


def _ops_text(section: str, ops: Sequence[tuple[int, str, tuple[int, ...]]], shape: tuple[int, ...]) -> str:
    dims = ",".join(map(str, shape))
    rows = "".join(
        f"\t{op:#018x}: {{\n\t\t'operation':'{operation}',\n\t\t'inputs' : [\n"
        + "".join(f"\t\t\t({source:#x},0),\n" for source in inputs)
        + f"\t\t],\n\t\t'outputs' : [\t{{\n\t\t\t'dtype': 'Float32', 'rank': {len(shape)},\n"
        f"\t\t\t\t'dims': [{dims}],\n\t\t\t}},\n\t\t],\n\t}},\n"
        for op, operation, inputs in ops
    )
    return f"{section} = {{ # :::BEGIN:{section}:::\n{rows}}}"


def _flag_lines(graph: Graph, ids: Sequence[int]) -> Iterator[str]:
    yield "graph_res_flags0 = { # :::BEGIN:graph_flag0:::\n\t'graph': {"
    yield "\t\t0x400200000000: {'flags' : ()},"
    words = {"HVX": "uses_hvx", "HMX": "uses_hmx", "DMA": "uses_dma"}
    for number, kernel in enumerate(graph.kernels):
        yield f"\t\t{ids[number]:#x}: {{\n\t\t\t'flags': ('{words[kernel.unit]}',),\n\t\t}},"
        yield f"\t\t{sync_id(number, kernel):#x}: {{\n\t\t\t'flags': ('sync','null_exec',),\n\t\t}},"
    yield "\t},\n}"


def _memory_lines(graph: Graph) -> Iterator[str]:
    yield "memgroup_map = { #Number of groups"
    for number, kernel in enumerate(graph.kernels):
        if kernel.holds:
            users = "".join(f"'#{step_number(n)}'," for n, k in enumerate(graph.kernels) if number in k.after)
            yield f" 'mg{number:05d}': memgroup(bytes={kernel.holds}, is_tcm=True, gen_op = '#{step_number(number)}',"
            yield f"      connected_ops = ({users}),\n  ),"
    yield " 'mg99999': memgroup(bytes=1048576, is_tcm=False, gen_op = '#1',\n      connected_ops = ('#1',),\n  ),\n}"


def _step_lines(graph: Graph) -> Iterator[str]:
    yield "opdesc_map ={"
    for number, op_id, name, place, after in graph.schedule.steps:
        yield f"  # @[{place}]:"
        yield f"  '#{number}': opdesc( {op_id:#x}, \"{name}\", ptr=0x55963fd6e9f0, runlist_pos = {place},"
        if after:
            needs = "".join(f"'#{need}'," for need in after)
            yield f"      csts_in = ({needs}),"
        yield "  ),"
    yield "  '#9999': opdesc( 0x410800000016, \"q::SlicePad_shape_inplace\", ptr=0x55963fd6e9f0,\n  ),\n}"


def prepared(graph: Graph, *, compile_us: int, modelled: bool = True) -> Message:
    """A graph made ready; with the estimates of the vendor's model, where it knows the part."""
    stages = [("Graph Optimizations", compile_us // 2), ("VTCM Allocation", compile_us // 4)]
    time = Event(FINALIZE_TIME, compile_us, "US", tuple(Event(name, value, "US") for name, value in stages))
    if not modelled:
        return Message(graph.name, FINALIZE, (time,))
    rows: list[tuple[str, int, str]] = []
    for word, factor in (("", 1.0), (" (lower estimate)", 0.9), (" (upper estimate)", 1.2)):
        cycles = round(graph.cycles * factor)
        rows.append((f"Simulated (Accelerator exec cycles{word})", cycles, "CYCLES"))
        rows.append((f"Simulated (Accelerator exec time us{word})", round(cycles / MHZ), "US"))
    rows += [("Input Fill", graph.total("dram_read"), "BYTES"), ("Output Spill", graph.total("dram_write"), "BYTES")]
    rows.append(("Missing Ops (Number of Ops with no Costs associated)", 0, "COUNT"))
    estimates = Event("Performance Estimates", 0, "US", tuple(Event(*row) for row in rows))
    return Message(graph.name, FINALIZE, (time, estimates, Event("QNN Trace Hextimate Event", None, "OBJECT")))


def executed(graph: Graph, *, hvx_threads: int, cycles: Sequence[int], micros: int) -> Message:
    """A graph run once, with the cycles of its nodes; no HVX thread: in emulation."""
    nodes = tuple(
        Event(f"{node.name}:OpId_{node.id} (cycles)", value, "CYCLES", (), node.nodes)
        for node, value in zip(graph.nodes, cycles, strict=True)
    )
    events = (
        Event(HVX_THREADS, hvx_threads, "COUNT"),
        Event("Accelerator (execute) time (cycles)", sum(cycles), "CYCLES", nodes),
        Event("Accelerator (execute) time", micros, "US"),
        Event("QNN (execute) time", micros + 50, "US"),
    )
    return Message(graph.name, EXECUTE, events)


@dataclass(frozen=True)
class Session:
    """Graphs of one model, and what was said of them."""

    graphs: tuple[Graph, ...]
    messages: tuple[Message, ...]
    refused: tuple[tuple[str, str, str], ...] = ()  # name, type, reason

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        timelines = {graph.name: timeline_json(graph) for graph in self.graphs}
        (folder / "prof_qnn.log").write_bytes(log_bytes(self.messages, timelines))
        (folder / "prof.csv").write_text(csv_text(with_repeats(self.messages)), encoding="utf-8")
        (folder / "qnn_op_trace.json").write_bytes(self.op_trace_json())
        for graph in self.graphs:
            (folder / f"{graph.name}_schematic.bin").write_text(schematic_text(graph), encoding="utf-8")
        return folder

    def op_trace_json(self) -> bytes:
        traces = [
            {
                "graph_name": graph.name,
                "op_mappings": [
                    {
                        "dst_name": node.name,
                        "dst_qnn_op_type": node.type,
                        "node_group_type": "OrtNodeUnit",
                        "sources": [{"name": name, "type": "OP"} for name in (node.nodes or (node.name,))],
                    }
                    for node in graph.nodes
                ],
            }
            for graph in self.graphs
        ]
        left = [{"node_name": name, "op_type": kind, "reason": reason} for name, kind, reason in self.refused]
        target = {"device_id": 0, "htp_arch": "", "soc_model": 52}
        document = {"schema_version": 2, "soc_traces": [{"compilation_target": target}], "subgraph_traces": traces}
        return json.dumps(document | {"unsupported_nodes": left, "model_name": "model.onnx"}).encode()


def _graph(number: int, nodes: Sequence[Node], kernels: Sequence[Kernel]) -> Graph:
    name = f"QNNExecutionProvider_QNNExecutionProvider_4711_{number + 2}_{number}"
    return Graph(name, tuple(nodes), tuple(kernels))


FIRST = _graph(
    0,
    [Node(0x11, "Transpose", "Transpose", (INPUT,), ()), Node(0x16, "conv0_token_1", "Conv2d", (0x11,), ("conv0",))],
    [
        Kernel(INPUT, "*InputSlice", "DMA", 1067, dram_read=32768, holds=32768),
        Kernel(0x16, "ConvLayer.opt.weights_to_vtcm", "DMA", 200, dram_read=10240, holds=10240),
        Kernel(0x11, "Transpose.2D", "HVX", 1690, (0,), holds=16384),
        Kernel(0x11, "Transpose.2D", "HVX", 1650, (0,), holds=16384),
        Kernel(0x16, "ConvLayer.fp16.s1.tcm", "HMX", 1177, (1, 2, 3), holds=32768),
        Kernel(0x16, "ConvLayer.fp16.s1.tcm", "HMX", 1177, (1, 2, 3), holds=32768),
        Kernel(0x16, "Cast_fp16_to_fp32", "HVX", 2013, (4,), holds=32768),
        Kernel(0x16, "Cast_fp16_to_fp32", "HVX", 2013, (5,), holds=32768),
        Kernel(OUTPUT, "*OutputSlice", "DMA", 540, (6,), dram_write=32768),
        Kernel(OUTPUT, "*OutputSlice", "DMA", 536, (7,), dram_write=32768),
    ],
)
SECOND = _graph(
    1,
    [
        Node(0x21, "conv1_token_5", "Conv2d", (INPUT,), ("conv1",)),
        Node(0x22, "relu1", "Relu", (0x21,), ("relu1",)),
        Node(0x23, "Transpose_token_8", "Transpose", (0x22,), ()),
    ],
    [
        Kernel(INPUT, "*InputSlice", "DMA", 2100, dram_read=65536, holds=65536),
        Kernel(0x21, "ConvLayer.opt.weights_to_vtcm", "DMA", 350, dram_read=18432, holds=18432),
        Kernel(0x21, "ConvLayer.fp16.s1.tcm", "HMX", 3050, (0, 1), holds=65536),
        Kernel(0x22, "Relu.fp16", "HVX", 900, (2,), holds=32768),
        Kernel(0x22, "Relu.fp16", "HVX", 910, (2,), holds=32768),
        Kernel(0x23, "Transpose.2D", "HVX", 2500, (3, 4), holds=65536),
        Kernel(OUTPUT, "*OutputSlice", "DMA", 1070, (5,), dram_write=65536),
    ],
)
WHOLE = _graph(
    0,
    [
        Node(0x11, "Transpose_token_34", "Transpose", (INPUT,), ()),
        Node(0x18, "conv0_token_1", "Conv2d", (0x11,), ("conv0",)),
        Node(0x1A, "sig3", "Sigmoid", (0x18,), ("sig3",)),
        Node(0x1B, "mul3", "ElementWiseMultiply", (0x18, 0x1A), ("mul3",)),
        Node(0x1C, "y_DequantizeLinear", "Dequantize", (0x1B,), ("y_DequantizeLinear",)),
    ],
    [
        Kernel(INPUT, "*InputSlice", "DMA", 1500, dram_read=37632, holds=37632),
        Kernel(0x18, "ConvLayer.opt.weights_to_vtcm", "DMA", 260, dram_read=4096, holds=4096),
        *(Kernel(0x11, "Transpose.4D", "HVX", 800 + 10 * part, (0,), holds=9216) for part in range(4)),
        *(Kernel(0x18, "ConvLayer.quant.s1.tcm", "HMX", 900, (1, 2 + part), holds=9216) for part in range(4)),
        *(Kernel(0x1B, "SigmoidMul", "HVX", 700, (6 + part,), holds=9216) for part in range(4)),
        *(Kernel(0x1C, "Dequantize", "HVX", 300, (10 + part,), holds=18432) for part in range(4)),
        Kernel(OUTPUT, "*OutputSlice", "DMA", 60, (14, 15, 16, 17), dram_write=40),
    ],
)
REASON = "Operators of type `Acosh` are not supported by QNN EP.Acosh node `acosh_mid` will not be assigned to QNN EP."


def two_graphs() -> Session:
    """Two graphs around a node that runs on the CPU; then two runs in emulation."""
    said = [prepared(FIRST, compile_us=16079), prepared(SECOND, compile_us=15191)]
    for run in (0, 1):
        said.append(executed(FIRST, hvx_threads=0, cycles=(20_000 + run, 700_000), micros=3000))
        said.append(executed(SECOND, hvx_threads=0, cycles=(90_000, 0, 40_000 + run), micros=2000))
    return Session((FIRST, SECOND), tuple(said), (("acosh_mid", "Acosh", REASON),))


def one_graph() -> Session:
    """One graph on a part that the vendor's model knows; one node has no kernels of its own."""
    return Session((WHOLE,), (prepared(WHOLE, compile_us=114_484),))


def emulated() -> Session:
    """The same on a part that it does not know, run once in emulation."""
    run = executed(WHOLE, hvx_threads=0, cycles=(300_000, 794_799, 0, 51_000, 400), micros=98_000)
    return Session((WHOLE,), (prepared(WHOLE, compile_us=90_000, modelled=False), run))
