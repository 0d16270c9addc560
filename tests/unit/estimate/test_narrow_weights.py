"""Weights of few bits that floats meet: converted on their way to the product, unless the engine takes them."""

from __future__ import annotations

from dataclasses import replace

from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph, Op, Role, Tensor
from opscope.machine import catalogue
from opscope.machine.target import Target


def product(weights: DType, data: DType = DType.F16) -> Graph:
    tensors = (
        Tensor("x", (1, 4096), data, Role.INPUT),
        Tensor("w", (4096, 4096), weights, Role.CONSTANT),
        Tensor("y", (1, 4096), data, Role.ACTIVATION),
    )
    op = Op("matmul", "MatMul", "product", (0, 1), (2,), {"k": 4096, "n": 4096})
    return Graph("product", "", "made", (op,), tensors, (0,), (2,))


def seconds(graph: Graph, target: Target) -> float:
    found = estimate(graph, use_machine(target)).totals.latency_s
    assert found is not None
    return found.value


def test_integers_become_floats_where_floats_meet_them() -> None:
    graph = product(DType.I4)
    work = work_of(graph.ops[0], graph)
    assert (work.packed_bytes, work.unpacked_bytes, work.unpacked_by) == (1 << 23, 1 << 25, "dequantize")
    assert work.weight_bytes == 1 << 25
    same = product(DType.I8, DType.I8)
    assert work_of(same.ops[0], same).unpacked_bytes == 0


def test_converting_takes_time_unless_the_engine_widens_weights_itself() -> None:
    target = catalogue.for_language_models(catalogue.load("rk3576"))
    assert target.engines[0].widens_weights
    apart = replace(target, engines=(replace(target.engines[0], widens_weights=False), *target.engines[1:]))
    assert seconds(product(DType.I4), apart) > 1.3 * seconds(product(DType.I4), target)
    assert seconds(product(DType.F16), apart) == seconds(product(DType.F16), target)
