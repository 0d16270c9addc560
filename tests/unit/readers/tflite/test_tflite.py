"""Reading whole TensorFlow Lite files: what stands in the Graph, held against LiteRT and the tflite package."""

from __future__ import annotations

from pathlib import Path

import pytest
import tflite
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from opscope.graph.graph import DType, Graph, Role
from opscope.readers.tflite import looks_like_tflite, read_tflite
from opscope.readers.tflite.schema import BUILTINS, COMPILED
from support.models.tflite_build import BY_HAND, ModelBuilder, Operator, Type, only_op, options, small_cnn, tensors_of


def test_a_file_typed_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "relu.tflite"
    path.write_bytes(BY_HAND)
    graph = read_tflite(path)
    op = only_op(graph)
    assert (graph.name, graph.framework, graph.file_bytes) == ("relu", "TensorFlow Lite", 0xF0)
    assert (op.kind, op.type, op.name, op.location) == ("relu", "RELU", "y", "subgraph 0 operator 0")
    assert [(t.name, t.shape, t.dtype, t.role) for t in graph.tensors] == [
        ("x", (1, 4), DType.F32, Role.INPUT),
        ("y", (1, 4), DType.F32, Role.ACTIVATION),
    ]
    assert (graph.inputs, graph.outputs) == ((0,), (1,))


def test_the_file_typed_by_hand_is_what_the_reference_reads() -> None:
    subgraph = tflite.Model.GetRootAs(BY_HAND, 0).Subgraphs(0)
    assert subgraph.Tensors(1).Name() == b"y"
    assert list(subgraph.Tensors(1).ShapeAsNumpy()) == [1, 4]
    assert list(subgraph.Operators(0).OutputsAsNumpy()) == [1]


def test_content_is_recognised_by_its_identifier() -> None:
    assert looks_like_tflite(BY_HAND[:8])
    assert not looks_like_tflite(b"\x08\x07\x12\x0bpytorch")
    assert not looks_like_tflite(b"TFL3")


def assert_same_as_interpreter(graph: Graph, content: bytes) -> None:
    """Names, shapes, types and operands, tensor by tensor and operator by operator."""
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=_reference_kernels())
    known = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
    for index, tensor in enumerate(graph.tensors):
        assert tensor.name == known[index]["name"]
        assert tensor.shape == tuple(known[index]["shape"])
        width = known[index]["dtype"]().itemsize * 8
        assert tensor.dtype.bits == width
    for op, detail in zip(graph.ops, interpreter._get_ops_details(), strict=True):
        assert op.type == detail["op_name"]
        assert sorted(op.inputs) == sorted(detail["inputs"])
        assert list(op.outputs) == list(detail["outputs"])
    assert [detail["index"] for detail in interpreter.get_input_details()] == list(graph.inputs)
    assert [detail["index"] for detail in interpreter.get_output_details()] == list(graph.outputs)


def _reference_kernels() -> object:
    from ai_edge_litert.interpreter import OpResolverType

    return OpResolverType.BUILTIN_REF  # no delegate, which would hide the operators


def test_a_network_has_the_tensors_and_operators_that_litert_sees(tmp_path: Path) -> None:
    model = small_cnn()
    assert_same_as_interpreter(model.graph(tmp_path), model.build())


def test_constants_have_the_sizes_that_the_tflite_package_reads(tmp_path: Path) -> None:
    model = small_cnn()
    reference = tflite.Model.GetRootAs(model.build(), 0)
    subgraph = reference.Subgraphs(0)
    for index, tensor in enumerate(model.graph(tmp_path).tensors):
        stored = subgraph.Tensors(index)
        assert (tensor.stored_bytes or 0) == reference.Buffers(stored.Buffer()).DataLength()
        assert tensor.shape == tuple(stored.ShapeAsNumpy())
        assert tensor.name == stored.Name().decode()


def test_operators_become_kinds_in_execution_order(tmp_path: Path) -> None:
    graph = small_cnn().graph(tmp_path)
    assert [(op.kind, op.name) for op in graph.ops] == [
        ("conv", "conv"),
        ("conv", "depthwise"),
        ("reduce", "mean"),
        ("matmul", "dense"),
        ("softmax", "probabilities"),
    ]


def test_constants_are_tensors_with_data_that_nothing_writes(tmp_path: Path) -> None:
    graph = small_cnn().graph(tmp_path)
    constants = {t.name: t.stored_bytes for t in graph.tensors if t.role is Role.CONSTANT}
    assert constants == {"w1": 432, "b1": 16, "w2": 144, "axes": 8, "w3": 160, "b3": 40}


