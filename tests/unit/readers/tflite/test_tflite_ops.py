"""Attributes and input order of each family of operators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from opscope.core.errors import ModelError
from opscope.graph.graph import ABSENT, Attribute, Op
from opscope.graph.kinds import KINDS
from opscope.readers.tflite.schema import BUILTINS
from support.models.tflite_build import ModelBuilder, Operator, Type, only_op, options, tensors_of

Shape = tuple[int, ...]
IMAGE = (1, 8, 8, 3)
UNIT = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}


@dataclass(frozen=True)
class Read:
    """An op, and the names of its inputs in the order the Graph has them."""

    op: Op
    names: list[str | None]


def read_op(
    folder: Path,
    code: int,
    shapes: list[Shape | None],
    output: Shape = (1, 1),
    options: object = None,
    *,
    options_2: object = None,
    constants: dict[int, tuple[int, ...]] | None = None,
) -> Read:
    """The op of a model of one operator; `shapes` None is an absent input, `constants` are by place."""
    model = ModelBuilder()
    constants = constants or {}
    inputs = []
    for place, shape in enumerate(shapes):
        if place in constants:
            inputs.append(model.main.constant(f"in{place}", constants[place]))
        elif shape is None:
            inputs.append(ABSENT)
        else:
            inputs.append(model.main.input(f"in{place}", shape))
    y = model.main.tensor("y", output)
    model.main.outputs = [y]
    model.main.op(code, inputs, [y], options, options_2)
    graph = model.graph(folder)
    op = only_op(graph)
    return Read(op, [None if tensor is None else tensor.name for tensor in tensors_of(graph, op.inputs)])


def expect(read: Read, **attributes: Attribute) -> None:
    assert read.op.attributes == attributes


def test_a_convolution_says_kernel_strides_dilations_and_groups(tmp_path: Path) -> None:
    how = options(
        "Conv2DOptions", strideW=3, strideH=2, dilationWFactor=5, dilationHFactor=4, fusedActivationFunction=1
    )
    read = read_op(tmp_path, Operator.CONV_2D, [(1, 32, 32, 8), (16, 3, 7, 4), (16,)], (1, 16, 16, 16), how)
    expect(
        read, kernel=(3, 7), strides=(2, 3), dilations=(4, 5), groups=2, channel_axis=3, activation="relu"
    )  # weights take 4 of 8 channels


def test_a_depthwise_convolution_has_a_group_per_channel(tmp_path: Path) -> None:
    how = options("DepthwiseConv2DOptions", depthMultiplier=2, **UNIT)
    read = read_op(tmp_path, Operator.DEPTHWISE_CONV_2D, [(1, 8, 8, 6), (1, 3, 5, 12)], (1, 8, 8, 12), how)
    expect(read, kernel=(3, 5), strides=(1, 1), dilations=(1, 1), groups=6, channel_axis=3)


def test_a_transposed_convolution_reads_data_weights_bias(tmp_path: Path) -> None:
    how = options("TransposeConvOptions", strideW=2, strideH=2)
    shapes: list[Shape | None] = [(4,), (3, 4, 4, 8), (1, 5, 5, 8)]
    read = read_op(tmp_path, Operator.TRANSPOSE_CONV, [*shapes, (3,)], (1, 10, 10, 3), how)
    assert read.names == ["in2", "in1", "in3", "in0"]
    expect(read, kernel=(4, 4), strides=(2, 2), dilations=(1, 1), groups=1, channel_axis=3)
    read = read_op(tmp_path, Operator.TRANSPOSE_CONV, shapes, (1, 10, 10, 3), how)
    assert read.names == ["in2", "in1", None, "in0"]


def test_convolutions_in_three_dimensions_have_weights_last_to_first(tmp_path: Path) -> None:
    how = options("Conv3DOptions", strideD=1, strideH=2, strideW=3)
    read = read_op(tmp_path, Operator.CONV_3D, [(1, 8, 8, 8, 4), (2, 3, 4, 4, 16)], (1, 8, 4, 3, 16), how)
    expect(read, kernel=(2, 3, 4), strides=(1, 2, 3), dilations=(1, 1, 1), groups=1, channel_axis=4)
    read = read_op(
        tmp_path, Operator.CONV_3D_TRANSPOSE, [(5,), (2, 3, 4, 16, 4), (1, 8, 8, 8, 4)], (1, 8, 16, 24, 16), how
    )
    assert read.names[:2] == ["in2", "in1"]
    expect(read, kernel=(2, 3, 4), strides=(1, 2, 3), dilations=(1, 1, 1), groups=1, channel_axis=4)


@pytest.mark.parametrize(
    ("lengths", "out", "transformed"),
    [
        ((1, 512), (3, 10, 1, 257), {"axes": (3,), "lengths": (512,)}),
        ((16, 512), (3, 10, 16, 257), {"axes": (2, 3), "lengths": (16, 512)}),
    ],
)
def test_a_transform_says_its_axes_and_how_many_elements_it_takes(
    tmp_path: Path, lengths: tuple[int, ...], out: Shape, transformed: dict[str, Attribute]
) -> None:
    shapes: list[Shape | None] = [(3, 10, lengths[0], 480), (2,)]
    expect(read_op(tmp_path, Operator.RFFT2D, shapes, out, constants={1: lengths}), **transformed)


def test_a_stablehlo_convolution_says_where_its_axes_are(tmp_path: Path) -> None:
    how = options(
        "StablehloConvolutionOptions",
        windowStrides=[2, 2],
        inputFeatureDimension=1,
        kernelSpatialDimensions=[2, 3],
        featureGroupCount=2,
    )
    read = read_op(
        tmp_path, Operator.STABLEHLO_CONVOLUTION, [(1, 8, 32, 32), (16, 4, 3, 5)], (1, 16, 16, 16), options_2=how
    )
    expect(read, kernel=(3, 5), strides=(2, 2), dilations=(1, 1), groups=2, channel_axis=1)


def test_a_fully_connected_layer_reduces_the_last_axis_of_its_weights(tmp_path: Path) -> None:
    how = options("FullyConnectedOptions", fusedActivationFunction=2)
    read = read_op(tmp_path, Operator.FULLY_CONNECTED, [(1, 64), (10, 64), None], (1, 10), how)
    expect(read, k=64, n=10, activation="clip")


@pytest.mark.parametrize(
    ("a", "b", "adjoint"), [((2, 5, 7), (2, 7, 9), (0, 0)), ((2, 7, 5), (2, 9, 7), (1, 1)), ((5, 7), (2, 9, 7), (0, 1))]
)
def test_a_product_of_batches_knows_which_operand_is_transposed(
    tmp_path: Path, a: Shape, b: Shape, adjoint: tuple[int, int]
) -> None:
    how = options("BatchMatMulOptions", adjX=bool(adjoint[0]), adjY=bool(adjoint[1]))
    expect(read_op(tmp_path, Operator.BATCH_MATMUL, [a, b], (2, 5, 9), how), k=7, n=9)


def test_a_general_dot_product_multiplies_its_contracted_and_its_free_axes(tmp_path: Path) -> None:
    how = options(
        "StablehloDotGeneralOptions",
        lhsBatchingDimensions=[0],
        rhsBatchingDimensions=[0],
        lhsContractingDimensions=[2, 3],
        rhsContractingDimensions=[1, 3],
    )
    read = read_op(tmp_path, Operator.STABLEHLO_DOT_GENERAL, [(2, 5, 3, 4), (2, 3, 9, 4)], (2, 5, 9), options_2=how)
    expect(read, k=12, n=9)


def test_svdf_is_one_product_of_equal_work(tmp_path: Path) -> None:
    shapes: list[Shape | None] = [(1, 40), (16, 40), (16, 10), (8,), (1, 160)]
    read = read_op(tmp_path, Operator.SVDF, shapes, (1, 8), options("SVDFOptions", rank=2, fusedActivationFunction=1))
    expect(read, k=100, n=8, activation="relu")
    assert read.op.kind == "matmul"
    assert read.names == ["in0", "in1", "in3", "in2", "in4"]
    macs = 16 * 40 + 16 * 10
    assert read.op.attributes["k"] * read.op.attributes["n"] == macs  # type: ignore[operator]


def lstm_shapes(data: Shape, cells: int, outputs: int, *, coupled: bool = False) -> list[Shape | None]:
    weights: list[Shape | None] = [(cells, data[-1])] * 4 + [(cells, outputs)] * 4
    if coupled:
        weights[0] = weights[4] = None
    projection: list[Shape | None] = [(outputs, cells), None] if outputs != cells else [None, None]
    biases: list[Shape | None] = [(cells,)] * 4
    return [data, *weights, None, None, None, *biases, *projection, (2, outputs), (2, cells)]


def test_an_lstm_over_a_sequence_says_its_extents(tmp_path: Path) -> None:
    code = Operator.UNIDIRECTIONAL_SEQUENCE_LSTM
    how = options("UnidirectionalSequenceLSTMOptions", timeMajor=False)
    read = read_op(tmp_path, code, lstm_shapes((2, 49, 13), 32, 32), (2, 49, 32), how)
    expect(read, steps=49, batch=2, input_size=13, hidden_size=32, directions=1)
    how = options("UnidirectionalSequenceLSTMOptions", timeMajor=True)
    read = read_op(tmp_path, code, lstm_shapes((49, 2, 13), 32, 24, coupled=True), (49, 2, 24), how)
    expect(read, steps=49, batch=2, input_size=13, hidden_size=32, directions=1, gates=3, projection_size=24)


def test_a_bidirectional_lstm_has_two_directions_and_time_first_by_default(tmp_path: Path) -> None:
    how = options("BidirectionalSequenceLSTMOptions", timeMajor=True)
    shapes = lstm_shapes((49, 2, 13), 32, 32)[:18] * 2
    read = read_op(tmp_path, Operator.BIDIRECTIONAL_SEQUENCE_LSTM, shapes, (49, 2, 64), how)
    expect(read, steps=49, batch=2, input_size=13, hidden_size=32, directions=2)


def test_a_single_lstm_step_is_read_in_both_of_its_forms(tmp_path: Path) -> None:
    read = read_op(tmp_path, Operator.LSTM, lstm_shapes((2, 13), 32, 32), (2, 32), options("LSTMOptions"))
    expect(read, steps=1, batch=2, input_size=13, hidden_size=32, directions=1)
    basic: list[Shape | None] = [(2, 13), (2, 32), (128, 45), (128,), (2, 32)]
    read = read_op(tmp_path, Operator.LSTM, basic, (2, 32), options("LSTMOptions", kernelType=1))
    expect(read, steps=1, batch=2, input_size=13, hidden_size=32, directions=1)
    assert read.names == ["in0", "in2", "in3", "in1", "in4"]


@pytest.mark.parametrize(
    ("code", "how", "data", "expected"),
    [
        (Operator.RNN, options("RNNOptions"), (2, 13), (1, 2, 1)),
        (Operator.UNIDIRECTIONAL_SEQUENCE_RNN, options("SequenceRNNOptions"), (2, 9, 13), (9, 2, 1)),
        (
            Operator.BIDIRECTIONAL_SEQUENCE_RNN,
            options("BidirectionalSequenceRNNOptions", timeMajor=True),
            (9, 2, 13),
            (9, 2, 2),
        ),
    ],
)
def test_an_rnn_says_its_extents(tmp_path: Path, code: int, how: object, data: Shape, expected: Shape) -> None:
    read = read_op(tmp_path, code, [data, (32, 13), (32, 32), (32,), (2, 32)], (2, 32), how)
    steps, batch, directions = expected
    expect(read, steps=steps, batch=batch, input_size=13, hidden_size=32, directions=directions)


@pytest.mark.parametrize("code", [Operator.MAX_POOL_2D, Operator.AVERAGE_POOL_2D, Operator.L2_POOL_2D])
def test_pools_say_kernel_and_strides(tmp_path: Path, code: int) -> None:
    how = options("Pool2DOptions", filterHeight=3, filterWidth=2, strideH=4, strideW=5, fusedActivationFunction=4)
    read = read_op(tmp_path, code, [(1, 8, 8, 4)], (1, 2, 2, 4), how)
    expect(read, kernel=(3, 2), strides=(4, 5), channel_axis=3, activation="tanh")


def test_windows_over_any_axes_say_their_extents(tmp_path: Path) -> None:
    read = read_op(tmp_path, Operator.REDUCE_WINDOW, [(4, 8), (), (2,), (2,)], (2, 8), constants={2: (2, 1), 3: (2, 1)})
    expect(read, kernel=(2, 1), strides=(2, 1), channel_axis=1)
    how = options("StablehloReduceWindowOptions", windowDimensions=[2, 1])
    read = read_op(tmp_path, Operator.STABLEHLO_REDUCE_WINDOW, [(4, 8), ()], (3, 8), options_2=how)
    expect(read, kernel=(2, 1), strides=(1, 1), channel_axis=1)


LAST = {"axes": (2,)}
AXIS_CASES: list[tuple[int, list[Shape | None], object, dict[int, Shape], dict[str, Attribute]]] = [
    (Operator.SOFTMAX, [(2, 3, 4)], None, {}, LAST),
    (Operator.LOG_SOFTMAX, [(2, 3, 4)], None, {}, LAST),
    (Operator.L2_NORMALIZATION, [(2, 3, 4)], None, {}, LAST),
    (Operator.LOCAL_RESPONSE_NORMALIZATION, [(2, 3, 4)], None, {}, LAST),
    (Operator.TOPK_V2, [(2, 3, 4), (1,)], None, {1: (2,)}, LAST),
    (Operator.MEAN, [(2, 3, 4), (2,)], None, {1: (-1, 1)}, {"axes": (1, 2)}),
    (Operator.SUM, [(2, 3, 4), (1,)], None, {}, {}),  # axes computed by the graph
    (Operator.REDUCE_MAX, [(2, 3, 4), (1,)], None, {1: (0,)}, {"axes": (0,)}),
    (Operator.ARG_MAX, [(2, 3, 4), (1,)], None, {1: (-2,)}, {"axes": (1,)}),
    (Operator.CUMSUM, [(2, 3, 4), (1,)], None, {1: (-1,)}, LAST),
    (Operator.REVERSE_V2, [(2, 3, 4), (1,)], None, {1: (0,)}, {"axes": (0,)}),
    (Operator.REVERSE_SEQUENCE, [(2, 3, 4), (2,)], options("ReverseSequenceOptions", seqDim=1), {}, {"axes": (1,)}),
    (Operator.SEGMENT_SUM, [(9, 4), (9,)], None, {}, {"axes": (0,)}),
    (Operator.TRANSPOSE, [(2, 3, 4), (3,)], None, {1: (2, 0, 1)}, {"permutation": (2, 0, 1)}),
    (
        Operator.STABLEHLO_TRANSPOSE,
        [(2, 3)],
        (None, options("StablehloTransposeOptions", permutation=[1, 0])),
        {},
        {"permutation": (1, 0)},
    ),
    (Operator.CONCATENATION, [(2, 3), (2, 3)], options("ConcatenationOptions", axis=-1), {}, {"axis": 1}),
    (
        Operator.STABLEHLO_CONCATENATE,
        [(2, 3)] * 2,
        (None, options("StablehloConcatenateOptions", dimension=1)),
        {},
        {"axis": 1},
    ),
    (Operator.PACK, [(2, 3), (2, 3)], options("PackOptions", axis=-1), {}, {"axis": 2}),  # of the output
    (Operator.UNPACK, [(2, 3)], options("UnpackOptions", axis=-1), {}, {"axis": 1}),
    (Operator.SPLIT, [(), (2, 8)], None, {0: (-1,)}, {"axis": 1}),
    (Operator.SPLIT_V, [(2, 8), (2,), ()], None, {1: (3, 5), 2: (1,)}, {"axis": 1}),
    (Operator.GATHER, [(9, 4), (2,)], options("GatherOptions", axis=-2), {}, {"axis": 0}),
    (Operator.EMBEDDING_LOOKUP, [(2,), (9, 4)], None, {}, {"axis": 0}),
    (Operator.ONE_HOT, [(2, 4), (1,)], options("OneHotOptions", axis=-1), {}, {"axis": 2}),
    (
        Operator.STABLEHLO_REDUCE,
        [(2, 3), ()],
        (None, options("StablehloReduceOptions", dimensions=[1])),
        {},
        {"axes": (1,)},
    ),
    (Operator.STABLEHLO_SORT, [(2, 3)], (None, options("StablehloSortOptions", dimension=1)), {}, {"axes": (1,)}),
]


@pytest.mark.parametrize(
    ("code", "shapes", "how", "constants", "expected"),
    AXIS_CASES,
    ids=lambda v: v if isinstance(v, int) else "",
)
def test_axes_are_counted_from_the_front(
    tmp_path: Path,
    *,
    code: int,
    shapes: list[Shape | None],
    how: object,
    constants: dict[int, Shape],
    expected: dict[str, Attribute],
) -> None:
    options_1, options_2 = how if isinstance(how, tuple) else (how, None)
    read = read_op(tmp_path, code, shapes, (2, 3, 4), options_1, options_2=options_2, constants=constants)
    assert read.op.attributes == expected


def test_data_comes_first_where_the_file_has_it_second(tmp_path: Path) -> None:
    read = read_op(tmp_path, Operator.SPLIT, [(), (2, 8)], constants={0: (1,)})
    assert read.names == ["in1", "in0"]
    read = read_op(tmp_path, Operator.EMBEDDING_LOOKUP, [(2,), (9, 4)])
    assert read.names == ["in1", "in0"]
    read = read_op(tmp_path, Operator.STABLEHLO_CLAMP, [(), (2, 8), ()])
    assert read.names == ["in1", "in0", "in2"]


@pytest.mark.parametrize("code", [Operator.ADD, Operator.SUB, Operator.MUL, Operator.DIV])
def test_arithmetic_carries_its_fused_activation(tmp_path: Path, code: int) -> None:
    name = BUILTINS[code].name.capitalize() + "Options"
    read = read_op(tmp_path, code, [(4,), (4,)], (4,), options(name, fusedActivationFunction=5))
    expect(read, activation="sign")


def test_options_of_another_operator_are_ignored_as_the_runtime_does(tmp_path: Path) -> None:
    expect(read_op(tmp_path, Operator.ADD, [(4,), (4,)], (4,), options("MulOptions", fusedActivationFunction=1)))


def test_an_operator_of_every_builtin_code_can_be_read(tmp_path: Path) -> None:
    needs_more = "CONV POOL SVDF WINDOW RNN LSTM"
    for code, builtin in enumerate(BUILTINS):
        if any(word in builtin.name for word in needs_more.split()):
            continue
        op = read_op(tmp_path, code, [(2, 3, 4), (2, 4, 5)], (2, 3, 5)).op
        assert op.kind in KINDS
        assert op.type == (builtin.name if builtin.name != "CUSTOM" else "CUSTOM:")


@pytest.mark.parametrize(
    ("code", "shapes", "how", "problem"),
    [
        (Operator.CONV_2D, [IMAGE, (4, 3, 3, 3)], options("Conv2DOptions"), r"CONV_2D: strides \[0, 0\]; expected 1"),
        (Operator.CONV_2D, [IMAGE, (4, 3, 3)], options("Conv2DOptions", **UNIT), r"shape \[4, 3, 3\]; expected rank 4"),
        (Operator.CONV_2D, [IMAGE, (4, 3, 3, 2)], options("Conv2DOptions", **UNIT), "3 channels cannot be grouped"),
        (Operator.MAX_POOL_2D, [IMAGE], options("Pool2DOptions"), r"kernel \[0, 0\]; expected 1 or more"),
        (Operator.CONCATENATION, [(2, 3)], options("ConcatenationOptions", axis=2), r"axis 2 of a .* shape \[2, 3\]"),
        (Operator.SVDF, [(1, 4), (4, 4), (4, 2)], options("SVDFOptions", rank=3), "rank 3 does not divide 4 filters"),
        (Operator.BATCH_MATMUL, [(4,), (4, 4)], options("BatchMatMulOptions"), "expected rank 2 or more"),
        (Operator.ADD, [(4,), (4,)], options("AddOptions", fusedActivationFunction=9), "fused activation 9"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_operator(
    tmp_path: Path, code: int, shapes: list[Shape | None], how: object, problem: str
) -> None:
    with pytest.raises(ModelError, match=rf"model\.tflite: subgraph 0 operator 0: .*{problem}"):
        read_op(tmp_path, code, shapes, (1, 1), how)


def test_a_permutation_names_each_axis_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"permutation \[0, 0, 1\] does not name each of 3 axes once"):
        read_op(tmp_path, Operator.TRANSPOSE, [(2, 3, 4), (3,)], constants={1: (0, 0, 1)})


def test_a_detection_postprocess_is_known_by_name(tmp_path: Path) -> None:
    model = ModelBuilder()
    boxes = model.main.input("boxes", (1, 100, 4))
    y = model.main.tensor("y", (1, 10, 4), Type.FLOAT32)
    model.main.op("TFLite_Detection_PostProcess", [boxes], [y])
    assert only_op(model.graph(tmp_path)).kind == "non_max_suppression"
