"""One decoded inference as a Run: what is asked of every Run can be asked of it."""

from __future__ import annotations

from ...program.program import Program
from ...recording.run import CommandTable, Run, RunInfo
from ...recording.summary import Summary
from ...recording.trace import Trace


def run_of_inference(trace: Trace, program: Program, commands: CommandTable, summary: Summary) -> Run:
    """`commands` are those of the program, made once for all its inferences."""
    info = RunInfo(
        command=(),
        created="",
        model=program.model,
        sha256=None,
        target=program.target,
        provenance=trace.provenance,
        network=program.name,
        devices=program.devices,
        cores=program.cores,
        batch=program.batch,
        clocks_hz={"core": program.clock_hz, "stats": program.stats_hz},
        inferences=(),
        limits=limits_of(program),
    )
    return Run(info, program.ops, commands, trace, summary)


def limits_of(program: Program) -> dict[str, float]:
    """What the cores and devices of a program can do at the most."""
    rate = program.simulation.get("macs_per_cycle")
    limits = {} if rate is None else {"macs_per_s": rate * program.clock_hz * program.cores * program.devices}
    read = [route.bytes_per_cycle for route in program.routes if route.carries == "read"]
    return limits | ({"outer_bytes_per_s": max(read) * program.clock_hz * program.devices} if read else {})
