"""Measurements: rows of CSV files are read or refused with one line; repeats count once."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.calibration.measurements import Measurement, read_measurements, repeated_once
from opscope.core.errors import ImportFileError, ProfilerError


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
        ("", "line 1: no column 'model'; expected columns model, latency_ms"),
        ("model,ms\nnet,1\n", "line 1: no column 'latency_ms'; expected columns model, latency_ms"),
        ("model,latency_ms\n", "no rows; expected at least one measurement"),
        *(
            (f"model,latency_ms\nnet,{word}\n", f"line 2: latency_ms is '{word}'; expected milliseconds above 0")
            for word in ("0", "-1", "nan", "inf", "1e300", "fast", "", "1e9")
        ),
        ("model,latency_ms\nnet\n", "line 2: latency_ms is ''; expected milliseconds above 0"),
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
        ("model,latency_ms\n\"net," + "x" * 200_000 + "\n", "not CSV text (field larger than field limit"),
    ],
)  # fmt: skip
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
    assert [(row.batch, row.seconds) for row in repeated_once(rows)] == [(None, 0.003), (2, 0.009)]
