"""A recorded compilation of `opscope zoo conv-small`, joined to the ops of the model; no compiler is needed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.graph.graph import Graph
from opscope.plugins.torq.annotate.annotated import Payload
from opscope.plugins.torq.compiler.nodes import PROGRAMS, leads_of, ops_of
from opscope.plugins.torq.compiler.schedule import Schedule, join
from opscope.plugins.torq.importers.compile_csv import CompileRows, read_rows
from opscope.plugins.torq.importers.dump import read_listing
from opscope.recording.recording import OpRecord, Placed
from opscope.recording.trace import NONE
from support.plugins.importer_samples import SAMPLES

NAMES = [  # ops with rows, in the order of the graph
    "/relu/Relu_output_0",
    "/block/relu/Relu_output_0",
    "/block/relu/Relu_1_output_0",
    "/block/pointwise/Conv_output_0",
    "/block/relu/Relu_2_output_0",
    "/pool/GlobalAveragePool_output_0",
    "output",
]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    from opscope.readers import read_model

    file = tmp_path / "m.tflite"
    assert main(["zoo", "conv-small", "--format", "tflite", "--precision", "int8", "-o", str(file)]) == 0
    return read_model(file)


@pytest.fixture
def rows() -> CompileRows:
    return read_rows(SAMPLES / "torq_real" / "conv_small.csv.gz", "C")


@pytest.fixture
def schedule(graph: Graph, rows: CompileRows) -> Schedule:
    pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")
    return join(rows, read_listing(SAMPLES / "torq_real" / "conv_small.mlir.gz"), leads_of(graph))


def by_name(graph: Graph, schedule: Schedule) -> dict[str, OpRecord]:
    return {op.name: op for op in ops_of(graph, schedule, None).records}


def test_locations_alone_give_ops_and_no_payloads(graph: Graph, rows: CompileRows) -> None:
    found = join(rows, None, leads_of(graph))
    of_row = [graph.ops[op].name for op in found.op.tolist() if op != NONE]
    assert Counter(of_row) == dict(zip(NAMES, (12, 8, 4, 8, 4, 6, 5), strict=True))
    assert set(found.payload) == {Payload.UNKNOWN}
    assert found.edges == ()


def test_transfers_without_a_location_belong_to_the_op_that_uses_them(graph: Graph, schedule: Schedule) -> None:
    of_row = [graph.ops[op].name for op in schedule.op.tolist() if op != NONE]
    assert Counter(of_row) == dict(zip(NAMES, (14, 8, 4, 8, 4, 7, 6), strict=True))  # inputs, and a table of the pool
    alone = [schedule.payload[row] for row, op in enumerate(schedule.op.tolist()) if op == NONE]
    assert alone == [Payload.PROGRAM] * 16


def test_control_traffic_is_told_apart_by_what_a_transfer_carries(graph: Graph, schedule: Schedule) -> None:
    assert Counter(filter(None, schedule.payload)) == {
        Payload.CONSTANT: 20,
        Payload.PROGRAM: 16,
        Payload.DESCRIPTOR: 13,
        Payload.BINDING: 3,
        Payload.INTERMEDIATE: 2,
    }
    rows = schedule.rows
    assert int(rows.bytes[schedule.is_control].sum()) == 14_504
    ops = by_name(graph, schedule)
    assert (ops[PROGRAMS].placed, ops[PROGRAMS].cycles) == (Placed.INSERTED, 16 * 135)
    assert sum(op.outer_read_bytes or 0 for op in ops.values()) == 28_597 - 14_504


def test_an_op_has_the_cycles_of_its_units_and_the_kernels_of_its_slices(graph: Graph, schedule: Schedule) -> None:
    op = by_name(graph, schedule)["/relu/Relu_output_0"]
    assert op.kernel == "transpose_0, conv2d_1"
    assert op.busy_cycles == {"DMA In": 1686, "Slice 0": 3936, "Slice 1": 3936}
    assert (op.cycles, op.outer_read_bytes, op.time_ns) == (5558, 6704, None)


def test_a_view_has_no_rows_and_is_removed(graph: Graph, schedule: Schedule) -> None:
    found = by_name(graph, schedule)["/Flatten_output_0"]
    assert (found.placed, found.cycles, found.calls) == (Placed.REMOVED, None, 0)


def test_every_edge_goes_forward_and_data_from_transfers_to_slices_and_back(schedule: Schedule) -> None:
    rows = schedule.rows
    assert len(schedule.edges) == 117
    assert all(rows.end[source] <= rows.start[target] for source, target, _ in schedule.edges)
    data = {(rows.units[rows.unit[a]], rows.units[rows.unit[b]]) for a, b, is_data in schedule.edges if is_data}
    assert data == {("DMA In", "Slice 0"), ("DMA In", "Slice 1"), ("Slice 0", "DMA Out")}
