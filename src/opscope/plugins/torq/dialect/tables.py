"""Torq's tables of times: what the compiler expects (versions A, B, C) and what a run on the device took.

| file | separator | columns |
|---|---|---|
| compile time, A | `,` | ID, start, end, location, op type; no header; the columns of the vendor's manual |
| compile time, B | `,` | the same, bytes behind the rows of transfers, and the slice in the ID |
| compile time, C | `,` | taskId, elapsed, timestamp, event, location, bytes; cycles, though its header says us |
| runtime (`--torq_profile`) | `;` | id, time_since_open, time_since_start, location; one row per NSS program |
| host (`--torq_profile_host`) | `,` | dispatch_name, invocation_id, action_id, timestamp_us, event |

A location that holds commas or quotes is quoted as CSV has it. The vendor's files are not: by this ours are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

from ....program.program import NO_ROUTE, Program
from ....program.sequence import SequencerJob, SequencerStep, Unit
from .sequenced import Ran, Scheduled, fused_location

VERSIONS = ("A", "B", "C")
C_HEADER = "taskId, elapsed_time(us), timestamp(us), event, location, bytes"
RUNTIME_HEADER = "id;time_since_open;time_since_start;location"
HOST_HEADER = "dispatch_name,invocation_id,action_id,timestamp_us,event"

_ROUNDING = 1e-9  # a quotient that should be whole is this near to it
_TRANSFERS = (Unit.READ, Unit.WRITE, Unit.BRING, Unit.FETCH)
_PREFIXES = {Unit.READ: "DI", Unit.WRITE: "DO", Unit.BRING: "CDMA_L2D", Unit.FETCH: "CDMA_D2L"}
_TYPES = {
    Unit.READ: "DMA_IN",
    Unit.WRITE: "DMA_OUT",
    Unit.BRING: "CDMA_LRAM_TO_DTCM",
    Unit.FETCH: "CDMA_DTCM_TO_LRAM",
    Unit.APART: "CSS",
}
_EVENTS = {
    Unit.READ: "DMA In",
    Unit.WRITE: "DMA Out",
    Unit.BRING: "CDMA LRAM to DTCM",
    Unit.FETCH: "CDMA DTCM to LRAM",
    Unit.APART: "CSS",
}


def dispatch_name(program: Program) -> str:
    """The one dispatch that a program is."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in program.name)
    return f"{plain or 'main'}_dispatch_0"


def step_location(program: Program, step: SequencerStep) -> str:
    return program.ops[step.op].location if 0 <= step.op < len(program.ops) else "loc(unknown)"


def job_location(program: Program, job: SequencerJob) -> str:
    return fused_location([program.ops[op].location for op in job.ops if op < len(program.ops)])


def quoted(text: str) -> str:
    """A field of a comma-separated file."""
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n') else text


def step_cycles(program: Program, step: SequencerStep) -> int:
    """What a start takes: a transfer, its bytes at the route's rate, rounded up as the vendor does."""
    row = program.commands[step.command]
    if row["route"] == NO_ROUTE:
        return int(row["cycles"])
    exact: float = int(row["moved_bytes"]) / program.routes[row["route"]].core_bytes_per_cycle
    return max(1, ceil(exact - _ROUNDING))


def compile_table(scheduled: Scheduled, version: str) -> str:
    """The compiler's expectation: transfers in the order of their start, then slices, then the CSS."""
    rows = list(_compile_rows(scheduled, version))
    return "".join(f"{row}\n" for row in ([C_HEADER, *rows] if version == "C" else rows))


def _compile_rows(scheduled: Scheduled, version: str) -> Iterator[str]:
    started = list(scheduled.sequence.starts())
    for units in (_TRANSFERS, (Unit.COMPUTE,), (Unit.APART,)):
        chosen = [(task, step) for task, step in started if step.unit in units]
        for number, (task, step) in enumerate(chosen):
            yield _compile_row(scheduled, version, number, task.number, step)


