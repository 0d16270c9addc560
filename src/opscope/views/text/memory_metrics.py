"""What the compiler knows of memory, as text: constants, local memory, and traffic per core, port and in total."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from ...analysis.totals.program_traffic import ProgramTraffic
from ...program.program import Program, TrafficRow
from ...recording.unknown import unknown_of

MOST_OPS = 20  # that are listed
_PORTS = ("port01: host input", "port02: host output")


class MemoryMetricsText:
    """The block that `--perf-metrics` prints."""

    suffix = ".txt"

    def __init__(self, *, local: str, outer: str) -> None:
        """Names of the memories of the program's target: a core's own, and the one that holds the model."""
        self.local, self.outer = local, outer

    def render(self, program: Program, out: TextIO) -> None:
        traffic = ProgramTraffic.of(program)
        parts = (
            _header(program, self.local),
            _traffic(program, traffic, self.outer),
            _by_op(program, traffic, local=self.local, outer=self.outer),
        )
        out.write("".join(line + "\n" for part in parts for line in part))


def _header(program: Program, local: str) -> Iterable[str]:
    metrics = program.metrics
    least = "at least " if unknown_of(program.ops) else ""
    yield f"MAC estimate: {least}{metrics.macs}"
    yield "Graph operation size histogram:"
    yield "output elts    op count (cumulative)"
    total, seen = sum(metrics.size_histogram.values()) or 1, 0
    for size, count in sorted(metrics.size_histogram.items()):
        seen += count
        yield f"{size:>11} {seen:>19} {100 * seen // total:>3}%"
    yield f"constants size: {metrics.constants_bytes} B"
    for core, used in enumerate(metrics.local_bytes):
        yield f"{local}{core}Size:   {used} B"
    yield f"{local}MaxSize: {max(metrics.local_bytes, default=0)} B of {metrics.local_capacity} B"


def _traffic(program: Program, traffic: ProgramTraffic, outer: str) -> Iterable[str]:
    """Traffic per port, as the reference compiler prints it."""
    metrics = program.metrics
    rows = metrics.traffic
    first = metrics.first_read
    inputs, outputs = traffic.input_bytes, traffic.output_bytes
    yield program.name
    yield "Compiler estimated memory traffic:"
    yield "Port info:"
    yield from (f" {port}" for port in _PORTS)
    yield _line("host", "MC  traffic write", inputs)
    yield _line("port01", "MC  traffic write", inputs)
    yield _line("host", "MC  traffic  read", outputs)
    yield _line("port02", "MC  traffic  read", outputs)
    for row in rows:
        name = _core(program, row)
        share = first if row is rows[0] else 0
        yield _line(name, f"{outer} traffic  read", row.read, row.read + share)
        yield _line("", "constant only", row.read_constant, row.read_constant + share)
    yield from (_line(_core(program, row), f"{outer} traffic write", row.write) for row in rows)
    for row in rows:
        yield _line(_core(program, row), "MC  traffic write", row.multicast)
        yield _line("", "constant only", row.multicast_constant)
    yield from _totals(rows, first, inputs, outputs, outer)
    yield from (f"  {_core(program, row)} barriers: {metrics.barriers // max(1, len(rows)):>10}" for row in rows)


def _totals(rows: Sequence[TrafficRow], first: int, inputs: int, outputs: int, outer: str) -> Iterable[str]:
    """Of the cores and of the host."""
    read, constant = sum(row.read for row in rows), sum(row.read_constant for row in rows)
    yield _line("total", f"{outer} traffic  read", read, read + first)
    yield _line("", "constant only", constant, constant + first)
    yield _line("total", f"{outer} traffic write", sum(row.write for row in rows))
    yield _line("total", "MC  traffic  read", outputs)
    yield _line("total", "MC  traffic write", inputs + sum(row.multicast for row in rows))
    yield _line("", "constant only", sum(row.multicast_constant for row in rows))


def _by_op(program: Program, traffic: ProgramTraffic, *, local: str, outer: str) -> Iterable[str]:
    """Bytes that each op moves through outer memory, against what it writes locally."""
    yield f"{outer} and {local} traffic by op, most {outer} first:"
    yield f"{f'{outer} KB':>12} {f'{local} KB':>12}  op"
    for row in traffic.ops[:MOST_OPS]:
        op = program.ops[row.op]
        yield f"{row.outer_bytes / 1024:>12.0f} {row.local_bytes / 1024:>12.0f}  {op.type} {op.name[:120]}"


def _line(name: str, what: str, size: int, first: int | None = None) -> str:
    label = f"{name:>7}:" if name else " " * 8
    tail = f" (first-inf {first / 1024:>10.0f} KB)" if first is not None else ""
    return f"{label} {what:>17}: {size / 1024:>10.0f} KB{tail}"


def _core(program: Program, row: TrafficRow) -> str:
    core = f"c{row.core:02d}"
    return core if program.devices == 1 else f"d{row.device}{core}"
