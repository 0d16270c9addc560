"""Times of nodes, inference by inference → commands and Trace: the same nouns as of every other run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Does, LaneRole
from ..core.provenance import Provenance
from ..program.program import COMMAND, NO_ROUTE, Detail, OpCycles
from ..recording.recording import ResourceCycles
from ..recording.run import CommandTable
from ..recording.trace import COUNTER, EDGE, Lane, SpanKind, Trace, blank_spans

EXECUTION = "Execution"  # the lane that says when an inference started and ended, as in every decoded trace


@dataclass(frozen=True, slots=True)
class Stretches:
    """Columns: one row per stretch of work of one command."""

    command: Numbers
    inference: Numbers
    start_ns: Numbers
    end_ns: Numbers


@dataclass(frozen=True, slots=True)
class Command:
    """What ran: a node of the runtime's own graph."""

    op: int  # position in Recording.ops
    name: str
    kernel: str
    attributes: str = ""
    cycles: int | None = None
    macs: int = 0
    resource_cycles: tuple[ResourceCycles, ...] = ()
    does: Does = Does.UNKNOWN


def build_timeline(
    lane: str,
    commands: Sequence[Command],
    work: Stretches,
    *,
    edges: Sequence[tuple[int, int]] = (),
    phases: Stretches | None = None,
    provenance: Provenance,
) -> tuple[CommandTable, Trace]:
    """One lane of work that runs in order, and one with the inferences as a whole.

    Args:
        edges: commands, from the one that writes to the one that reads.
        phases: start and end of every inference; `command` is not used.
    """
    kinds = {command.kernel: number for number, command in enumerate({c.kernel: c for c in commands}.values())}
    pairs = np.array(sorted(set(edges), key=lambda pair: (pair[1], pair[0])), np.int64).reshape(-1, 2)
    rows = _commands(commands, kinds)
    details = [Detail(c.name, "", "", "", (), c.attributes) for c in commands]
    table = CommandTable.from_details(
        rows, details, kinds=tuple(kinds), groups=(lane,), op_cycles=tuple(_op_cycles(commands))
    )
    return table, _trace(table, commands, work, phases, pairs, provenance)


def _op_cycles(commands: Sequence[Command]) -> Iterator[OpCycles]:
    for number, command in enumerate(commands):
        for part in command.resource_cycles:
            yield OpCycles(command.op, part.resource, part.is_memory, part.cycles, number)


def _commands(commands: Sequence[Command], kinds: dict[str, int]) -> npt.NDArray[np.void]:
    table = np.zeros(len(commands), COMMAND)
    table["route"] = NO_ROUTE
    table["op"] = [command.op for command in commands]
    table["kind"] = [kinds[command.kernel] for command in commands]
    table["detail"] = table["ordinal"] = np.arange(len(commands))
    table["cycles"] = [min(command.cycles or 0, 0xFFFF_FFFF) for command in commands]
    table["macs"] = [command.macs for command in commands]
    table["does"] = [command.does for command in commands]
    return table


def _trace(  # noqa: PLR0917 – the columns come from as many places
    table: CommandTable,
    commands: Sequence[Command],
    work: Stretches,
    phases: Stretches | None,
    pairs: Numbers,
    provenance: Provenance,
) -> Trace:
    """Spans of work on one lane, of inferences on another; times count from the first of them."""
    origin = min((int(part.start_ns.min(initial=1 << 62)) for part in (work, phases) if part), default=0)
    spans = blank_spans(len(work.command))
    spans["kind"], spans["command"], spans["inference"] = SpanKind.OP, work.command, work.inference
    for column, of_command in (("op", "op"), ("name", "kind"), ("does", "does")):
        spans[column] = table.rows[of_command][work.command]
    spans["start_ns"], spans["end_ns"] = work.start_ns - origin, work.end_ns - origin
    if all(command.cycles is not None for command in commands):
        cycles = np.array([command.cycles for command in commands], np.int64)
        spans["ucycles"] = spans["pcycles"] = cycles[work.command]
    lanes, names = [Lane(0, 0, table.groups[0], role=LaneRole.ENGINE)], table.kinds
    if phases is not None:
        whole = blank_spans(len(phases.inference))
        whole["lane"], whole["kind"], whole["name"] = 1, SpanKind.PHASE, len(names)
        whole["inference"] = phases.inference
        whole["start_ns"], whole["end_ns"] = phases.start_ns - origin, phases.end_ns - origin
        spans = np.concatenate((spans, whole))
        lanes, names = [*lanes, Lane(0, 0, EXECUTION, role=LaneRole.EXECUTION)], (*names, EXECUTION)
    edges = np.zeros(len(pairs), EDGE)
    edges["source"], edges["target"], edges["data"] = pairs[:, 0], pairs[:, 1], True
    return Trace(tuple(lanes), names, spans, edges, (), np.zeros(0, COUNTER), provenance)
