"""Programs and times by hand for the runtime, and runs in folders: the least that a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from opscope.core.meaning import Carries, Does
from opscope.device.host.pipeline import Guest, Pipeline
from opscope.options import RunOptions
from opscope.program.program import COMMAND, Channel, Group, MemoryInfo, MemoryMetrics, Program, StatsOptions
from opscope.recording.folder_writer import RunFolder, write_part
from opscope.recording.host_times import INFERENCE, HostTimes, Rows
from opscope.recording.run import Run

HOST_US = {  # beside the bytes of a stage
    "enqueue": 7.0,
    "preprocess": 8.0,
    "submit": 2.0,
    "driver": 5.0,
    "link_latency": 130.0,
    "completion": 70.0,
    "postprocess": 180.0,
    "dequeue": 50.0,
    "application": 20.0,
    "open_decoder": 0.0,
}
HOST_RATES = {"link": 16e9, "memory": 5e9}  # bytes per second
STATS_HZ = 19.2e6


def program_of(
    *,
    level: int = 70,
    cores: int = 2,
    devices: int = 1,
    first_read: int = 0,
    moved_bytes: int = 0,
    host: Mapping[str, float] | None = None,
    simulation: Mapping[str, float] | None = None,
    name: str = "net",
) -> Program:
    """One command that reads `moved_bytes`; two inputs, one output."""
    commands = np.zeros(1, COMMAND)
    commands["route"], commands["moved_bytes"], commands["does"] = 0, moved_bytes, Does.MOVE
    return Program(
        name=name,
        target="hand-made",
        devices=devices,
        cores=cores,
        batch=4,
        clock_hz=1e9,
        stats_hz=STATS_HZ,
        groups=(Group("DMA", "", 1),),
        routes=(Channel("DDR read", Carries.READ, 100.0, 20.0, 0),),
        kinds=("copy",),
        ops=(),
        details=(),
        commands=commands,
        dependency_offsets=np.zeros(2, np.uint32),
        dependency_sources=np.zeros(0, np.uint32),
        dependency_kinds=np.zeros(0, np.uint8),
        stats=StatsOptions(level=level, batch_size=4),
        metrics=MemoryMetrics(0, (), 0, (), first_read, 0, 0, {}),
        inputs=(("ids", "i64", (4, 3)), ("image", "f32", (4, 2, 2))),
        outputs=(("logits", "f16", (4, 10)),),
        host_microseconds=HOST_US if host is None else host,
        host_bytes_per_second=HOST_RATES,
        simulation={} if simulation is None else simulation,
        memories=(MemoryInfo("DDR", is_outer=True),),
    )


def run_of(options: RunOptions, *, program: Program | None = None, slots: int = 1, ticks: int = 19_200) -> HostTimes:
    """A run on a device that always takes so many ticks: 1 ms unless said."""
    chosen = program or program_of()
    (times,) = Pipeline([Guest(chosen, slots, lambda activation, inference: ticks)], options).run()
    return times


def rows_of(*starts_ns: int, activation: int = 0) -> Rows:
    """Inferences that are enqueued then, and take 1000 ns from each point to the next."""
    rows = np.zeros(len(starts_ns), INFERENCE)
    rows["activation"] = activation
    rows["inference"] = np.arange(len(starts_ns))
    times = [name for name in INFERENCE.names or () if name.endswith("_ns")]
    for step, name in enumerate(times):
        rows[name] = np.array(starts_ns) + 1000 * step
    rows["exec_ticks"], rows["input_wait_ticks"] = 192, 19
    rows["queue_depth"], rows["in_queue"] = 2, 3
    return rows


def write_run(run: Run, path: Path) -> None:
    """A Run that is in memory, as a folder."""
    folder = RunFolder(path)
    try:
        write_part(run.trace, folder.part(0))
        folder.fill(run, [(folder.part(0), 0)])
        folder.appear()
    finally:
        folder.discard()
