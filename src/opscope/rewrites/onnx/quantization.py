"""Quantisation: scales worked out at run time given up, pairs of Quantize and Dequantize placed, a model quantised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from ...core.errors import ProfilerError
from ...options import QuantizeOptions
from ...quantization.quantise import quantise
from ..catalogue import named
from ..rewrite import RewriteContext, RewriteError, everywhere
from .editor import apply
from .files import changed_file
from .rule import Array, Maker, Match, array_of, attribute, gives_more, is_op, only_reader, producer, reads_as, whole
from .windows import Grid, grid_of

SAMPLES = 8  # random ones to calibrate with where there are no others: for questions of speed alone
CONTRIBUTED = "com.microsoft"  # the domain of operators that ONNX Runtime adds
# Ops whose result has elements of their input and no others; a pair on the same grid is the same before and after.
MOVES = (
    *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Expand", "Tile"),
    *("MaxPool", "Concat", "DepthToSpace", "SpaceToDepth"),
)

BOUNDS = {"Sigmoid": (0, 1), "HardSigmoid": (0, 1), "Softmax": (0, 1), "Tanh": (-1, 1)}  # of what an op gives


def dynamic_to_float(node: ir.Node) -> Match | None:
    """A product in integers whose scale is worked out at run time → the product in floats."""
    return _integer_product(node) or _fused_product(node) or _fused_lstm(node)


def pairs_around_moves(node: ir.Node) -> Match | None:
    """An op that moves dequantised elements → the same with a pair after it, on the same grid."""
    grid = _moved_grid(node)
    if grid is None or any(is_op(reader, "QuantizeLinear") for reader in node.outputs[0].consumers()):
        return None
    source = producer(node.inputs[0], "DequantizeLinear")
    if source is None or node.outputs[0].is_graph_output():
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: _pair(make, _moved(make, node, node.inputs), source)}

    return Match((node,), build)


def pairs_off_moves(node: ir.Node) -> Match | None:
    """A pair after an op that moves dequantised elements, on the same grid, → nothing."""
    quantize = producer(node.inputs[0], "QuantizeLinear") if is_op(node, "DequantizeLinear") else None
    move = None if quantize is None else producer(quantize.inputs[0])
    grid = None if move is None else _moved_grid(move)
    if quantize is None or move is None or grid is None or not (grid == grid_of(node) == grid_of(quantize)):
        return None
    if not reads_as(node.outputs[0], move.outputs[0]):
        return None
    return Match((node, quantize), lambda _: {node.outputs[0]: move.outputs[0]})


def pairs_before_moves(node: ir.Node) -> Match | None:
    """Elements that are moved and then quantised → the same, quantised before they are moved as well."""
    move = producer(node.inputs[0], *MOVES) if is_op(node, "QuantizeLinear") else None
    grid = None if move is None else grid_of(node)
    if move is None or grid is None or only_reader(move.outputs[0]) is not node or _moved_grid(move) is not None:
        return None
    if array_of(move.inputs[0]) is not None or gives_more(move):
        return None
    count = len(move.inputs) if is_op(move, "Concat") else 1

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        inputs = [*(_pair(make, value, node) for value in move.inputs[:count]), *move.inputs[count:]]
        return {node.outputs[0]: _quantized(make, _moved(make, move, inputs), node)}

    return Match((node, move), build)


def pairs_after_bounded(node: ir.Node) -> Match | None:
    """A bounded function of what is dequantised → the same with a pair after it, on a grid that its bounds give."""
    source = producer(node.inputs[0], "DequantizeLinear") if is_op(node, *BOUNDS) else None
    grid, readers = grid_of(source), node.outputs[0].consumers() if source is not None else ()
    if source is None or grid is None or node.outputs[0].is_graph_output():
        return None
    stored, scale = array_of(_input(source, 2)), array_of(source.inputs[1])
    if stored is None or scale is None or stored.dtype.kind not in "iu" or not readers:
        return None
    if any(is_op(reader, "QuantizeLinear") for reader in readers):
        return None
    (low, high), whole_numbers = BOUNDS[node.op_type], np.iinfo(stored.dtype)
    step = (high - low) / (whole_numbers.max - whole_numbers.min + 1)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        sized = make.constant(np.asarray(step, scale.dtype), "scale")
        zero = make.constant(np.asarray(whole_numbers.min - low / step, stored.dtype), "zero")
        moved = _moved(make, node, node.inputs)
        quantized = make.op("QuantizeLinear", moved, sized, zero, dtype=ir.DataType.from_numpy(stored.dtype))
        made = make.op("DequantizeLinear", quantized, sized, zero, dtype=moved.dtype)
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match((node,), build)


@whole
def quantize_static(model: ir.Model, context: RewriteContext) -> ir.Model:
    """The model in 8 bits, calibrated with the data given, or with random samples, whose error means nothing.

    What finds its scales at run time is read as floats first, and gets fixed ones.
    """
    model, _ = apply(model, named("dynamic-to-float", "onnx"), everywhere)
    samples = QuantizeOptions(data=context.data, random=SAMPLES if context.data is None else None)

    def make(before: Path, after: Path) -> None:
        try:
            quantise(before, after, samples)
        except ProfilerError as error:
            raise RewriteError(str(error).replace(f"{before}: ", "")) from error

    return changed_file(model, "quantized", context, make)


def _integer_product(node: ir.Node) -> Match | None:
    """Cast(MatMulInteger(x, w)) × (scale of x × scale of w), as quantisers write it."""
    if not is_op(node, "Mul"):
        return None
    casts = [producer(value, "Cast") for value in node.inputs]
    cast = next((each for each in casts if each is not None), None)
    product = None if cast is None else producer(cast.inputs[0], "MatMulInteger", "ConvInteger")
    other = None if cast is None else node.inputs[1 - casts.index(cast)]
    scales = producer(other, "Mul")
    dynamic = None if product is None else producer(product.inputs[0], "DynamicQuantizeLinear")
    if cast is None or product is None or scales is None or dynamic is None:
        return None
    if dynamic.outputs[1] not in scales.inputs or _input(product, 2) is not dynamic.outputs[2]:
        return None
    scale = array_of(scales.inputs[1 - list(scales.inputs).index(dynamic.outputs[1])])
    weights = _weights(_input(product, 1), scale, _input(product, 3), is_matrix=is_op(product, "MatMulInteger"))
    if weights is None:
        return None
    kind = "MatMul" if is_op(product, "MatMulInteger") else "Conv"

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        kept = {name: each.value for name, each in product.attributes.items()}
        made = make.op(kind, dynamic.inputs[0], make.constant(weights, "weights"), **kept)
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match((node, cast, product, scales, dynamic), build)


def _fused_product(node: ir.Node) -> Match | None:
    """The same as one operator of ONNX Runtime's."""
    if node.domain != CONTRIBUTED or node.op_type != "DynamicQuantizeMatMul":
        return None
    weights = _weights(_input(node, 1), array_of(_input(node, 2)), _input(node, 3), is_matrix=True)
    if weights is None:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = make.op("MatMul", node.inputs[0], make.constant(weights, "weights"))
        bias = _input(node, 4)
        made = made if bias is None else make.op("Add", made, bias)
        made.shape = node.outputs[0].shape
        return {node.outputs[0]: made}

    return Match((node,), build)


