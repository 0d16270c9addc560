"""One compiler for several machines gives what a new one for each would, and lowers less for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from build import Sketch
from compiler_build import KB, small_target
from opscope.compiler import Compiler, compile_graph
from opscope.compiler.codegen.lower import Lowering
from opscope.estimate.precision import with_precision
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Corner, at_corner
from opscope.options import CompileOptions
from opscope.program.program_file import encode_program

OPTIONS = CompileOptions(stats_level=70)


def network(batch: int = 4) -> Graph:
    draw = Sketch(dtype=DType.F32)
    data = draw.input(batch, 16, 16, 32, name="image")
    for number in range(3):
        data = draw.same("relu", draw.conv(data, 32, kernel=3, name=f"conv{number}"))
    return draw.graph(draw.same("softmax", data))


@pytest.mark.parametrize("corner", list(Corner))
@pytest.mark.parametrize("name", ["aic100-std", "torq-sl2610"])
def test_a_corner_is_timed_again_to_the_program_that_compiling_for_it_gives(name: str, corner: Corner) -> None:
    target, graph = targets.load(name), network()
    again = Compiler(graph)
    again.compile(Machine(target), OPTIONS)
    fresh = compile_graph(graph, Machine(at_corner(target, corner)), OPTIONS)
    assert encode_program(again.compile(Machine(target), OPTIONS, corner=corner)) == encode_program(fresh)


@pytest.mark.parametrize("kb", [64, 160, 1024])
def test_other_cores_and_types_are_as_if_nothing_was_compiled_before(kb: int) -> None:
    target, graph = small_target(local_bytes=kb * KB), network()
    again = Compiler(graph)
    for machine in (Machine(target), Machine(target, cores=4), Machine(with_precision(target, "i8")), Machine(target)):
        fresh = compile_graph(graph, machine, OPTIONS)
        assert encode_program(again.compile(machine, OPTIONS)) == encode_program(fresh)


def test_a_corner_with_the_same_decisions_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, run = [], Lowering.run

    def counted(self: Lowering, *, below: float = float("inf")) -> bool:
        lowered.append(self)
        return run(self, below=below)

    monkeypatch.setattr(Lowering, "run", counted)
    compiler, machine = Compiler(network()), Machine(targets.load("aic100-std"))
    compiler.compile(machine, OPTIONS)
    first = len(lowered)
    for corner in (Corner.FAST, Corner.SLOW):
        compiler.compile(machine, OPTIONS, corner=corner)
    assert first
    assert len(lowered) == first


def test_a_corner_at_which_another_engine_wins_is_compiled_anew() -> None:
    target = targets.load("aic100-std")
    slow = tuple(
        replace(
            engine, macs_per_cycle={key: replace(f, low=f.value * 1e-6) for key, f in engine.macs_per_cycle.items()}
        )
        for engine in target.engines[:1]
    )
    target, graph = replace(target, engines=(*slow, *target.engines[1:])), network()
    again = Compiler(graph)
    again.compile(Machine(target), OPTIONS)
    fresh = compile_graph(graph, Machine(at_corner(target, Corner.SLOW)), OPTIONS)
    assert encode_program(again.compile(Machine(target), OPTIONS, corner=Corner.SLOW)) == encode_program(fresh)
