"""What Arm's compiler leaves, typed by hand in its own formats: rows of layers, a summary, a debug file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import ModelError, UsageError
from opscope.graph.graph import DType, Graph
from opscope.plugins.ethosu.compilation import Compilation, Row, _debug_tables, _queued, _rows, compile_model
from opscope.plugins.ethosu.importer import NPU, VelaLayers, VelaSummary
from opscope.plugins.ethosu.nodes import node_totals
from opscope.plugins.ethosu.options import VelaOptions
from opscope.plugins.ethosu.profile import assemble
from opscope.recording.build import to_run
from opscope.recording.recording import OpRecord, Placed, ResourceCycles
from support.build import Sketch

LAYERS = """\
Original Operator,NNG Operator,Target,Staging Usage,Peak% (Staging),Op Cycles,Network% (cycles),NPU,SRAM AC,DRAM AC,\
OnFlash AC,OffFlash AC,MAC Count,Network% (MAC),Util% (MAC),Name
Conv2D,Conv2D,NPU,1000,50.0,400,40.0,400,100,0,0,300,6400,100,99,conv:out
Conv2D,Relu,NPU,0,0.0,0,0.0,0,0,0,0,0,0,0.0,100,conv:out
Add,Add,NPU,2000,100.0,100,10.0,80,100,0,0,0,0,0.0,0.0,add:out
Rsqrt,LUT,NPU,0,0.0,0,0.0,0,0,0,0,0,0,0.0,100,rsqrt:out
FullyConnected,FullyConnected,NPU,500,25.0,500,50.0,50,10,0,0,500,64,1,1,dense:out
"""
CPU_ROW = "GatherV2,Passthrough,CPU,0,NaN,0,100,0,0,0,0,0,0,100,100,odd name\n"
SUMMARY = """\
experiment,network,accelerator_configuration,system_config,memory_mode,core_clock,arena_cache_size,batch_size,\
inference_time,sram_memory_used,off_chip_flash_memory_used,total_original_weights,total_npu_encoded_weights,\
sram_feature_map_read_bytes,sram_feature_map_write_bytes,sram_weight_read_bytes,sram_weight_write_bytes,cycles_total
default,net,Ethos_U55_256,Ethos_U55_High_End_Embedded,Shared_Sram,500000000.0,4194304.0,1,0.000002,2.0,1.5,1000,400,\
10,20,30,40,1000
"""
DEBUG = """<?xml version='1.0' encoding='UTF-8'?>
<debug source="out/model">
<table name="perf">
<![CDATA[
"id","source_id","optimised_id","operator","name","staging_usage","op_cycles"
133,1,9,"Conv2D","conv:out",1000,400
138,1,8,"Relu","conv:out",0,0
140,2,7,"Add","add:out",2000,100
144,3,6,"LUT","rsqrt:out",0,0
146,5,5,"FullyConnected","dense:out",500,500
]]>
</table>
<table name="group">
<![CDATA[
"id","group_id"
138,133
144,140
]]>
</table>
<table name="source">
<![CDATA[
"id","operator","kernel_w","kernel_h","ofm_w","ofm_h","ofm_d","ext_key"
1,"Conv2D",1,1,5,25,64,0
2,"Add",1,1,5,25,64,1
3,"Rsqrt",1,1,5,25,64,2
4,"Reshape",1,1,5,25,64,3
5,"FullyConnected",1,1,5,25,64,4
6,"GatherV2",1,1,5,25,64,5
]]>
</table>
</debug>
"""


def graph(*, with_cpu: bool = False, dtype: DType = DType.I8) -> Graph:
    net = Sketch(dtype=dtype)
    x = net.input(1, 8)
    a = net.op("conv", [x], (1, 8), name="conv", type="CONV_2D")
    b = net.op("add", [a], (1, 8), name="add", type="ADD")
    c = net.op("rsqrt", [b], (1, 8), name="rsqrt", type="RSQRT")
    d = net.op("reshape", [c], (1, 8), name="reshape", type="RESHAPE")
    y = net.op("matmul", [d], (1, 8), name="dense", type="FULLY_CONNECTED")
    return net.graph(net.op("gather", [y], (1, 8), name="gather", type="GATHER") if with_cpu else y)


def compilation(folder: Path, *, layers: str = LAYERS, debug: str = DEBUG) -> Compilation:
    files = {"layers.csv": layers, "summary.csv": SUMMARY, "debug.xml": debug}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    rows = tuple(_rows(_debug_tables(folder / "debug.xml", Path("net.tflite"))))
    read = VelaLayers().read(folder / "layers.csv")
    return Compilation(read, rows, VelaSummary().read(folder / "summary.csv"), {}, {"ethos-u-vela": "5.2.0"})


def with_cpu(folder: Path) -> Compilation:
    row = '170,6,4,"Passthrough","odd name",0,0\n]]>\n</table>\n<table name="group">'
    debug = DEBUG.replace(']]>\n</table>\n<table name="group">', row, 1)
    return compilation(folder, layers=LAYERS + CPU_ROW, debug=debug)


OPTIONS = VelaOptions.of({})


def test_rows_are_added_up_per_op_of_the_model(tmp_path: Path) -> None:
    """Trap: fused activations are rows of 0 cycles and 100 % utilization; a softmax is 29 rows."""
    nodes = node_totals(graph(), compilation(tmp_path), 5e8)
    assert [(n.name, n.placed, n.cycles, n.calls, n.bound) for n in nodes] == [
        ("conv", Placed.ACCELERATOR, 400, 2, "NPU"),
        ("add", Placed.ACCELERATOR, 100, 1, "SRAM"),
        ("rsqrt", Placed.FUSED, None, 0, ""),
        ("reshape", Placed.REMOVED, None, 0, ""),
        ("dense", Placed.ACCELERATOR, 500, 1, "off-chip flash"),
    ]
    assert nodes[1].covers == ("rsqrt",)
    assert nodes[2].reason == "fused into add"
    assert sum(node.path_share or 0 for node in nodes) == pytest.approx(1)


def test_the_resource_that_binds_is_shown_per_op_and_in_total(tmp_path: Path) -> None:
    """Trap: work that waits for memory hides in one number."""
    result = assemble(Path("net.tflite"), graph(), OPTIONS, compilation(tmp_path))
    assert {part.cause: round(part.share, 3) for part in result.path_shares} == {
        "off-chip flash": 0.5,
        "NPU": 0.4,
        "SRAM": 0.1,
    }
    assert result.ops[0].busy_cycles == {"NPU": 400, "SRAM": 100, "off-chip flash": 300}
    assert result.ops[0].memory_bytes == 1000


def test_cycles_become_time_and_a_timeline_in_order(tmp_path: Path) -> None:
    result = assemble(Path("net.tflite"), graph(), OPTIONS, compilation(tmp_path))
    assert result.latency is not None
    assert (result.latency.value_ns, result.latency.provenance) == (2000, "vendor-model")
    spans = [(int(s["op"]), int(s["start_ns"]), int(s["end_ns"]), int(s["pcycles"])) for s in result.trace.spans]
    assert spans == [(0, 0, 800, 400), (1, 800, 1000, 100), (4, 1000, 2000, 500)]
    assert result.value("mac_utilization") == pytest.approx(6464 / (1000 * 256))
    memory = {row.name: (row.peak_bytes, row.read_bytes, row.write_bytes) for row in result.memory}
    assert memory == {"SRAM": (2048, 40, 60), "off-chip flash": (1536, None, None)}


def test_what_ops_do_is_told_by_their_kinds_and_read_from_no_word(tmp_path: Path) -> None:
    result = assemble(Path("net.tflite"), graph(), OPTIONS, compilation(tmp_path))
    run = to_run(result, command=(), created="", sha256=None)
    assert not {"commands", "spans", "summary"} & set(run.info.classified)
    assert {op.name: op.does for op in run.summary.ops if op.wall_ns} == dict.fromkeys(
        ("conv", "add", "dense"), "compute"
    )


def test_with_an_op_on_the_cpu_there_is_no_latency(tmp_path: Path) -> None:
    """Trap: ops on the CPU cost 0 in the compiler's files."""
    found = replace(with_cpu(tmp_path), refused={"gather:out": "Unsupported opType"})
    result = assemble(Path("net.tflite"), graph(with_cpu=True), OPTIONS, found)
    assert result.latency is None
    assert not len(result.trace.spans)
    node = result.ops[-1]
    assert (node.placed, node.reason, node.cycles, node.time_ns) == (Placed.CPU, "Unsupported opType", None, None)
    assert result.value("latency") is None
    assert result.value("npu_time") == 2.0
    assert any("1 of 6 ops run on the CPU: their time is unknown" in note for note in result.notes)


