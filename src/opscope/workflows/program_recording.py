"""Program, and what a device told of it → Recording."""

from __future__ import annotations

from ..analysis.totals.summarise import limits_of
from ..core.provenance import Provenance
from ..core.target_words import OUR_WORDS
from ..program.program import Program
from ..recording.build import program_ops, to_run, withheld
from ..recording.recording import Recording, empty_trace
from ..recording.run import CommandTable, Run
from ..recording.summary import Latency, Summary
from ..recording.trace import Trace

PROVENANCE = Provenance.SIMULATED  # nothing but the simulated device writes this format yet
NO_TOTALS = Summary(Latency(None, None, None, PROVENANCE), None, None)


def recording_of(
    program: Program, trace: Trace, totals: Summary, *, numbers: tuple[int, ...] = (), maker: str = "sim"
) -> Recording:
    """What a device told of a program that it ran; of what its totals do not tell, they say so."""
    totals = withheld(totals, program.ops)
    return Recording(
        maker=maker,
        provenance=PROVENANCE,
        trace=trace,
        ops=program_ops(program.ops, totals),
        network=program.name,
        target=program.target,
        words=program.words or OUR_WORDS,
        limits=limits_of(program),
        clocks_hz={"core": program.clock_hz, "stats": program.stats_hz},
        devices=program.devices,
        cores=program.cores,
        batch=program.batch,
        inferences=len(numbers) or None,
        numbers=numbers,
        notes=program.notes,
        commands=CommandTable.of(program),
        totals=totals,
        bounds=program.bounds,
    )


def head_of(program: Program) -> Run:
    """A run of a program before it ran: what timelines of its samples have in common."""
    return to_run(recording_of(program, empty_trace(PROVENANCE), NO_TOTALS), command=(), created="", sha256=None)
