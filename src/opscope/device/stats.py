"""Timeline → Capture: the stats buffer that the device leaves, with the sections of the stats level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError
from ..program.capture import Capture
from ..program.check import fault
from ..program.program import OP_LEVEL, OP_PMU_LEVEL, PORT_LEVEL, THREAD_LEVEL, Program
from ..program.wire import (
    DDR_RECORD,
    DOORBELL_RECORD,
    INPUT_PORT,
    LOST_RECORD,
    OP_PMU_RECORD,
    OP_RECORD,
    OUTPUT_PORT,
    PMU_RECORD,
    PORT_RECORD,
    THREAD_RECORD,
    StatsFlag,
    StatsSection,
)
from ..simulation import Timeline
from .activation import activate_ticks
from .counters import Event, command_counters, counted_events, route_bytes, thread_counters
from .lane_times import LaneTimes, device_lanes

Records = npt.NDArray[np.void]

MOST_BUFFER_BYTES = 2**32  # a larger buffer is a broken program, or needs capacity_records
_SEMAPHORE, _INPUT, _OUTPUT = "semaphoreinc", "inputsemaphoreinc", "outputsemaphoreinc"  # in the names of kinds
_U32 = 0xFFFFFFFF
_LAST_TICK = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Inference:
    """Identity and timing of one inference, the same in the stats buffers of all its devices."""

    program_id: int  # identifies the program file, so that a decoder can match buffer and program
    activation: int  # number of the instance of the program on the device
    number: int
    start_tick: int  # statistics timer at its start
    input_wait_ticks: int = 0  # time the device waited for the input before it started
    output_wait_ticks: int = 0  # time the device waits for the host to take the output

    def __post_init__(self) -> None:
        for name in ("start_tick", "input_wait_ticks", "output_wait_ticks"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} {getattr(self, name)}: negative; expected 0 or more")


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Parameters shared by all sections of one capture."""

    program: Program
    inference: Inference
    input_cores: frozenset[int]
    output_cores: frozenset[int]
    capacity_records: int | None
    events: tuple[Event, ...]

    def sections(self, core: int, lanes: list[LaneTimes]) -> Iterator[tuple[StatsSection, Records]]:
        """Yield the sections of one core that the stats level includes."""
        level, stats = self.program.stats.level, self.program.stats
        if level >= THREAD_LEVEL:
            yield StatsSection.THREADS, self.threads(core, lanes)
            yield StatsSection.PMU, thread_counters(self.program, self.events, lanes)
            if stats.ddr:
                yield StatsSection.DDR, self.ddr(lanes)
        if level >= PORT_LEVEL:
            yield StatsSection.PORTS, self.ports(core)
            yield StatsSection.DOORBELLS, self.doorbells(core)
            kept = [self.kept(lane) for lane in lanes]
            yield StatsSection.OPS, _concatenate(OP_RECORD, [self.ops(*pair) for pair in zip(lanes, kept, strict=True)])
            yield (
                StatsSection.LOST,
                _concatenate(LOST_RECORD, [self.lost(*pair) for pair in zip(lanes, kept, strict=True)]),
            )
            if level >= OP_PMU_LEVEL:
                parts = [command_counters(self.program, self.events, *pair) for pair in zip(lanes, kept, strict=True)]
                yield StatsSection.OP_PMU, _concatenate(OP_PMU_RECORD, parts)

    def threads(self, core: int, lanes: list[LaneTimes]) -> Records:
        records = np.zeros(sum(lane.threads for lane in lanes), THREAD_RECORD)
        records["thread"] = np.arange(len(records))
        records["activate"] = activate_ticks(self.program, core)
        records["start"] = self.inference.start_tick
        for lane in lanes:
            own = slice(lane.first_thread, lane.first_thread + lane.threads)
            end = np.array([lane.window])
            records["group"][own] = lane.group
            records["end"][own] = self.inference.start_tick + int(lane.clock.ticks(end)[0])
            records["pcycles"][own] = lane.clock.pcycles(end)[0]
        return records

    def ddr(self, lanes: list[LaneTimes]) -> Records:
        ticks = max((int(lane.clock.ticks(np.array([lane.window]))[0]) for lane in lanes), default=0)
        row = (route_bytes(self.program, lanes, "read"), route_bytes(self.program, lanes, "write"), ticks)
        return np.array([row], DDR_RECORD)

    def ports(self, core: int) -> Records:
        """Record the waits of thread 0 for the host's doorbells, on cores with inputs or outputs."""
        rows = []
        if core in self.input_cores:
            rows.append((0, INPUT_PORT, min(self.inference.input_wait_ticks, _U32)))
        if core in self.output_cores:
            rows.append((0, OUTPUT_PORT, min(self.inference.output_wait_ticks, _U32)))
        return np.array(rows, PORT_RECORD)

    def doorbells(self, core: int) -> Records:
        """Record the doorbell of the input, which starts the inference."""
        rung = core in self.input_cores
        return np.array([(INPUT_PORT, (0, 0, 0), self.inference.start_tick)][: int(rung)], DOORBELL_RECORD)

    def kept(self, lane: LaneTimes) -> npt.NDArray[np.bool_]:
        """Return the commands that are recorded; a full buffer ends with the last command that fits on all threads."""
        asked = self.asked(lane)
        if self.capacity_records is None:
            return asked
        kept: npt.NDArray[np.bool_] = asked & (np.cumsum(asked) <= self.capacity_records // lane.threads)
        return kept

    def asked(self, lane: LaneTimes) -> npt.NDArray[np.bool_]:
        """Return the commands that the stats level includes: all, or semaphore commands only."""
        if self.program.stats.level >= OP_LEVEL:
            return np.ones(len(lane.commands), np.bool_)
        return _has_kind(self.program, lane.commands, _SEMAPHORE)

    def ops(self, lane: LaneTimes, kept: npt.NDArray[np.bool_]) -> Records:
        records = np.zeros((int(kept.sum()), lane.threads), OP_RECORD)
        records["ordinal"] = lane.commands["ordinal"][kept][:, None]
        records["thread"] = lane.first_thread + np.arange(lane.threads)
        records["group"] = lane.group
        records["start"] = (self.inference.start_tick + lane.clock.ticks(lane.start))[kept][:, None]
        records["ucycles"] = np.minimum(lane.ucycles[kept], _U32)  # 32-bit counters saturate
        records["pcycles"] = np.minimum(lane.pcycles[kept], _U32)
        records["wait"] = np.minimum(lane.wait_ticks[kept], _U32)[:, None]
        records["barrier"] = np.minimum(lane.barrier_ticks[kept], _U32)
        records["blocker"] = (1 + lane.blocker[kept])[:, None]
        return records.reshape(-1)

    def lost(self, lane: LaneTimes, kept: npt.NDArray[np.bool_]) -> Records:
        """Return one record per thread of a lane whose commands did not fit."""
        missing = lane.commands["ordinal"][self.asked(lane) & ~kept]
        if not len(missing):
            return np.zeros(0, LOST_RECORD)
        threads = range(lane.first_thread, lane.first_thread + lane.threads)
        return np.array([(thread, lane.group, missing[0], len(missing)) for thread in threads], LOST_RECORD)


def collect(
    program: Program, timeline: Timeline, inference: Inference, *, device: int, capacity_records: int | None = None
) -> Capture:
    """Return the stats buffer that one inference leaves on one device.

    Args:
        program: the program that ran; its stats options select what is recorded.
        timeline: the result of `simulate` for the same program.
        inference: its number and timing.
        device: the device whose buffer is returned.
        capacity_records: op records per lane that fit in the buffer; later ones are lost.
    """
    _check_call(program, timeline, inference, device, capacity_records)
    recorder = _Recorder(
        program=program,
        inference=inference,
        input_cores=_port_cores(program, device, _INPUT),
        output_cores=_port_cores(program, device, _OUTPUT),
        capacity_records=capacity_records,
        events=counted_events(program),
    )
    _check_header(program)
    _check_size(program, device)
    sections: dict[tuple[StatsSection, int], Records] = {}
    for core, lanes in enumerate(device_lanes(program, timeline, device)):
        sections.update({(kind, core): records for kind, records in recorder.sections(core, lanes) if len(records)})
    return Capture(
        program_id=inference.program_id,
        device=device,
        cores=program.cores,
        threads=sum(group.threads for group in program.groups),
        level=program.stats.level,
        flags=_flags(program, sections),
        activation=inference.activation,
        inference=inference.number,
        batch_size=program.stats.batch_size,
        stats_hz=program.stats_hz,
        sections=sections,
    )


def _check_call(
    program: Program, timeline: Timeline, inference: Inference, device: int, capacity_records: int | None
) -> None:
    if not 0 <= device < program.devices:
        raise UsageError(f"device {device}: the program has {program.devices}; expected 0 to {program.devices - 1}")
    if capacity_records is not None and capacity_records < 0:
        raise UsageError(f"capacity_records {capacity_records}: negative; expected 0 or more")
    if len(timeline.done) != len(program.commands):
        raise UsageError(f"timeline of {len(timeline.done)} commands; expected {len(program.commands)}, as the program")
    if inference.start_tick + timeline.total_cycles * program.stats_hz / program.clock_hz >= _LAST_TICK:
        raise UsageError(
            f"start_tick {inference.start_tick}: the timer would overflow; expected less than {_LAST_TICK}"
        )


def _flags(program: Program, sections: dict[tuple[StatsSection, int], Records]) -> StatsFlag:
    flags = StatsFlag(0)
    if program.stats.level >= THREAD_LEVEL:
        flags |= StatsFlag.DDR if program.stats.ddr else StatsFlag(0)
        flags |= StatsFlag.PMU if program.stats.events else StatsFlag(0)
    if any(kind is StatsSection.LOST for kind, _ in sections):
        flags |= StatsFlag.LOST
    return flags


def _check_header(program: Program) -> None:
    limits = (("stats level", program.stats.level, 0xFFFF), ("stats batch size", program.stats.batch_size, _U32))
    for name, value, most in (*limits, ("stats_hz", program.stats_hz, 1e15)):
        if not 0 <= value <= most:
            raise fault(program, f"{name} is {value}; expected 0 to {most:.15g}")


def _check_size(program: Program, device: int) -> None:
    """Refuse a huge buffer before it is allocated: a file of a few kilobytes could ask for all memory."""
    events = len(program.stats.events)
    threads = np.array([group.threads for group in program.groups], np.float64)
    size = program.cores * threads.sum() * (THREAD_RECORD.itemsize + events * PMU_RECORD.itemsize)
    if program.stats.level >= OP_LEVEL:
        commands = program.commands[program.commands["device"] == device]
        record = OP_RECORD.itemsize
        record += events * OP_PMU_RECORD.itemsize if program.stats.level >= OP_PMU_LEVEL else 0
        size += (np.bincount(commands["group"], minlength=len(threads)) * threads).sum() * record
    if size > MOST_BUFFER_BYTES:
        raise fault(
            program,
            f"stats level {program.stats.level} needs a buffer of {size:.3g} bytes; expected at most "
            f"{MOST_BUFFER_BYTES}: choose a lower level or fewer events",
        )


def _port_cores(program: Program, device: int, kind: str) -> frozenset[int]:
    """Return the cores of a device with a command of this kind; core 0 if the whole program has none."""
    chosen = program.commands[_has_kind(program, program.commands, kind)]
    on_device = chosen[chosen["device"] == device]
    return frozenset(np.unique(on_device["core"]).tolist()) if len(chosen) else frozenset({0})


def _has_kind(program: Program, commands: Records, text: str) -> npt.NDArray[np.bool_]:
    """Mark the commands whose kind contains the text."""
    wanted = np.array([text in kind for kind in program.kinds] + [False], np.bool_)
    chosen: npt.NDArray[np.bool_] = wanted[commands["kind"]]
    return chosen


def _concatenate(dtype: np.dtype[np.void], parts: list[Records]) -> Records:
    return np.concatenate([np.zeros(0, dtype), *parts])