def test_an_input_with_data_stays_an_input(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", (4,), data=bytes(16))
    y = model.main.tensor("y", (4,))
    model.main.inputs, model.main.outputs = [x], [y]
    model.main.op(Operator.RELU, [x], [y])
    assert [t.role for t in model.graph(tmp_path).tensors] == [Role.INPUT, Role.ACTIVATION]


def one_op(code: int | str, **more: object) -> ModelBuilder:
    model = ModelBuilder()
    x = model.main.input("x", (1, 4))
    model.main.outputs = [model.main.tensor("y", (1, 4))]
    model.main.op(code, [x], model.main.outputs, **more)
    return model


def test_tensors_that_share_a_buffer_and_its_reading_are_one_tensor(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    first = model.main.tensor("bias", (2,), data=bytes(8))
    shared = model.main.tensors[first].buffer
    twin = model.main.tensor("bias again", (2,), buffer=shared)
    other = model.main.tensor("bias as a row", (1, 2), buffer=shared)
    outputs = [model.main.tensor(f"y{i}", (2,)) for i in range(3)]
    for constant, output in zip((first, twin, other), outputs, strict=True):
        model.main.op(Operator.ABS, [constant], [output])
    graph = model.graph(tmp_path)
    assert [tensors_of(graph, op.inputs)[0].name for op in graph.ops[1:]] == ["bias", "bias", "bias as a row"]
    assert graph.ops[1].inputs == graph.ops[2].inputs


def test_packed_and_quantised_constants_keep_the_size_the_file_has(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 64))
    w = model.main.tensor("w", (16, 64), Type.INT4, data=bytes(512))
    y = model.main.tensor("y", (1, 16))
    model.main.outputs = [y]
    model.main.op(Operator.FULLY_CONNECTED, [x, w, -1], [y], options("FullyConnectedOptions"))
    graph = model.graph(tmp_path)
    assert (graph.tensors[w].dtype, graph.tensors[w].bytes) == (DType.I4, 512)
    assert graph.tensors[x].dtype is DType.F32
    assert only_op(graph).inputs == (x, w, -1)


def test_sparse_constants_keep_the_size_the_file_has(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    w = model.main.tensor("w", (16, 64), Type.INT8, data=bytes(100))
    model.main.tensors[w].sparsity = schema.SparsityParametersT()
    model.main.tensors[w].sparsity.traversalOrder = [0, 1]
    graph = model.graph(tmp_path)
    assert (graph.tensors[w].shape, graph.tensors[w].bytes) == ((16, 64), 100)


def test_data_after_the_flatbuffer_is_found_by_its_offset(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 2, 2))
    order = model.main.tensor("order", (3,), Type.INT32, data=b"?")
    y = model.main.tensor("y", (1, 2, 2))
    model.main.op(Operator.TRANSPOSE, [x, order], [y])
    buffer = model.table.buffers[1]
    buffer.data, buffer.offset, buffer.size = None, 2, 12
    start = (len(model.build()) + 15) // 16 * 16
    buffer.offset = start
    path = tmp_path / "large.tflite"
    path.write_bytes(model.build().ljust(start, b"\0") + bytes([0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]))
    graph = read_tflite(path)
    assert graph.tensors[order].stored_bytes == 12
    assert only_op(graph).attributes == {"permutation": (0, 2, 1)}


def test_constants_in_another_file_count_without_being_read(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    w = model.main.tensor("w", (8, 8))
    model.main.tensors[w].externalBuffer = 0x80000000
    place = schema.ExternalBufferT()
    place.id, place.group, place.offset, place.length = 0x80000000, 0, 64, 256
    group = schema.ExternalBufferGroupT()
    group.name = b"weights.bin"
    model.table.externalBuffers, model.table.externalBufferGroups = [place], [group]
    tensor = model.graph(tmp_path).tensors[w]
    assert (tensor.role, tensor.stored_bytes) == (Role.CONSTANT, 256)


def test_variables_outlive_the_inference_and_may_be_written_often(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.input("x", (1, 4))
    state = model.main.tensor("state", (1, 4), is_variable=True)
    model.main.op(Operator.ADD, [x, state], [state])
    model.main.op(Operator.MUL, [x, state], [state])
    graph = model.graph(tmp_path)
    assert graph.tensors[state].role is Role.VARIABLE
    assert [op.name for op in graph.ops] == ["state", "state"]


def test_an_operator_without_outputs_is_named_by_its_type_and_number(tmp_path: Path) -> None:
    model = ModelBuilder()
    handle = model.main.tensor("handle", (), Type.RESOURCE)
    x = model.main.input("x", (4,))
    y = model.main.tensor("y", (4,))
    model.main.op(Operator.VAR_HANDLE, [], [handle])
    model.main.op(Operator.ASSIGN_VARIABLE, [handle, x], [])
    model.main.op(Operator.READ_VARIABLE, [handle], [y])
    graph = model.graph(tmp_path)
    assert [(op.kind, op.name) for op in graph.ops] == [
        ("variable", "handle"),
        ("variable", "ASSIGN_VARIABLE_1"),
        ("variable", "y"),
    ]


@pytest.mark.parametrize(
    ("shape", "has_rank", "expected"),
    [((), True, ()), (None, False, None), ((), False, None), ((1, 0, 4), True, None), ((2, 3), True, (2, 3))],
)
def test_a_shape_the_file_does_not_tell_is_none(
    tmp_path: Path, shape: tuple[int, ...] | None, has_rank: bool, expected: tuple[int, ...] | None
) -> None:
    model = one_op(Operator.RELU)
    y = model.main.tensor("z", shape, has_rank=has_rank)
    model.main.op("their_op", [0], [y])
    found = model.graph(tmp_path).tensors[y]
    assert found.shape == expected
    if expected is None:
        why = "no rule is known for the shapes that CUSTOM:their_op at subgraph 0 operator 1 writes"
        assert found.unknown_because == why


def test_an_empty_shape_in_a_file_older_than_has_rank_is_a_scalar(tmp_path: Path) -> None:
    model = ModelBuilder()
    x = model.main.tensor("x", (4,), has_rank=False)
    y = model.main.tensor("y", (), has_rank=False)
    model.main.inputs = [x]
    model.main.op(Operator.SUM, [x, model.main.constant("axes", (0,))], [y])
    for tensor in model.main.tensors:
        tensor.hasRank = False
    assert model.graph(tmp_path).tensors[y].shape == ()


def test_strings_and_handles_have_no_size(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    text = model.main.tensor("text", (1,), Type.STRING)
    model.main.op("Tokenise", [text], [model.main.tensor("ids", (1, 8), Type.INT32)])
    graph = model.graph(tmp_path)
    assert (graph.tensors[text].dtype, graph.tensors[text].bytes) == (DType.STRING, None)


def test_an_element_type_newer_than_the_schema_is_noted(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    model.main.tensors[1].type = 99
    graph = model.graph(tmp_path)
    assert graph.tensors[1].dtype is DType.UNKNOWN
    assert "element type 99 is newer" in graph.notes[0].text


def test_a_custom_operator_keeps_its_name_and_its_cost_stays_unknown(tmp_path: Path) -> None:
    graph = one_op("FlexErf").graph(tmp_path)
    assert (only_op(graph).kind, only_op(graph).type) == ("custom", "CUSTOM:FlexErf")
    assert [note.code for note in graph.notes] == ["custom-operator"]


def test_an_operator_newer_than_the_schema_is_custom_and_noted(tmp_path: Path) -> None:
    graph = one_op(len(BUILTINS)).graph(tmp_path)
    assert (only_op(graph).kind, only_op(graph).type) == ("custom", f"BUILTIN_{len(BUILTINS)}")
    assert [note.code for note in graph.notes] == ["unknown-operator"]


@pytest.mark.parametrize(("old", "new", "expected"), [(0, 150, "GELU"), (127, 150, "GELU"), (19, 0, "RELU")])
def test_the_operator_code_is_the_larger_of_its_two_fields(tmp_path: Path, old: int, new: int, expected: str) -> None:
    model = one_op(Operator.RELU)
    model.table.operatorCodes[0].deprecatedBuiltinCode, model.table.operatorCodes[0].builtinCode = old, new
    assert only_op(model.graph(tmp_path)).type == expected


@pytest.mark.parametrize("name", [*COMPILED, "DISPATCH_OP_2"])
def test_a_model_compiled_for_an_npu_is_said_to_be_one(tmp_path: Path, name: str) -> None:
    graph = one_op(name).graph(tmp_path)
    assert only_op(graph).kind == "compiled"
    (note,) = graph.notes
    assert note.code == "compiled-model"
    assert "was compiled by" in note.text
    assert "cannot be known from the file" in note.text


def test_a_fourier_transform_is_noted(tmp_path: Path) -> None:
    graph = one_op(Operator.RFFT2D).graph(tmp_path)
    assert (only_op(graph).kind, graph.notes[0].code) == ("fft", "transform")


def test_what_the_file_says_of_itself_is_kept_short(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    model.table.description = b"made\nby hand " + b"x" * 1000
    model.metadata("min_runtime_version", b"2.5.0\0\0\0")
    model.metadata("TFLITE_METADATA", b"never read")
    model.signature("serving_default", 0, {"image": 0})
    details = model.graph(tmp_path).details
    assert details["min runtime version"] == "2.5.0"
    assert details["metadata"] == "min_runtime_version, TFLITE_METADATA"
    assert details["signatures"] == "serving_default"
    assert details["description"].startswith("made\\nby hand xx")
    assert len(details["description"]) <= 200


def test_names_that_are_not_text_are_still_names(tmp_path: Path) -> None:
    model = one_op(Operator.RELU)
    model.main.tensors[1].name = b"\xff\x00\x1b[31m"
    assert only_op(model.graph(tmp_path)).name == "\ufffd\x00\x1b[31m"
