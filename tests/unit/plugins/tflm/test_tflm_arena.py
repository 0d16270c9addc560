"""The arena of TensorFlow Lite Micro. Figures without a comment are those of its interpreter, 0.dev20261023182759."""

from __future__ import annotations

from pathlib import Path

import flatbuffers.flexbuffers
import pytest

from opscope.cli import main
from opscope.core.errors import ModelError
from opscope.plugins.tflm.arena import plan
from opscope.plugins.tflm.cmsis import Core
from opscope.plugins.tflm.nodes import ModelFile
from opscope.plugins.tflm.scratch import reference
from opscope.plugins.tflm.tail import PACKAGE, Build, Part, tail
from support.models.tflite_build import ModelBuilder, Operator, Type, options, small_cnn
from support.models.tflm_models import model_file, needs_interpreter, one_op, quantised, recorded

RECORDED = {
    "TfLiteEvalTensor data": Part.TENSORS,
    "Persistent TfLiteTensor data": Part.PORTS,
    "Persistent TfLiteTensor quantization data": Part.QUANTIZATION,
    "Persistent buffer data": Part.KERNELS,
    "TfLiteTensor variable buffer data": Part.VARIABLES,
    "NodeAndRegistration struct": Part.NODES,
}

SMALL_CNN = {
    "head": 1024,
    "tail": 1808,
    "TfLiteEvalTensor data": 288,
    "Persistent TfLiteTensor data": 128,
    "Persistent buffer data": 468,
    "NodeAndRegistration struct": 320,
}


def chain(sizes: list[int]) -> ModelBuilder:
    """Reshapes of one tensor after another, each of so many bytes."""
    model = ModelBuilder()
    tensors = [model.main.input("x", (1, sizes[0]), Type.INT8)]
    for number, size in enumerate(sizes[1:]):
        tensors.append(model.main.tensor(f"t{number}", (1, size), Type.INT8))
        model.main.op(Operator.RESHAPE, tensors[-2:-1], tensors[-1:])
    model.main.outputs = tensors[-1:]
    return model


def test_nothing_is_computed_in_place_and_sizes_are_rounded_up() -> None:
    """Two of 100 bytes that live at the same time: 112 each."""
    assert plan(model_file(chain([100, 100]).build()), reference).bytes == 224


def test_of_equal_sizes_the_last_is_placed_first() -> None:
    """The second of two is at 0, so that the first goes above it."""
    arena = plan(model_file(chain([64, 64]).build()), reference)
    assert [buffer.offset for buffer in arena.buffers] == [64, 0]


def test_a_tensor_that_the_file_places_is_there_and_others_go_round_it() -> None:
    model = chain([64, 64, 64])
    model.metadata(
        "OfflineMemoryAllocation", b"".join(n.to_bytes(4, "little", signed=True) for n in (1, 0, 3, -1, 128, -1))
    )
    arena = plan(model_file(model.build()), reference)
    assert {buffer.owner.tensor: buffer.offset for buffer in arena.buffers} == {0: 0, 1: 128, 2: 0}
    assert arena.bytes == 192


def test_a_variable_is_in_the_tail() -> None:
    model = chain([16, 16])
    model.main.tensor("state", (1, 100), Type.INT8, is_variable=True)
    file = model_file(model.build())
    arena = plan(file, reference)
    assert arena.bytes == 32
    assert tail(file, arena, Build())[Part.VARIABLES] >= 100


def test_a_subgraph_that_calls_itself_is_named() -> None:
    model = ModelBuilder()
    condition = model.main.input("c", (1,), Type.BOOL)
    model.main.outputs = [model.main.tensor("y", (1,), Type.BOOL)]
    model.main.op(Operator.IF, [condition], model.main.outputs, options("IfOptions", thenSubgraphIndex=0))
    with pytest.raises(ModelError, match=r"^model\.tflite: subgraph 0: calls itself; expected calls that end$"):
        plan(model_file(model.build()), reference)


def test_detections_take_what_their_options_say() -> None:
    model = ModelBuilder()
    boxes, scores = model.main.input("boxes", (1, 10, 4)), model.main.input("scores", (1, 10, 3))
    anchors = model.main.tensor("anchors", (10, 4), data=bytes(160))
    model.main.outputs = [model.main.tensor(f"y{n}", (1, 5)) for n in range(4)]
    model.main.op("TFLite_Detection_PostProcess", [boxes, scores, anchors], model.main.outputs)
    told = flatbuffers.flexbuffers.Dumps({"max_detections": 5, "num_classes": 2, "nms_iou_threshold": 0.5})
    model.main.operators[-1].customOptions = list(told)
    file = model_file(model.build())
    (node,) = file.nodes(file.subgraphs[0])
    assert list(reference(node)) == [10, 160, 120, 40, 40, 200, 200, 40, 200, 200, 200]


def test_options_of_a_custom_operator_that_cannot_be_read_are_none() -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 4, 4))
    model.main.outputs = [model.main.tensor("y", (1, 4))]
    model.main.op("TFLite_Detection_PostProcess", [x], model.main.outputs)
    model.main.operators[-1].customOptions = [255] * 7
    file = model_file(model.build())
    assert file.nodes(file.subgraphs[0])[0].custom_options() == {}


