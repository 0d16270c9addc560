"""What TensorFlow Lite Micro refuses: reasons are those of its interpreter, in our words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope import api
from opscope.cli import main
from opscope.core.errors import ModelError, UsageError
from opscope.plugins.tflm.support import refusals
from support.models.tflite_build import ModelBuilder, Operator, Type, small_cnn
from support.models.tflm_models import conv, model_file, one_op


def hybrid() -> bytes:
    """Weights in 8 bits under data in floats, as dynamic-range quantisation leaves them."""
    model = small_cnn()
    model.main.tensors[1].type = Type.INT8
    return model.build()


def test_what_it_takes_is_not_refused() -> None:
    assert refusals(model_file(small_cnn().build())) == ()
    assert refusals(conv((1, 8, 8, 3), (4, 3, 3, 3), (1, 8, 8, 4))) == ()


@pytest.mark.parametrize(
    ("code", "kind", "reason", "instead"),
    [
        (Operator.RANGE, Type.FLOAT32, "no kernel", "the values as a constant"),
        (Operator.FLOOR_DIV, Type.INT32, "i32 data", "data in f32"),
        (Operator.DEQUANTIZE, Type.FLOAT16, "f16 data", "weights in f32 or i8: convert without float16 quantisation"),
        ("mine", Type.FLOAT32, "a custom operator without a kernel", "operators of TensorFlow Lite alone"),
        (
            "ethos-u",
            Type.INT8,
            "code for an Ethos-U, which this runtime has no driver for",
            "the file before Vela compiled it",
        ),
    ],
)
def test_an_operator_is_refused_with_a_reason_and_a_way_out(
    code: int | str, kind: int, reason: str, instead: str
) -> None:
    (found,) = refusals(one_op(code, [(1, 4), (1, 4)], (1, 4), types=[kind, kind], made=kind))
    assert (found.reason, found.instead, found.number) == (reason, instead, 0)


def test_code_for_an_npu_runs_where_its_driver_is() -> None:
    file = one_op("ethos-u", [(1, 4), (1, 4)], (1, 4))
    assert refusals(file, has_npu=True) == ()


def test_a_report_for_such_a_chip_refuses_hybrid_weights(tmp_path: Path) -> None:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(hybrid())
    words = (
        r"hybrid\.tflite: TensorFlow Lite Micro does not run it: CONV_2D \(operator 0\): f32 data with i8 weights: a "
        r"hybrid form, expected full integer quantisation, with a representative data set, or none at all$"
    )
    with pytest.raises(ModelError, match=words):
        api.report(path, "max32690-cm4")


def test_a_report_has_the_tail_by_part_and_the_whole_file_in_flash(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(small_cnn().build())
    memory = api.report(path, "max32690-cm4", advise=False).memory
    assert memory.arena_bytes + memory.scratch_bytes == 1024  # the interpreter's head; no kernel asks for scratch
    assert sum(part.size_bytes for part in memory.runtime_parts) == memory.runtime_bytes
    assert memory.uses[1].required_bytes == path.stat().st_size
    assert memory.uses[0].required_bytes == memory.peak_bytes


def test_another_planner_is_asked_for_by_name(tmp_path: Path) -> None:
    """Three tensors that greedy placing by size leaves a gap between."""
    path = tmp_path / "model.tflite"
    path.write_bytes(small_cnn().build())
    other = api.report(path, "max32690-cm4", advise=False, planner="best").memory.other_plan
    assert other is not None
    assert (other.planner, other.saved_bytes >= 0) == ("best", True)
    same = api.report(path, "max32690-cm4", advise=False, planner="tflm").memory.other_plan
    assert same is not None
    assert same.saved_bytes == 0
    with pytest.raises(UsageError, match=r"^--planner mine: not known; expected one of best, tflm$"):
        api.report(path, "max32690-cm4", advise=False, planner="mine")


def test_given_shapes_are_planned_on_the_graph_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(small_cnn(signature=True).build())
    memory = api.report(path, "max32690-cm4", advise=False, batch=2).memory
    assert memory.runtime_parts == ()
    assert memory.planner.endswith("by its rules on the graph: greedy by size")


def test_a_file_without_operators_has_a_tail() -> None:
    model = ModelBuilder()
    model.main.outputs = [model.main.input("x", (1, 4))]
    assert refusals(model_file(model.build())) == ()


def test_the_vendor_s_check_names_what_the_interpreter_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(hybrid())
    assert main(["cfsai", "compat", "--model", str(path), "--target", "MAX32690.CM4"]) == 0
    said = capsys.readouterr().out
    assert "NOT COMPATIBLE as it is" in said
    assert "operator CONV_2D (layers 0): f32 data with i8 weights: a hybrid form; consider full integer" in said


def test_the_vendor_s_json_has_names_types_time_and_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    model, profile, report = (tmp_path / name for name in ("net.tflite", "profile.json", "report.json"))
    model.write_bytes(small_cnn().build())
    words = ["--model", str(model), "--target", "MAX32690.CM4", "--json-file", str(profile)]
    assert main(["cfsai", "profile", *words]) == 0
    found = json.loads(profile.read_text(encoding="utf-8"))
    assert found["info"]["timestamp"] == "1970-01-02T00:00:00Z"
    assert (found["model_summary"]["model_name"], found["model_summary"]["data_type"]) == ("net.tflite", "float32")
    flat = ["report", str(model), "--target", "max32690-cm4", "--compat", "cfs", "--format", "json", "-o", str(report)]
    assert main(flat) == 0
    first = json.loads(report.read_text(encoding="utf-8"))["layers"][0]
    assert (first["dtype"], first["live_bytes"], first["output_shapes"]) == ("f32", 256, [[1, 4, 4, 4]])
    assert [4, 3, 3, 3] in first["kernel_shapes"]
