"""HostTimes: when the host and the device did what for every inference of a run, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.meaning import Does, Party
from .summary import HostStage

INFERENCE = np.dtype(
    [
        ("activation", "<u4"),
        ("inference", "<u4"),  # of its activation, from 0
        ("enqueued_ns", "<i8"),  # the application hands it over; all times are from the start of the run
        ("taken_ns", "<i8"),  # by a thread of the runtime
        ("prepared_ns", "<i8"),  # inputs are pre-processed
        ("submitted_ns", "<i8"),  # the submit call is done, the driver has it
        ("channel_ns", "<i8"),  # the driver has put it on the channel to the device
        ("arrived_ns", "<i8"),  # its inputs are on the device
        ("started_ns", "<i8"),
        ("ended_ns", "<i8"),
        ("completed_ns", "<i8"),  # its outputs are on the host, the interrupt has come
        ("returned_ns", "<i8"),  # a thread of the runtime goes on with it
        ("processed_ns", "<i8"),  # outputs are post-processed
        ("dequeued_ns", "<i8"),  # the application has them
        ("exec_ticks", "<i8"),  # on the device, in ticks of the statistics timer
        ("input_wait_ticks", "<i8"),  # the device was idle until its inputs were there
        ("output_wait_ticks", "<i8"),  # the device waited until the host had taken its outputs
        ("queue_depth", "<u4"),  # inferences of its activation on the channel or the device, before it
        ("in_queue", "<u4"),  # and with it
    ]
)

Rows = npt.NDArray[np.void]
Nanoseconds = npt.NDArray[np.int64]

STAGES = {  # stage → from, to
    "enqueue": ("enqueued_ns", "taken_ns"),
    "preprocess": ("taken_ns", "prepared_ns"),
    "submit": ("prepared_ns", "submitted_ns"),
    "driver": ("submitted_ns", "channel_ns"),
    "input transfer": ("channel_ns", "arrived_ns"),
    "device queue": ("arrived_ns", "started_ns"),
    "device": ("started_ns", "ended_ns"),
    "output transfer": ("ended_ns", "completed_ns"),
    "return": ("completed_ns", "returned_ns"),
    "postprocess": ("returned_ns", "processed_ns"),
    "dequeue": ("processed_ns", "dequeued_ns"),
}

STAGE_MEANING = {  # stage → whose it is, and what is done in it
    "enqueue": (Party.APPLICATION, Does.HOST),
    "preprocess": (Party.RUNTIME, Does.HOST),
    "submit": (Party.RUNTIME, Does.HOST),
    "driver": (Party.DRIVER, Does.HOST),
    "input transfer": (Party.DRIVER, Does.MOVE),
    "device queue": (Party.QUEUE, Does.SYNC),
    "device": (Party.DEVICE, Does.HOST),
    "output transfer": (Party.DRIVER, Does.MOVE),
    "return": (Party.RUNTIME, Does.HOST),
    "postprocess": (Party.RUNTIME, Does.HOST),
    "dequeue": (Party.APPLICATION, Does.HOST),
}


def stage_of(name: str, ns: int) -> HostStage:
    """One of STAGES, with what it means."""
    party, does = STAGE_MEANING[name]
    return HostStage(name, ns, party, does.label)


@dataclass(frozen=True, slots=True)
class HostTimes:
    """Every inference of a run, sorted by activation and inference."""

    rows: Rows  # of INFERENCE
    stats_hz: float
    slots: int  # activations that run at the same time

    def __post_init__(self) -> None:
        if self.rows.dtype != INFERENCE:
            raise ValueError("rows are not of the INFERENCE layout")

    @property
    def duration_ns(self) -> int:
        """From the first enqueue to the last dequeue."""
        if not len(self.rows):
            return 0
        return int(self.rows["dequeued_ns"].max() - self.rows["enqueued_ns"].min())

    def latencies_ns(self) -> Nanoseconds:
        """What the application saw of every inference."""
        return between(self.rows, "enqueued_ns", "dequeued_ns")

    def of_activation(self, activation: int) -> Rows:
        first, last = np.searchsorted(self.rows["activation"], [activation, activation + 1]).tolist()
        return self.rows[first:last]


def between(rows: Rows, start: str, end: str) -> Nanoseconds:
    """From one column of times to another."""
    difference: Nanoseconds = rows[end] - rows[start]
    return difference


@dataclass(frozen=True, slots=True)
class HostMetric:
    """One figure over the inferences of a run; None: not recorded."""

    name: str
    average: float | None
    least: float | None
    most: float | None
    deviation: float | None


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """What a run comes to in the end."""

    target: str
    count: int
    duration_ns: int
    batch: int
    metrics: tuple[HostMetric, ...]  # of the device
    unknown: str = ""  # which ops have no known cost, and why: then the duration is a lower bound

    @property
    def inferences_per_s(self) -> float | None:
        """None: an op has no known cost."""
        if self.unknown:
            return None
        return self.count * self.batch * 1e9 / self.duration_ns if self.duration_ns else 0.0