def test_a_model_of_which_nothing_runs_on_the_accelerator_is_refused(tmp_path: Path) -> None:
    """Trap: a float model ends with exit 0, everything on the CPU and no performance."""
    header = LAYERS.splitlines(keepends=True)[0]
    found = with_cpu(tmp_path)
    (tmp_path / "none.csv").write_text(header + CPU_ROW)
    rows = (Row(0, None),)
    found = replace(found, layers=VelaLayers().read(tmp_path / "none.csv"), rows=rows)
    words = (
        r"^net\.tflite: the accelerator takes none of its 5 ops \(CONV_2D: computes in f32: .*; expected a model of i"
    )
    with pytest.raises(ModelError, match=words):
        assemble(Path("net.tflite"), graph(dtype=DType.F32), OPTIONS, found)


@pytest.mark.parametrize(("encoded", "is_noted"), [(400, False), (990, True)])
def test_weights_that_do_not_compress_are_noted(tmp_path: Path, encoded: int, is_noted: bool) -> None:
    """Trap: values of weights change the estimate, because they travel encoded."""
    found = compilation(tmp_path)
    (tmp_path / "other.csv").write_text(SUMMARY.replace(",1000,400,", f",1000,{encoded},"))
    found = replace(found, summary=VelaSummary().read(tmp_path / "other.csv"))
    result = assemble(Path("net.tflite"), graph(), OPTIONS, found)
    assert any("the weights hardly compress" in note for note in result.notes) is is_noted


