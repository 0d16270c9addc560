"""Commands of graphs that are awkward to lower: each test is a shape that once went wrong, or could."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from opscope.compiler.performance_warnings import performance_warnings
from opscope.compiler.sharding import REDUCED
from opscope.core.errors import UsageError
from opscope.core.meaning import Does
from opscope.graph.graph import DType, Graph, Op
from opscope.machine.target import Figure
from opscope.program.program import NO_OP, NO_ROUTE
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, Built, Choice, build, by_axes, by_axis, small_target, whole_batch
from support.compiler.laws import Order, all_laws, compute_rows


def lawful(
    graph: Graph,
    *,
    cores: int = 1,
    devices: int = 1,
    parallel: str = "tensor",
    splits: Choice | None = None,
    **limits: int,
) -> Built:
    """A build that obeys every law, with all of the batch at once."""
    target = small_target(**limits)  # type: ignore[arg-type]
    built = build(graph, target, cores=cores, devices=devices, parallel=parallel, parts=whole_batch, splits=splits)
    all_laws(built, simulate(built.program))
    return built


def moved(built: Built, carries: str, *, named: str = "") -> list[int]:
    """Bytes of every transfer of one kind, of the tensor that is named."""
    program = built.program
    return [
        int(command["moved_bytes"])
        for command in program.commands
        if command["route"] != NO_ROUTE
        and program.routes[command["route"]].carries == carries
        and (not named or any(named == operand.tensor for operand in program.details[command["detail"]].operands))
    ]


def kinds(built: Built) -> Counter[str]:
    return Counter(built.program.kinds[kind] for kind in built.program.commands["kind"])


# ---- several outputs ------------------------------------------------------------------------------------------------


def halves(*, read: tuple[int, ...] = (0, 1)) -> Graph:
    draw = Sketch(dtype=DType.F16)
    product = draw.dense(draw.input(64, 64), 128, bias=False)
    parts = (draw.tensor((64, 64), name="left"), draw.tensor((64, 64), name="right"))
    draw.ops.append(Op("split", "SPLIT", "halves", (product,), parts, {"axis": 1}))
    outputs = [draw.dense(parts[i], 32, name=f"reader{i}") for i in read]
    return draw.graph(*outputs)


def test_readers_of_the_second_output_wait_for_the_op_too() -> None:
    built = lawful(halves())
    order, rows = Order(built), compute_rows(built)
    for reader in (2, 3):
        assert order.all_hold(rows[1][0], rows[reader][0][0])


def test_an_output_that_nobody_reads_is_dropped_not_moved_out() -> None:
    built = lawful(halves(read=(1,)), local_bytes=28 * KB, weight_bytes=KB)
    assert moved(built, "write", named="left") == []


def test_outputs_that_do_not_fit_are_streamed_each_for_itself() -> None:
    built = lawful(halves(), local_bytes=12 * KB, weight_bytes=KB, activation_bytes=4 * KB)
    for name in ("left", "right"):
        assert sum(moved(built, "write", named=name)) == pytest.approx(64 * 64 * 2, abs=100)


# ---- memory that is short -------------------------------------------------------------------------------------------


def gelu(rows: int) -> Graph:
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.input(rows, 64), 256, bias=False)
    bent = draw.same("add", draw.same("erf", draw.same("mul", data, draw.constant(256))), draw.constant())
    return draw.graph(draw.dense(draw.same("mul", bent, data), 64))


def test_the_end_of_a_chain_has_room_for_all_of_it() -> None:
    """Ops inside a chain have room for two tiles; the last one must not take over such a place."""
    built = lawful(gelu(64), activation_bytes=4 * KB)
    last = compute_rows(built)[4][0]
    places = {int(built.program.commands["local_address"][row]) for row in last}
    assert len(last) == 8
    assert len(places) == 8


def test_a_chain_is_streamed_when_its_operands_do_not_fit() -> None:
    built = lawful(gelu(256), local_bytes=96 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    assert sum(moved(built, "write")) > 256 * 256 * 2
    assert max(built.program.metrics.local_bytes) <= 96 * KB


def layer(rows: int) -> Graph:
    """128 KB of weights."""
    draw = Sketch(dtype=DType.F16)
    return draw.graph(draw.dense(draw.input(rows, 256, name="data"), 256, bias=False))


def test_weights_stay_for_all_slices_of_rows_where_there_is_room_for_a_panel() -> None:
    built = lawful(layer(1024), local_bytes=384 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    assert len(built.panels) == 1
    assert len(compute_rows(built)[0][0]) > 32  # slices of rows × 32 tiles of weights
    assert sum(moved(built, "read", named="t1")) == 256 * 256 * 2
    assert sum(moved(built, "read", named="data")) == 1024 * 256 * 2


def test_weights_of_the_next_tiles_are_asked_for_before_a_result_leaves() -> None:
    """A core issues transfers in order, and a write waits for its result: loads behind it would start only then."""
    draw = Sketch(dtype=DType.F16)
    made = draw.dense(draw.input(64, 64), 1024, bias=False)
    built = lawful(draw.graph(made), local_bytes=64 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    rows = built.program.commands[built.program.commands["route"] != NO_ROUTE]
    carried = "".join(built.program.routes[row["route"]].carries[0] for row in rows)  # r: read, w: write
    loads = carried[carried.index("w") - 3 :]
    assert loads.startswith("rrrwrwrw")
    assert loads.count("w") == 1024 * 64 * 2 // (4 * KB)


def test_what_was_spilled_in_the_layout_of_an_engine_is_not_converted() -> None:
    """Both products work in the tiled layout, and what is between them keeps it, also where it passes outer memory."""
    draw = Sketch(dtype=DType.F16)
    made = draw.dense(draw.input(256, 64, name="data"), 256, bias=False)
    graph = draw.graph(draw.dense(draw.same("sigmoid", made), 64, bias=False))
    built = lawful(graph, local_bytes=96 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    rows = built.program.commands
    converted = {built.program.ops[op].name for op in rows["op"][rows["does"] == Does.LAYOUT]}
    assert sum(moved(built, "write")) > 256 * 256 * 2
    assert converted == {built.program.ops[0].name}


def test_in_panels_slices_of_rows_pass_once_for_each() -> None:
    built = lawful(layer(256), local_bytes=64 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    assert sum(moved(built, "read", named="t1")) == 256 * 256 * 2
    passed = sum(moved(built, "read", named="data")) / (256 * 256 * 2)
    assert passed == len({tuple(tile.arrivals) for tile in built.weight_tiles}) / built.panels[0].size * 4 * KB


def test_the_next_slice_is_asked_for_before_the_last_one_is_stored() -> None:
    """One queue does both: a store that waits for its tile must not hold up the load of the next."""
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("softmax", draw.input(64, 256), axes=(1,)))
    built = lawful(graph, local_bytes=12 * KB, weight_bytes=KB, activation_bytes=4 * KB)
    emitted = {row: number for number, row in enumerate(built.row_of)}
    reads, writes = (
        sorted(
            emitted[row] for row in np.flatnonzero(built.program.commands["kind"] == built.program.kinds.index(name))
        )
        for name in ("aiccopytovtcm", "aiccopyfromvtcm")
    )
    assert len(reads) == len(writes) > 4
    assert all(load < store for load, store in zip(reads[1:], writes, strict=False))


def test_every_command_that_computes_has_a_launch() -> None:
    target = small_target()
    slow = tuple(replace(engine, launch_cycles=Figure(10_000.0, "by hand")) for engine in target.engines)
    built = build(gelu(8), replace(target, engines=slow), cores=2)
    rows = [row for lanes in compute_rows(built).values() for found in lanes.values() for row in found]
    assert len(rows) >= 6
    assert int(built.program.commands["cycles"][rows].min()) > 10_000


def test_a_slice_is_read_while_the_one_before_it_is_computed() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.op("reduce", (draw.input(64, 256),), (64,), axes=(1,)))
    program = lawful(graph, local_bytes=12 * KB, weight_bytes=KB, activation_bytes=4 * KB).program
    reads = np.flatnonzero(program.commands["kind"] == program.kinds.index("aiccopytovtcm")).tolist()
    computes = np.flatnonzero((program.commands["op"] == 0) & (program.commands["route"] == NO_ROUTE)).tolist()
    assert len(reads) == len(computes) > 4
    waits = [[computes.index(c) for c in program.dependencies(read) if c in computes] for read in reads]
    assert waits == [[], [], *([number] for number in range(len(reads) - 2))]  # of two places, the one left before


def test_the_second_operand_of_a_product_streams_past_every_slice_of_the_first() -> None:
    draw = Sketch(dtype=DType.F16)
    left, right = draw.input(256, 128, name="left"), draw.input(128, 256, name="right")
    graph = draw.graph(draw.op("matmul", (left, right), (256, 256), k=128, n=256))
    built = lawful(graph, local_bytes=48 * KB, weight_bytes=KB, activation_bytes=8 * KB)
    assert sum(moved(built, "read", named="left")) == pytest.approx(256 * 128 * 2, abs=100)
    assert len(moved(built, "read", named="right")) == len(compute_rows(built)[0][0])
    assert set(moved(built, "read", named="right")) == {128 * 256 * 2}


def test_an_operand_in_the_wrong_order_is_converted_slice_by_slice() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(512, 128), 64, bias=False))
    built = lawful(graph, local_bytes=64 * KB, weight_bytes=4 * KB, activation_bytes=8 * KB)
    converted = built.program.commands["kind"] == built.program.kinds.index("aicconverttod32")
    assert int(built.program.commands["out_bytes"][converted].sum()) == pytest.approx(512 * 128 * 2, abs=100)
    assert converted.sum() > 1


def test_an_operand_that_fits_in_one_layout_but_not_in_both_is_read_once() -> None:
    draw = Sketch(dtype=DType.F16)
    left, right = draw.input(8, 16, 32), draw.input(8, 32, 256, name="right")  # 128 KB
    product = draw.tensor((8, 16, 256))
    draw.ops.append(Op("matmul", "MatMul", "product", (left, right), (product,), {"k": 32, "n": 256}))
    built = lawful(draw.graph(product), local_bytes=220 * KB, weight_bytes=KB)
    assert sum(moved(built, "read", named="right")) == 128 * KB


def test_memory_that_is_too_small_for_the_ring_of_weights_is_refused() -> None:
    with pytest.raises(UsageError, match=r"weight tiles leave nothing of its 49,152 bytes of local memory; expected"):
        build(gelu(8), small_target(local_bytes=48 * KB, weight_bytes=16 * KB))


@pytest.mark.parametrize(("carries", "cores", "devices"), [("read", 1, 1), ("multicast", 2, 1), ("link", 1, 2)])
def test_a_target_without_a_way_that_is_needed_is_refused(carries: str, cores: int, devices: int) -> None:
    target = small_target()
    short = replace(target, routes=tuple(route for route in target.routes if route.carries != carries))
    with pytest.raises(UsageError, match=rf"^aic100-std: no route carries '{carries}'; expected one to compile for"):
        build(gelu(8), short, cores=cores, devices=devices)


# ---- reading what others read ---------------------------------------------------------------------------------------


def test_an_input_that_one_op_reads_in_parts_and_another_whole_is_read_for_both() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(64, 64, name="data")
    rows, columns = (draw.same("softmax", data, axes=(axis,)) for axis in (1, 0))
    whole = draw.op("reduce", (data,), (1, 1), axes=(0, 1))
    built = lawful(draw.graph(rows, columns, whole), cores=4)
    read = moved(built, "read", named="data")
    assert read.count(64 * 64 * 2 // 4) == 8  # four cores: their rows, then their columns
    assert read.count(64 * 64 * 2) == 1  # then one of them all of it


def test_a_table_that_two_ops_gather_from_is_read_for_both() -> None:
    draw = Sketch(dtype=DType.F16)
    table = draw.constant(1000, 256, name="table")
    outputs = [draw.op("gather", (table, draw.input(rows, dtype=DType.I32)), (rows, 256), axis=0) for rows in (16, 24)]
    built = lawful(draw.graph(*outputs), local_bytes=200 * KB)
    assert moved(built, "read", named="table") == [16 * 512, 24 * 512]


def test_views_of_a_tensor_share_its_bytes() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.input(32, 64), 64, bias=False)
    view = draw.op("reshape", (data,), (32, 8, 8))
    again = draw.op("reshape", (view,), (64, 32))
    built = lawful(draw.graph(draw.same("softmax", view, axes=(2,)), draw.same("erf", again)), cores=4)
    assert [placed.engine for placed in built.schedule.placed] == ["HMX", "", "", "HVX", "HVX"]
    assert moved(built, "read") == moved(built, "read", named="t0")
    assert sum(moved(built, "write")) == 2 * 32 * 64 * 2  # the two results


def test_a_tensor_read_twice_by_one_op_is_given_back_once() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.input(32, 64), 64, bias=False)
    built = lawful(draw.graph(draw.same("mul", data, data)), cores=2)
    assert len(compute_rows(built)[1]) == 2


# ---- several cores and devices --------------------------------------------------------------------------------------


def rows_then_columns(*, rows: int, width: int) -> Graph:
    """What is made by rows is needed by columns: it has to be gathered."""
    draw = Sketch(dtype=DType.F16)
    data = draw.same("softmax", draw.input(rows, width), axes=(1,))
    return draw.graph(draw.same("softmax", data, axes=(0,)))


def test_what_fits_every_core_is_handed_around_by_multicast() -> None:
    """Each of four cores has its rows of the columns that it needs: three quarters are sent."""
    built = lawful(rows_then_columns(rows=256, width=256), cores=4)
    assert sum(moved(built, "multicast")) == 256 * 256 * 2 * 3 // 4


def test_what_does_not_fit_meets_in_outer_memory() -> None:
    """32 KB a core of what was made, and 32 KB of what is needed, do not fit."""
    built = lawful(rows_then_columns(rows=256, width=256), cores=4, local_bytes=64 * KB, weight_bytes=KB)
    assert moved(built, "multicast") == []
    whole, outputs = 256 * 256 * 2, 256 * 256 * 2
    assert sum(moved(built, "write")) == whole + outputs
    assert sum(moved(built, "read")) == whole + whole  # the input once, and each core its columns


@pytest.mark.parametrize("cores", [1, 2])
def test_devices_exchange_over_their_link(cores: int) -> None:
    """Half of what a device has is needed by the other; over the bus each core gets its columns from its neighbour."""
    built = lawful(rows_then_columns(rows=256, width=256), cores=cores, devices=2)
    assert sum(moved(built, "link")) == 256 * 256 * 2 // 2
    assert sum(moved(built, "multicast")) == (256 * 256 * 2 // 4 if cores == 2 else 0)


def test_rows_at_the_edges_of_parts_are_exchanged_between_neighbours() -> None:
    """A 3 × 3 convolution of 56 rows on 4 cores: each sends its outermost rows, the inner ones two of them."""
    draw = Sketch(dtype=DType.F16)
    data = draw.conv(draw.input(1, 56, 56, 64, name="image"), 64, name="first")
    built = lawful(draw.graph(draw.conv(data, 64, name="second")), cores=4, local_bytes=4 << 20, splits=by_axis(1))
    row = 56 * 64 * 2
    (index,) = (i for i, placed in enumerate(built.schedule.placed) if placed.op.kind == "exchange")
    sent = built.program.commands[(built.ops == index) & (built.program.commands["route"] != NO_ROUTE)]
    assert sent["moved_bytes"].tolist() == [row, 2 * row, 2 * row, row]


def test_a_second_operand_is_converted_as_one_before_it_is_exchanged() -> None:
    """Cores that made columns of K need all of it for their rows of Q·K: it enters the engine as weights do."""
    draw = Sketch(dtype=DType.F16)
    keys = draw.same("softmax", draw.input(4, 128, 64), axes=(1,))
    query = draw.input(4, 256, 128)
    product = draw.op("matmul", (query, keys), (4, 256, 64), k=128, n=64)
    built = lawful(draw.graph(product), cores=2, splits=by_axes([2], [1]))
    table, names = built.program.commands, built.program.kinds
    index = next(i for i, placed in enumerate(built.schedule.placed) if placed.op.kind == "exchange")
    mine = table[(built.ops == index) & (table["does"] == Does.LAYOUT)]
    assert {names[kind] for kind in mine["kind"]} == {"aicconvertweightstod32"}


def test_partial_sums_are_sent_and_added_by_every_core() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(1, 1024), 256, bias=False))
    built = lawful(graph, cores=4, local_bytes=128 * KB, splits=by_axis(REDUCED))
    assert moved(built, "multicast") == [256 * 2] * 4
    order, table, rows = Order(built), built.program.commands, compute_rows(built)[0]
    added = [row for row in built.row_of if built.program.kinds[table["kind"][row]] == "elementadd"]
    assert len(added) == 4
    assert all(order.all_hold(made, row) for row in added for made in rows.values())
    assert sum(moved(built, "read", named="t1")) == 1024 * 256 * 2  # every core its rows of the weights
    assert [sum(moved(built, "write"))] == [256 * 2]


def test_a_stage_of_a_pipeline_is_sent_once() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.dense(draw.dense(draw.input(4, 256), 256), 256)
    built = lawful(draw.graph(draw.dense(draw.dense(data, 256), 256)), cores=2, devices=2, parallel="pipeline")
    assert sum(moved(built, "link")) == 4 * 256 * 2
    for device, ops in ((0, (0, 1)), (1, (2, 3))):
        of_op = np.isin(built.program.commands["op"], ops) & (built.program.commands["macs"] > 0)
        assert set(built.program.commands["device"][of_op]) == {device}


def test_cores_without_a_portion_have_no_commands() -> None:
    draw = Sketch(dtype=DType.F16)
    built = lawful(draw.graph(draw.same("softmax", draw.input(3, 4096), axes=(1,))), cores=4)
    assert len(compute_rows(built)[0]) == 3


def test_a_tensor_that_every_core_holds_whole_is_moved_out_once() -> None:
    draw = Sketch(dtype=DType.F16)
    small = draw.op("reduce", (draw.input(256, 64),), (1, 64), axes=(0,), name="small")
    wide = draw.op("cumsum", (draw.op("expand", (small,), (256, 64)),), (256, 64), axes=(0, 1), name="wide")
    other = draw.same("cumsum", draw.input(256, 64), axes=(0, 1))
    graph = draw.graph(draw.same("cumsum", draw.same("add", other, wide), axes=(0, 1)))
    built = lawful(graph, cores=2, local_bytes=72 * KB, weight_bytes=KB)
    assert sum(moved(built, "write", named="wide:out")) <= 256 * 64 * 2 + 100


# ---- ends -----------------------------------------------------------------------------------------------------------


def test_an_output_that_is_handed_around_is_written_once() -> None:
    draw = Sketch(dtype=DType.F16)
    made = draw.same("softmax", draw.input(256, 256), axes=(1,))
    built = lawful(draw.graph(made, draw.same("softmax", made, axes=(0,))), cores=4)
    assert [placed.op.kind for placed in built.schedule.placed] == ["softmax", "exchange", "softmax"]
    assert sum(moved(built, "write")) == 2 * 256 * 256 * 2


def test_a_result_leaves_behind_the_next_op_and_frees_its_memory() -> None:
    """The writes of five results of 32 KB are issued one op later, and local memory never holds more than three."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(256, 64)
    made = [draw.same("cumsum", data, axes=(0, 1)) for _ in range(5)]
    built = lawful(draw.graph(*made))
    table = built.program.commands
    emitted = [row for row in built.row_of if built.ops[row] != NO_OP]
    writes = [row for row in emitted if built.program.kinds[table["kind"][row]] == "aiccopyfromvtcm"]
    assert [int(built.ops[row]) for row in writes] == [0, 1, 2, 3, 4]
    for number, row in enumerate(writes[:-1]):
        before = emitted[: emitted.index(row)]
        assert max(int(built.ops[other]) for other in before) == number + 1
    assert built.lowering.tensors.memory[0].peak <= 4 * 32 * KB  # three results, and the input


