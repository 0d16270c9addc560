"""What every question asks of a trace and its program: each command once, with its core, group and times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..program import NO_ROUTE, Program
from ..trace import SpanKind, Trace

Numbers = npt.NDArray[np.int64]
Spans = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class ProgramIndex:
    """Of a program, what summing up any of its inferences needs; made once."""

    program: Program
    row_keys: tuple[tuple[str, str, str, str], ...]  # kind, group, memory, types
    row_of: Numbers  # command → row of the op-kind table
    core_of: Numbers  # command → device × cores + core
    moves: npt.NDArray[np.bool_]
    is_flush: npt.NDArray[np.bool_]  # writes the statistics out: no work of the network

    @classmethod
    def of(cls, program: Program) -> ProgramIndex:
        commands = program.commands
        details: dict[tuple[str, str], int] = {}
        kind_of_detail = np.array(
            [details.setdefault((d.memory, d.types), len(details)) for d in program.details] or [0], np.int64
        )
        code = (commands["kind"].astype(np.int64) * len(program.groups) + commands["group"]) * max(len(details), 1)
        codes, row_of = np.unique(code + kind_of_detail[commands["detail"]], return_inverse=True)
        pairs = list(details)
        keys = []
        for number in codes.tolist():
            rest, pair = divmod(number, len(pairs))
            kind, group = divmod(rest, len(program.groups))
            keys.append((program.kinds[kind], program.groups[group].name, *pairs[pair]))
        flush = np.array(["endcyclestats" in kind or kind == "end_of_stats" for kind in program.kinds] or [False])
        return cls(
            program=program,
            row_keys=tuple(keys),
            row_of=row_of.reshape(-1).astype(np.int64),
            core_of=commands["device"].astype(np.int64) * program.cores + commands["core"],
            moves=commands["route"] != NO_ROUTE,
            is_flush=flush[commands["kind"]],
        )


@dataclass(frozen=True, slots=True)
class Work:
    """The spans of one inference by what they are. Made from a trace with one lane per thread group."""

    index: ProgramIndex
    trace: Trace
    ops: Spans  # lanes at work: computing, or issuing a transfer
    waits: Spans
    transfers: Spans  # in flight
    phases: Spans
    commands: Spans  # every command once: computing, or from its issue until its bytes have arrived

    @classmethod
    def of(cls, trace: Trace, index: ProgramIndex) -> Work:
        kind = trace.spans["kind"]
        ops, waits, transfers, phases = (
            trace.spans[kind == k] for k in (SpanKind.OP, SpanKind.WAIT, SpanKind.TRANSFER, SpanKind.PHASE)
        )
        computed = ops[~index.moves[ops["command"]]]
        return cls(index, trace, ops, waits, transfers, phases, np.concatenate((computed, transfers)))

    def core_windows(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(device, core) → start and end of its inference, in ns."""
        windows = {}
        for span in self.phases:
            lane = self.trace.lanes[span["lane"]]
            if lane.name == "Execution" and lane.core >= 0:
                windows[lane.device, lane.core] = (int(span["start_ns"]), int(span["end_ns"]))
        return windows


def total(keys: Numbers, weights: npt.NDArray[np.generic], count: int) -> Numbers:
    """Whole numbers added up per key."""
    return np.rint(np.bincount(keys, weights, minlength=count)).astype(np.int64)
