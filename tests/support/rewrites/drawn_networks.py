"""Small ONNX networks, drawn: the patterns that exporters write, wired at random, with values read more than once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, SIZE = 2, 3
CHANNELS = HEADS * SIZE
OPSETS = (13, 15, 17, 18, 20, 21)
MOST_STEPS = 6


class Drawing:
    """One network; every value that steps hand on is [batch, rows * columns, CHANNELS].

    Args:
        open_batch: whether the file leaves the batch open; shapes of reshapes then have a -1.
    """

    def __init__(self, seed: int, *, open_batch: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.batch, self.rows, self.columns = (int(self.random.integers(1, 4)) for _ in range(3))
        self.batch = -1 if open_batch else self.batch
        self.rows, self.columns = 2 * self.rows, 2 * self.columns
        self.tokens = self.rows * self.columns
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values = ["x"]

    def save(self, path: Path) -> list[str]:
        """Draw and write it; names of the steps."""
        steps = [str(step) for step in self.random.choice(sorted(STEPS), self.random.integers(2, MOST_STEPS + 1))]
        for step in steps:
            self.values.append(STEPS[step](self, self.any()))
        shape = ["N" if self.batch < 0 else self.batch, self.tokens, CHANNELS]
        made = [value for value in self.values[1:] if value != "x"]
        outputs = dict.fromkeys([made[-1], *(name for name in made[:-1] if self.random.random() < 0.3)])
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        return steps

    def any(self) -> str:
        """A value that is there: the last, or one that others read too."""
        return self.values[-1] if self.random.random() < 0.6 else str(self.random.choice(self.values))

    def chance(self) -> bool:
        return bool(self.random.random() < 0.5)

    def op(self, kind: str, *inputs: str, results: int = 1, **attributes: object) -> str:
        names = [f"v{len(self.nodes)}_{number}" for number in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"n{len(self.nodes)}", **attributes))
        return names[0]

    def parts(self, x: str, count: int, axis: int, sizes: list[int]) -> list[str]:
        first = self.op("Split", x, self.ints(*sizes), results=count, axis=axis)
        return [first.replace("_0", f"_{number}") for number in range(count)]

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def floats(self, *shape: int, scale: float = 0.5) -> str:
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value, np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.asarray(values, np.int64))

    def turn(self, x: str, *order: int) -> str:
        return self.op("Transpose", x, perm=list(order))

    def shaped(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.ints(*shape))

    def mean(self, x: str, axis: int) -> str:
        if self.opset >= 18:
            return self.op("ReduceMean", x, self.ints(axis), keepdims=1)
        return self.op("ReduceMean", x, axes=[axis], keepdims=1)


def _linear(net: Drawing, x: str, outputs: int = CHANNELS) -> str:
    made = net.op("MatMul", x, net.floats(CHANNELS, outputs))
    return net.op("Add", made, net.floats(outputs)) if net.chance() else made


def _gemm(net: Drawing, x: str) -> str:
    flat = net.shaped(x, -1, CHANNELS)
    made = net.op(
        "Gemm", flat, net.floats(CHANNELS, CHANNELS), net.floats(CHANNELS), transB=int(net.chance()), alpha=0.5
    )
    return net.shaped(made, net.batch, net.tokens, CHANNELS)


def _pixels(net: Drawing, x: str) -> str:
    """Tokens as the pixels of an image, channels second."""
    if net.chance():
        return net.turn(net.shaped(x, net.batch, net.rows, net.columns, CHANNELS), 0, 3, 1, 2)
    return net.shaped(net.turn(x, 0, 2, 1), net.batch, CHANNELS, net.rows, net.columns)


def _tokens(net: Drawing, x: str) -> str:
    if net.chance():
        return net.shaped(net.turn(x, 0, 2, 3, 1), net.batch, net.tokens, CHANNELS)
    return net.turn(net.shaped(x, net.batch, CHANNELS, net.tokens), 0, 2, 1)


def _convolution(net: Drawing, x: str) -> str:
    """A convolution of pixels, of some size, dilation and groups, with what stands around one."""
    size, dilation, groups = (int(net.random.choice(choices)) for choices in ([1, 3, 5], [1, 2], [1, 2, CHANNELS]))
    image, reach = _pixels(net, x), size // 2 * dilation
    pads = [reach] * 4
    if net.chance():
        image, pads = net.op("Pad", image, net.ints(0, 0, reach, reach, 0, 0, reach, reach)), [0] * 4
    weights = net.floats(CHANNELS, CHANNELS // groups, size, size)
    more = [net.floats(CHANNELS)] if net.chance() else []
    made = net.op("Conv", image, weights, *more, pads=pads, dilations=[dilation] * 2, group=groups)
    if net.chance():
        spread = net.constant((0.5 + net.random.random(CHANNELS)).astype(np.float32))
        made = net.op("BatchNormalization", made, *(net.floats(CHANNELS) for _ in range(3)), spread)
    return _tokens(net, _activation(net, made) if net.chance() else made)


def _focus(net: Drawing, x: str) -> str:
    """Every other pixel, four times, as channels; a convolution; and as pixels again."""
    image, far = _pixels(net, x), 2**31 - 1
    corners = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        half = net.op("Slice", image, net.ints(row), net.ints(far), net.ints(2), net.ints(2))
        corners.append(net.op("Slice", half, net.ints(column), net.ints(far), net.ints(3), net.ints(2)))
    deep = net.op("Conv", net.op("Concat", *corners, axis=1), net.floats(CHANNELS, 4 * CHANNELS, 1, 1))
    if net.chance():
        scales = net.constant(np.asarray([1, 1, 2, 2], np.float32))
        return _tokens(
            net,
            net.op(
                "Resize",
                deep,
                "",
                scales,
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
        )
    return _tokens(net, net.op("ConvTranspose", deep, net.floats(CHANNELS, CHANNELS, 2, 2), strides=[2, 2]))


def _along(net: Drawing, x: str) -> str:
    """A convolution along the tokens."""
    made = net.op("Conv", net.turn(x, 0, 2, 1), net.floats(CHANNELS, CHANNELS, 3), net.floats(CHANNELS), pads=[1, 1])
    return net.turn(made, 0, 2, 1)


def _pooled(net: Drawing, x: str) -> str:
    image = _pixels(net, x)
    if net.chance():
        return _tokens(net, net.op("Mul", image, net.op("Sigmoid", net.op("GlobalAveragePool", image))))
    return _tokens(net, net.op("MaxPool", image, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))


def _activation(net: Drawing, x: str) -> str:
    kind = net.random.choice(["erf", "tanh", "silu", "hardswish", "mish", "op"])
    one, half = net.number(1), net.number(0.5)
    if kind == "erf":
        grown = net.op("Add", net.op("Erf", net.op("Div", x, net.number(2**0.5))), one)
        if net.chance():
            return net.op("Mul", net.op("Mul", x, half), grown)
        return net.op("Mul", x, net.op("Mul", grown, half))
    if kind == "tanh":
        cube = net.op("Mul", net.op("Pow", x, net.number(3)), net.number(0.044715))
        inner = net.op("Mul", net.op("Add", x, cube), net.number((2 / np.pi) ** 0.5))
        return net.op("Mul", net.op("Mul", x, net.op("Add", net.op("Tanh", inner), one)), half)
    if kind == "silu":
        return net.op("Mul", x, net.op("Sigmoid", x))
    if kind == "hardswish":
        clipped = net.op("Clip", net.op("Add", x, net.number(3)), net.number(0), net.number(6))
        return net.op("Div", net.op("Mul", x, clipped), net.number(6))
    if kind == "mish":
        return net.op("Mul", x, net.op("Tanh", net.op("Softplus", x)))
    return net.op("Gelu", x) if net.opset >= 20 else net.op("HardSwish", x) if net.opset >= 14 else net.op("Relu", x)


def _norm(net: Drawing, x: str) -> str:
    scale, shift = net.floats(CHANNELS), net.floats(CHANNELS)
    if net.opset >= 17 and net.chance():
        return net.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-3)
    centred = net.op("Sub", x, net.mean(x, -1))
    spread = net.mean(net.op("Pow", centred, net.number(2)), -1)
    root = net.op("Sqrt", net.op("Add", spread, net.number(1e-3)))
    return net.op("Add", net.op("Mul", net.op("Div", centred, root), scale), shift)


def _query_key_value(net: Drawing, x: str) -> list[str]:
    """Three values of [batch, heads, tokens, size], packed in one product in one of the ways of exporters."""
    joint = _linear(net, x, 3 * CHANNELS)
    if net.chance():
        heads = [
            net.shaped(part, net.batch, net.tokens, HEADS, SIZE) for part in net.parts(joint, 3, 2, [CHANNELS] * 3)
        ]
        return [net.turn(part, 0, 2, 1, 3) for part in heads]
    joint = net.turn(net.shaped(joint, net.batch, net.tokens, 3, HEADS, SIZE), 2, 0, 3, 1, 4)
    if net.chance():
        return [net.op("Gather", joint, net.constant(np.asarray(part, np.int64)), axis=0) for part in range(3)]
    return [net.op("Squeeze", part, net.ints(0)) for part in net.parts(joint, 3, 0, [1, 1, 1])]


def _attention(net: Drawing, x: str) -> str:
    query, key, value = _query_key_value(net, x)
    scores = net.op("MatMul", query, net.turn(key, 0, 1, 3, 2))
    scores = net.op("Mul", scores, net.number(SIZE**-0.5))
    if net.chance():
        powers = net.op("Exp", scores)
        weights = net.op("Div", powers, net.op("ReduceSum", powers, net.ints(-1), keepdims=1))
    else:
        weights = net.op("Softmax", scores, axis=-1)
    mixed = net.turn(net.op("MatMul", weights, value), 0, 2, 1, 3)
    return _linear(net, net.shaped(mixed, net.batch, net.tokens, CHANNELS))


def _windows(net: Drawing, x: str) -> str:
    """Something done in windows of two by two, and the windows put together again."""
    batch, rows, columns = net.batch, net.rows // 2, net.columns // 2
    cut = net.turn(net.shaped(x, batch, rows, 2, columns, 2, CHANNELS), 0, 1, 3, 2, 4, 5)
    cut = net.shaped(cut, max(batch * rows * columns, -1), 4, CHANNELS)
    done = net.op("Relu", cut) if net.chance() else net.op("MatMul", cut, net.floats(CHANNELS, CHANNELS))
    whole = net.turn(net.shaped(done, batch, rows, columns, 2, 2, CHANNELS), 0, 1, 3, 2, 4, 5)
    return net.shaped(whole, batch, net.tokens, CHANNELS)


def _rolled(net: Drawing, x: str) -> str:
    cut, far = int(net.random.integers(1, net.tokens)), 2**31 - 1
    first = net.op("Slice", x, net.ints(0), net.ints(cut), net.ints(1))
    second = net.op("Slice", x, net.ints(cut), net.ints(far), net.ints(1))
    return net.op("Concat", second, first, axis=1)


def _masked(net: Drawing, x: str) -> str:
    """A mask that is added in five axes, as shifted windows have it."""
    wide = net.shaped(x, 1, net.batch, net.rows, net.columns, CHANNELS)
    added = net.op("Add", wide, net.floats(max(net.batch, 1), 1, 1, CHANNELS))
    return net.shaped(added, net.batch, net.tokens, CHANNELS)


def _turned(net: Drawing, x: str) -> str:
    order = [int(axis) for axis in net.random.permutation(3)]
    back = [order.index(axis) for axis in range(3)]
    inside = net.op("Mul", net.turn(x, *order), net.number(1.5))
    return net.turn(net.op("Tanh", inside) if net.chance() else inside, *back)


def _scaled(net: Drawing, x: str) -> str:
    factor = net.floats(CHANNELS) if net.chance() else net.number(0.25)
    return net.op("Mul", _linear(net, x), factor) if net.chance() else _linear(net, net.op("Mul", x, factor))


def _nothing(net: Drawing, x: str) -> str:
    kept = net.op("Cast", net.op("Mul", x, net.number(1)), to=TensorProto.FLOAT)
    pads = net.ints(0, 0, 0, 0, 0, 0)
    return net.op("Relu", net.op("Pad", kept, pads) if net.chance() else net.op("Identity", kept))


STEPS: dict[str, Callable[[Drawing, str], str]] = {
    "linear": _linear,
    "gemm": _gemm,
    "convolution": _convolution,
    "focus": _focus,
    "along": _along,
    "pooled": _pooled,
    "activation": _activation,
    "norm": _norm,
    "attention": _attention,
    "windows": _windows,
    "rolled": _rolled,
    "masked": _masked,
    "turned": _turned,
    "scaled": _scaled,
    "nothing": _nothing,
    "sum": lambda net, x: net.op("Add", x, net.any()),
}
