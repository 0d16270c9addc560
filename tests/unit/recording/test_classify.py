"""Words of foreign files and of old runs are read once, in one module; what no word tells stays unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from opscope import api
from opscope.core.meaning import Carries, Direction, Does
from opscope.core.provenance import Provenance
from opscope.core.words import carries_of, carries_of_copy, does_of_call, does_of_kernel, does_of_type, engine_of_lane
from opscope.graph.kinds import what_kind_does
from opscope.program.program import Operand, OpInfo
from opscope.readers.onnx.ops import DOMAINS
from opscope.readers.tflite.schema import BUILTINS
from opscope.recording.build import to_run
from opscope.recording.classify import classified_summary, does_of_command, does_of_work, operand_of
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import OpRecord, Placed, Recording, empty_trace
from opscope.recording.run import Run
from opscope.recording.summary import HostStage, LaneTotal, Latency, Summary
from opscope.zoo import Recipe, make
from support.recording.analyse_build import analyse
from support.recording.run_build import write_run


@pytest.mark.parametrize(
    "word", ["Conv", "FULLY_CONNECTED", "MatMul", "Gemm", "Softmax", "Relu6", "ConvTranspose", "Add"]
)
def test_ordinary_ops_compute(word: str) -> None:
    assert does_of_work(word) is Does.COMPUTE


@pytest.mark.parametrize(
    "word",
    ["Squeeze", "RESHAPE", "Transpose", "StridedSlice", "Concat", "Gather", "Split", "Pad", "Cast"],
)
def test_ops_that_only_move_or_reshape_data_compute_nothing(word: str) -> None:
    assert does_of_work(word) is Does.LAYOUT
    assert does_of_work("node_12", word) is Does.LAYOUT


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        *((name, rule.kind) for table in DOMAINS.values() for name, rule in table.items()),
        *((builtin.name, builtin.kind) for builtin in BUILTINS),
    ],
)
def test_words_of_a_type_say_what_its_kind_does(type_: str, kind: str) -> None:
    """Of every type that a reader knows. What runs other ops, and what no kind describes, no word has to tell."""
    does, told = what_kind_does(kind), does_of_type(type_)
    if does is Does.SYNC:
        assert told is Does.UNKNOWN
    elif does is not Does.UNKNOWN:
        assert told is does


def test_the_kind_of_an_op_is_asked_before_its_type_and_its_type_before_its_name() -> None:
    assert does_of_work("gelu", "FusedThing", "transpose") is Does.LAYOUT
    assert does_of_work("/block_start/Conv", "Conv") is Does.COMPUTE
    assert does_of_work("/pack/MatMul", "MatMul") is Does.COMPUTE
    assert does_of_work("/copy_head/7") is Does.LAYOUT
    assert does_of_work("relu_1", "frobnicate") is Does.UNKNOWN
    assert does_of_work("relu_1", "TENSOR_TRANS") is Does.LAYOUT


def test_a_kernel_tells_more_than_the_op_that_it_ran_for_and_a_name_of_that_op_tells_nothing() -> None:
    op = OpInfo("/pack/MatMul", "MatMul", "", "")
    assert does_of_command("nchwToNhwcKernel", op) is Does.LAYOUT
    assert does_of_command("/pack/MatMul_kernel_time", op) is Does.COMPUTE
    assert does_of_command("frobnicate", op) is Does.COMPUTE
    assert does_of_command("transpose", OpInfo("t", "MatMul", "matmul", "")) is Does.LAYOUT
    copy = OpInfo("aten::contiguous", "", "identity", "")
    assert does_of_command("vectorized_elementwise_kernel", copy) is Does.LAYOUT


@pytest.mark.parametrize(
    "word", ["frobnicate", "triton_poi_fused_clone_0", "nchwToNhwcKernel", "indexSelectLargeIndex"]
)
def test_a_kernel_computes_only_where_a_word_says_so(word: str) -> None:
    assert does_of_kernel(word) is not Does.COMPUTE


@pytest.mark.parametrize(
    "word",
    [
        "ampere_sgemm_128x64_tn",
        "void cudnn::bn_fw_inf_1C11_kernel_NCHW",
        "void at::native::vectorized_elementwise_kernel<4>",
        "flash_fwd_kernel",
        "fmha_cutlassF_f16_aligned",
        "nvjet_hsh_128x256_64x4",
        "triton_poi_fused_3",
        "Cijk_Ailk_Bljk_HHS_BH",
        "elementadd",
        "aicmulsplat",
    ],
)
def test_well_known_kernels_compute(word: str) -> None:
    assert does_of_kernel(word) is Does.COMPUTE


def test_starts_waits_and_the_flush_of_statistics_are_told_apart() -> None:
    words = ("dma_start", "aicinputsemaphoreinc", "aicendcyclestats")
    assert [does_of_work(word) for word in words] == [Does.LAUNCH, Does.SYNC, Does.STATS]
    assert [does_of_call(word) for word in ("input transfer", "device queue", "submit")] == [
        Does.MOVE,
        Does.SYNC,
        Does.HOST,
    ]


def test_copies_between_host_and_device_are_no_links_between_devices() -> None:
    assert carries_of_copy("Memcpy HtoD (Pageable -> Device)") is Carries.HOST
    assert carries_of_copy("Memcpy PtoP") is Carries.LINK
    assert carries_of_copy("Memcpy DtoD") is Carries.UNKNOWN
    assert [carries_of(name) for name in ("DDR read", "DDR write", "multicast", "P2P")] == [
        Carries.READ,
        Carries.WRITE,
        Carries.MULTICAST,
        Carries.LINK,
    ]


@pytest.mark.parametrize(("lane", "name"), [("HVX t3", "HVX"), ("stream 7", "stream"), ("HMX", "HMX"), ("7", "7")])
def test_a_lane_belongs_to_the_engine_without_the_number_of_its_thread(lane: str, name: str) -> None:
    assert engine_of_lane(lane) == name


def run_with(*lanes: LaneTotal) -> Run:
    return to_run(Recording("f", Provenance.MEASURED, lanes=lanes), command=(), created="", sha256=None)


@pytest.mark.parametrize(("name", "told"), [("stream 7", ("summary",)), ("stream", ())])
def test_only_a_lane_that_is_not_an_engine_by_itself_has_its_engine_told_from_words(
    name: str, told: tuple[str, ...]
) -> None:
    run = run_with(LaneTotal(0, 0, name, 5, None, 5))
    assert [lane.engine for lane in run.summary.lanes] == ["stream"]
    assert run.info.classified == told


def test_an_engine_that_a_source_tells_is_not_told_from_words() -> None:
    run = run_with(LaneTotal(0, 0, "unit 0", 5, None, 5, engine="unit 0"), LaneTotal(0, 0, "unit 1", 5, None, 5))
    assert [lane.engine for lane in run.summary.lanes] == ["unit 0", "unit"]


def test_lanes_of_a_run_of_old_have_the_engine_that_their_name_tells() -> None:
    summary = run_with(LaneTotal(0, 0, "HVX t3", 5, None, 5)).summary
    old = replace(summary, lanes=tuple(replace(lane, engine="") for lane in summary.lanes))
    assert classified_summary(old, ()) == summary


def test_operands_of_old_runs_are_read_from_their_text() -> None:
    memories: dict[str, int] = {}
    found = operand_of("out VTCM Dest a b f16 <8 x 128> 2KB", memories)
    assert found == Operand(Direction.OUT, "Dest", "a b", 0, "f16", (8, 128), 2048)
    assert memories == {"VTCM": 0}


@pytest.mark.parametrize("shape", ["8x 8", "8 x", "9" * 5000])
def test_a_text_that_makes_no_sense_is_no_operand(shape: str) -> None:
    assert operand_of(f"in DDR Src weight f16 <{shape}>", {}) is None


def read_back(run: Run, folder: Path) -> Run:
    write_run(run, folder)
    return read_run(folder)


def test_a_run_of_old_says_the_same_and_that_it_was_told_from_words(tmp_path: Path) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    folder = tmp_path / "kws.run"
    api.profile(tmp_path / "kws.onnx", "aic100-std", options={"cores": 2}, run=folder)
    now = read_run(folder)
    for name in ("lanes", "routes", "operands"):
        (folder / f"{name}.parquet").unlink()
    for name, columns in (("spans", ["does", "route"]), ("commands", ["does", "detail"])):
        table = pq.ParquetFile(folder / f"{name}.parquet").read()
        pq.write_table(table.drop_columns(columns), folder / f"{name}.parquet")
    old = read_run(folder)
    assert (now.info.classified, now.info.classified_rows) == ((), {})
    rows = old.info.classified_rows
    assert tuple(rows) == old.info.classified == ("commands", "routes", "lanes", "spans")
    assert (rows["routes"], rows["lanes"]) == (len(old.commands.routes), len(old.trace.lanes))
    assert 0 < rows["commands"] <= len(old.commands.rows)
    assert read_back(old, tmp_path / "again").info.classified_rows == rows
    one, other = analyse(now), analyse(old)
    assert other.bound == one.bound
    assert {part.cause: round(part.share, 2) for part in other.breakdown} == {
        part.cause: round(part.share, 2) for part in one.breakdown
    }
    assert any(f"told from their names, in commands ({rows['commands']:,} rows)" in note for note in other.notes)


def test_stages_of_old_runs_mean_what_ours_do_and_those_of_tools_what_their_words_say() -> None:
    host = tuple(HostStage(name, 1) for name in ("input transfer", "device queue", "device", "memory wait", "RPC"))
    found = classified_summary(Summary(Latency(5, None, None, "measured"), None, 1, host=host), ()).host
    assert [(stage.party.value, stage.does) for stage in found] == [
        ("driver", "move"),
        ("queue", "sync"),
        ("device", "host"),
        ("unknown", "sync"),
        ("unknown", "host"),
    ]
    assert classified_summary(Summary(Latency(5, None, None, "measured"), None, 1, host=found), ()).host == found


def placed_run(*ops: OpRecord) -> Run:
    recording = Recording("tool", Provenance.MEASURED, empty_trace(Provenance.MEASURED), ops)
    return to_run(recording, command=(), created="", sha256=None)


def test_an_engine_that_is_called_like_a_cpu_is_none_where_the_source_says_who_runs_an_op() -> None:
    on_npu = OpRecord("a", "Conv", time_ns=90, engines=("CPU-coupled NPU",), placed=Placed.ACCELERATOR)
    on_cpu = OpRecord("b", "Conv", time_ns=10, engines=("core complex",), placed=Placed.CPU)
    known = replace(on_npu, does=Does.COMPUTE), replace(on_cpu, does=Does.COMPUTE)
    for ops, told in (((on_npu, on_cpu), ("summary",)), (known, ())):
        run = placed_run(*ops)
        assert {op.name: op.on_cpu for op in run.summary.ops} == {"a": False, "b": True}
        assert run.info.classified == told  # what they do is told from words, who runs them is not
        found = analyse(run)
        assert (found.bound, [each.ops for each in found.findings if each.id == "cpu-fallback"]) == (
            "compute",
            [("b",)],
        )


def test_who_runs_an_op_is_told_from_the_word_for_its_engine_where_nobody_says_it_and_is_marked() -> None:
    run = placed_run(
        OpRecord("a", "Conv", time_ns=90, engines=("NPU",), does=Does.COMPUTE),
        OpRecord("b", "Conv", time_ns=10, engines=("CPU",), does=Does.COMPUTE),
    )
    assert {op.name: op.on_cpu for op in run.summary.ops} == {"a": False, "b": True}
    assert run.info.classified == ("summary",)


@pytest.mark.parametrize(("on_cpu", "told"), [(True, ()), (None, ("summary",))])
def test_what_somebody_put_in_runs_where_its_source_says(on_cpu: bool | None, told: tuple[str, ...]) -> None:
    run = placed_run(
        OpRecord("a", "Conv", time_ns=90, engines=("NPU",), does=Does.COMPUTE, placed=Placed.ACCELERATOR),
        OpRecord("b", "Cast", engines=("CPU",), does=Does.LAYOUT, placed=Placed.INSERTED, on_cpu=on_cpu),
    )
    assert {op.name: op.on_cpu for op in run.summary.ops} == {"a": False, "b": True}
    assert run.info.classified == told
