"""Shapes of the inputs: as stored, as asked for, and what must be asked for."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from opscope.core.errors import ModelError, UsageError
from opscope.graph.graph import Graph
from support.models.tflite_build import ModelBuilder, Operator, Type, small_cnn


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
    problem = (
        r"model\.tflite: input 'image' has 4 dimensions, not \[8, 3\]; the model has input 'image': \[1, 8, 8, 3\]$"
    )
    with pytest.raises(UsageError, match=problem):
        small_cnn().graph(tmp_path, shapes={"image": (8, 3)})


def test_an_extent_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"input 'image' of shape \[1, 0, 8, 3\]; expected extents from 1$"):
        small_cnn().graph(tmp_path, shapes={"image": (1, 0, 8, 3)})


def test_a_shape_that_an_operator_cannot_take_is_refused_at_that_operator(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"subgraph 0 operator 0: CONV_2D: 5 channels cannot be grouped by weights"):
        small_cnn().graph(tmp_path, shapes={"image": (1, 8, 8, 5)})


def test_an_input_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no input is named 'picture'; the model has input 'image': \[1, 8, 8, 3\]$"):
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
        "batch is open in the file; read at batch 1, --batch N for another"
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
        r"model\.tflite: 5 dimensions are open: dimension 0 of 'tokens', dimension 1 of 'tokens', "
        r"dimension 0 of 'image', dimension 1 of 'image', dimension 2 of 'image' "
        r"\(input 'tokens': \[\?, \?\], input 'image': \[\?, \?, \?, 3\]\); "
        r"expected their sizes, for example --shape tokens=1x16000 --shape image=1x224x224x3$"
    )
    with pytest.raises(ModelError, match=problem):
        two_open_inputs().graph(tmp_path)
    with pytest.raises(ModelError, match=r"for example --shape image=1x224x224x3$"):
        two_open_inputs().graph(tmp_path, shapes={"tokens": (1, 12)}, batch=1)
    found = shapes(two_open_inputs().graph(tmp_path, shapes={"tokens": (1, 12), "image": (1, 6, 5, 3)}))
    assert (found["y"], found["scale"]) == ((1, 12), (1,))


def test_an_open_vector_is_a_length_and_no_batch(tmp_path: Path) -> None:
    model = ModelBuilder()
    wave = model.main.input("wave", (1,), signature=(-1,))
    model.main.op(Operator.ABS, [wave], [model.main.tensor("y", (1,), signature=(-1,))])
    problem = r"1 dimension is open: dimension 0 of 'wave' \(input 'wave': \[\?\]\); expected its size, for example "
    with pytest.raises(ModelError, match=problem + "--shape wave=16000$"):
        model.graph(tmp_path)
    assert shapes(model.graph(tmp_path, shapes={"wave": (16000,)}))["y"] == (16000,)


def test_an_open_vector_of_strings_is_a_batch(tmp_path: Path) -> None:
    model = ModelBuilder()
    text = model.main.input("text", (1,), Type.STRING, signature=(-1,))
    model.main.op("tokenize", [text], [model.main.tensor("y", None, has_rank=False)])
    graph = model.graph(tmp_path)
    assert shapes(graph) == {"text": (1,), "y": None}
    assert graph.notes[0].code == "open-batch"


def test_strings_without_any_shape_are_left_unknown(tmp_path: Path) -> None:
    model = ModelBuilder()
    text = model.main.tensor("text", None, Type.STRING, has_rank=False)
    model.main.inputs = [text]
    model.main.op("tokenize", [text], [model.main.tensor("y", (2,))])
    (x, y) = model.graph(tmp_path).tensors
    assert (x.shape, x.unknown_because, y.shape) == (None, "the file does not give it", (2,))


def test_an_input_without_any_shape_must_be_given_one(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", None, has_rank=False)
    model.main.inputs = [x]
    model.main.op(Operator.ABS, [x], [model.main.tensor("y", None, has_rank=False)])
    problem = r"1 dimension is open: all of 'x' \(input 'x': no shape in the file\); expected its size, for example "
    with pytest.raises(ModelError, match=problem + "--shape x=1x16000$"):
        model.graph(tmp_path)
    assert shapes(model.graph(tmp_path, shapes={"x": (3, 2)}))["y"] == (3, 2)


@pytest.mark.parametrize(
    ("code", "weights", "dtype", "expected"),
    [
        (Operator.CONV_2D, (4, 3, 3, 6), Type.FLOAT32, "1x224x224x6"),
        (Operator.FULLY_CONNECTED, (5, 40), Type.FLOAT32, "1x100x40"),
        (Operator.FULLY_CONNECTED, (5, 40), Type.FLOAT32, "1x40"),
        (Operator.GATHER, (5, 40), Type.INT32, "1x128"),
        (Operator.MUL, (1,), Type.FLOAT32, "1x16000"),
        (Operator.ADD, (1,), Type.FLOAT32, "1x64x64x64x3"),
    ],
)
def test_suggested_sizes_suit_what_reads_the_input(
    tmp_path: Path, code: int, weights: tuple[int, ...], dtype: int, expected: str
) -> None:
    model = ModelBuilder()
    rank = expected.count("x") + 1
    x = model.main.input("x", (1,) * rank, dtype, signature=(-1,) * rank)
    scaled, y = (model.main.tensor(name, (1,) * rank, signature=(-1,) * rank) for name in ("scaled", "y"))
    model.main.op(Operator.ABS, [x], [scaled])
    constant = model.main.tensor("w", weights, data=bytes(4 * prod(weights)))
    model.main.op(code, [scaled, constant], [y])
    with pytest.raises(ModelError, match=f"for example --shape x={expected}$"):
        model.graph(tmp_path)
