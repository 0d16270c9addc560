"""How fast are stats buffers decoded, summed up and drawn? Ratios to the obvious ways, over the same data.

16 cores × 12,000 commands × 20 samples. Ratios come from one run on one machine; absolute figures are for orientation.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import orjson

from measure import best_seconds
from opscope import api
from opscope.analysis.totals.summarise import timeline
from opscope.analysis.totals.work import ProgramIndex
from opscope.core.meaning import Carries, Direction
from opscope.decode import LaneIndex, check_buffer, decode_buffer, decode_trace, origin_tick
from opscope.decode.lanes import read_lanes
from opscope.device import Inference, collect
from opscope.program.capture import encode_capture
from opscope.program.program import (
    COMMAND,
    NO_ROUTE,
    Channel,
    Detail,
    Group,
    MemoryInfo,
    MemoryMetrics,
    Operand,
    OpInfo,
    Program,
    StatsOptions,
)
from opscope.program.program_file import decode_program, encode_program, program_id
from opscope.recording.run import CommandTable
from opscope.recording.trace import SpanKind, Trace
from opscope.simulation import simulate
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.views.timeline.trace_args import constant_args
from opscope.workflows.program_recording import head_of

CORES, TILES, SAMPLES = 16, 4000, 20
HVX, HMX, DMA = 0, 1, 2
LOCAL, OUTER = 0, 1
_COLUMNS = ["lane", "kind", "command", "start_ns", "end_ns", "ucycles", "pcycles", "waits_on", "name"]


def large_program() -> Program:
    """Per core and tile: a copy, a dequantisation on four threads, a product; three buffers."""
    core, group, tile = (grid.reshape(-1) for grid in np.mgrid[0:CORES, 0:3, 0:TILES])
    rng = np.random.default_rng(0)
    table = np.zeros(len(core), COMMAND)
    table["core"], table["group"], table["ordinal"] = core, group, tile
    table["kind"], table["op"], table["detail"] = group, tile // 20, group * TILES + tile
    table["route"] = np.where(group == DMA, 0, NO_ROUTE)
    table["cycles"] = np.select([group == DMA, group == HVX], [235, rng.integers(3000, 9000, len(core))], 6000)
    table["moved_bytes"] = np.where(group == DMA, 100_000, 0)
    table["out_bytes"] = np.where(group == HMX, 65_536, 100_000)
    table["local_bytes"] = table["out_bytes"]
    here = np.arange(len(core))
    source = np.select([group == HVX, group == HMX], [here + 2 * TILES, here - TILES], here - TILES - 3)
    present = (group != DMA) | (tile >= 3)
    kinds = ("blockdequantize_mxfp6", "aicconvolutiond32", "aiccopytovtcm")
    return Program(
        name="network",
        target="hand-made",
        devices=1,
        cores=CORES,
        batch=1,
        clock_hz=1.2e9,
        stats_hz=19.2e6,
        groups=(Group("HVX", "HVX", 4), Group("HMX", "HMX", 1), Group("DMAIssue", "", 1)),
        routes=(Channel("DDR read", Carries.READ, 110.0, 20.0),),
        kinds=kinds,
        ops=tuple(_op(number) for number in range(TILES // 20)),
        details=tuple(_detail(kind, tile) for kind in range(3) for tile in range(TILES)),
        commands=table,
        dependency_offsets=np.concatenate(([0], np.cumsum(present))).astype(np.uint32),
        dependency_sources=source[present].astype(np.uint32),
        dependency_kinds=np.ones(int(present.sum()), np.uint8),
        stats=StatsOptions(level=70),
        metrics=MemoryMetrics(0, (), 8 << 20, (), 0, 0, 0, {}),
        inputs=(),
        outputs=(),
        simulation={"thread_spread": 0.035},
        memories=(MemoryInfo("VTCM", is_outer=False), MemoryInfo("DDR", is_outer=True)),
    )


def _op(number: int) -> OpInfo:
    return OpInfo(f"/model/layers.{number // 10}/mlp/part_{number % 10}/MatMul", "MatMul", "matmul", "")


def _detail(kind: int, tile: int) -> Detail:
    name = f"/model/layers.{tile // 200}/mlp/part_{tile // 20 % 10}/MatMul/__{tile % 20}"
    operands = (
        Operand(Direction.OUT, "Dest", f"{name}_output", LOCAL, "f16", (1, 1, 1, 32, 1024), 64 << 10),
        Operand(Direction.IN, "Src0", f"{name}_input", LOCAL, "f16", (1, 1, 1, 32, 4096), 256 << 10),
        Operand(Direction.IN, "Src1", f"{name}_weight", OUTER, "i8", (4096, 32), 98 << 10),
    )
    attributes = "{kernel: (1, 1), strides: (1, 1), groups: 1, channels: 4096}" if kind == HMX else ""
    shape = "Dest [1 x 1 x 1 x 32 x 1024], Src0 [1 x 1 x 1 x 32 x 4096], Src1 [4096 x 32]"
    return Detail(name, "DDR" if kind == DMA else "VTCM", "float16, i8", shape, operands, attributes)


def write_samples(program: Program, identity: int, folder: Path) -> list[bytes]:
    timeline_ = simulate(program)
    buffers = []
    for inference in range(SAMPLES):
        capture = collect(program, timeline_, Inference(identity, 0, inference, 10**12 + inference * 10**6), device=0)
        buffers.append(encode_capture(capture))
        name = f"aic-profiling-program-0-activation-0-inf-{inference}-{program.name}-aiccyclecounts.bin"
        (folder / name).write_bytes(buffers[-1])
    return buffers


def pure_decode(raw: bytes, program: Program, identity: int, index: LaneIndex) -> int:
    buffer = decode_buffer(raw, source="bench")
    check_buffer(buffer, program, program_id=identity)
    return sum(lane.ucycles.size for lane in read_lanes(buffer, program, index))


def with_orjson(trace: Trace, program: Program) -> bytes:
    """The same events by dictionaries; arguments that are constant per command are shared, too."""
    constant = {}
    events = []
    table, words = program.commands, CommandTable.of(program)
    for span in trace.spans[_COLUMNS].tolist():
        lane, kind, command, start, end, ucycles, pcycles, waits_on, name = span
        event = {
            "ph": "X",
            "pid": 2000,
            "tid": 10_000 + lane,
            "ts": start / 1000,
            "dur": (end - start) / 1000,
            "cat": "aic",
            "name": trace.names[name],
        }
        if kind in (SpanKind.OP, SpanKind.TRANSFER):
            row = table[command]
            key = (row["kind"], row["detail"])
            if key not in constant:
                constant[key] = dict(constant_args(words, *map(int, key)))
            size = int(row["out_bytes"])
            event["args"] = {
                "oc": str(row["ordinal"]),
                "opPCycle": str(pcycles),
                "opUCycle": str(ucycles),
                "effectiveFreq": f"{pcycles / max(ucycles, 1) * 19.2:.2f}",
                "PCyclesPerKB": f"{pcycles / size * 1024:.2f}",
                "UCyclesPerKB": f"{ucycles / size * 1024:.2f}",
                "opOutputSize": str(size),
                **constant[key],
            }
        elif kind == SpanKind.WAIT and waits_on >= 0:
            row = table[waits_on]
            event["args"] = {
                "oc": str(table["ordinal"][command]),
                "opSyncDurUs": f"{(end - start) / 1000:.3f}",
                "waitsOnCore": str(row["core"]),
                "waitsOn": program.kinds[row["kind"]],
                "waitsOnName": program.details[row["detail"]].name,
            }
        events.append(event)
    return orjson.dumps({"traceEvents": events})


def with_trace_builder(trace: Trace, program: Program, most: int) -> float:
    """Spans per second of Perfetto's own builder, with the arguments of ops as debug annotations."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    builder, spans = TraceProtoBuilder(), trace.spans[_COLUMNS][:most].tolist()
    words = CommandTable.of(program)
    begin = perf_counter()
    for lane, kind, command, start, end, ucycles, pcycles, _, name in spans:
        packet = builder.add_packet()
        packet.timestamp = start
        packet.trusted_packet_sequence_id = 1
        event = packet.track_event
        event.type, event.track_uuid, event.name = TrackEvent.TYPE_SLICE_BEGIN, 10_000 + lane, trace.names[name]
        if kind in (SpanKind.OP, SpanKind.TRANSFER):
            for key, value in (("opPCycle", pcycles), ("opUCycle", ucycles)):
                arg = event.debug_annotations.add()
                arg.name, arg.uint_value = key, value
            row = program.commands[command]
            for key, text in constant_args(words, int(row["kind"]), int(row["detail"])):
                arg = event.debug_annotations.add()
                arg.name, arg.string_value = key, text
        packet = builder.add_packet()
        packet.timestamp = end
        packet.trusted_packet_sequence_id = 1
        packet.track_event.type, packet.track_event.track_uuid = TrackEvent.TYPE_SLICE_END, 10_000 + lane
    builder.serialize()
    return len(spans) / (perf_counter() - begin)