def _compile_row(scheduled: Scheduled, version: str, number: int, task: int, step: SequencerStep) -> str:
    program, command = scheduled.program, step.command
    start = round(scheduled.timeline.start[command])
    end = start + step_cycles(program, step)
    location = quoted(step_location(program, step))
    size = str(program.commands["moved_bytes"][command]) if step.unit in _TRANSFERS else ""
    if version == "C":
        event = f"Slice {step.number}" if step.unit is Unit.COMPUTE else _EVENTS[step.unit]
        return f"{task},{end - start},{start},{event},{location},{size}"
    kind = _TYPES.get(step.unit, program.kinds[program.commands["kind"][command]])
    row = f"{_identity(step, number, version)},{start},{end},{location},{kind}"
    return f"{row},{size}" if version == "B" and size else row


def _identity(step: SequencerStep, number: int, version: str) -> str:
    if step.unit in _PREFIXES:
        return f"{_PREFIXES[step.unit]}{number}"
    if step.unit is Unit.APART:
        return f"CSS{number}"
    return f"S{number}_{step.number}" if version == "B" else f"S{number}"


def _microseconds(program: Program, cycles: float) -> int:
    return floor(cycles / program.clock_hz * 1e6)


def runtime_table(ran: Ran) -> str:
    """One row per NSS program: when it ended since the device was opened, and how long it took."""
    program, lines = ran.program, [RUNTIME_HEADER]
    for job, (begin, end) in zip(ran.sequence.jobs, ran.bounds, strict=True):
        first, last = (_microseconds(program, cycles) for cycles in (begin, end))
        lines.append(f"{job.number};{last};{last - first};{job_location(program, job)}")
    return "".join(f"{line}\n" for line in lines)


def host_table(ran: Ran) -> str:
    """Events of the host in order of time. What the host itself takes is not modelled: it takes no time."""
    rows = [HOST_HEADER, *(",".join(map(str, row)) for row in _host_rows(ran))]
    return "".join(f"{row}\n" for row in rows)


def _host_rows(ran: Ran) -> Iterator[tuple[str, int, int, int, str]]:
    """Events of the host's log: dispatch, invocation, action, microseconds and the event's name."""
    name, program = dispatch_name(ran.program), ran.program
    end = max((_microseconds(program, last) for _, last in ran.bounds), default=0)

    def scope(
        invocation: int, time: int, words: Sequence[str], dispatch: str = name
    ) -> Iterator[tuple[str, int, int, int, str]]:
        return ((dispatch, invocation, -1, time, word) for word in words)

    yield from scope(
        0,
        0,
        [
            "INIT_BEGIN",
            "INIT_HW_OPEN_BEGIN",
            "INIT_HW_OPEN_END",
            "INIT_LOAD_CODE_SEGMENTS_BEGIN",
            "INIT_LOAD_CODE_SEGMENTS_END",
            "INIT_END",
        ],
    )
    yield from scope(1, 0, ["HAL_CALL_BEGIN"], "__HAL_QUEUE_EXECUTE__")
    yield from scope(2, 0, ["DISPATCH_BEGIN", "DISPATCH_EXECUTE_ACTIONS_BEGIN"])
    yield from ((name, 2, 0, 0, f"ALLOC_{word}") for word in ("BEGIN", "END"))
    for job, (begin, last) in zip(ran.sequence.jobs, ran.bounds, strict=True):
        started, done = _microseconds(program, begin), _microseconds(program, last)
        yield from ((name, 2, start_action(job), started, f"NSS_START_{word}") for word in ("BEGIN", "END"))
        yield name, 2, start_action(job) + 1, started, "NSS_WAIT_BEGIN"
        yield name, 2, start_action(job) + 1, done, "NSS_WAIT_END"
    released = start_action(len(ran.sequence.jobs))
    yield from ((name, 2, released, end, f"DEALLOC_{word}") for word in ("BEGIN", "END"))
    yield from scope(2, end, ["DISPATCH_EXECUTE_ACTIONS_END", "DISPATCH_END"])
    yield from scope(1, end, ["HAL_CALL_END"], "__HAL_QUEUE_EXECUTE__")


def start_action(job: SequencerJob | int) -> int:
    """Number of the action that starts a job; its wait is the next one. Action 0 allocates, the last one releases."""
    return 1 + 2 * (job if isinstance(job, int) else job.number)
