"""Rewrites of pooling, on drawn shapes and windows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.rewrites.weighted_models import model, rewrite_to

SHAPES = st.lists(st.integers(1, 6), min_size=3, max_size=5)
POOLS = st.sampled_from(["Average", "Max"])
OPSETS = st.sampled_from([11, 13, 17, 18, 21])
REDUCED = {"Average": "ReduceMean", "Max": "ReduceMax"}


@settings(max_examples=12)
@given(SHAPES, POOLS, OPSETS, st.sampled_from(["float", "float16"]))
def test_pooling_all_of_a_picture_has_four_forms(shape: list[int], pool: str, opset: int, dtype: str) -> None:
    made = model(f"T{shape} x", "T[] y", f"y = Global{pool}Pool(x)", opset=opset, dtype=dtype)
    tolerance = 1e-5 if dtype == "float" else 4e-3
    assert rewrite_to(made, "global-pool-to-reduce", tolerance=tolerance) == [REDUCED[pool]]
    assert rewrite_to(made, "global-pool-to-window", tolerance=tolerance) == [f"{pool}Pool"]
    if pool == "Average":
        found = rewrite_to(made, "global-average-to-matmul", tolerance=tolerance)
        assert found == ["Reshape", "MatMul", "Reshape"]
    else:
        found = rewrite_to(made, "reduce-max-by-axis")
        assert found == (["ReduceMax"] * (len(shape) - 2) if len(shape) > 3 else ["GlobalMaxPool"])


@settings(max_examples=10)
@given(SHAPES, POOLS, OPSETS, st.booleans(), st.booleans())
def test_what_reduces_all_of_a_picture_is_pooling(
    shape: list[int], pool: str, opset: int, kept: bool, negative: bool
) -> None:
    shape = [*shape, 2] if len(shape) == 3 else shape
    axes = [axis - len(shape) if negative else axis for axis in range(2, len(shape))]
    text = f"axes = {axes}, " if opset < 18 else ""
    constants = {"a": axes} if opset >= 18 else {}
    body = f"y = {REDUCED[pool]} <{text}keepdims = {int(kept)}> (x{', a' if constants else ''})"
    made = model(f"T{shape} x", "T[] y", body, opset=opset, **constants)
    assert rewrite_to(made, "reduce-to-global-pool") == [f"Global{pool}Pool", *([] if kept else ["Flatten"])]
    if pool == "Max":
        assert rewrite_to(made, "reduce-max-by-axis") == ["ReduceMax"] * (len(shape) - 2)


@settings(max_examples=8)
@given(SHAPES, POOLS, st.sampled_from([0, 1]))
def test_a_window_as_large_as_the_picture_is_all_of_it(shape: list[int], pool: str, less: int) -> None:
    kernel = [max(1, extent - less) for extent in shape[2:]]
    made = model(f"T{shape} x", "T[] y", f"y = {pool}Pool <kernel_shape = {kernel}> (x)")
    found = rewrite_to(made, "window-to-global-pool")
    assert found == [f"Global{pool}Pool" if kernel == shape[2:] else f"{pool}Pool"]


@settings(max_examples=14)
@given(
    st.tuples(st.integers(1, 24), st.integers(1, 24)),
    st.integers(1, 16),
    st.tuples(st.integers(0, 10), st.integers(0, 10)),
    st.booleans(),
)
def test_a_large_window_is_a_chain_of_small_ones(
    kernel: tuple[int, int], stride: int, pads: tuple[int, int], beside: bool
) -> None:
    strides = list(kernel) if beside else [stride, 1]
    begins = [min(pads[0], size - 1) for size in kernel]
    ends = [min(pads[1], size - 1) for size in kernel]
    body = f"y = MaxPool <kernel_shape = {list(kernel)}, strides = {strides}, pads = {begins + ends}> (x)"
    found = rewrite_to(model("T[1,2,25,30] x", "T[] y", body), "split-large-max-pool")
    assert set(found) == {"MaxPool"}
    if max(kernel) <= 5:
        assert found == ["MaxPool"]


@pytest.mark.parametrize(
    ("size", "stride", "pad", "stages"), [(13, 1, 6, 3), (14, 14, 0, 3), (16, 16, 0, 2), (9, 2, 0, 2)]
)
def test_known_windows_are_split(size: int, stride: int, pad: int, stages: int) -> None:
    body = f"y = MaxPool <kernel_shape = [{size}, {size}], strides = [{stride}, {stride}], pads = {[pad] * 4}> (x)"
    assert rewrite_to(model("T[1,2,32,32] x", "T[] y", body), "split-large-max-pool") == ["MaxPool"] * stages


@settings(max_examples=8)
@given(st.lists(st.sampled_from([1, 3, 5, 7, 9, 13]), min_size=2, max_size=4, unique=True))
def test_pools_of_one_value_are_chained(sizes: list[int]) -> None:
    names = [f"p{size}" for size in sizes]
    pools = [
        f"p{size} = MaxPool <kernel_shape = [{size}, {size}], strides = [1, 1], pads = {[size // 2] * 4}> (x)"
        for size in sizes
    ]
    body = f"{' '.join(pools)} y = Concat <axis = 1> (x, {', '.join(names)})"
    found = rewrite_to(model("T[1,2,12,10] x", "T[] y", body), "share-max-pools")
    assert found == ["MaxPool"] * len(sizes) + ["Concat"]


@settings(max_examples=10)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(1, 3), st.integers(0, 3), st.booleans(), OPSETS)
def test_an_average_that_counts_padding_is_a_convolution(
    kernel: tuple[int, int], stride: int, pad: int, counted: bool, opset: int
) -> None:
    pads = [min(pad, size - 1) for size in kernel] * 2
    body = (
        f"y = AveragePool <kernel_shape = {list(kernel)}, strides = {[stride] * 2}, pads = {pads},"
        f" count_include_pad = {int(counted)}> (x)"
    )
    found = rewrite_to(model("T[2,3,8,9] x", "T[] y", body, opset=opset), "average-pool-to-conv")
    assert found == ["Conv" if counted or not any(pads) else "AveragePool"]


def test_pools_whose_places_are_read_stay() -> None:
    body = "y, i = MaxPool <kernel_shape = [8, 8]> (x)"
    made = model("T[1,2,8,8] x", "T[] y, int64[] i", body)
    for rewrite in ("split-large-max-pool", "window-to-global-pool"):
        assert rewrite_to(made, rewrite) == ["MaxPool"]
