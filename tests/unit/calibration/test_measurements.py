"""Measurements: rows of CSV files are read or refused with one line; repeats count once."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.calibration.measurements import Measurement, read_measurements, repeated_once
from opscope.core.errors import ImportFileError, ProfilerError
from opscope.graph.graph import Graph
from opscope.graph.work_families import WorkFamily, work_family


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("net.onnx", "other.tflite"):
        (tmp_path / name).write_bytes(b"a model is read later")
    return tmp_path


def read(folder: Path, text: str | bytes) -> list[Measurement]:
    path = folder / "rows.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_measurements([path])


def test_all_columns_are_read(folder: Path) -> None:
    text = "model,latency_ms,chip,precision,batch,cores,shapes\nnet,1.5,a,W8A8,4,2,x=1x3x8x8;y=1x7\n"
    (row,) = read(folder, text)
    assert row == Measurement(
        "rows.csv:2", folder / "net.onnx", 0.0015, "a", "w8a8", 4, {"x": (1, 3, 8, 8), "y": (1, 7)}, 2
    )
    assert row.network == "net"


@pytest.mark.parametrize("word", ["", "float", "fp32", "F16", "float16"])
def test_float_is_no_precision_of_its_own(word: str, folder: Path) -> None:
    assert read(folder, f"model,latency_ms,precision\nnet,1,{word}\n")[0].precision is None


def test_a_mark_of_byte_order_other_line_ends_and_other_columns_are_taken(folder: Path) -> None:
    rows = read(folder, "\ufefflatency_ms,who,model\r\n2,me, other \r\n1e-3,you,net.onnx\r\n")
    assert [(row.model.name, row.seconds) for row in rows] == [("other.tflite", 0.002), ("net.onnx", 1e-6)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: no column 'model'; expected columns model and latency_ms, or op_type"),
        ("model,ms\nnet,1\n", "line 1: no column 'latency_ms'; expected columns model and latency_ms, or op_type"),
        ("model,latency_ms\n", "no rows; expected at least one measurement"),
        *(
            (f"model,latency_ms\nnet,{word}\n", f"line 2: latency_ms is '{word}'; expected a time above 0")
            for word in ("0", "-1", "nan", "inf", "1e300", "fast", "", "1e9")
        ),
        ("model,latency_ms\nnet\n", "line 2: latency_ms is ''; expected a time above 0"),
        ("model,latency_ms\nnot,1\n", "line 2: model 'not' is not in "),
        ("model,latency_ms\n,1\n", "line 2: model '' is not in "),
        ("model,latency_ms\n/,1\n", "line 2: model '/' is not in "),
        ("model,latency_ms\n.,1\n", "line 2: model '.' is not in "),
        ("model,latency_ms,batch\nnet,1,0\n", "line 2: batch is '0'; expected a number above 0"),
        ("model,latency_ms,batch\nnet,1,-2\n", "line 2: batch is '-2'; expected a number above 0"),
        (f"model,latency_ms,batch\nnet,1,{'9' * 6000}\n", "line 2: batch is '999"),
        (f"model,latency_ms\n{'n' * 6000},1\n", "line 2: model 'nnn"),
        ("model,latency_ms\nn\x00t,1\n", "line 2: model 'n"),
        ("model,latency_ms,cores\nnet,1,²\n", "line 2: cores is '²'; expected a number above 0"),
        ("model,latency_ms,shapes\nnet,1,1x3\n", "line 2: shapes is '1x3'; expected NAME=1x3x224x224"),
        ("model,latency_ms,shapes\nnet,1,x=1x\n", "line 2: shapes is 'x=1x'; expected NAME=1x3x224x224"),
        (f"model,latency_ms,shapes\nnet,1,x={'9' * 6000}\n", "line 2: shapes is 'x=999"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "not CSV text ("),
        (b"model,latency_ms\n\xff,1\n", "not CSV text ("),
        ('model,latency_ms\n"net,' + "x" * 200_000 + "\n", "not CSV text (field larger than field limit"),
    ],
)
def test_a_bad_file_is_refused_with_one_line(text: str | bytes, problem: str, folder: Path) -> None:
    with pytest.raises(ImportFileError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'rows.csv'}: ")
    assert problem in message
    assert "\n" not in message
    assert len(message) < 1000


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"no\.csv: cannot be read \(No such file or directory\); expected a CSV"):
        read_measurements([tmp_path / "no.csv"])


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError):
        read_measurements([tmp_path])


def test_rows_of_a_file_in_the_folder_of_the_command_are_refused_alike(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("rows.csv").write_text("model,latency_ms\n,1\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"rows\.csv: line 2: model '' is not in"):
        read_measurements([Path("rows.csv")])


def test_repeats_count_once_with_their_median(folder: Path) -> None:
    rows = read(folder, "model,latency_ms,batch\nnet,1,\nnet,9,2\nnet,1000,\nnet,3,\n")
    found = repeated_once(rows)
    assert [row.batch for row in found] == [None, 2]
    assert [row.seconds for row in found] == pytest.approx([0.003, 0.009])


OPS = "op_type,shapes,dtype,time_ns,chip,cores\n"


def test_rows_of_ops_are_graphs_of_one_op(folder: Path) -> None:
    (row, again) = read(folder, f"{OPS}matmul,4x8;8x16,f16,1500,a,2\nconv,1x8x4x4;8x1x3x3->1x8x4x4,i8,1,,\n")
    assert isinstance(row.model, Graph)
    assert row.seconds == pytest.approx(1.5e-6)
    assert (row.chip, row.cores, row.network) == ("a", 2, "matmul 4x8, 8x16, 4x16")
    assert isinstance(again.model, Graph)
    assert again.model.ops[0].attributes["groups"] == 8
    assert work_family(again.model.ops[0], again.model) is WorkFamily.DEPTHWISE_CONVOLUTION


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("nothing,4x8,f16,1", "op_type is 'nothing'; expected a kind that has a cost"),
        ("lstm,4x8,f16,1", "op_type is 'lstm'; expected a kind that has a cost"),
        ("attention,4x8;4x8;4x8,f16,1", "shapes of an attention do not tell its heads; expected 1x12x128x64"),
        ("add,4x8,f17,1", "dtype is 'f17'; expected one of"),
        ("add,,f16,1", "shapes has no input"),
        ("add,4x0,f16,1", "shapes has '4x0'; expected extents above 0"),
        ("add,999999999x999999999,f16,1", "shapes has '999999999x999999999'; expected at most"),
        (f"add,{'9' * 6000},f16,1", "shapes has '999"),
        ("add,4x8,f16,0", "time_ns is '0'; expected a time above 0"),
        ("conv,1x3x8x8;4x3x3x3,f16,1", "shapes of a convolution has no result"),
        ("conv,8;4x3x3x3->1x4x8x8,f16,1", "shapes of a convolution do not fit each other"),
        ("conv,1x3x8x8;4x3x3x3->8,f16,1", "shapes of a convolution do not fit each other"),
    ],
)
def test_a_bad_row_of_an_op_is_refused_with_one_line(cells: str, problem: str, folder: Path) -> None:
    with pytest.raises(ImportFileError) as caught:
        read(folder, f"{OPS}{cells},,\n")
    assert f"line 2: {problem}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_ops_needs_all_of_its_columns(folder: Path) -> None:
    with pytest.raises(
        ImportFileError, match=r"no column 'time_ns'; expected columns model and latency_ms, or op_type"
    ):
        read(folder, "op_type,shapes,dtype\nadd,4x8,f16\n")


def test_types_and_places_may_be_told_operand_by_operand(folder: Path) -> None:
    (row,) = read(
        folder,
        "op_type,shapes,dtype,time_ns,memory\nmatmul,4x8;8x16->4x16,bf16;bfp8->bf16,1,local;outer->local\n",
    )
    graph = row.model
    assert isinstance(graph, Graph)
    assert [tensor.dtype.label for tensor in graph.tensors] == ["bf16", "bfp8", "bf16"]
    assert (graph.inputs, graph.outputs) == ((), ())


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("bf16;bfp8->bf16,outer", "dtype has 2 inputs and shapes 1; expected as many, or one word"),
        ("bf16->f7,outer", "dtype is 'f7'; expected one of"),
        ("bf16,inner", "memory is 'inner'; expected one of outer, local"),
    ],
)
def test_types_and_places_that_do_not_fit_are_refused(cells: str, problem: str, folder: Path) -> None:
    with pytest.raises(ImportFileError, match=problem):
        read(folder, f"op_type,shapes,dtype,memory,time_ns\nrelu,4x8,{cells},1\n")


def test_ops_of_other_types_or_places_are_no_repeats(folder: Path) -> None:
    text = "op_type,shapes,dtype,memory,time_ns\nrelu,4x8,bf16,outer,1\nrelu,4x8,bfp8,outer,1\nrelu,4x8,bf16,local,1\n"
    rows = read(folder, text)
    assert len(repeated_once(rows)) == 3
    assert len({row.network for row in rows}) == 1  # left out together


def test_a_transposition_by_shapes_keeps_rows_where_they_allow_it(folder: Path) -> None:
    text = "op_type,shapes,dtype,time_ns\n" + "".join(
        f"transpose,{shapes},bf16,1\n" for shapes in ("2x3x5->3x2x5", "2x3x5->2x5x3", "2x3x5->5x2x3")
    )
    graphs = [row.model for row in read(folder, text)]
    orders = [graph.ops[0].attributes.get("permutation") for graph in graphs if isinstance(graph, Graph)]
    assert orders == [(1, 0, 2), (0, 2, 1), None]