def test_a_large_result_leaves_in_pieces_while_the_rest_of_it_is_made() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(256, 512), 512, bias=False))
    built = lawful(graph, activation_bytes=64 * KB, local_bytes=4 << 20)
    assert moved(built, "write") == [64 * KB] * 4
    rows, times = built.program.commands, simulate(built.program)
    writes = np.flatnonzero(rows["kind"] == built.program.kinds.index("aiccopyfromvtcm"))
    begins, last = times.start[writes], times.start[rows["does"] == Does.COMPUTE].max()
    assert begins.min() < last < begins.max()


def test_the_host_is_told_when_every_output_is_written() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.input(64, 256)
    built = lawful(draw.graph(draw.same("erf", data), draw.same("softmax", data, axes=(1,))), cores=4)
    order, table = Order(built), built.program.commands
    bell = int(np.flatnonzero(table["kind"] == built.program.kinds.index("aicoutputsemaphoreinc"))[0])
    writes = np.flatnonzero(table["kind"] == built.program.kinds.index("aiccopyfromvtcm")).tolist()
    assert len(writes) == 8
    assert order.all_hold(writes, bell)


def test_inputs_are_read_after_the_host_has_delivered_them() -> None:
    draw = Sketch(dtype=DType.F16)
    built = lawful(draw.graph(draw.same("erf", draw.input(64, 256))), cores=2)
    order, table = Order(built), built.program.commands
    bells = np.flatnonzero(table["kind"] == built.program.kinds.index("aicinputsemaphoreinc")).tolist()
    reads = np.flatnonzero(table["kind"] == built.program.kinds.index("aiccopytovtcm")).tolist()
    assert len(bells) == len(reads) == 2
    assert all(order.holds(bell, read) for bell, read in zip(bells, reads, strict=True))


