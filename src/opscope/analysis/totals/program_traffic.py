"""What a program moves before anything runs: bytes of its inputs and outputs, and traffic of every op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.graph import bytes_of
from ...program.program import NO_OP, Port, Program


@dataclass(frozen=True, slots=True)
class OpTraffic:
    """Bytes of the commands of one op."""

    op: int  # position in Program.ops
    outer_bytes: int  # through routes that serve outer memory
    local_bytes: int  # written by all other commands


@dataclass(frozen=True, slots=True)
class ProgramTraffic:
    """Bytes that one inference moves."""

    input_bytes: int  # over the link to the host
    output_bytes: int
    ops: tuple[OpTraffic, ...]  # most outer traffic first

    @classmethod
    def of(cls, program: Program) -> ProgramTraffic:
        inputs, outputs = program.link_ports
        return cls(_port_bytes(inputs), _port_bytes(outputs), tuple(_of_ops(program)))


def _port_bytes(ports: Sequence[Port]) -> int:
    return sum(bytes_of(dtype, shape) for _, dtype, shape in ports)


def _of_ops(program: Program) -> list[OpTraffic]:
    table = program.commands[program.commands["op"] != NO_OP]
    is_outer = np.isin(table["route"], [n for n, route in enumerate(program.routes) if route.carries.is_outer])
    count = len(program.ops)
    outer = np.bincount(table["op"][is_outer], table["moved_bytes"][is_outer], minlength=count)
    local = np.bincount(table["op"][~is_outer], table["out_bytes"][~is_outer], minlength=count)
    rows = [OpTraffic(op, round(outer[op]), round(local[op])) for op in np.unique(table["op"]).tolist()]
    return sorted(rows, key=lambda row: (-row.outer_bytes, row.op))
