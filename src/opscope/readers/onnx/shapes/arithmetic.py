"""Shape rules of operators that compute: element by element, reductions, products, normalisations, recurrences."""

from __future__ import annotations

from collections.abc import Callable

from ..model import Element
from .call import Call, Open, Operand, Outputs, Shape, broadcast, checked, like

Rule = Callable[[Call], Outputs]


def same(call: Call) -> Outputs:
    return [like(call)]


def as_type(element: int) -> Rule:
    """Rule for the shape of input 0 with another element type."""
    return lambda call: [Operand(element, call.shape(0))]


def cast(call: Call) -> Outputs:
    return [Operand(call.node.integer("to", 0), call.shape(0))]


def cast_like(call: Call) -> Outputs:
    return [Operand(call.element(1), call.shape(0))]


def broadcast_all(call: Call) -> Outputs:
    """All operands broadcast; before opset 7 the second is aligned by `axis`, and the first decides."""
    if call.opset < 7 and call.node.integer("broadcast", 0):
        return [like(call)]
    return [Operand(call.element(0), broadcast(call, [call.shape(index) for index in range(len(call.operands))]))]


def broadcast_as(element: int) -> Rule:
    return lambda call: [Operand(element, broadcast_all(call)[0].shape)]


def where(call: Call) -> Outputs:
    return [Operand(call.element(1), broadcast_all(call)[0].shape)]


def quantize(call: Call) -> Outputs:
    element = call.element(2) if call.has(2) else call.node.integer("output_dtype", 0) or Element.UINT8
    return [Operand(element, call.shape(0))]


def dequantize(call: Call) -> Outputs:
    return [Operand(call.node.integer("output_dtype", 0) or call.element(1), call.shape(0))]


def dynamic_quantize(call: Call) -> Outputs:
    return [Operand(Element.UINT8, call.shape(0)), Operand(Element.FLOAT, ()), Operand(Element.UINT8, ())]


def dropout(call: Call) -> Outputs:
    return [like(call), Operand(Element.BOOL, call.shape(0))]


# -- reductions


def reduce(call: Call) -> Outputs:
    shape, axes = call.shape(0), call.axes()
    return [Operand(call.element(0), reduced(call, shape, axes))]


def reduced(call: Call, shape: Shape, axes: tuple[int, ...] | None) -> Shape:
    keeps = call.node.integer("keepdims", 1)
    if not axes:
        if call.node.integer("noop_with_empty_axes", 0):
            return shape
        axes = tuple(range(len(shape)))
    gone = {call.front_axis(axis, len(shape)) for axis in axes}
    if keeps:
        return tuple(1 if axis in gone else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in gone)


def arg_reduce(call: Call) -> Outputs:
    return [Operand(Element.INT64, reduced(call, call.shape(0), (call.node.integer("axis", 0),)))]


def top_k(call: Call) -> Outputs:
    shape = list(call.shape(0))
    axis = call.axis(len(shape), -1)
    shape[axis] = call.node.integer("k", 0) if call.opset < 10 else call.integer(1)
    out = checked(call, shape)
    return [Operand(call.element(0), out), Operand(Element.INT64, out)]


# -- products


def matmul_shape(call: Call, left: Shape, right: Shape) -> Shape:
    """NumPy's rule: a one-dimensional operand is a row on the left and a column on the right, and is removed again."""
    if not left or not right:
        raise call.mismatch("multiplies a scalar")
    a = (1, *left) if len(left) == 1 else left
    b = (*right, 1) if len(right) == 1 else right
    if a[-1] != b[-2]:
        raise call.mismatch(f"multiplies {'×'.join(map(str, left))} by {'×'.join(map(str, right))}")
    rows = (a[-2],) if len(left) > 1 else ()
    columns = (b[-1],) if len(right) > 1 else ()
    return (*broadcast(call, [a[:-2], b[:-2]]), *rows, *columns)


def matmul(a: int = 0, b: int = 1, *, like_input: int = 0, element: int = 0) -> Rule:
    """Rule for a product of two inputs; its type is `element`, or that of an input."""

    def rule(call: Call) -> Outputs:
        out = matmul_shape(call, call.shape(a), call.shape(b))
        return [Operand(element or call.element(like_input), out)]

    return rule