def test_an_output_that_is_an_input_or_a_constant_is_not_written() -> None:
    draw = Sketch(dtype=DType.F16)
    data, weights = draw.input(8, 8), draw.constant(8, 8)
    built = lawful(draw.graph(data, weights, draw.op("identity", (data,), (8, 8))))
    assert moved(built, "write") == []


# ---- ops that are not what they seem --------------------------------------------------------------------------------


def test_an_op_of_unknown_cost_hands_on_its_operands_and_is_warned_of() -> None:
    draw = Sketch(dtype=DType.F16)
    made = draw.dense(draw.input(16, 64), 64, name="before")
    odd = draw.op("custom", (made,), (16, 64), name="odd", type="Mystery")
    built = lawful(draw.graph(draw.dense(odd, 32, name="after")), cores=2)
    order, rows = Order(built), compute_rows(built)
    assert all(order.all_hold(rows[0][lane], rows[2][lane][0]) for lane in (0, 1))
    warnings = [w for w in performance_warnings(built.passed, built.program) if w.kind == "unknown-cost"]
    assert [(w.op, w.cycles) for w in warnings] == [("odd", None)]
    why = "Mystery is a custom operator: its work is not in the file"
    assert warnings[0].text == f"is not costed: {why}"
    assert [op.unknown for op in built.program.ops] == ["", why, ""]


