"""Random small graphs that have everything a compiler trips over."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from opscope.graph.graph import DType, Graph, Op
from support.build import Sketch

EXTENTS = (1, 2, 3, 4, 6, 8, 16)
UNARY = ("relu", "gelu", "erf", "tanh", "negate")
BINARY = ("add", "mul", "sub", "div", "maximum")


class Growing:
    """A graph that grows op by op from what is there."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.sketch = Sketch(dtype=DType.F16)
        self.known: list[int] = []
        for _ in range(draw(st.integers(1, 2))):
            self.known.append(self.sketch.input(*self.shape(draw(st.sampled_from([2, 3, 4])))))

    def shape(self, rank: int) -> tuple[int, ...]:
        small = [self.draw(st.sampled_from(EXTENTS)) for _ in range(rank - 1)]
        return (*small, self.draw(st.sampled_from((8, 32, 48, 64, 256))))

    def extents(self, tensor: int) -> tuple[int, ...]:
        return self.sketch.tensors[tensor].shape or ()

    def pick(self, rank: int | None = None) -> int | None:
        fitting = [t for t in self.known if rank is None or len(self.extents(t)) == rank]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def grow(self) -> None:
        kind = self.draw(st.sampled_from(sorted(_STEPS)))
        made = _STEPS[kind](self)
        self.known += [t for t in made if prod(self.extents(t)) <= 1 << 17]

    def graph(self) -> Graph:
        read = {t for op in self.sketch.ops for t in op.inputs}
        ends = [t for op in self.sketch.ops for t in op.outputs if t not in read]
        some = self.draw(st.lists(st.sampled_from(self.known), max_size=2))  # also read by others, or graph inputs
        return self.sketch.graph(*dict.fromkeys((*ends[1:], *ends[:1], *some)))


Made = list[int]


