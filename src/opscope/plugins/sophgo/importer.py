"""Files of tpu-mlir → Recording: the schedule of one core or of several, with what the compiler says of its ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.columns import Numbers
from ...core.errors import ImportFileError, UsageError
from ...core.provenance import Provenance
from ...core.sums import whole_sum
from ...importers.column_trace import Clock
from ...importers.formats import find_format
from ...recording.build import lane_totals
from ...recording.recording import CLOCK, LATENCY, Metric, OpRecord, Recording
from ...recording.summary import Latency, MemoryTotal, Summary
from .chips import CHIPS
from .compiled_files import Compiled, merged, read_mlir, read_placements
from .manifest import FINAL_MLIR, PLACEMENTS, PROFILE
from .meaning import DDR, LOCAL
from .ops import OpRows, compiled_ops, kernels, totals_of, with_commands
from .profile_file import GIB_AS_GHZ, Profile, checks, model_gib_per_s, moved_bytes, read_profile, told_bytes
from .timeline import Schedule

TOOL = "tpu-mlir"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The schedules of all cores of one compilation; the timeline is that of the longest."""

    profiles: tuple[Profile, ...]
    longest: int  # position in `profiles`
    clock: Clock
    compiled: Compiled

    @property
    def cores(self) -> int:
        return len(self.profiles)


def scheduled(profiles: Sequence[Profile], compiled: Compiled) -> Scheduled:
    """Profiles of one compilation: every file has the total of the longest core."""
    totals = {profile.cycles for profile in profiles}
    if len(totals) > 1:
        raise UsageError(
            f"{profiles[0].source}, {profiles[1].source}: totals of {' and '.join(map(str, sorted(totals)))} cycles; "
            "expected the files of one compilation"
        )
    chip = CHIPS.get(compiled.chip or "")
    hz = profiles[0].clock_hz or (chip.clock_hz if chip else None)
    if hz is None:
        raise ImportFileError(profiles[0].source, "", "no runtime; expected it in the totals, to know the clock")
    longest = max(range(len(profiles)), key=lambda place: profiles[place].end)
    return Scheduled(tuple(profiles), longest, Clock(hz, "cycles and runtime of the file"), compiled)


class SophgoProfile:
    """One file per core, and beside it what the compiler wrote about the ops."""

    name = PROFILE

    def read(self, path: Path, beside: Sequence[Path] = ()) -> Recording:
        """The schedule; `beside` are files of further cores, and of the same compilation."""
        readers = {FINAL_MLIR: read_mlir, PLACEMENTS: read_placements}
        others = [(other, find_format(other).name) for other in beside]
        profiles = [read_profile(each) for each in (path, *(other for other, form in others if form == PROFILE))]
        found = scheduled(profiles, merged([readers[form](other) for other, form in others if form in readers]))
        ops = compiled_ops(found.profiles, found.compiled)
        return recording(found, ops, maker=self.name, source=" + ".join(map(str, (path, *beside))))