def _fused_lstm(node: ir.Node) -> Match | None:
    """An LSTM whose inputs are quantised at every step, as one operator of ONNX Runtime's."""
    if node.domain != CONTRIBUTED or node.op_type != "DynamicQuantizeLSTM":
        return None
    held = [_lstm_weights(node, 1, 8), _lstm_weights(node, 2, 10)]
    if any(array is None for array in held) or any(
        attribute(node, name) is not None for name in ("activation_alpha", "activation_beta")
    ):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        constants = [make.constant(array, "weights") for array in held if array is not None]
        kept = {name: each.value for name, each in node.attributes.items()}
        inputs = [node.inputs[0], *constants, *(_input(node, number) for number in range(3, 8))]
        made = make.tape.op_multi_out("LSTM", inputs, kept, num_outputs=len(node.outputs))
        for value, old in zip(made, node.outputs, strict=True):
            value.type, value.shape = old.type or node.inputs[0].type, old.shape  # type: ignore[union-attr]
        return dict(zip(node.outputs, made, strict=True))

    return Match((node,), build)


def _lstm_weights(node: ir.Node, place: int, scales: int) -> Array | None:
    """Weights (direction, input, gate) of an LSTM as floats, as ONNX's own wants them: gates first."""
    stored, scale, zero = (array_of(_input(node, number)) for number in (place, scales, scales + 1))
    if stored is None or scale is None or zero is None or stored.ndim != 3:
        return None
    if scale.size not in (stored.shape[0], stored.shape[0] * stored.shape[2]) or zero.size not in (scale.size, 1):
        return None
    by_gate = [
        each.reshape(stored.shape[0] if each.size > 1 else 1, 1, -1).astype(np.float64) for each in (scale, zero)
    ]
    floats: Array = (stored.astype(np.float64) - by_gate[1]) * by_gate[0]
    return np.ascontiguousarray(floats.transpose(0, 2, 1)).astype(scale.dtype)


