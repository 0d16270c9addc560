"""The machine that a graph is estimated, compiled or simulated for."""

from __future__ import annotations

import pytest

from opscope.compiler import compile_graph
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import at_clock_of, use_machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions
from support.build import Sketch


def products(*dtypes: DType) -> Graph:
    """A product of 64 rows for every data type, each with a float output."""
    draw = Sketch(dtype=DType.F16)
    outputs = []
    for number, dtype in enumerate(dtypes):
        left, right = draw.input(64, 128, dtype=dtype), draw.constant(128, 256, dtype=dtype)
        shape = (64, 256)
        outputs.append(draw.op("matmul", (left, right), shape, dtype=DType.F16, name=f"p{number}", k=128, n=256))
    return draw.graph(*outputs)


@pytest.mark.parametrize(
    ("dtypes", "integers"),
    [
        ((DType.I8,), True),
        ((DType.F16,), False),
        ((DType.I8, DType.F16), False),
        ((DType.I8, DType.I8, DType.F16), True),
    ],
)
def test_the_clock_is_that_of_what_most_products_are_of(dtypes: tuple[DType, ...], integers: bool) -> None:
    machine = use_machine("aic100-std")
    clocks, found = machine.target.clocks, at_clock_of(products(*dtypes), machine)
    assert found.target.clocks.core_hz == (clocks.integer_hz if integers else clocks.core_hz)


def test_a_target_with_one_clock_keeps_it() -> None:
    machine = use_machine("torq-sl2610")
    assert at_clock_of(products(DType.I8), machine) is machine


def test_estimate_and_program_have_the_same_clock() -> None:
    machine, graph = use_machine("aic100-std", cores=2), products(DType.I8)
    program = compile_graph(graph, machine, CompileOptions(cores=2))
    assert program.clock_hz == estimate(graph, machine).machine.clock_hz == machine.target.clocks.integer_hz.value  # type: ignore[union-attr]
