"""A module measured in PyTorch → Recording: timed as an application sees it, then watched by torch's profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic_ns, sleep
from typing import cast

import torch

from ...backends.host_cpu import WATCHED, latency_alone, latency_metric, measured_latency
from ...backends.kernel_times import KernelTimes, cpu_recording, watched_note
from ...backends.process import work_folder
from ...core.errors import ModelError, UsageError
from ...core.plugins import load_place, manifests
from ...core.provenance import Provenance
from ...importers.formats import read_profile
from ...importers.power_join import Align, join_power
from ...readers.torch import TorchModel
from ...recording.recording import Metric, OpRecord, Recording
from .op_calls import Call, inferences
from .origins import Origin, find_origins
from .running import EAGER, KINETO, Choices, Prepared, batch_of, device_title, latencies, prepared, watch
from .timeline import BYTES, Watched, kernel_totals, main_parts, memory, op_rows, timeline, watched

Sampler = Callable[..., AbstractContextManager[Path]]  # (log, device=0)
_IDLE_S = 0.5  # before and behind the work whose power is sampled: what the device draws for nothing


@dataclass(frozen=True, slots=True)
class Measured:
    """What one measurement left."""

    samples_ns: tuple[int, ...]  # without the profiler
    kineto: Recording
    origins: dict[Call, Origin]
    weight_bytes: int
    batch: int
    zeros: int
    power: Recording | None = None  # on the axis of the timeline
    power_note: str = ""


def profile_module(model: TorchModel, choices: Choices) -> Recording:
    """Run the model, with and without the profiler, and read what that saw."""
    with work_folder("torch") as folder, prepared(model, choices) as ready:
        found = _measured(ready, choices, folder)
    if not len(inferences(found.kineto)[0]):
        raise ModelError(model.source, "", "the profiler's trace holds no inference; expected one per repeat")
    result = assemble(model, choices, found)
    if not choices.measuring.op_times:
        return latency_alone(result, found.samples_ns)
    return _with_power(result, found)


def _measured(ready: Prepared, choices: Choices, folder: Path) -> Measured:
    samples, trace = latencies(ready, choices.measuring), folder / "trace.json"
    power: Recording | None = None
    note = ""
    if choices.on_gpu:
        log = folder / "power.csv"
        try:
            with _sampler()(log, device=torch.cuda.current_device()):
                sleep(_IDLE_S)
                idle_until = monotonic_ns()
                began = watch(ready, choices, trace)
                sleep(_IDLE_S)
            kineto = read_profile(trace, form=KINETO)
            power = _on_axis(log, kineto, idle_until, began)
        except UsageError as error:
            note = f"power is not sampled: {error}"
    if power is None:
        watch(ready, choices, trace)
        kineto = read_profile(trace, form=KINETO)
    origins = find_origins(ready, folder / "origins.json") if choices.mode == EAGER else {}
    weights, batch = ready.weight_bytes, batch_of(ready.tensors())
    return Measured(tuple(samples), kineto, origins, weights, batch, ready.zeros, power, note)


def _sampler() -> Sampler:
    """What logs the power of a GPU while something runs; a plug-in has it."""
    found = next((manifest for manifest in manifests() if manifest.sampler), None)
    if found is None:
        raise UsageError("no plug-in samples power; expected one that does")
    return cast("Sampler", load_place(found, found.sampler))


def _on_axis(log: Path, kineto: Recording, idle_until: int, began: int) -> Recording:
    """Samples of power on the axis of the timeline, without those of the rounds before the first that counts."""
    found = read_profile(log, form="power-log")
    samples = found.trace.samples
    samples = samples[(samples["time_ns"] <= idle_until) | (samples["time_ns"] >= began)].copy()
    samples["time_ns"] += int(inferences(kineto)[0][0]) - began
    return replace(found, trace=replace(found.trace, samples=samples))


def _with_power(result: Recording, found: Measured) -> Recording:
    if found.power is None:
        return result
    try:
        return join_power(result, found.power, Align.CLOCK)
    except UsageError as error:
        return replace(result, notes=(*result.notes, f"power is not joined: {error}"))


def assemble(model: TorchModel, choices: Choices, found: Measured) -> Recording:
    """Everything that one measurement says."""
    seen = watched(found.kineto)
    parts = main_parts(seen)
    kernels = [call.name if part is None else part.name for call, part in zip(seen.rows, parts, strict=True)]
    times = seen.times(kernels)
    samples = tuple(times.whole_ns.tolist())
    options = {"device": choices.device, "mode": choices.mode, "dtype": choices.dtype or None}
    base = cpu_recording(
        "torch", Path(model.source), choices.measuring, options=options, producer={"torch": str(torch.__version__)}
    )
    if choices.on_gpu:
        title = device_title(choices)
        base = replace(base, target=title, machine={"title": title}, devices=None, cores=None)
    ops = tuple(op_rows(seen, found.origins, times, parts))
    return replace(
        base,
        network=model.name,
        batch=found.batch,
        latency=measured_latency(samples),
        metrics=tuple(_metrics(found, times, seen)),
        ops=ops,
        kernels=kernel_totals(seen) if seen.on_device else times.totals(),
        lanes=() if seen.on_device else (times.lane(),),
        memory=memory(seen),
        notes=tuple(_notes(model, choices, found, times, ops)),
        trace=timeline(seen),
        inferences=len(samples),
        samples_ns=samples,
        caveats=(WATCHED, *(("weights are random: outputs mean nothing",) if model.has_random_weights else ())),
    )


def _metrics(found: Measured, times: KernelTimes, seen: Watched) -> Iterator[Metric]:
    yield latency_metric("latency", times.whole_ns.tolist(), "with torch's profiler, as in the table")
    yield latency_metric("latency_without_profiler", found.samples_ns, "what an application sees")
    yield times.share_in_kernels("time_in_ops")
    yield Metric("weights", found.weight_bytes, "bytes", Provenance.MEASURED, "parameters and buffers of the module")
    if seen.on_device:  # where the device stood still, and what for
        yield from (metric for metric in found.kineto.metrics if metric.name != "wall")


def _notes(
    model: TorchModel, choices: Choices, found: Measured, times: KernelTimes, ops: tuple[OpRecord, ...]
) -> Iterator[str]:
    yield from (note.text for note in model.notes)
    yield watched_note(times, found.samples_ns, rows="ops", profiler="torch's profiler")
    if found.zeros:
        drawn = f"{found.zeros} example inputs of zeros are random (seed {choices.measuring.seed})"
        yield f"{drawn}: times of ops whose work depends on values are of these"
    if choices.device == "cpu" and any(track.unit == BYTES for track in found.kineto.trace.counters):
        yield "memory is what the allocator of the CPU gave since the inference began: weights are not in it"
    if choices.mode != EAGER:
        yield f"--mode {choices.mode}: what runs is no longer called from modules, so that their paths are not known"
    elif unknown := sum(not op.module for op in ops):
        yield f"of {unknown} of {len(ops)} ops the module is not known"
    if found.power_note:
        yield found.power_note
