"""Setting the batch, and saying what cannot be set."""

from __future__ import annotations

from pathlib import Path

import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from opscope.core.errors import UsageError
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
    assert graph.notes[0].text.startswith("batch 5 instead of 1: set in all tensors ")


def test_a_stored_batch_is_replaced_in_proportion(tmp_path: Path) -> None:
    graph = small_cnn(batch=4).graph(tmp_path, batch=1)
    assert shapes(graph)["conv"] == (1, 4, 4, 4)
    assert shapes(graph)["w1"] == (4, 3, 3, 3)  # a constant keeps its leading 4


def test_flattened_tensors_follow_only_where_the_signature_says_so(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 4, 2), signature=(-1, 4, 2))
    flat = model.main.tensor("flat", (4, 2), signature=(-1, 2))
    fixed = model.main.tensor("fixed", (1, 8))
    model.main.op(Operator.RESHAPE, [x], [flat])
    model.main.op(Operator.RESHAPE, [x], [fixed])
    assert shapes(model.graph(tmp_path, batch=3)) == {"x": (3, 4, 2), "flat": (12, 2), "fixed": (1, 8)}


def test_a_requested_shape_may_change_the_batch(tmp_path: Path) -> None:
    model = small_cnn(signature=True)
    model.signature("serving_default", 0, {"picture": 0})
    assert shapes(model.graph(tmp_path, shapes={"image": (2, 8, 8, 3)}))["probabilities"] == (2, 10)
    assert shapes(model.graph(tmp_path, shapes={"picture": (2, 8, 8, 3)}))["probabilities"] == (2, 10)
    assert shapes(model.graph(tmp_path, shapes={"image": (1, 8, 8, 3)}))["probabilities"] == (1, 10)


def test_any_other_shape_is_refused_with_what_can_be_changed(tmp_path: Path) -> None:
    problem = (
        r"model\.tflite: input 'image' has shape \[1, 8, 8, 3\], not \[1, 16, 16, 3\]; TensorFlow Lite files fix "
        r"their shapes: export the model again, or change only dimension 0, with --batch, of 'image' \[1, 8, 8, 3\]$"
    )
    with pytest.raises(UsageError, match=problem):
        small_cnn().graph(tmp_path, shapes={"image": (1, 16, 16, 3)})


def test_an_input_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no input is named 'picture'; inputs are 'image' \[1, 8, 8, 3\]$"):
        small_cnn().graph(tmp_path, shapes={"picture": (1, 8, 8, 3)})


def test_a_batch_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="batch 0; expected 1 or more"):
        small_cnn().graph(tmp_path, batch=0)


def test_two_batches_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inputs share one"):
        small_cnn().graph(tmp_path, batch=2, shapes={"image": (3, 8, 8, 3)})


def test_inputs_without_a_common_batch_are_listed(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.input("threshold", (7,))
    with pytest.raises(
        UsageError, match=r"share their leading extent; they are 'image' \[1, 8, 8, 3\], 'threshold' \[7\]"
    ):
        model.graph(tmp_path, batch=2)


def test_a_batch_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (2, 4), signature=(-1, 4))
    model.main.op(Operator.RESHAPE, [x], [model.main.tensor("odd", (1, 8), signature=(-1, 8))])
    with pytest.raises(UsageError, match="tensor 'odd': leading extent 1 cannot go from batch 2 to 3"):
        model.graph(tmp_path, batch=3)


def test_open_extents_other_than_the_batch_are_noted(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("tokens", (1, 1), signature=(-1, -1))
    model.main.op(Operator.ABS, [x], [model.main.tensor("y", (1, 1), signature=(-1, -1))])
    assert model.graph(tmp_path).notes[0].text == "the file leaves open 'tokens' dimension 1 (read as 1)"
