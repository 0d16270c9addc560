"""Operands are where they are when a command works on them."""

from __future__ import annotations

from opscope.core.meaning import Carries, Direction, Does
from opscope.graph.graph import DType
from opscope.program.program import NO_ROUTE
from support.build import Sketch
from support.compiler.build import KB, build, small_target


def test_what_computes_has_local_operands_and_copies_have_the_outer_end() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.dense(draw.input(64, 512), 512, bias=False))
    program = build(graph, small_target(local_bytes=256 * KB), cores=2).program
    outer = {number for number, memory in enumerate(program.memories) if memory.is_outer}
    ends: dict[Carries, set[tuple[Direction, str]]] = {}
    for command in program.commands:
        operands = program.details[command["detail"]].operands
        if command["route"] != NO_ROUTE:
            carries = program.routes[command["route"]].carries
            if carries in (Carries.READ, Carries.WRITE):
                assert {operand.memory for operand in operands} <= outer
                ends.setdefault(carries, set()).update((operand.direction, operand.role) for operand in operands)
        elif command["does"] == Does.COMPUTE:
            assert operands
            assert not {operand.memory for operand in operands} & outer
    assert ends == {Carries.READ: {(Direction.IN, "Src")}, Carries.WRITE: {(Direction.OUT, "Dest")}}
