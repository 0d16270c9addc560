"""The user's extents: shapes, sizes of named dimensions, the batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import helper

from opscope.core.errors import ModelError
from opscope.readers.onnx import read_onnx
from support.models.onnx_models import graph, model, save, shape_of, value

node = helper.make_node


def dynamic(folder: Path) -> Path:
    nodes = [node("Relu", ["x"], ["h"]), node("Add", ["h", "y"], ["z"])]
    inputs = [value("x", ["batch", 3]), value("y", ["batch", "width"])]
    return save(folder, model(graph(nodes, inputs, [value("z", ["batch", 3])], values=[value("h", ["batch", 3])])))


def test_one_symbol_is_set_everywhere(tmp_path: Path) -> None:
    read = read_onnx(dynamic(tmp_path), shapes={"y": (5, 3)})
    assert [tensor.shape for tensor in read.tensors] == [(5, 3)] * 4


def test_the_batch_sets_every_open_first_dimension(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"1 dimension is open: 'width' .*expected its size, for example --shape y=7x"):
        read_onnx(dynamic(tmp_path), batch=7)
    read = read_onnx(dynamic(tmp_path), batch=7, shapes={"y": (7, 3)})
    assert shape_of(read, "h") == (7, 3)


def test_a_dimension_can_be_set_by_its_name(tmp_path: Path) -> None:
    read = read_onnx(dynamic(tmp_path), shapes={"batch": (4,), "width": (3,)})
    assert [tensor.shape for tensor in read.tensors] == [(4, 3)] * 4


def test_a_batch_and_another_size_of_its_dimension_are_refused(tmp_path: Path) -> None:
    assert shape_of(read_onnx(dynamic(tmp_path), batch=4, shapes={"batch": (4,), "width": (3,)}), "h") == (4, 3)
    problem = "dimension 'batch': was given as 4, and the batch, which it is, as 2; expected one of them"
    with pytest.raises(ModelError, match=problem):
        read_onnx(dynamic(tmp_path), batch=2, shapes={"batch": (4,), "width": (3,)})


def test_an_input_goes_before_a_dimension_of_the_same_name(tmp_path: Path) -> None:
    body = graph([node("Relu", ["n"], ["y"])], [value("n", ["n", 3])], [value("y")])
    read = read_onnx(save(tmp_path, model(body)), shapes={"n": (4, 3)})
    assert shape_of(read, "y") == (4, 3)


def test_one_symbol_with_two_sizes_is_noted_and_stands_for_neither(tmp_path: Path) -> None:
    """As ONNX Runtime does, which compares numbers with what it is fed, and no names."""
    nodes = [node("Relu", ["x"], ["a"]), node("Relu", ["y"], ["b"])]
    outputs = [value("a", ["n", 3]), value("b", ["n + 1", 3])]
    body = graph(nodes, [value("x", ["n", 3]), value("y", ["n", 3])], outputs)
    read = read_onnx(save(tmp_path, model(body)), shapes={"x": (5, 3), "y": (6, 3)})
    assert (shape_of(read, "a"), shape_of(read, "b")) == ((5, 3), (6, 3))
    assert [(note.code, note.text) for note in read.notes] == [
        (
            "repeated-symbol",
            "dimension 'n' is 6 in input 'y' and 5 elsewhere; shapes that the file states with it are not used",
        )
    ]


def test_a_dispute_about_one_symbol_leaves_others_alone(tmp_path: Path) -> None:
    inputs = [value("x", ["n", "height"]), value("y", ["n", 3])]
    nodes = [node("Relu", ["x"], ["a"]), node("Relu", ["y"], ["b"])]
    path = save(tmp_path, model(graph(nodes, inputs, [value("a"), value("b")])))
    with pytest.raises(ModelError, match="2 dimensions are open: dimension 0 of 'x', 'height'"):
        read_onnx(path, shapes={"n": (5,), "y": (6, 3)})


@pytest.mark.parametrize("mark", ["?", "", "-1", "None"])
def test_a_mark_for_unknown_is_no_name(tmp_path: Path, mark: str) -> None:
    """paddle2onnx writes `?` for every open dimension; each is its own."""
    body = graph([node("Relu", ["x"], ["y"])], [value("x", [mark, 3, mark, mark])], [value("y", [mark, 3, mark, mark])])
    read = read_onnx(save(tmp_path, model(body)), shapes={"x": (1, 3, 48, 192)})
    assert shape_of(read, "y") == (1, 3, 48, 192)
    assert read.notes == ()


def test_a_sum_of_symbols_follows_from_its_terms(tmp_path: Path) -> None:
    inputs = [value("a", [1, "past"]), value("b", [1, "new"]), value("mask", [1, "past + new"])]
    body = graph([node("Relu", ["mask"], ["y"])], inputs, [value("y")])
    read = read_onnx(save(tmp_path, model(body)), shapes={"a": (1, 5), "b": (1, 2)})
    assert shape_of(read, "y") == (1, 7)


@pytest.mark.parametrize(
    ("shapes", "batch", "message"),
    [
        (
            {"nope": (1,)},
            None,
            r"no input or dimension is called 'nope'; the model has input 'x': \[batch, 3\], input 'y': ",
        ),
        (
            {"widht": (1,)},
            None,
            r"no input or dimension is called 'widht'; did you mean width\? the model has input 'x'",
        ),
        ({"width": (1, 2)}, None, r"dimension 'width': was given as 1x2; expected one size of 0 or more"),
        ({"x": (1, 2, 3)}, None, r"input 'x': has 2 dimensions \[batch, 3\]; 3 were given"),
        ({"x": (-1, 3)}, None, r"input 'x': was given \[-1, 3\]; expected extents of 0 or more"),
        ({}, 0, r"the batch was given as 0; expected 1 or more"),
        ({"x": (4, 3), "y": (4, 3)}, 2, r"input 'x': was given \[4, 3\], and the batch as 2; expected one of them"),
    ],
)
def test_wrong_extents_are_explained(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], batch: int | None, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        read_onnx(dynamic(tmp_path), shapes=shapes, batch=batch)


def test_an_open_batch_alone_is_read_as_one_and_noted(tmp_path: Path) -> None:
    inputs = [value("x", ["n", 3]), value("state", [2, "n", 4]), value("y", [None, 3])]
    nodes = [node("Add", ["x", "y"], ["z"]), node("Relu", ["state"], ["s"])]
    path = save(tmp_path, model(graph(nodes, inputs, [value("z", ["n", 3]), value("s")])))
    read = read_onnx(path)
    assert (shape_of(read, "z"), shape_of(read, "s")) == ((1, 3), (2, 1, 4))
    assert [(note.code, note.text) for note in read.notes] == [
        ("open-batch", "batch is open in the file; read at batch 1, --batch N for another")
    ]
    asked = read_onnx(path, batch=8)
    assert (shape_of(asked, "z"), shape_of(asked, "s"), asked.notes) == ((8, 3), (2, 8, 4), ())


def test_a_batch_that_the_request_leaves_open_is_one(tmp_path: Path) -> None:
    read = read_onnx(dynamic(tmp_path), shapes={"width": (3,)})
    assert shape_of(read, "z") == (1, 3)
    assert [note.code for note in read.notes] == ["open-batch"]


def test_a_first_dimension_that_is_no_batch_is_asked_for(tmp_path: Path) -> None:
    body = graph([node("Relu", ["x"], ["y"])], [value("x", ["sequence_length", 576])], [value("y")])
    with pytest.raises(ModelError, match="1 dimension is open: 'sequence_length'"):
        read_onnx(save(tmp_path, model(body)))
