"""Inputs that are made up for a runtime on this machine's CPU."""

from __future__ import annotations

import pytest

from opscope.backends.host_cpu import ports_of
from opscope.core.errors import UsageError
from opscope.core.random_arrays import random_arrays
from opscope.graph.graph import DType, Graph, Role, Tensor


def reading(dtype: DType, *shape: int) -> Graph:
    return Graph("m", "m.onnx", "ONNX", (), (Tensor("x", shape, dtype, Role.INPUT),), (0,), ())


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(DType.STRING, {"0", "1"}), (DType.I64, {0, 1}), (DType.BOOL, {False, True})],
)
def test_words_and_indices_are_0_or_1(dtype: DType, values: set[object]) -> None:
    (array,) = random_arrays(ports_of(reading(dtype, 8, 8), "m.onnx"), seed=1)
    assert set(array.ravel().tolist()) == values


@pytest.mark.parametrize("dtype", [DType.STRING, DType.F32])
def test_an_input_larger_than_any_machine_is_refused_before_it_is_made(dtype: DType) -> None:
    with pytest.raises(UsageError, match=r"^m\.onnx: input 'x' is .*; expected one of .*, of at most 16 GB$"):
        ports_of(reading(dtype, 10**6, 10**6), "m.onnx")


def test_a_type_without_arrays_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^m\.onnx: input 'x' is bf16 of \(2,\); expected one of f64, .*string"):
        ports_of(reading(DType.BF16, 2), "m.onnx")