class CompiledFile:
    """final.mlir or the table of placements alone: what was compiled, and no times."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, path: Path) -> Recording:
        """Its ops, as facts of the compiler."""
        compiled = read_mlir(path) if self.name == FINAL_MLIR else read_placements(path)
        fact = Provenance.COMPILER_FACT
        rows = [
            OpRecord(
                op.results[0] if op.results else f"{op.opcode}_{line}", op.opcode, shape=op.shape, kernel=op.opcode
            )
            for line, op in sorted(compiled.ops.items())
        ]
        return Recording(
            maker=self.name,
            provenance=fact,
            tool=TOOL,
            target=compiled.chip,
            ops=tuple(rows),
            metrics=tuple(memory_metrics(compiled)),
            notes=("no times: those are in compiler_profile_0.txt of the same compilation",),
        )


FINAL, TABLE = CompiledFile(FINAL_MLIR), CompiledFile(PLACEMENTS)


def recording(found: Scheduled, ops: OpRows, *, maker: str, source: str = "") -> Recording:
    """Everything that the schedules tell, on the rows of ops that they belong to."""
    profile = found.profiles[found.longest]
    schedule = Schedule(profile, found.clock, ops.of_line, core=found.longest)
    table = schedule.table([row.macs for row in ops.rows])
    trace = schedule.trace(table)
    rows = with_commands(ops.rows, schedule)
    latency = latency_of(found)
    chip = found.compiled.chip
    return Recording(
        maker=maker,
        source=source,
        tool=TOOL,
        provenance=Provenance.VENDOR_MODEL,
        trace=trace,
        commands=table,
        ops=rows,
        target=chip,
        clocks_hz={"core": float(found.clock.hz)},
        devices=1,
        cores=found.cores,
        inferences=1,
        numbers=(0,),
        latency=latency,
        metrics=tuple(_metrics(found, latency)),
        totals=Summary(
            latency=latency,
            throughput_per_s=None,
            batch=None,
            lanes=lane_totals(trace, named_by_engine=True),
            memory=tuple(memory_totals(found)),
            ops=totals_of(rows, schedule),
            routes=schedule.route_totals(),
        ),
        kernels=kernels(schedule),
        checks=tuple(
            check for each in found.profiles for check in checks(each, cores=found.cores if not _alone(each) else 1)
        ),
        notes=tuple(_notes(found)),
        caveats=tuple(_caveats(found)),
    )


def _alone(profile: Profile) -> bool:
    """Whether no message goes to another core."""
    return not any(kind.endswith("_MSG") for kind in profile.kinds)


def latency_of(found: Scheduled) -> Latency:
    """Of one core what it takes; of several the longest, as none of them waits for another in this model: at least."""
    ns = int(found.clock.ns(_one(found.profiles[0].cycles))[0])
    alone = found.cores == 1 and _alone(found.profiles[0])
    return Latency(ns if alone else None, None if alone else ns, None, Provenance.VENDOR_MODEL)


def _one(value: int) -> Numbers:
    return np.array([value], np.int64)


def _metrics(found: Scheduled, latency: Latency) -> Iterator[Metric]:
    """Figures of the whole network."""
    first, vendor = found.profiles[0], Provenance.VENDOR_MODEL
    fact = Provenance.COMPILER_FACT
    waits = "the longest core alone: waiting for the others is not in this model"
    known = latency.value_ns is not None
    yield Metric(
        LATENCY, latency.value_ns, "ns", vendor, "one inference" if known else waits, latency.low_ns, latency.high_ns
    )
    yield Metric("cycles", first.cycles, "cycles", vendor, "" if known else waits)
    yield Metric(CLOCK, found.clock.hz, "Hz", fact)
    if first.flops is not None:
        yield Metric("flops", first.flops, "1", fact, "as the compiler counts them, two for a multiply-add")
    moved = [sum(part) for part in zip(*(ddr_bytes(profile) for profile in found.profiles), strict=True)]
    yield Metric("ddr_read", moved[0], "bytes", fact, "of all transfers")
    yield Metric("ddr_write", moved[1], "bytes", fact, "of all transfers")
    peak = model_gib_per_s(first)
    if peak is not None:
        rate = peak * GIB_AS_GHZ * found.clock.hz
        yield Metric("ddr_bandwidth", rate, "bytes/s", vendor, "that the compiler's model reckons with, per core")
    yield from memory_metrics(found.compiled)


def ddr_bytes(profile: Profile) -> tuple[int, int]:
    """Bytes read from DDR and written to it; a copy inside it is both."""
    moved, ways = moved_bytes(profile), profile.commands.direction
    read, write, copied = (int(moved[ways == way].sum()) for way in range(3))
    return read + copied, write + copied


def memory_metrics(compiled: Compiled) -> Iterator[Metric]:
    """What the compiler placed where."""
    fact = Provenance.COMPILER_FACT
    if compiled.weight_bytes is not None:
        yield Metric("weights", compiled.weight_bytes, "bytes", fact, "in DDR, as the chip reads them")
    if compiled.neuron_bytes is not None:
        yield Metric("neuron", compiled.neuron_bytes, "bytes", fact, "in DDR: inputs, outputs and activations")
    if compiled.lane_bytes is not None:
        yield Metric("local_memory_per_lane", compiled.lane_bytes, "bytes", fact, "most that tensors of a group take")


def memory_totals(found: Scheduled) -> Iterator[MemoryTotal]:
    """DDR with what lies in it and what moves; local memory of a core, by its lanes."""
    compiled, chip = found.compiled, CHIPS.get(found.compiled.chip or "")
    held = whole_sum((compiled.weight_bytes, compiled.neuron_bytes))
    read, write = ddr_bytes(found.profiles[found.longest])
    yield MemoryTotal(DDR, 0, None, held, None, None, read, write)
    if compiled.lane_bytes is not None and chip is not None and chip.lanes and chip.lane_bytes:
        peak, capacity = compiled.lane_bytes * chip.lanes, chip.lane_bytes * chip.lanes
        yield MemoryTotal(LOCAL, 0, found.longest, peak, None, capacity, None, None)


def _notes(found: Scheduled) -> Iterator[str]:
    first = found.profiles[0]
    yield (
        f"cycles are those of the vendor's model of the chip, at {found.clock.hz / 1e6:g} MHz ({found.clock.source}): "
        "of the TPU alone, without the host, and not measured"
    )
    if found.cores > 1:
        ends = ", ".join(str(profile.end) for profile in found.profiles)
        yield (
            f"{found.cores} cores, which are not on one clock: none waits for another in this model, and they end at "
            f"{ends} cycles; the timeline is of core {found.longest}, the longest: import another's file for its own"
        )
    elif not _alone(first):
        yield "one core of several: messages to the others cost nothing here, and waiting for them is not in the times"
    extra = sum(told_bytes(first)) - int(moved_bytes(first).sum())
    if extra:
        yield f"the file's own sums of bytes count {extra} bytes again that messages repeat: totals here do not"
    unnamed = sum(not kind for kind in first.kinds)
    if unnamed:
        yield "some commands have no kind in the file: what they do is unknown"
    if not found.compiled.ops:
        yield "give final.mlir or NAME.bmodel.json of the same compilation too, and ops have their names"


def _caveats(found: Scheduled) -> Iterator[str]:
    if found.cores > 1 or not _alone(found.profiles[0]):
        yield "several cores: the latency is that of the longest alone, a lower bound"