def parts(file: ModelFile, build: Build) -> dict[Part, int]:
    return dict(tail(file, plan(file, build.scratch), build))


def test_the_tail_of_a_network_is_that_of_the_interpreter() -> None:
    file = model_file(small_cnn().build())
    found = parts(file, PACKAGE)
    assert plan(file, reference).bytes == SMALL_CNN["head"]
    assert sum(found.values()) == SMALL_CNN["tail"]
    assert {name: found.get(part, 0) for name, part in RECORDED.items() if found.get(part)} == {
        name: size for name, size in SMALL_CNN.items() if name in RECORDED
    }


def test_a_chip_takes_half_of_what_a_host_takes_for_pointers() -> None:
    file = model_file(small_cnn().build())
    chip, host = parts(file, Build()), parts(file, PACKAGE)
    assert chip[Part.TENSORS] * 2 == host[Part.TENSORS]
    assert chip[Part.NODES] * 2 == host[Part.NODES]
    assert sum(chip.values()) < sum(host.values())


def test_kernels_of_cmsis_nn_keep_no_scales_of_floats() -> None:
    """The reference kernel keeps a multiplier and a shift for each of 64 channels whatever its type."""
    shapes = [(1, 4, 4, 3), (64, 1, 1, 3)]
    file = one_op(Operator.CONV_2D, shapes, (1, 4, 4, 64), types=[Type.FLOAT32] * 2, made=Type.FLOAT32)
    assert parts(file, Build())[Part.KERNELS] - parts(file, Build(core=Core.DSP))[Part.KERNELS] == 2 * 64 * 4


def test_scales_per_channel_of_an_output_are_kept() -> None:
    model = ModelBuilder()
    x = quantised(model.main, model.main.input("x", (1, 8), Type.INT8), 1)
    model.main.outputs = [quantised(model.main, model.main.tensor("y", (1, 8), Type.INT8), 8)]
    model.main.op(Operator.RESHAPE, [x], model.main.outputs)
    assert parts(model_file(model.build()), Build())[Part.QUANTIZATION] == 12 + 8 + 12 + 4 * 9


def assert_the_interpreter_says_the_same(path: Path) -> None:
    said, file = recorded(path), model_file(path.read_bytes())
    found = parts(file, PACKAGE)
    assert (plan(file, reference).bytes, sum(found.values())) == (said["head"], said["tail"])
    assert {name: found.get(part, 0) for name, part in RECORDED.items()} == {
        name: said.get(name, 0) for name in RECORDED
    }


@needs_interpreter
@pytest.mark.parametrize("signature", [False, True])
def test_the_interpreter_says_the_same(tmp_path: Path, signature: bool) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(small_cnn(signature=signature).build())
    assert_the_interpreter_says_the_same(path)


@needs_interpreter
@pytest.mark.parametrize("precision", ["f32", "int8"])
@pytest.mark.parametrize("network", ["kws-cnn", "cifar-resnet", "conv-small", "fc"])
def test_the_interpreter_says_the_same_of_networks(tmp_path: Path, network: str, precision: str) -> None:
    path = tmp_path / "model.tflite"
    assert main(["zoo", network, "--precision", precision, "-o", str(path)]) == 0
    assert_the_interpreter_says_the_same(path)


def remembering(*, names: tuple[bytes, ...]) -> ModelBuilder:
    """Each name has 400 bytes assigned to it; the first is read by another handle."""
    model = ModelBuilder()
    main = model.main

    def handle(shared: bytes) -> int:
        tensor = main.tensor(f"h{len(main.tensors)}", (1,), Type.RESOURCE)
        main.op(Operator.VAR_HANDLE, [], [tensor], options("VarHandleOptions", container=b"c", sharedName=shared))
        return tensor

    data = main.input("x", (1, 100))
    for name in names:
        main.op(Operator.ASSIGN_VARIABLE, [handle(name), data], [])
    main.outputs = [main.tensor("y", (1, 100))]
    main.op(Operator.READ_VARIABLE, [handle(names[0])], main.outputs)
    return model


def test_resource_variables_are_in_the_tail_once() -> None:
    """With pointers of 4 bytes: a list of 12, records of 20 each, and the values; all to 16 bytes."""
    sizes = []
    for names in ((b"a",), (b"a", b"b"), (b"a", b"a")):
        file = model_file(remembering(names=names).build())
        sizes.append(tail(file, plan(file, reference), Build())[Part.RESOURCES])
    assert sizes[1] - sizes[0] == pytest.approx(400 + 20, abs=16)
    assert sizes[2] == pytest.approx(sizes[0], abs=16)


@needs_interpreter
def test_the_interpreter_has_resource_variables_in_its_tail_too(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(remembering(names=(b"a", b"b")).build())
    file = model_file(path.read_bytes())
    arena = plan(file, reference)
    said = recorded(path)
    assert (arena.bytes, sum(tail(file, arena, PACKAGE).values())) == (said["head"], said["tail"])
