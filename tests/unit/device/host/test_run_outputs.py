"""Outputs that are no tensors: the form in which they are saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import opscope
from opscope import api
from opscope.core.errors import UsageError
from opscope.device.host.outputs import Output, saved_form
from support.models.onnx_models import classifier, graph, model, value

SAME_KEYS: Output = [{"cat": 0.25, "dog": 0.75}, {"cat": 0.5, "dog": 0.5}]


def plain(form: object) -> object:
    return {name: array.tolist() for name, array in form.items()} if isinstance(form, dict) else form.tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (np.array([1, 2]), [1, 2]),
        (np.array([["a", "bc"]], object), [["a", "bc"]]),
        (np.array([b"a", b"\xff"], object), [b"a", b"\xff"]),
        (SAME_KEYS, {"keys": ["cat", "dog"], "values": [[0.25, 0.75], [0.5, 0.5]]}),
        ({3: 0.5, 4: 0.25}, {"keys": [3, 4], "values": [0.5, 0.25]}),
        ([{1: 0.5}, {2: 0.5}], {"0.keys": [1], "0.values": [0.5], "1.keys": [2], "1.values": [0.5]}),
        ([np.zeros(2), np.array(["x"], object)], {"0": [0.0, 0.0], "1": ["x"]}),
        ([], {}),
    ],
)
def test_every_kind_of_output_has_a_form_without_objects(output: Output, expected: object) -> None:
    form = saved_form(output)
    assert plain(form) == expected
    assert all(array.dtype != object for array in (form.values() if isinstance(form, dict) else [form]))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "^holds no value; expected a tensor, a map or a sequence$"),
        (np.array([None, 1], object), "^holds elements that are neither numbers nor strings; expected those$"),
        ({1: np.zeros(2), 2: np.zeros(3)}, "^holds elements of different shapes; expected one shape$"),
    ],
)
def test_what_has_no_form_says_why(output: Output, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        saved_form(output)


def labels(path: Path) -> Path:
    """Strings in, strings out; a sequence of both; an optional that is empty."""
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["x"],
            ["y"],
            domain="ai.onnx.ml",
            keys_strings=["a", "b"],
            values_strings=["p", "qq"],
            default_string="other",
        ),
        helper.make_node("SequenceConstruct", ["x", "y"], ["both"]),
        helper.make_node("Optional", [], ["nothing"], type=number),
    ]
    strings = TensorProto.STRING
    outputs = [
        value("y", [2], strings),
        helper.make_tensor_sequence_value_info("both", strings, None),
        helper.make_value_info("nothing", helper.make_optional_type_proto(number)),
    ]
    onnx.save(model(graph(nodes, [value("x", [2], strings)], outputs), **{"ai.onnx.ml": 3}), str(path))
    return path


def test_maps_are_saved_as_keys_and_values(tmp_path: Path) -> None:
    api.compile_model(classifier(tmp_path / "m.onnx"), "aic100-std", tmp_path / "b", cores=1)
    ran = api.run(tmp_path / "b", save_outputs=True, out_dir=tmp_path, num_iter=1)
    assert {path.name for path in ran.written} == {"output-label.npy", "output-chances.npz"}
    with np.load(tmp_path / "output-chances.npz", allow_pickle=False) as saved:
        assert saved["keys"].tolist() == [0, 1, 2]
        assert saved["values"].shape == (3, 3)
        assert (saved["values"].argmax(1) == np.load(tmp_path / "output-label.npy")).all()


def test_strings_go_in_and_out_and_what_holds_nothing_is_noted(tmp_path: Path) -> None:
    api.compile_model(labels(tmp_path / "m.onnx"), "aic100-std", tmp_path / "b", cores=1)
    np.save(tmp_path / "x.npy", np.array(["b", "c"]))
    ran = api.run(tmp_path / "b", inputs={"x": tmp_path / "x.npy"}, save_outputs=True, out_dir=tmp_path, num_iter=1)
    assert np.load(tmp_path / "output-y.npy").tolist() == ["qq", "other"]
    with np.load(tmp_path / "output-both.npz") as saved:
        assert [saved[name].tolist() for name in ("0", "1")] == [["b", "c"], ["qq", "other"]]
    assert "output nothing is not saved: holds no value; expected a tensor, a map or a sequence" in ran.notes
    api.run(tmp_path / "b", save_outputs=True, out_dir=tmp_path, num_iter=1)  # made-up strings
    assert np.load(tmp_path / "output-y.npy").tolist() == ["other", "other"]
    with pytest.raises(UsageError, match=r"^input 'x': found float64 of 2; expected x \(strings of 2\)$"):
        api.run(tmp_path / "b", inputs={"x": np.zeros(2)}, num_iter=1)


def test_a_session_returns_what_the_runtime_does(tmp_path: Path) -> None:
    with opscope.Session(classifier(tmp_path / "m.onnx"), target="aic100-std") as session:
        found = session.run({"x": np.zeros((3, 2), np.float32)})
    chances = found["chances"]
    assert isinstance(chances, list)
    assert [set(row) for row in chances] == [{0, 1, 2}] * 3


def test_maps_of_several_slices_of_a_batch_are_one_list(tmp_path: Path) -> None:
    with opscope.Session(classifier(tmp_path / "m.onnx"), target="aic100-std", batch=6) as session:
        found = session.run({"x": np.zeros((6, 2), np.float32)})
    assert np.asarray(found["label"]).shape == (6,)
    assert isinstance(found["chances"], list)
    assert len(found["chances"]) == 6