def main() -> None:
    encoded = encode_program(large_program())
    program, identity = decode_program(encoded, source="bench"), program_id(encoded)
    index, rows = LaneIndex.of(program), ProgramIndex.of(program)
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "programqpc.bin").write_bytes(encoded)
        (folder / "stats").mkdir()
        buffers = write_samples(program, identity, folder / "stats")
        records = pure_decode(buffers[0], program, identity, index)
        print(f"{SAMPLES} samples of {records} records, {len(buffers[0]) / 1e6:.1f} MB each")
        once = best_seconds(lambda: pure_decode(buffers[0], program, identity, index))
        print(
            f"decode, with checksum and all checks: {records / once / 1e6:.1f} M records/s, "
            f"{len(buffers[0]) / once / 1e9:.2f} GB/s"
        )
        for workers in (1, 2):
            spent = best_seconds(
                lambda w=workers: api.opstats(
                    folder / "programqpc.bin", folder / "stats", folder / "out", summary=True, workers=w
                ),
                1,
            )
            print(f"summaries of all samples, {workers} process(es): {spent:.2f} s")
        draw(program, index, rows, buffers[0])


class Sink(BytesIO):
    """Takes bytes as a file would, but keeps only their number."""

    size = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.size += len(data)
        return len(data)


def draw(program: Program, index: LaneIndex, rows: ProgramIndex, raw: bytes) -> None:
    buffer = decode_buffer(raw, source="bench")
    trace = timeline(decode_trace(program, buffer, index, origin=origin_tick([buffer]), provenance="simulated"), rows)
    trace = replace(trace, samples=trace.samples[:0])
    count = len(trace.spans)

    def size_of(view: ChromeTrace | PerfettoTrace) -> int:
        sink = Sink()
        view.render(trace, sink)
        return sink.size

    chrome, perfetto = ChromeTrace(head_of(program)), PerfettoTrace(head_of(program))
    json_bytes, proto_bytes = size_of(chrome), size_of(perfetto)
    for name, view in (("Chrome JSON", chrome), ("Perfetto protobuf", perfetto)):
        first = type(view)(head_of(program))
        cold = best_seconds(lambda v=first: size_of(v), 1)
        warm = best_seconds(lambda v=view: size_of(v))
        print(
            f"{name}: {count / warm / 1e6:.2f} M spans/s ({count / cold / 1e6:.2f} with the templates of a new program)"
        )
    print(
        f"bytes per span: JSON {json_bytes / count:.0f}, protobuf {proto_bytes / count:.0f}; "
        f"{json_bytes / proto_bytes:.1f}x smaller"
    )
    whole = best_seconds(lambda: size_of(chrome))
    dictionaries = best_seconds(lambda: with_orjson(trace, program), 1)
    print(f"Chrome JSON against dictionaries and orjson: {dictionaries / whole:.1f}x")
    built = with_trace_builder(trace, program, 20_000)
    print(f"protobuf against perfetto's trace builder: {count / best_seconds(lambda: size_of(perfetto)) / built:.0f}x")


if __name__ == "__main__":
    main()
    sys.exit(0)