def _dense(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    return [g.sketch.dense(data, g.draw(st.sampled_from((8, 40, 64, 256, 1000))), bias=g.draw(st.booleans()))]


def _product(g: Growing) -> Made:
    """A product of two activations: the second is the first, transposed or not."""
    left = g.pick()
    assert left is not None
    shape = g.extents(left)
    permutation = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    right = g.sketch.op("transpose", (left,), tuple(shape[i] for i in permutation), permutation=permutation)
    out = (*shape[:-1], shape[-2])
    return [right, g.sketch.op("matmul", (left, right), out, k=shape[-1], n=shape[-2])]


def _unary(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    return [g.sketch.same(g.draw(st.sampled_from(UNARY)), data)]


def _chain(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    first = g.sketch.same("erf", data)
    second = g.sketch.same("add", first, g.sketch.constant())
    return [g.sketch.same("mul", data, second)]


def _binary(g: Growing) -> Made:
    """With a tensor of the same shape, a constant, or a smaller activation."""
    left = g.pick()
    assert left is not None
    shape = g.extents(left)
    same = [
        t for t in g.known if g.extents(t) == shape or (g.extents(t) and g.extents(t) == shape[-len(g.extents(t)) :])
    ]
    other = g.draw(st.sampled_from([*same, g.sketch.constant(shape[-1]), g.sketch.constant()]))
    return [g.sketch.same(g.draw(st.sampled_from(BINARY)), left, other)]


def _normalise(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    axis = g.draw(st.integers(0, len(g.extents(data)) - 1))
    return [g.sketch.same(g.draw(st.sampled_from(("softmax", "layer_norm", "rms_norm"))), data, axes=(axis,))]


def _reduce(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    axis = g.draw(st.integers(0, len(shape) - 1))
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    return [g.sketch.op("reduce", (data,), kept, axes=(axis,))]


def _reshape(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    if g.draw(st.booleans()) and len(shape) > 2:
        return [g.sketch.op("reshape", (data,), (prod(shape[:2]), *shape[2:]))]
    if shape[-1] % 8 == 0 and len(shape) < 4:
        return [g.sketch.op("reshape", (data,), (*shape[:-1], 8, shape[-1] // 8))]
    return [g.sketch.op("identity", (data,), shape)]


def _transpose(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    permutation = tuple(g.draw(st.permutations(range(len(shape)))))
    return [g.sketch.op("transpose", (data,), tuple(shape[i] for i in permutation), permutation=permutation)]


def _concat(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    axis = g.draw(st.integers(0, len(shape) - 1))
    others = [t for t in g.known if len(g.extents(t)) == len(shape)]
    fits = [
        t for t in others if all(a == b for i, (a, b) in enumerate(zip(g.extents(t), shape, strict=True)) if i != axis)
    ]
    other = g.draw(st.sampled_from(fits))
    total = shape[axis] + g.extents(other)[axis]
    return [g.sketch.op("concat", (data, other), (*shape[:axis], total, *shape[axis + 1 :]), axis=axis)]


def _halves(g: Growing) -> Made:
    """Two outputs; often one of them is read by nobody."""
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    axis = max(range(len(shape)), key=lambda i: shape[i])
    size = shape[axis] // 2
    parts = [(*shape[:axis], extent, *shape[axis + 1 :]) for extent in (size, shape[axis] - size)]
    outputs = tuple(g.sketch.tensor(part) for part in parts)
    g.sketch.ops.append(Op("split", "SPLIT", f"split{len(g.sketch.ops)}", (data,), outputs, {"axis": axis}))
    return [t for t in outputs if prod(g.extents(t))][: g.draw(st.integers(1, 2))]


def _slice(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    shape = g.extents(data)
    axis = g.draw(st.integers(0, len(shape) - 1))
    return [g.sketch.op("slice", (data,), (*shape[:axis], max(1, shape[axis] // 2), *shape[axis + 1 :]))]


def _conv(g: Growing) -> Made:
    data = g.pick(rank=4)
    if data is None:
        return _unary(g)
    groups = g.extents(data)[-1] if g.draw(st.booleans()) else 1
    channels = groups if groups > 1 else g.draw(st.sampled_from((8, 64)))
    return [g.sketch.conv(data, channels, kernel=g.draw(st.sampled_from((1, 3))), groups=groups)]


def _pool(g: Growing) -> Made:
    data = g.pick(rank=4)
    if data is None:
        return _normalise(g)
    batch, height, width, depth = g.extents(data)
    out = (batch, -(-height // 2), -(-width // 2), depth)
    return [g.sketch.op("max_pool", (data,), out, kernel=(2, 2), strides=(2, 2), channel_axis=3)]


def _gather(g: Growing) -> Made:
    """Rows of a table; the same table may be read again."""
    tables = [t for t in range(len(g.sketch.tensors)) if g.sketch.tensors[t].name.startswith("table")]
    fresh = g.sketch.constant(500, 64, name=f"table{len(tables)}")
    table = g.draw(st.sampled_from([fresh, *tables]))
    rows = g.draw(st.sampled_from(((2, 8), (16,))))
    indices = g.sketch.input(*rows, dtype=DType.I32)
    return [g.sketch.op("gather", (table, indices), (*rows, 64), axis=0)]


def _custom(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    return [g.sketch.op("custom", (data,), g.extents(data))]


def _cast(g: Growing) -> Made:
    data = g.pick()
    assert data is not None
    return [g.sketch.op("cast", (data,), g.extents(data))]


_STEPS = {
    "dense": _dense,
    "product": _product,
    "unary": _unary,
    "chain": _chain,
    "binary": _binary,
    "binary2": _binary,
    "normalise": _normalise,
    "reduce": _reduce,
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": _concat,
    "halves": _halves,
    "slice": _slice,
    "conv": _conv,
    "pool": _pool,
    "gather": _gather,
    "custom": _custom,
    "cast": _cast,
}


@st.composite
def graphs(draw: st.DrawFn, *, most_ops: int = 8) -> Graph:
    growing = Growing(draw)
    for _ in range(draw(st.integers(1, most_ops))):
        growing.grow()
    return growing.graph()
