"""What a program moves: ports by the sizes of their types, ops by what their commands move and write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.analysis.totals.program_traffic import OpTraffic, ProgramTraffic
from opscope.program.program import OpInfo
from support.device.build import COPY, DMA, READ, Step, program_of


@pytest.mark.parametrize(
    ("dtype", "size"), [("i4", 50), ("f8e4m3", 100), ("f16", 200), ("c128", 1600), ("bool", 100), ("string", 0)]
)
def test_a_port_has_the_bytes_of_its_type(dtype: str, size: int) -> None:
    program = replace(program_of([Step()]), inputs=(("x", dtype, (10, 10)),), outputs=(("y", dtype, (5, 10)),))
    traffic = ProgramTraffic.of(program)
    assert (traffic.input_bytes, traffic.output_bytes) == (size, size // 2)


def test_ops_come_by_what_they_move_through_outer_memory() -> None:
    program = program_of([Step(), Step(), Step(group=DMA, route=READ, moved_bytes=40, kind=COPY)])
    commands = program.commands.copy()
    commands["op"], commands["out_bytes"] = (0, 1, 1), (7, 5, 9)
    program = replace(program, commands=commands, ops=(OpInfo("a", "", "", ""), OpInfo("b", "", "", "")))
    assert ProgramTraffic.of(program).ops == (OpTraffic(1, 40, 5), OpTraffic(0, 0, 7))
