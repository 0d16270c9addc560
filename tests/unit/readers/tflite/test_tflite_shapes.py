"""Shapes of the inputs: as stored, as asked for, and what must be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from opscope.core.errors import ModelError, UsageError
from opscope.graph.graph import Graph
from tflite_build import ModelBuilder, Operator, small_cnn


def shapes(graph: Graph) -> dict[str, tuple[int, ...] | None]:
    return {tensor.name: tensor.shape for tensor in graph.tensors}


def test_without_a_batch_shapes_are_as_stored(tmp_path: Path) -> None:
    assert shapes(small_cnn(signature=True).graph(tmp_path))["image"] == (1, 8, 8, 3)


@pytest.mark.parametrize("signature", [True, False])
def test_a_batch_reaches_every_activation_as_it_does_in_litert(tmp_path: Path, signature: bool) -> None:
    model = small_cnn(signature=signature)
    graph = model.graph(tmp_path, batch=5)
    interpreter = Interpreter(
        model_content=model.build(), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.resize_tensor_input(0, (5, 8, 8, 3))
    interpreter.allocate_tensors()
    known = {detail["name"]: tuple(detail["shape"]) for detail in interpreter.get_tensor_details() if detail["name"]}
    assert {name: shape for name, shape in shapes(graph).items() if known[name] != shape} == {}
    assert graph.notes == ()


def test_a_stored_batch_is_replaced_in_proportion(tmp_path: Path) -> None:
    graph = small_cnn(batch=4).graph(tmp_path, batch=1)
    assert shapes(graph)["conv"] == (1, 4, 4, 4)
    assert shapes(graph)["w1"] == (4, 3, 3, 3)  # a constant keeps its leading 4


def test_a_batch_fixed_by_a_constant_gives_way_and_is_noted(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 4, 2), signature=(-1, 4, 2))
    flat = model.main.tensor("flat", (4, 2), signature=(-1, 2))
    fixed = model.main.tensor("fixed", (1, 8))
    model.main.op(Operator.RESHAPE, [x, model.main.constant("rows", (-1, 2))], [flat])
    model.main.op(Operator.RESHAPE, [x, model.main.constant("whole", (1, 8))], [fixed])
    graph = model.graph(tmp_path, batch=3)
    found = shapes(graph)
    assert (found["x"], found["flat"], found["fixed"]) == ((3, 4, 2), (12, 2), (3, 8))
    assert [note.text for note in graph.notes] == [
        "RESHAPE at subgraph 0 operator 1: a constant fixes the stored batch, and a runtime refuses another until it "
        "is exported anew"
    ]


def test_a_requested_shape_may_change_the_batch(tmp_path: Path) -> None:
    model = small_cnn(signature=True)
    model.signature("serving_default", 0, {"picture": 0})
    assert shapes(model.graph(tmp_path, shapes={"image": (2, 8, 8, 3)}))["probabilities"] == (2, 10)
    assert shapes(model.graph(tmp_path, shapes={"picture": (2, 8, 8, 3)}))["probabilities"] == (2, 10)
    assert shapes(model.graph(tmp_path, shapes={"image": (1, 8, 8, 3)}))["probabilities"] == (1, 10)


def test_any_extent_can_be_set_as_in_litert(tmp_path: Path) -> None:
    found = shapes(small_cnn().graph(tmp_path, shapes={"image": (2, 16, 12, 3)}))
    # SAME by 2: 16 and 12 become 8 and 6; the mean takes what is left of the area.
    assert [found[name] for name in ("conv", "depthwise", "mean", "dense")] == [
        (2, 8, 6, 4),
        (2, 8, 6, 4),
        (2, 4),
        (2, 10),
    ]


def test_another_rank_is_refused(tmp_path: Path) -> None:
    problem = r"model\.tflite: input 'image' has 4 dimensions, not \[8, 3\]; inputs are 'image' \[1, 8, 8, 3\]$"
    with pytest.raises(UsageError, match=problem):
        small_cnn().graph(tmp_path, shapes={"image": (8, 3)})


def test_an_extent_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"input 'image' of shape \[1, 0, 8, 3\]; expected extents from 1$"):
        small_cnn().graph(tmp_path, shapes={"image": (1, 0, 8, 3)})


def test_a_shape_that_an_operator_cannot_take_is_refused_at_that_operator(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"subgraph 0 operator 0: CONV_2D: 5 channels cannot be grouped by weights"):
        small_cnn().graph(tmp_path, shapes={"image": (1, 8, 8, 5)})


def test_an_input_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no input is named 'picture'; inputs are 'image' \[1, 8, 8, 3\]$"):
        small_cnn().graph(tmp_path, shapes={"picture": (1, 8, 8, 3)})


def test_a_batch_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="batch 0; expected 1 or more"):
        small_cnn().graph(tmp_path, batch=0)


def test_two_batches_at_once_are_refused(tmp_path: Path) -> None:
    problem = r"batch 2 and an input 'image' of shape \[3, 8, 8, 3\] were asked for; expected one batch$"
    with pytest.raises(UsageError, match=problem):
        small_cnn().graph(tmp_path, batch=2, shapes={"image": (3, 8, 8, 3)})


def test_one_input_by_two_names_has_one_shape(tmp_path: Path) -> None:
    model = small_cnn(signature=True)
    model.signature("serving_default", 0, {"picture": 0})
    with pytest.raises(UsageError, match=r"input 'picture' was given \[2, 8, 8, 3\] and \[1, 8, 8, 3\]$"):
        model.graph(tmp_path, shapes={"image": (1, 8, 8, 3), "picture": (2, 8, 8, 3)})


def test_an_input_without_the_batch_keeps_its_shape(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.input("threshold", (7,))
    found = shapes(model.graph(tmp_path, batch=2))
    assert (found["image"], found["threshold"]) == ((2, 8, 8, 3), (7,))


def test_an_open_batch_alone_is_read_as_stored_with_a_note(tmp_path: Path) -> None:
    model = small_cnn(signature=True)
    assert [note.text for note in model.graph(tmp_path).notes] == [
        "the file leaves the batch open; it is read as 1, and --batch N sets it"
    ]
    assert model.graph(tmp_path, batch=1).notes == ()


def two_open_inputs() -> ModelBuilder:
    model = ModelBuilder()
    tokens = model.main.input("tokens", (1, 1), signature=(-1, -1))
    model.main.input("image", (1, 1, 1, 3), signature=(-1, -1, -1, 3))
    model.main.input("scale", (1,))
    model.main.op(Operator.ABS, [tokens], [model.main.tensor("y", (1, 1), signature=(-1, -1))])
    return model


def test_open_extents_beside_the_batch_are_asked_for_together(tmp_path: Path) -> None:
    problem = (
        r"model\.tflite: input 'tokens' leaves open dimensions 0, 1 of \[-1, -1\]; input 'image' leaves open "
        r"dimensions 0, 1, 2 of \[-1, -1, -1, 3\]; give them with --shape tokens=1xDIM1 --shape image=1xDIM1xDIM2x3$"
    )
    with pytest.raises(ModelError, match=problem):
        two_open_inputs().graph(tmp_path)
    with pytest.raises(ModelError, match=r"give them with --shape image=1xDIM1xDIM2x3$"):
        two_open_inputs().graph(tmp_path, shapes={"tokens": (1, 12)}, batch=1)
    found = shapes(two_open_inputs().graph(tmp_path, shapes={"tokens": (1, 12), "image": (1, 6, 5, 3)}))
    assert (found["y"], found["scale"]) == ((1, 12), (1,))


def test_an_open_vector_is_a_length_and_no_batch(tmp_path: Path) -> None:
    model = ModelBuilder()
    wave = model.main.input("wave", (1,), signature=(-1,))
    model.main.op(Operator.ABS, [wave], [model.main.tensor("y", (1,), signature=(-1,))])
    with pytest.raises(ModelError, match=r"leaves open dimension 0 of \[-1\]; give them with --shape wave=DIM0$"):
        model.graph(tmp_path)
    assert shapes(model.graph(tmp_path, shapes={"wave": (16000,)}))["y"] == (16000,)


def test_an_input_without_any_shape_must_be_given_one(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", None, has_rank=False)
    model.main.inputs = [x]
    model.main.op(Operator.ABS, [x], [model.main.tensor("y", None, has_rank=False)])
    with pytest.raises(ModelError, match=r"input 'x' leaves open its whole shape; give them with --shape x=DIMxDIM…$"):
        model.graph(tmp_path)
    assert shapes(model.graph(tmp_path, shapes={"x": (3, 2)}))["y"] == (3, 2)