def test_a_total_that_is_not_the_sum_of_rows_is_noted(tmp_path: Path) -> None:
    found = compilation(
        tmp_path, layers=LAYERS.replace("50.0,500,50.0,50", "50.0,500,50.0,50").replace(",400,", ",401,")
    )
    result = assemble(Path("net.tflite"), graph(), OPTIONS, found)
    assert any("the compiler's total is 1,000 cycles, the sum of its rows 1,001" in note for note in result.notes)


resources = st.lists(st.integers(0, 1000), min_size=5, max_size=5)
some_rows = st.lists(st.tuples(st.integers(-1, 6), st.one_of(st.none(), st.integers(0, 4)), resources, st.booleans()))


@given(some_rows)
def test_whatever_the_rows_say_every_op_is_there_once_and_cycles_add_up(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int | None, list[int], bool]]
) -> None:
    labels = ("NPU", "SRAM", "DRAM", "on-chip flash", "off-chip flash")
    ops = [
        OpRecord(
            f"row{n}",
            cycles=None if on_cpu else max(used),
            kernel="K",
            resource_cycles=()
            if on_cpu
            else tuple(ResourceCycles(name, name != NPU, n) for name, n in zip(labels, used, strict=True)),
        )
        for n, (_, _, used, on_cpu) in enumerate(rows)
    ]
    base = compilation(tmp_path_factory.mktemp("vela"))
    found = replace(
        base, layers=replace(base.layers, ops=tuple(ops)), rows=tuple(Row(op, group) for op, group, _, _ in rows)
    )
    net = graph()
    nodes = node_totals(net, found, 5e8)
    assert [node.name for node in nodes] == [op.name for op in net.ops]
    for place, node in enumerate(nodes):
        own = [(used, on_cpu) for op, _, used, on_cpu in rows if op == place]
        if node.placed == Placed.ACCELERATOR:
            assert node.cycles == sum(max(used) for used, _ in own)
            assert max(node.busy_cycles.values(), default=0) <= (node.cycles or 0)
        assert (node.placed == Placed.CPU) == any(on_cpu for _, on_cpu in own)
        assert (node.placed == Placed.REMOVED) == (not own)


DEBUG_4 = """<?xml version='1.0' encoding='UTF-8'?>
<debug source="model.tflite" optimised="out/model_vela.tflite">
  <table name='source'><![CDATA["id","operator","kernel_w","kernel_h","ofm_w","ofm_h","ofm_d","ext_key"
0,"Conv2DBias",4,10,5,25,64,0
1,"Softmax",1,1,1,1,12,1
]]></table>
  <table name='optimised'><![CDATA["id","source_id","operator","kernel_w","kernel_h","ofm_w","ofm_h","ofm_d"
0,1,"MaxPool",12,1,1,1,1
1,1,"Sub",1,1,1,1,12
2,0,"Conv2DBias",4,10,5,25,64
]]></table>
  <table name='queue'><![CDATA["offset","cmdstream_id","optimised_id"
328,0,2
412,0,2
572,0,0
696,0,1
]]></table>
</debug>
"""


def test_of_versions_4_the_queue_tells_which_operator_a_row_is_of(tmp_path: Path) -> None:
    (tmp_path / "debug.xml").write_text(DEBUG_4, encoding="utf-8")
    tables = _debug_tables(tmp_path / "debug.xml", Path("net.tflite"))
    rows = list(_queued(tables, ["Memcpy", "Conv2DBias", "MaxPool", "Sub"]))
    assert rows == [Row(-1, None), Row(0, None), Row(1, None), Row(1, None)]
    assert len(list(_queued(tables, ["Conv2DBias"]))) > 1


def test_halves_of_cycles_of_versions_4_add_up_to_the_compilers_total(tmp_path: Path) -> None:
    header = (
        "TFLite_operator,NNG Operator,SRAM Usage,Op Cycles,NPU,SRAM AC,DRAM AC,OnFlash AC,OffFlash AC,MAC Count,Name\n"
    )
    rows = "".join(f"SOFTMAX,Mul,8,1.5,1.0,1.5,0.0,0.0,0.0,0,output_mul{n}\n" for n in range(4))
    (tmp_path / "layers.csv").write_text(header + rows, encoding="utf-8")
    found = VelaLayers().read(tmp_path / "layers.csv")
    assert found.value("cycles") == 6
    assert [op.bound or op.cycles for op in found.ops] == [2, 2, 2, 2]
    assert all(check.holds for check in found.checks)


@pytest.mark.parametrize("tool", ["nowhere", "."])
def test_a_place_without_the_compiler_is_said(tmp_path: Path, tool: str) -> None:
    with pytest.raises(UsageError, match=r"^--tool .*: no vela there; expected the program, or its environment"):
        compile_model(tmp_path / "net.tflite", VelaOptions.of({"tool": str(tmp_path / tool)}))
