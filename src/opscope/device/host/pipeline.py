"""Programs → HostTimes: discrete-event simulation of inferences passing through the host and the card.

An activation keeps `set_size` inferences in flight; when one returns to the application, the next is enqueued.
Runtime threads pre-process and submit inferences, and post-process results, first come, first served. What an
activation submits reaches the device in that order. All activations of all programs share the links, one to each
device, each way one transfer after the other; inputs of the next inference are transferred while the device computes
(double buffering). Each activation has its own slot of cores while its program has enough slots; beyond that,
activations share slots (activation modulo slots), first come, first served. Time begins when all of them are set up
and hold the weights that stay.

    application   enqueue ─▶ … ──────────────────────────────────────────────────────────────────▶ dequeue
    runtime thread          preprocess, submit                              completion, postprocess
    driver, link                              driver, transfer in   transfer out
    device slot                                              execute
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush
from math import ceil

import numpy as np

from ...core.errors import UsageError
from ...options import MOST_INFERENCES, RunOptions
from ...program.program import Program
from ...recording.host_times import INFERENCE, HostTimes, Rows
from .stage_times import StageSource, StageTimes, decoding_ns, is_decoded

ExecTicks = Callable[[int, int], int]  # activation, inference → ticks on the device
Progress = Callable[[int, int], None]  # done, in total

_REPORT_EVERY = 4096
_LATEST_NS = 2**60  # 36 years: later would not fit in 64 bits


class _Event(IntEnum):
    """Kinds of events; the value is the order of simultaneous ones."""

    DEQUEUED = 0
    RETURNS = 1  # the runtime has it back, needs a thread
    ENDS = 2  # on the device, needs the link
    ARRIVES = 3  # on the device
    ENQUEUED = 4  # needs a thread
    SUBMITTED = 5  # the driver has it
    QUEUED = 6  # on the channel to the device, needs the link
    REQUESTS = 7  # the application has its next one ready


@dataclass(frozen=True, slots=True)
class Guest:
    """A program on the card: its slots, and how long its inferences take there."""

    program: Program
    slots: int
    exec_ticks: ExecTicks  # activations are counted over all programs
    links: Sequence[int] = ()  # of each slot, the device whose link to the host it has; none: one for all
    holds: float = 1.0  # part of that time after which its slot can begin the next: stages of a pipeline go on at once


class Pipeline:
    """One run: takes the device time of each inference and returns the time of every stage.

    Every program has as many activations; those of the second are counted behind those of the first.
    """

    def __init__(
        self,
        guests: Sequence[Guest],
        options: RunOptions,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.options, self.guests, self.progress = options, guests, progress
        self.guest_of = [guest for guest in guests for _ in range(options.activations)]
        self.places = [
            (number, activation % guest.slots)
            for number, guest in enumerate(guests)
            for activation in range(options.activations)
        ]
        self.stages = [
            StageSource(guest.program, seed=options.seed, activation=a) for a, guest in enumerate(self.guest_of)
        ]
        self.threads = [
            [0] * options.threads for _ in self.places
        ]  # per activation, a heap of the times at which threads become free
        self.slot_free = dict.fromkeys(self.places, 0)  # ticks
        self.enqueued = [0] * len(self.places)
        # When the last inference of each activation was put on its channel, reached the device, and came back from it.
        self.queued, self.arrived, self.completed = ([-1] * len(self.places) for _ in range(3))
        self.link_of = [
            guest.links[slot] if guest.links else 0 for guest, (_, slot) in zip(self.guest_of, self.places, strict=True)
        ]
        self.link_in_free = dict.fromkeys(self.link_of, 0)
        self.link_out_free = dict.fromkeys(self.link_of, 0)
        self.events: list[tuple[int, _Event, int, int]] = []
        self.open: dict[tuple[int, int], tuple[StageTimes, list[int]]] = {}
        self.samples_left = [self._decoded(guest.program) for guest in self.guest_of]  # to be decoded on the host
        self.decoding: dict[tuple[int, int], int] = {}  # inference → how long the host then decodes it
        self.ran: dict[tuple[int, int], tuple[int, int]] = {}  # ticks on the device, and that it waited for inputs
        self.rows: list[tuple[int, ...]] = []

    def run(self) -> list[HostTimes]:
        """Process events in time order until no inference is in flight; return the times of every program."""
        for activation in range(len(self.places)):
            for _ in range(min(self.options.set_size, self.options.limit)):
                self._enqueue(activation, 0)
        heapify(self.events)
        while self.events:
            now, event, activation, inference = heappop(self.events)
            self._step(now, event, activation, inference)
        if self.progress is not None and len(self.rows) >= _REPORT_EVERY:
            self.progress(len(self.rows), len(self.rows))
        rows = np.array(self.rows, INFERENCE)
        rows.sort(order=("activation", "inference"))
        _count_queues(rows)
        return [self._times_of(number, guest, rows) for number, guest in enumerate(self.guests)]

    def _times_of(self, number: int, guest: Guest, rows: Rows) -> HostTimes:
        """The rows of one program, with activations of its own numbers."""
        own = rows[rows["activation"] // self.options.activations == number]
        own["activation"] %= self.options.activations
        return HostTimes(own, guest.program.stats_hz, guest.slots)

    def _decoded(self, program: Program) -> int:
        """How many samples of an activation the host decodes."""
        return self.options.num_samples if is_decoded(program, self.options) else 0

    def _step(self, now: int, event: _Event, activation: int, inference: int) -> None:
        if event is _Event.ENQUEUED:
            self._submit(now, activation, inference)
        elif event is _Event.SUBMITTED:
            self._queue(now, activation, inference)
        elif event is _Event.QUEUED:
            self._send(now, activation, inference)
        elif event is _Event.ARRIVES:
            self._execute(now, activation, inference)
        elif event is _Event.ENDS:
            self._bring(now, activation, inference)
        elif event is _Event.RETURNS:
            self._return(now, activation, inference)
        elif event is _Event.DEQUEUED:
            self._dequeue(now, activation, inference)
        else:
            self._enqueue(activation, now)

    def _enqueue(self, activation: int, now: int) -> None:
        inference = self.enqueued[activation]
        if inference >= self.options.limit or now >= self.options.end_ns:
            return
        self.enqueued[activation] += 1
        stages = self.stages[activation].of(inference)
        self.open[activation, inference] = (stages, [activation, inference, now])
        self._sample(activation, inference, now)
        heappush(self.events, (now + stages.enqueue, _Event.ENQUEUED, activation, inference))

    def _sample(self, activation: int, inference: int, now: int) -> None:
        """Note an inference whose profile the host decodes, as `choose_samples` will choose it."""
        options, left = self.options, self.samples_left[activation]
        if left and inference >= options.start_iter and now >= options.start_delay * 1e6:
            program, is_first = self.guest_of[activation].program, left == options.num_samples
            self.decoding[activation, inference] = decoding_ns(program, is_first=is_first)
            self.samples_left[activation] -= 1

    def _submit(self, now: int, activation: int, inference: int) -> None:
        """Take a runtime thread for pre-processing and submission."""
        stages, times = self.open[activation, inference]
        taken = self._thread(activation, now, stages.preprocess + stages.submit)
        prepared = taken + stages.preprocess
        submitted = prepared + stages.submit
        times += (taken, prepared, submitted)
        heappush(self.events, (submitted, _Event.SUBMITTED, activation, inference))

    def _queue(self, now: int, activation: int, inference: int) -> None:
        """The driver puts it on the channel of its activation. A channel keeps its order, as everything behind it."""
        stages, times = self.open[activation, inference]
        queued = self.queued[activation] = max(now + stages.driver, self.queued[activation] + 1)
        times.append(queued)
        heappush(self.events, (queued, _Event.QUEUED, activation, inference))

    def _send(self, now: int, activation: int, inference: int) -> None:
        """Transfer the inputs to the device."""
        stages, times = self.open[activation, inference]
        link = self.link_of[activation]
        self.link_in_free[link] = max(now, self.link_in_free[link]) + self.stages[activation].link_in_ns
        arrived = max(self.link_in_free[link] + stages.link_in, self.arrived[activation] + 1)
        self.arrived[activation] = arrived
        times.append(arrived)
        heappush(self.events, (arrived, _Event.ARRIVES, activation, inference))

    def _execute(self, now: int, activation: int, inference: int) -> None:
        """Run on the activation's slot as soon as it is free."""
        _, times = self.open[activation, inference]
        guest, slot = self.guest_of[activation], self.places[activation]
        stats_hz, free, ticks = guest.program.stats_hz, self.slot_free[slot], guest.exec_ticks(activation, inference)
        start = max(ceil(now * stats_hz / 1e9), free)  # the device starts at a tick of its timer
        self.slot_free[slot] = start + ceil(ticks * guest.holds)
        started, ended = (round(tick * 1e9 / stats_hz) for tick in (start, start + ticks))
        times += (started, ended)
        self.ran[activation, inference] = ticks, start - free
        heappush(self.events, (ended, _Event.ENDS, activation, inference))

    def _bring(self, now: int, activation: int, inference: int) -> None:
        """Transfer the outputs to the host, whose runtime then hears of it."""
        stages, times = self.open[activation, inference]
        link = self.link_of[activation]
        self.link_out_free[link] = max(now, self.link_out_free[link]) + self.stages[activation].link_out_ns
        completed = max(self.link_out_free[link] + stages.link_out, self.completed[activation] + 1)
        self.completed[activation] = completed
        times.append(completed)
        heappush(self.events, (completed + stages.completion, _Event.RETURNS, activation, inference))

    def _return(self, now: int, activation: int, inference: int) -> None:
        """Take a runtime thread for post-processing."""
        stages, times = self.open[activation, inference]
        returned = self._thread(activation, now, stages.postprocess)
        processed = returned + stages.postprocess
        times += (returned, processed)
        heappush(self.events, (processed + stages.dequeue, _Event.DEQUEUED, activation, inference))

    def _dequeue(self, now: int, activation: int, inference: int) -> None:
        """Record the finished inference; the application then makes its next request."""
        stages, times = self.open.pop((activation, inference))
        # Every inference in flight has its own output buffer, so the device never waits for one (hence the zero).
        self.rows.append((*times, now, *self.ran.pop((activation, inference)), 0, 0, 0))
        if len(self.rows) > MOST_INFERENCES:
            raise UsageError(
                f"time {self.options.time}: more than {MOST_INFERENCES} inferences fit in; expected less time"
            )
        if now > _LATEST_NS:
            raise UsageError(f"the run takes more than {_LATEST_NS / 1e9:.1e} s; expected fewer inferences")
        again = now + stages.application + self.decoding.pop((activation, inference), 0)
        heappush(self.events, (again, _Event.REQUESTS, activation, inference))
        if self.progress is not None and len(self.rows) % _REPORT_EVERY == 0:
            self.progress(*self._share(now))

    def _thread(self, activation: int, ready: int, busy: int) -> int:
        """Return when the earliest free thread starts work that is ready at `ready` and takes `busy`."""
        free = heappop(self.threads[activation])
        start = max(ready, free)
        heappush(self.threads[activation], start + busy)
        return start

    def _share(self, now: int) -> tuple[int, int]:
        """Return progress as (done, total): inferences, or percent of the time if the number is not known."""
        if self.options.num_iter is None and self.options.time is not None:
            return min(99, int(100 * now / self.options.end_ns)), 100
        return len(self.rows), self.options.limit * len(self.places)


def _count_queues(rows: Rows) -> None:
    """Fill in how many inferences of the same activation are in flight when each one is submitted."""
    for activation in np.unique(rows["activation"]).tolist():
        own = rows["activation"] == activation
        submitted, completed = rows["submitted_ns"][own], rows["completed_ns"][own]
        # In flight = submitted before this one, minus those of them completed by then.
        rank = np.empty(len(submitted), np.int64)
        rank[np.argsort(submitted, kind="stable")] = np.arange(len(submitted))
        depth = np.maximum(rank - np.searchsorted(np.sort(completed), submitted, side="right"), 0)
        rows["queue_depth"][own] = depth
        rows["in_queue"][own] = depth + 1
