"""Files of a run's profiled inferences: stats buffers, texts, the timeline of all activations, latencies, outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from ..core.errors import UsageError, printable
from ..core.files import write_whole
from ..core.meaning import LaneRole
from ..device.host.inputs import Array
from ..device.host.pipeline import Progress
from ..device.host.sampling import Sampling
from ..device.host.sharing import Slot
from ..device.host.statistics import counted
from ..program.capture import encode_capture
from ..program.file_names import latency_name, network_name, output_names, raw_name, stats_name, trace_name
from ..program.program import THREAD_LEVEL
from ..recording.host_times import HostTimes, Rows
from ..recording.trace import NONE
from .execution import Execution, Sample

if TYPE_CHECKING:
    from ..device.host.outputs import Output
    from ..recording.trace import Trace

Render = Callable[[BinaryIO], object]
MOST_SPANS = 20_000_000  # of one timeline, which is put together in memory


def _put(data: bytes, out: BinaryIO) -> None:
    out.write(data)


def _put_array(array: Array, out: BinaryIO) -> None:
    np.save(out, array, allow_pickle=False)


def _put_arrays(arrays: Mapping[str, Array], out: BinaryIO) -> None:
    np.savez(out, **arrays)  # type: ignore[arg-type]  # strings are text here, so nothing is pickled


@dataclass(slots=True)
class ProfileWriter:
    """Writes the files of profiled inferences, each as soon as it is done."""

    execution: Execution
    times: HostTimes
    sampling: Sampling
    profiles: Sequence[str]
    folder: Path
    progress: Progress | None = None
    written: list[Path] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)  # what each counted
    traces: list[Trace] = field(default_factory=list)  # of all activations, on their cores
    notes: list[str] = field(default_factory=list)
    left_out: int = 0  # samples that the timeline has no room for
    interrupted: bool = False

    def run(self) -> None:
        """Every sample of every activation, then the timeline that has them all."""
        shown: list[Rows] = []
        for activation, rows in enumerate(self.sampling.rows):
            done = 0
            try:
                for row in rows.reshape(-1, 1):
                    self._sample(row)
                    done += 1
            except KeyboardInterrupt:
                self.interrupted = True
            shown.append(rows[:done])
            if done and "latency" in self.profiles:
                self._latency(activation, rows[:done])
            if self.interrupted:
                break
        rows = np.concatenate(shown)
        if "trace" in self.profiles and len(rows):
            self._trace(rows)

    def _sample(self, row: Rows) -> None:
        """Write the files of one profiled inference, and keep its trace."""
        if not {"stats", "trace", "raw_device_stats"} & set(self.profiles):
            return
        if not self._instrumented:  # the device leaves nothing: the host's side is all there is
            if "stats" in self.profiles:
                self._stats(Sample(row, ()))
            return
        sample = self.execution.capture(row)
        if "raw_device_stats" in self.profiles:
            self._raw(sample)
        if "stats" in self.profiles:
            self._stats(sample)
        if "trace" in self.profiles:
            self._keep(self.execution.trace(sample), int(row["activation"][0]))
        self.samples.append(counted(self.execution.program, sample.captures))
        if self.progress is not None and self.sampling.count > 1:
            self.progress(len(self.samples), self.sampling.count)

    @property
    def _instrumented(self) -> bool:
        return self.execution.program.stats.level >= THREAD_LEVEL

    def _raw(self, sample: Sample) -> None:
        for capture in sample.captures:
            name = raw_name(
                self.execution.program, capture.activation, capture.inference, capture.device, number=self._number
            )
            self.save(name, partial(_put, encode_capture(capture)))

    def _stats(self, sample: Sample) -> None:
        from ..views.text.run_stdout import HostStages

        out = StringIO()
        HostStages().render(self.times, sample.row, out)
        self._summaries(sample, out)
        if not sample.captures:
            out.write("\nNo device statistics: compile with --stats-level 40 or more (70: every operator).\n")
        row = sample.row
        self.save(
            stats_name(int(row["activation"][0]), int(row["inference"][0]), number=self._number),
            partial(_put, out.getvalue().encode()),
        )

    def _summaries(self, sample: Sample, out: StringIO) -> None:
        from ..analysis.totals.summarise import summarise_device
        from ..analysis.totals.work import InferenceWork
        from ..views.text.opstats_text import OpstatsText

        program, index = self.execution.program, self.execution.program_index
        for capture, trace in self.execution.device_traces(sample):
            network = network_name(program, capture.device)
            out.write(f"\n{network}\n" if program.devices > 1 else "")
            OpstatsText().render(summarise_device(InferenceWork.of(trace, index), capture, network=network), out)

    def _latency(self, activation: int, rows: Rows) -> None:
        from ..views.text.latency_csv import LatencyCsv

        text = StringIO()
        LatencyCsv(self.execution.program, requested=self.sampling.requested).render(self.times, rows, text)
        self.save(latency_name(activation, number=self._number), partial(_put, text.getvalue().encode()))

    @property
    def _number(self) -> int:
        return self.execution.number

    def _keep(self, trace: Trace, activation: int) -> None:
        """Keep a trace for the timeline, on the cores of its activation."""
        if sum(len(kept.spans) for kept in self.traces) + len(trace.spans) > MOST_SPANS:
            self.left_out += 1
            return
        slots, several = self.execution.slots, self.execution.options.activations > 1
        slot = slots[activation % len(slots)]
        self.traces.append(on_cores(trace, slot, f"activation {activation}" if several else ""))

    def _trace(self, rows: Rows) -> None:
        """Host stages above the device; of an uninstrumented program, host stages alone."""
        from ..decode import merge_traces
        from ..device.host.host_spans import host_spans
        from ..views.timeline.chrome_trace import ChromeTrace
        from .program_recording import head_of

        if self.left_out:
            self.notes.append(
                f"the timeline has room for {len(self.traces)} of {len(self.traces) + self.left_out} samples; "
                "the others are in the files of their own"
            )
        view = ChromeTrace(head_of(self.execution.loaded.program))
        self.save(trace_name(number=self._number), partial(view.render, merge_traces([host_spans(rows), *self.traces])))

    def save(self, name: str, render: Render) -> None:
        write_whole(self.folder / name, render)
        self.written.append(self.folder / name)


def on_cores(trace: Trace, slot: Slot, owner: str) -> Trace:
    """The trace on the cores of a slot; lanes that overlap those of others there are named by their owner."""
    from ..decode.spans import core_execution

    cores = {lane.core for lane in trace.lanes if lane.core != NONE}
    renamed = {core_execution(core): core_execution(core + slot.core) for core in cores}

    def named(name: str, core: int, role: LaneRole) -> str:
        return f"{name} {owner}" if owner and (core == NONE or role is LaneRole.MARKER) else name

    def placed(number: int, first: int) -> int:
        return number if number == NONE else number + first

    lanes = tuple(
        lane
        if lane.device == NONE
        else replace(
            lane,
            device=lane.device + slot.device,
            core=placed(lane.core, slot.core),
            name=named(lane.name, lane.core, lane.role),
        )
        for lane in trace.lanes
    )
    counters = tuple(
        replace(
            track,
            device=placed(track.device, slot.device),
            core=placed(track.core, slot.core),
            name=named(track.name, track.core, LaneRole.UNKNOWN),
        )
        for track in trace.counters
    )
    names = tuple(renamed.get(name, name) for name in trace.names)
    return replace(trace, lanes=lanes, counters=counters, names=names)


def write_outputs(folder: Path, outputs: Mapping[str, Output]) -> tuple[list[Path], list[str]]:
    """Write each output that has a form to save; return the files, and notes on the others."""
    from ..device.host.outputs import saved_form

    written, notes = [], []
    for file, (name, value) in zip(output_names(list(outputs)), outputs.items(), strict=True):
        try:
            form = saved_form(value)
        except UsageError as error:
            notes.append(f"output {printable(name)} is not saved: {error}")
            continue
        several = isinstance(form, dict)
        written.append(folder / (file.removesuffix(".npy") + ".npz" if several else file))
        write_whole(written[-1], partial(_put_arrays, form) if isinstance(form, dict) else partial(_put_array, form))
    return written, notes