@pytest.mark.parametrize("shape", [None, (0, 8), ()])
def test_results_of_unknown_or_no_size_compile(shape: tuple[int, ...] | None) -> None:
    draw = Sketch(dtype=DType.F16)
    odd = draw.op("slice", (draw.input(4, 8),), shape)
    built = lawful(draw.graph(draw.op("erf", (odd,), shape)), cores=2)
    assert built.program.metrics.macs == 0


def test_a_graph_without_ops_is_a_program_without_work() -> None:
    draw = Sketch(dtype=DType.F16)
    built = lawful(draw.graph(draw.input(4, 8)))
    assert kinds(built) == {"aicinputsemaphoreinc": 1, "aicoutputsemaphoreinc": 1}


def test_a_transposition_waits_for_all_of_what_another_engine_makes_in_pieces() -> None:
    draw = Sketch(dtype=DType.F16)
    left, right = draw.input(64, 64), draw.input(64, 64)
    product = draw.op("matmul", (left, right), (64, 64), k=64, n=64)
    graph = draw.graph(draw.op("transpose", (product,), (64, 64), permutation=(1, 0)))
    built = lawful(graph, activation_bytes=2 * KB)
    order, rows = Order(built), compute_rows(built)
    assert len(rows[0][0]) == len(rows[1][0]) == 4
    assert order.all_hold(rows[0][0], rows[1][0][0])


