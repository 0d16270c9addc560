"""A program file that is whole, but says impossible things."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.core.errors import ProgramError
from opscope.program.check import check_program
from opscope.program.program import Group, Program
from opscope.program.program_file import decode_program, encode_program
from support.decode.build import small


def changed(column: str, value: int) -> Program:
    program = small().program
    commands = program.commands.copy()
    commands[column][4] = value
    return replace(program, commands=commands)


@pytest.mark.parametrize("column", ["device", "core", "group", "route", "kind", "op", "detail"])
def test_an_index_past_the_end_is_named(column: str) -> None:
    with pytest.raises(ProgramError, match=rf"^q: command 4: {column} is \d+; expected"):
        check_program(changed(column, 100), source="q")


def test_a_file_with_such_an_index_is_refused_as_soon_as_it_is_read() -> None:
    with pytest.raises(ProgramError, match=r"^q: command 4: detail is 100; expected 0 to"):
        decode_program(encode_program(changed("detail", 100)), source="q")


def test_commands_out_of_order_are_refused() -> None:
    with pytest.raises(ProgramError, match="command 4: out of order"):
        check_program(changed("ordinal", 7), source="q")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"devices": 0}, "devices is 0; expected 1 to 65535"),
        ({"cores": 10**6}, "cores is 1000000; expected 1 to 65535"),
        ({"cores": 60_000, "devices": 60_000}, "lanes for 10 commands"),
        ({"stats_hz": float("nan")}, "stats_hz is nan; expected a positive number"),
        ({"groups": (Group("HVX", "HVX", 4), Group("HMX", "HMX", 0), Group("DMAIssue", "", 1))}, "has no threads"),
        ({"dependency_sources": np.full(7, 99, np.uint32)}, "depends on command 99; expected below 10"),
        ({"dependency_kinds": np.ones(3, np.uint8)}, "3 dependency_kinds; expected 7, as dependency_sources"),
        ({"dependency_offsets": np.full(11, 3, np.uint32)}, "dependency_offsets run from 3 to 3; expected 0 to 7"),
    ],
)
def test_counts_rates_and_dependencies_are_checked(change: dict[str, object], words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check_program(replace(small().program, **change), source="q")  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_a_program_of_the_compiler_is_accepted() -> None:
    check_program(small().program, source="q")


def test_why_a_cost_is_unknown_survives_the_file_and_a_file_without_it_says_nothing() -> None:
    program = small().program
    assert all(not op.unknown for op in decode_program(encode_program(program), source="q").ops)
    odd = replace(program, ops=(replace(program.ops[0], unknown="data decide it"), *program.ops[1:]))
    found = decode_program(encode_program(odd), source="q").ops
    assert [op.unknown for op in found[:2]] == ["data decide it", ""]
    assert found == odd.ops
