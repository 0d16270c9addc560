"""What commands and ops of Sophgo's compiler do."""

from __future__ import annotations

import pytest

from opscope.core.meaning import Does
from opscope.graph.kinds import KINDS
from opscope.plugins.sophgo.meaning import _OPCODES, does_of, does_of_op


@pytest.mark.parametrize("opcode", ["Gather", "GatherElements", "ScatterND", "Pack", "Unpack", "Shape", "Arange"])
def test_ops_that_only_move_data_compute_nothing(opcode: str) -> None:
    assert does_of_op(opcode) is Does.LAYOUT
    assert does_of("AR", opcode) is Does.LAYOUT


def test_an_op_that_nobody_knows_is_unknown_and_its_commands_are_what_their_kind_is() -> None:
    assert does_of_op("Frobnicate") is Does.UNKNOWN
    assert does_of("CONV", "Frobnicate") is Does.COMPUTE
    assert does_of("FROB", "Conv2D") is Does.UNKNOWN


def test_ops_are_listed_once_by_kinds_that_exist() -> None:
    listed = [opcode for opcodes in _OPCODES.values() for opcode in opcodes.split()]
    assert len(listed) == len(set(listed))
    assert _OPCODES.keys() <= KINDS.keys()