def test_an_elementwise_op_follows_a_product_piece_by_piece() -> None:
    draw = Sketch(dtype=DType.F16)
    left, right = draw.input(64, 64), draw.input(64, 64)
    product = draw.op("matmul", (left, right), (64, 64), k=64, n=64)
    built = lawful(draw.graph(draw.same("erf", product)), activation_bytes=2 * KB)
    order, rows = Order(built), compute_rows(built)
    assert [[order.holds(made, row) for made in rows[0][0]].count(True) for row in rows[1][0]] == [1, 2, 3, 4]


def test_the_stats_buffer_is_written_by_every_group_at_the_end() -> None:
    built = build(gelu(8), small_target(), cores=2, level=70)
    last = [command for command in built.program.commands if built.program.kinds[command["kind"]] == "aicendcyclestats"]
    assert len(last) == 2 * 3
    assert len({int(command["out_bytes"]) for command in last}) == 1
    assert all(command["op"] == NO_OP for command in last)
    assert "aicendcyclestats" not in build(gelu(8), small_target(), level=50).program.kinds


@pytest.mark.parametrize("cores", [1, 3])
def test_a_product_of_two_vectors_is_one_number(cores: int) -> None:
    draw = Sketch()
    graph = draw.graph(draw.op("matmul", (draw.input(8), draw.constant(8)), (), k=8, n=1))
    assert lawful(graph, cores=cores).program.commands["macs"].max() == 8


def test_of_a_table_beyond_local_memory_only_the_rows_that_are_picked_are_shown_there() -> None:
    draw = Sketch(dtype=DType.F16)
    table, rows = draw.constant(4096, 64, name="table"), draw.input(8, dtype=DType.I64)
    graph = draw.graph(draw.op("gather", (table, rows), (8, 64), axis=0))
    program = build(graph, small_target(local_bytes=64 * KB), parts=whole_batch).program
    shown = {(o.shape, o.bytes) for d in program.details if d.name == "gather0" for o in d.operands if o.role == "Src0"}
    assert shown == {((8, 64), 8 * 64 * 2)}
