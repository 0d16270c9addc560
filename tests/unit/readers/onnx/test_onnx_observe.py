"""Shapes that only data decide, taken from one run in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from opscope.core.errors import ModelError, UsageError
from opscope.readers.onnx import read_onnx
from support.build import macs_of
from support.models.onnx_models import BOOL, FLOAT, INT64, graph, model, save, shape_of, value, weights, whole

pytest.importorskip("onnxruntime")

node = helper.make_node


def selecting(folder: Path) -> Path:
    """The positive rows of x, times weights: how many there are is in the data."""
    nodes = [
        node("Greater", ["x", "zero"], ["is_positive"]),
        node("NonZero", ["is_positive"], ["places"]),
        node("Squeeze", ["places", "first"], ["rows"]),
        node("Gather", ["table", "rows"], ["kept"]),
        node("MatMul", ["kept", "w"], ["y"]),
    ]
    constants = [helper.make_tensor("zero", FLOAT, [], [0.0]), whole("first", [0]), weights("table", 6, 3)]
    return save(folder, model(graph(nodes, [value("x", ["n"])], [value("y")], [*constants, weights("w", 3, 5)])))


def test_a_shape_decided_by_data_is_that_of_the_run(tmp_path: Path) -> None:
    path = selecting(tmp_path)
    assert shape_of(read_onnx(path, shapes={"x": (6,)}), "y") is None
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, x=np.array([1, -1, 2, 3, -4, -5], np.float32))
    found = read_onnx(path, shapes_from_run=inputs)  # the file tells the shape of x too
    assert shape_of(found, "y") == (3, 5)
    assert macs_of(found) == 3 * 3 * 5
    assert [(note.code, note.text) for note in found.notes] == [
        (
            "shapes-from-run",
            f"shapes, branches and trips of loops are those of one run in ONNX Runtime on the inputs of {inputs}",
        )
    ]


def test_inputs_are_random_but_the_same_every_time(tmp_path: Path) -> None:
    path = selecting(tmp_path)
    found = [read_onnx(path, shapes={"x": (6,)}, shapes_from_run="random") for _ in range(2)]
    assert shape_of(found[0], "y") == shape_of(found[1], "y") is not None


def test_the_branch_that_ran_is_counted(tmp_path: Path) -> None:
    then = graph([node("MatMul", ["x", "w"], ["r"])], [], [value("r")])
    other = graph([node("Relu", ["x"], ["r"])], [], [value("r")])
    nodes = [node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)]
    body = graph(nodes, [value("x", [2, 4]), value("c", [], BOOL)], [value("y")], [weights("w", 4, 4)])
    path = save(tmp_path, model(body))
    for condition, kinds in ((True, ["If", "MatMul"]), (False, ["If", "Relu"])):
        np.savez(tmp_path / "c.npz", c=np.array(condition))
        assert [op.type for op in read_onnx(path, shapes_from_run=tmp_path / "c.npz").ops] == kinds
    assert [note.code for note in read_onnx(path).notes] == ["both-branches"]


def loop(folder: Path, *, grows: bool) -> Path:
    """As many trips as the input says; each appends a row to what it carries, or not."""
    grow = node("Concat", ["t", "row"], ["t1"], axis=0) if grows else node("Identity", ["t"], ["t1"])
    nodes = [
        node("Identity", ["go"], ["on"]),
        grow,
        node("MatMul", ["t1", "w"], ["p"]),
        node("ReduceSum", ["p"], ["s"]),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("t")]
    body = graph(nodes, inputs, [value("on", [], BOOL), value("t1"), value("s")])
    nodes = [node("Loop", ["m", "", "x"], ["y", "sums"], name="L", body=body)]
    constants = [weights("row", 1, 4), weights("w", 4, 4)]
    return save(folder, model(graph(nodes, [value("x", [2, 4]), value("m", [], INT64)], [value("y")], constants)))


@pytest.mark.parametrize(("grows", "rows"), [(False, 2 + 2 + 2), (True, 3 + 4 + 5)])
def test_the_trips_that_ran_are_counted(tmp_path: Path, grows: bool, rows: int) -> None:
    path = loop(tmp_path, grows=grows)
    assert None in {op.trips for op in read_onnx(path).ops}
    np.savez(tmp_path / "m.npz", m=np.array(3))
    found = read_onnx(path, shapes_from_run=tmp_path / "m.npz")
    assert None not in {op.trips for op in found.ops}
    assert macs_of(found) == rows * 4 * 4
    assert shape_of(found, "y") == (5 if grows else 2, 4)


def test_a_run_that_fails_says_what_the_runtime_says(tmp_path: Path) -> None:
    body = graph(
        [node("Gather", ["table", "i"], ["y"])], [value("i", [3], INT64)], [value("y")], [weights("table", 2, 3)]
    )
    path = save(tmp_path, model(body))
    np.savez(tmp_path / "i.npz", i=np.array([0, 1, 7]))
    with pytest.raises(
        ModelError, match=r"ONNX Runtime cannot run it: .*; expected a model that it runs, or --shapes-from-run"
    ):
        read_onnx(path, shapes_from_run=tmp_path / "i.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.zeros(6, np.float32)}, "'z'"),
        ({"x": np.zeros(6, np.float64)}, "'x' is float64; expected float32"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    path = selecting(tmp_path)
    np.savez(tmp_path / "inputs.npz", **arrays)
    with pytest.raises((UsageError, ModelError), match=message):
        read_onnx(path, shapes_from_run=tmp_path / "inputs.npz", shapes={"x": (6,)})


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = selecting(tmp_path)
    for content in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00"):
        (tmp_path / "inputs.npz").write_bytes(content)
        with pytest.raises(UsageError, match=r"inputs\.npz: .*expected an \.npz"):
            read_onnx(path, shapes_from_run=tmp_path / "inputs.npz")
    with pytest.raises(UsageError, match=r"none\.npz: cannot be read .*expected an \.npz of inputs"):
        read_onnx(path, shapes_from_run=tmp_path / "none.npz")