def _input(node: ir.Node, number: int) -> ir.Value | None:
    return node.inputs[number] if len(node.inputs) > number else None


def _weights(value: ir.Value | None, scale: Array | None, zero: ir.Value | None, *, is_matrix: bool) -> Array | None:
    """Weights as floats, where they, their scale and their zero point are constants."""
    stored, point = array_of(value), array_of(zero)
    if stored is None or scale is None or (zero is not None and point is None):
        return None
    point = np.zeros(1) if point is None else point
    sizes = {1, stored.shape[-1]} if is_matrix and stored.ndim else {1}
    if scale.size not in sizes or point.size not in sizes:
        return None
    floats: Array = (stored.astype(np.float64) - point.ravel().astype(np.float64)) * scale.ravel()
    return floats.astype(scale.dtype)


def _moved_grid(node: ir.Node) -> Grid | None:
    """The grid of the elements that an op moves, where all of them are dequantised from the same."""
    if not is_op(node, *MOVES) or gives_more(node):
        return None
    sources = [
        producer(value, "DequantizeLinear") for value in (node.inputs if is_op(node, "Concat") else node.inputs[:1])
    ]
    grids = {None if source is None else grid_of(source) for source in sources}
    return grids.pop() if len(grids) == 1 else None


def _moved(make: Maker, node: ir.Node, inputs: Sequence[ir.Value | None]) -> ir.Value:
    kept = {name: each.value for name, each in node.attributes.items()}
    made = make.op(node.op_type, *inputs, **kept)
    made.shape = node.outputs[0].shape
    return made


def _quantized(make: Maker, value: ir.Value | None, like: ir.Node) -> ir.Value:
    stored = like.inputs[0] if is_op(like, "DequantizeLinear") else like.outputs[0]
    made = make.op("QuantizeLinear", value, *like.inputs[1:], dtype=None if stored is None else stored.dtype)
    made.shape = None if value is None else value.shape
    return made


def _pair(make: Maker, value: ir.Value | None, like: ir.Node) -> ir.Value:
    """A value quantised and dequantised on the grid of an op."""
    made = make.op("DequantizeLinear", _quantized(make, value, like), *like.inputs[1:], dtype=_float_type(like))
    made.shape = None if value is None else value.shape
    return made


def _float_type(node: ir.Node) -> ir.DataType | None:
    value = node.outputs[0] if is_op(node, "DequantizeLinear") else node.inputs[0]
    return None if value is None else value.dtype
