"""State: a cache stays in outer memory, is read from there once, and is converted on the way."""

from __future__ import annotations

import pytest

from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph, Op, Role, Tensor
from opscope.machine import catalogue

KEYS, SIZE = 1 << 14, 128


def attention(stored: DType, keys: int = KEYS) -> Graph:
    """New keys go into a cache; queries are multiplied by all of it."""
    shape = (1, 8, keys, SIZE)
    tensors = [
        Tensor("past", shape, stored, Role.INPUT),
        Tensor("new", (1, 8, 1, SIZE), stored, Role.INPUT),
        Tensor("present", shape, stored, Role.ACTIVATION),
        Tensor("keys", (1, 8, SIZE, keys), DType.F16, Role.ACTIVATION),
        Tensor("query", (1, 8, 1, SIZE), DType.F16, Role.INPUT),
        Tensor("scores", (1, 8, 1, keys), DType.F16, Role.ACTIVATION),
    ]
    ops = [Op("dynamic_update", "Update", "update", (0, 1), (2,))]
    read = 2
    if stored is not DType.F16:
        ops.append(Op("dequantize", "Dequantize", "convert", (2,), (3,)))
        read = 3
    ops.append(Op("matmul", "MatMul", "product", (4, read), (5,), {"k": SIZE, "n": keys}))
    return Graph("attention", "", "made", tuple(ops), tuple(tensors), (0, 1, 4), (5, 2))


def on(target: str, stored: DType) -> Estimate:
    return estimate(attention(stored), use_machine(catalogue.load(target)))


@pytest.mark.parametrize("target", ["aic100-std", "qcs8275"])
@pytest.mark.parametrize("stored", [DType.F16, DType.I8])
def test_a_cache_passes_the_outer_memory_once_in_the_bytes_that_it_has(target: str, stored: DType) -> None:
    moved = sum(layer.traffic.get("DDR", 0) for layer in on(target, stored).layers)
    assert moved == pytest.approx(8 * KEYS * SIZE * stored.bits // 8, rel=0.02)


def test_a_cache_is_not_handed_over_with_every_call() -> None:
    machine = use_machine(catalogue.load("qcs8275"))
    long, short = (estimate(attention(DType.F16, keys), machine).call.total for keys in (KEYS, KEYS // 4))
    scores = 8 * (KEYS - KEYS // 4) * 2  # which are given out
    rate = machine.target.call_bytes_per_second
    assert rate is not None
    assert long - short == pytest.approx(scores / rate.value * machine.clock_hz)
