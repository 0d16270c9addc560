"""One compiler for several machines gives what a new one for each would, and lowers less for it."""

from __future__ import annotations

import gc
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from opscope.compiler import PASSES, Compiler, compile_graph
from opscope.compiler.codegen.lower import Lowering, lower
from opscope.compiler.passes.schedule import schedule
from opscope.compiler.plan import Plan
from opscope.core.errors import UsageError
from opscope.estimate.precision import with_precision
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.corners import Corner, at_corner
from opscope.options import CompileOptions
from opscope.program.program_file import encode_program
from support.build import Sketch
from support.compiler.build import KB, small_target

OPTIONS = CompileOptions(stats_level=70)


def network(batch: int = 4) -> Graph:
    draw = Sketch(dtype=DType.F32)
    data = draw.input(batch, 16, 16, 32, name="image")
    for number in range(3):
        data = draw.same("relu", draw.conv(data, 32, kernel=3, name=f"conv{number}"))
    return draw.graph(draw.same("softmax", data))


@pytest.mark.parametrize("corner", list(Corner))
@pytest.mark.parametrize("name", ["aic100-std", "torq-sl2610"])
def test_a_corner_has_the_same_commands_and_its_own_cycles(name: str, corner: Corner) -> None:
    compiler, machine = Compiler(network()), Machine(targets.load(name))
    typical, found = (compiler.compile(machine, OPTIONS, corner=each) for each in (Corner.TYPICAL, corner))
    for column in set(typical.commands.dtype.names or ()) - {"cycles"}:
        assert np.array_equal(found.commands[column], typical.commands[column]), column
    assert np.array_equal(found.dependency_sources, typical.dependency_sources)
    cycles, before = found.commands["cycles"].astype(np.int64), typical.commands["cycles"].astype(np.int64)
    slower = {Corner.FAST: cycles <= before, Corner.TYPICAL: cycles == before, Corner.SLOW: cycles >= before}
    assert slower[corner].all()


def test_cycles_of_a_corner_are_those_of_compiling_for_it_where_decisions_are_the_same() -> None:
    """One product on one core: there is nothing to decide."""
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.same("softmax", draw.dense(draw.input(8, 256), 256), axes=(1,)))
    target = targets.load("aic100-std")
    for corner in (Corner.FAST, Corner.SLOW):
        again = Compiler(graph).compile(Machine(target), OPTIONS, corner=corner)
        fresh = compile_graph(graph, Machine(at_corner(target, corner)), OPTIONS)
        assert again.commands["cycles"].tolist() == fresh.commands["cycles"].tolist()


def test_cycles_that_no_command_can_have_are_refused() -> None:
    target = targets.load("aic100-std")
    slow = tuple(
        replace(
            engine, macs_per_cycle={key: replace(f, low=f.value * 1e-6) for key, f in engine.macs_per_cycle.items()}
        )
        for engine in target.engines
    )
    compiler, machine = Compiler(network()), Machine(replace(target, engines=slow))
    with pytest.raises(UsageError, match=r"^aic100-std: one command takes [\d,]+ cycles at the end of its figures'"):
        compiler.compile(machine, OPTIONS, corner=Corner.SLOW)


@pytest.mark.parametrize("kb", [64, 160, 1024])
def test_other_cores_and_types_are_as_if_nothing_was_compiled_before(kb: int) -> None:
    target, graph = small_target(local_bytes=kb * KB), network()
    again = Compiler(graph)
    for machine in (Machine(target), Machine(target, cores=4), Machine(with_precision(target, "i8")), Machine(target)):
        fresh = compile_graph(graph, machine, OPTIONS)
        assert encode_program(again.compile(machine, OPTIONS)) == encode_program(fresh)


def test_a_target_without_a_kernel_is_as_if_nothing_was_compiled_before_for_one_with_it() -> None:
    """Masks are added inside the softmax where an engine has the kernel for both."""
    draw, target = Sketch(dtype=DType.F16), targets.load("aic100-std")
    masked = draw.op("add", (draw.same("relu", draw.input(1, 4, 8, 16)), draw.input(1, 1, 8, 16)), (1, 4, 8, 16))
    graph = draw.graph(draw.same("softmax", masked, axes=(3,)))
    without = replace(
        target,
        engines=tuple(
            replace(each, kernels={kind: figure for kind, figure in each.kernels.items() if kind != "masked_softmax"})
            for each in target.engines
        ),
    )
    again = Compiler(graph)
    for machine in (Machine(target), Machine(without), Machine(target)):
        fresh = compile_graph(graph, machine, OPTIONS)
        assert encode_program(again.compile(machine, OPTIONS)) == encode_program(fresh)


def test_a_corner_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, run = [], Lowering.run

    def counted(self: Lowering) -> None:
        lowered.append(self)
        run(self)

    monkeypatch.setattr(Lowering, "run", counted)
    compiler, machine = Compiler(network()), Machine(targets.load("aic100-std"))
    told: dict[Corner, list[tuple[str, Plan]]] = {corner: [] for corner in Corner}
    counts = []
    for corner in (Corner.TYPICAL, Corner.FAST, Corner.SLOW):
        compiler.compile(machine, OPTIONS, corner=corner, after_pass=lambda *step, to=told[corner]: to.append(step))
        counts.append(len(lowered))
    assert counts[0]
    assert counts == counts[:1] * 3
    assert told[Corner.TYPICAL] == told[Corner.FAST] == told[Corner.SLOW]
    assert [name for name, _ in told[Corner.SLOW]] == [name for name, _ in PASSES]


def test_a_lowering_that_is_dropped_is_freed_at_once() -> None:
    """Tilings are tried one after the other: what waits for the collector of cycles would fill the memory."""
    plans: list[Plan] = []
    machine = Machine(targets.load("aic100-std"))
    compile_graph(network(), machine, CompileOptions(), after_pass=lambda _, plan: plans.append(plan))
    planned = schedule(plans[-1])
    gc.disable()
    try:
        dropped = ref(lower(planned).context)
        assert dropped() is None
    finally:
        gc.enable()
