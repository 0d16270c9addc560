"""MACs against the slow, obvious count: walk the loops a naive kernel has, and count its multiplications."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.estimate.work import work_of
from opscope.graph.graph import Graph
from support.build import Sketch

few = settings(max_examples=60, deadline=None)
small = st.integers(1, 3)
terms = st.text("abcd", min_size=1, max_size=3).map(lambda word: "".join(sorted(set(word))))


def macs(graph: Graph) -> int:
    return work_of(graph.ops[-1], graph).macs


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, object]:
    rank = draw(st.integers(1, 3))
    groups = draw(small)
    return {
        "batch": draw(small),
        "spatial": tuple(draw(st.lists(st.integers(3, 5), min_size=rank, max_size=rank))),
        "kernel": tuple(draw(st.lists(small, min_size=rank, max_size=rank))),
        "strides": tuple(draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))),
        "groups": groups,
        "inputs": groups * draw(small),
        "outputs": groups * draw(small),
        "channels_last": draw(st.booleans()),
    }


def naive_convolution(data: np.ndarray, weights: np.ndarray, strides: Sequence[int], groups: int) -> tuple[int, int]:
    """Channels first, padded to keep the size before striding. Returns output elements and multiplications."""
    batch, channels, *spatial = data.shape
    count, depth, *kernel = weights.shape
    assert depth == channels // groups
    places = [range(0, extent, stride) for extent, stride in zip(spatial, strides, strict=True)]
    elements = multiplications = 0
    for _sample, _channel, _place in product(range(batch), range(count), product(*places)):
        elements += 1
        for _tap, _depth in product(product(*map(range, kernel)), range(depth)):
            multiplications += 1
    return elements, multiplications


def image(batch: int, channels: int, spatial: Sequence[int], *, last: bool) -> tuple[int, ...]:
    return (batch, *spatial, channels) if last else (batch, channels, *spatial)


@given(convolutions())
@few
def test_convolutions_count_like_the_loops_of_a_naive_kernel(case: dict[str, object]) -> None:
    spatial, kernel, strides, groups = case["spatial"], case["kernel"], case["strides"], case["groups"]
    last, batch = case["channels_last"], case["batch"]
    weights = np.zeros((case["outputs"], case["inputs"] // groups, *kernel))
    elements, expected = naive_convolution(np.zeros((batch, case["inputs"], *spatial)), weights, strides, groups)
    out = tuple(-(-extent // stride) for extent, stride in zip(spatial, strides, strict=True))
    sketch = Sketch()
    sketch.op(
        "conv",
        (sketch.input(*image(batch, case["inputs"], spatial, last=last)), sketch.constant(*weights.shape)),
        image(batch, case["outputs"], out, last=last),
        kernel=kernel,
        strides=strides,
        groups=groups,
        channel_axis=len(spatial) + 1 if last else 1,
    )
    assert prod(out) * batch * case["outputs"] == elements
    assert macs(sketch.graph()) == expected


@given(convolutions())
@few
def test_transposed_convolutions_scatter_every_input_over_the_kernel(case: dict[str, object]) -> None:
    spatial, kernel, strides, groups = case["spatial"], case["kernel"], case["strides"], case["groups"]
    last, batch = case["channels_last"], case["batch"]
    expected = 0
    for _sample, _channel, _place in product(range(batch), range(case["inputs"]), product(*map(range, spatial))):
        for _tap, _out in product(product(*map(range, kernel)), range(case["outputs"] // groups)):
            expected += 1
    out = tuple(extent * stride for extent, stride in zip(spatial, strides, strict=True))
    sketch = Sketch()
    sketch.op(
        "conv_transpose",
        (sketch.input(*image(batch, case["inputs"], spatial, last=last)), sketch.constant(1)),
        image(batch, case["outputs"], out, last=last),
        kernel=kernel,
        strides=strides,
        groups=groups,
        channel_axis=len(spatial) + 1 if last else 1,
    )
    assert macs(sketch.graph()) == expected


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
@few
def test_a_depthwise_convolution_sees_one_channel_at_a_time(side: int, channels: int, kernel: int) -> None:
    sketch = Sketch()
    sketch.depthwise(sketch.input(1, side, side, channels), kernel=kernel)
    assert macs(sketch.graph()) == side * side * channels * kernel * kernel


@given(
    st.lists(st.tuples(small, st.booleans(), st.booleans()), max_size=3), st.integers(1, 4), st.integers(1, 4), small
)
@few
def test_matrix_products_count_every_batch_once_however_it_is_broadcast(
    batch: list[tuple[int, bool, bool]], rows: int, inner: int, columns: int
) -> None:
    left = tuple(1 if one else extent for extent, one, _ in batch)
    right = tuple(1 if one else extent for extent, _, one in batch)
    result = np.matmul(np.zeros((*left, rows, inner)), np.zeros((*right, inner, columns)))
    expected = sum(1 for _ in np.ndindex(*result.shape) for _ in range(inner))
    sketch = Sketch()
    operands = (sketch.input(*left, rows, inner), sketch.input(*right, inner, columns))
    sketch.op("matmul", operands, result.shape, k=inner, n=columns)
    assert macs(sketch.graph()) == expected


def naive_einsum(words: list[str], result: str, extents: dict[str, int]) -> int:
    """Operands two at a time from the left: one multiplication per point of the loops over all their labels.

    Where no label is summed, nothing is accumulated.
    """
    if set("".join(words)) <= set(result):
        return 0
    multiplications, held = 0, words[0]
    for position, word in enumerate(words[1:], start=2):
        loops = sorted(set(held + word))
        multiplications += sum(1 for _ in product(*(range(extents[label]) for label in loops)))
        held = "".join(label for label in loops if label in result + "".join(words[position:]))
    return multiplications


@given(
    st.lists(terms, min_size=2, max_size=4),
    st.fixed_dictionaries(dict.fromkeys("abcd", small)),
    st.sets(st.sampled_from("abcd")),
    st.booleans(),
)
@few
def test_einsum_counts_the_loops_of_its_steps(
    words: list[str], extents: dict[str, int], wanted: set[str], explicit: bool
) -> None:
    used = "".join(words)
    kept = wanted & set(used) if explicit else {label for label in used if used.count(label) == 1}
    result = "".join(sorted(kept))
    shapes = [tuple(extents[label] for label in word) for word in words]
    equation = ",".join(words) + (f"->{result}" if explicit else "")
    made = np.einsum(equation, *(np.zeros(shape) for shape in shapes))
    sketch = Sketch()
    sketch.op("einsum", [sketch.input(*shape) for shape in shapes], made.shape, equation=equation)
    assert macs(sketch.graph()) == naive_einsum(words, result, extents)


@given(st.sampled_from(["lstm", "gru", "rnn"]), st.tuples(small, small, small, small, st.integers(1, 2)))
@few
def test_recurrent_ops_count_two_products_per_gate_and_step(kind: str, extents: tuple[int, ...]) -> None:
    steps, batch, inputs, hidden, directions = extents
    gates = {"lstm": "ifco", "gru": "zrh", "rnn": "h"}[kind]
    expected = 0
    for _direction, _step, _sample, _gate in product(range(directions), range(steps), range(batch), gates):
        expected += sum(1 for _ in product(range(hidden), range(inputs)))  # weights × data
        expected += sum(1 for _ in product(range(hidden), range(hidden)))  # recurrent weights × state
    sketch = Sketch()
    sizes = {"steps": steps, "batch": batch, "input_size": inputs, "hidden_size": hidden, "directions": directions}
    sketch.op(kind, (sketch.input(steps, batch, inputs),), (steps, directions, batch, hidden), **sizes)
    assert macs(sketch.graph()) == expected


@given(st.tuples(small, small, small, small, small, small))
@few
def test_attention_counts_a_dot_product_per_score_and_a_weighted_sum_per_value(extents: tuple[int, ...]) -> None:
    batch, heads, queries, keys, head, value = extents
    expected = 0
    for _sample, _head, _query in product(range(batch), range(heads), range(queries)):
        expected += sum(1 for _ in product(range(keys), range(head)))
        expected += sum(1 for _ in product(range(value), range(keys)))
    sketch = Sketch()
    sizes = {"batch": batch, "heads": heads, "query_length": queries, "key_length": keys, "head_size": head}
    data = sketch.input(batch, queries, heads * head)
    sketch.op("attention", (data,), (batch, queries, heads * value), **sizes, value_size=value)
    assert macs(sketch.graph()) == expected
