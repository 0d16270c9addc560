"""A row that names an op with its shapes → a graph of that op alone, for measurements op by op.

Shapes are those of the inputs and, behind an arrow, of the result: `1x32x128x768;768x3072->1x32x128x3072`. A product or
an elementwise op needs no result. The second operand of a convolution is its weights; that of a product is, where it
has two axes longer than 1 and the first one has more, so that all of its rows share it. An attention has queries, keys
and values of four axes: batch, heads, rows and size of a head.

A data type is that of all operands, or one for each, as shapes are: `bf16;bfp8->bf16`. So is where they lie: `local`,
in the memory beside the engines, or `outer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..graph.graph import Attribute, DType, Graph, Op, Role, Tensor
from ..graph.kinds import KINDS, Family

Shape = tuple[int, ...]
OUTER, LOCAL = "outer", "local"  # where an operand lies
_LABELS = {dtype.label: dtype for dtype in DType if dtype.is_number}
_MOST_ELEMENTS = 1 << 40
_MOST_DIGITS = 9  # of an extent


def op_graph(kind: str, shapes: str, dtype: str, source: str, memory: str = OUTER) -> Graph:
    """The graph; a ValueError says what is wrong with a row."""
    if kind not in KINDS or KINDS[kind].family in (Family.CONTROL, Family.OPAQUE, Family.RECURRENT):
        raise ValueError(
            f"op_type is {kind!r}; expected a kind that has a cost: conv, matmul, add, softmax, transpose …"
        )
    given, _, result = shapes.partition("->")
    inputs = [_shape(part) for part in given.split(";") if part]
    if not inputs:
        raise ValueError("shapes has no input; expected 1x128x768;768x3072->1x128x3072")
    output = _shape(result) if result else _result(kind, inputs)
    types = _words(dtype, len(inputs), "dtype", tuple(_LABELS))
    places = _words(memory, len(inputs), "memory", (OUTER, LOCAL))
    roles = [Role.INPUT if place == OUTER else Role.ACTIVATION for place in places]
    if len(inputs) > 1 and (kind in ("conv", "conv_transpose") or (kind == "matmul" and _is_shared(inputs))):
        roles[1] = Role.CONSTANT
    last = len(inputs)
    names = ["weights" if role is Role.CONSTANT else f"input{n}" for n, role in enumerate(roles[:-1])]
    tensors = [
        Tensor(name, shape, _LABELS[label], role)
        for name, shape, label, role in zip(names, inputs, types[:-1], roles[:-1], strict=True)
    ]
    tensors.append(Tensor("output", output, _LABELS[types[-1]], Role.ACTIVATION))
    op = Op(kind, kind, kind, tuple(range(last)), (last,), _attributes(kind, inputs, output))
    held = tuple(n for n, role in enumerate(roles[:-1]) if role is Role.INPUT)
    made = (last,) if places[-1] == OUTER else ()
    return Graph(
        name=kind, source=source, framework="row", ops=(op,), tensors=tuple(tensors), inputs=held, outputs=made
    )


def _words(text: str, inputs: int, column: str, known: Sequence[str]) -> list[str]:
    """A word for each input and one for the result: one text tells all, or `a;b->c` each."""
    given, arrow, result = text.partition("->")
    words = [*given.split(";"), result] if arrow else [text] * (inputs + 1)
    strange = next((word for word in words if word not in known), None)
    if strange is not None:
        raise ValueError(f"{column} is {strange!r}; expected one of {', '.join(known)}")
    if len(words) != inputs + 1:
        raise ValueError(f"{column} has {len(words) - 1} inputs and shapes {inputs}; expected as many, or one word")
    return words


def _shape(text: str) -> Shape:
    numbers = text.strip().split("x")
    if not all(number.isdecimal() and len(number) <= _MOST_DIGITS and int(number) > 0 for number in numbers):
        raise ValueError(f"shapes has {text!r}; expected extents above 0, as 1x128x768")
    shape = tuple(int(number) for number in numbers)
    if prod(shape) > _MOST_ELEMENTS:
        raise ValueError(f"shapes has {text!r}; expected at most {_MOST_ELEMENTS} elements")
    return shape


def _result(kind: str, inputs: list[Shape]) -> Shape:
    if kind == "matmul" and len(inputs) > 1:
        return (*inputs[0][:-1], inputs[1][-1])
    if kind in ("conv", "conv_transpose"):
        raise ValueError("shapes of a convolution has no result; expected ->1x64x112x112 behind its inputs")
    return max(inputs, key=prod)


def _is_shared(inputs: list[Shape]) -> bool:
    return prod(inputs[1][:-2]) == 1 and len(inputs[1]) > 1


def _attributes(kind: str, inputs: list[Shape], output: Shape) -> dict[str, Attribute]:
    if kind == "matmul":
        return {"k": inputs[0][-1], "n": output[-1]}
    if kind in ("conv", "conv_transpose"):
        if len(inputs) < 2 or len(inputs[1]) < 3 or not len(inputs[0]) == len(inputs[1]) == len(output):
            raise ValueError(
                "shapes of a convolution do not fit each other; expected 1x3x224x224;64x3x7x7->1x64x112x112"
            )
        groups = max(1, inputs[0][1] // inputs[1][1])
        return {"kernel": inputs[1][2:], "groups": groups, "channel_axis": 1}
    if kind == "attention":
        if len(inputs) < 3 or any(len(shape) != 4 for shape in inputs[:3]):
            raise ValueError(
                "shapes of an attention do not tell its heads; expected 1x12x128x64;1x12x128x64;1x12x128x64"
            )
        (batch, heads, rows, size), keys, values = inputs[:3]
        extents = {"query_length": rows, "key_length": keys[2], "head_size": size, "value_size": values[3]}
        return {"batch": batch, "heads": heads, **extents}
    if kind == "transpose":
        return _order(inputs[0], output)
    if kind in ("max_pool", "average_pool"):
        return {"kernel": (max(1, prod(inputs[0]) // max(1, prod(output))),), "channel_axis": 1}
    return {}


def _order(before: Shape, after: Shape) -> dict[str, Attribute]:
    """Which axis of the input each axis of the result is, where shapes tell: the last one in its place, or the last two
    changed. Where nothing seems to have moved, two equal ones have."""
    count = len(before)
    last = count - 2 if count > 1 and before[-2:] == after[:-3:-1] else count - 1
    if count < 2 or sorted(before) != sorted(after) or before[last] != after[-1]:
        return {}
    left = [axis for axis in range(count) if axis != last]
    order = []
    for extent in after[:-1]:
        axis = next(axis for axis in left if before[axis] == extent)
        left.remove(axis)
        order.append(axis)
    return {"permutation": (*order, last)}