def gemm(a: int = 0, b: int = 1, *, element: int = 0) -> Rule:
    def rule(call: Call) -> Outputs:
        left, right = call.shape(a), call.shape(b)
        if len(left) != 2 or len(right) != 2:
            raise call.mismatch(f"multiplies {call.operand(a).text} by {call.operand(b).text}")
        left = left[::-1] if call.node.integer("transA", 0) else left
        right = right[::-1] if call.node.integer("transB", 0) else right
        return [Operand(element or call.element(a), matmul_shape(call, left, right))]

    return rule


def einsum(call: Call) -> Outputs:
    """Letters name axes; an ellipsis stands for the axes that are broadcast."""
    terms, arrow, result = call.node.text("equation", "").replace(" ", "").partition("->")
    words = terms.split(",")
    if len(words) != len(call.operands):
        raise call.mismatch(f"has {len(call.operands)} operands for {terms!r}")
    extents: dict[str, int] = {}
    hidden: list[Shape] = []
    for index, word in enumerate(words):
        shape = call.shape(index)
        before, dots, after = word.partition("...")
        count = len(shape) - len(before) - len(after)
        if count < 0 or (count and not dots):
            raise call.mismatch(f"reads {call.operand(index).text} as {word!r}")
        hidden.append(shape[len(before) : len(before) + count])
        for label, extent in zip(before + after, (*shape[: len(before)], *shape[len(before) + count :]), strict=True):
            if extents.get(label, 1) not in (1, extent) and extent != 1:
                raise call.mismatch(f"gives {label!r} two extents: {extents[label]} and {extent}")
            extents[label] = max(extent, extents.get(label, 1))
    if not arrow:  # the letters that occur once, sorted
        letters = terms.replace("...", "").replace(",", "")
        result = "..." + "".join(sorted(label for label in set(letters) if letters.count(label) == 1))
    before, _, after = result.partition("...")
    dots_shape = broadcast(call, hidden) if "..." in result else ()
    out = (*(extents.get(c, 1) for c in before), *dots_shape, *(extents.get(c, 1) for c in after))
    return [Operand(call.element(0), out)]


# -- normalisation


def batch_norm(call: Call) -> Outputs:
    """In training the running mean and variance come out too."""
    return [like(call), *(like(call, 3 + index % 2) for index in range(len(call.node.outputs) - 1))]


def layer_norm(call: Call) -> Outputs:
    shape = call.shape(0)
    axis = call.axis(len(shape), -1)
    statistic = Operand(call.node.integer("stash_type", 1), (*shape[:axis], *(1,) * (len(shape) - axis)))
    return [like(call), statistic, statistic]


# -- recurrent and attention


def recurrent(call: Call) -> Outputs:
    """Output (steps, directions, batch, hidden), then the last hidden state, then (LSTM) the last cell state."""
    data, weights = call.shape(0), call.shape(2)
    if len(data) != 3 or len(weights) != 3:
        raise call.mismatch(f"has data of {call.operand(0).text} and recurrent weights of {call.operand(2).text}")
    hidden = call.node.integer("hidden_size", 0) or weights[-1]
    directions, element = weights[0], call.element(0)
    if call.node.integer("layout", 0):
        batch, steps, _ = data
        state = Operand(element, (batch, directions, hidden))
        return [Operand(element, (batch, steps, directions, hidden)), state, state]
    steps, batch, _ = data
    state = Operand(element, (directions, batch, hidden))
    return [Operand(element, (steps, directions, batch, hidden)), state, state]


def attention(call: Call) -> Outputs:
    """Attention of opset 23: output, present key, present value, scores; three or four dimensions."""
    query, key, value = (call.shape(index) for index in range(3))
    past = call.shape(4)[2] if call.has(4) else 0
    element, node = call.element(0), call.node
    if len(query) == 4:
        tokens = past + key[2]
        heads, scores = key[1], (*query[:3], tokens)
        out: Shape = (*query[:3], value[3])
        sizes = key[3], value[3]
    else:
        q_heads, heads = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
        if q_heads < 1 or heads < 1:
            raise Open(f"{call.place} has no q_num_heads or kv_num_heads")
        tokens = past + key[1]
        scores = (query[0], q_heads, query[1], tokens)
        sizes = key[2] // heads, value[2] // heads
        out = (query[0], query[1], q_heads * sizes[1])
    cache = [Operand(element, (query[0], heads, tokens, size)) for size in sizes]
    return [Operand(element, out), *cache, Operand(element, scores)]
