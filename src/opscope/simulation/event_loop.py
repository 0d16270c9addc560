"""The event loop of core.c in Python, for machines without a compiler; same names, bit-identical results.

Each lane and each channel has at most one next event of a kind: a lane's command ends, the channel's first transfer
arrives, or the first that arrived is done. core.c explains the algorithm. An arrival is outdated when another transfer
joins; instead of being moved in the heap, as in core.c, it stays there with an old version number and is skipped.
bench/simulate.py compares the speed.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats

_NONE = -1


def run(  # noqa: PLR0917 (columns, in the order of Tables and Timeline)
    cycles: Floats,
    moved_bytes: Floats,
    queue_of: npt.NDArray[np.int32],
    dependency_first: npt.NDArray[np.uint32],
    dependency_source: npt.NDArray[np.uint32],
    lane_first: npt.NDArray[np.int64],
    channel_of: npt.NDArray[np.int32],
    shared_rate: Floats,
    queue_rate: Floats,
    latency: Floats,
    pool_first: npt.NDArray[np.int32],
    pool_rate: Floats,
    lane_ready: Floats,
    start: Floats,
    issue_end: Floats,
    transfer_start: Floats,
    done: Floats,
    blocker: npt.NDArray[np.int64],
) -> int:
    """Run a checked program; fill the result columns; return the number of finished commands."""
    machine = _Machine(cycles, queue_of, dependency_first, dependency_source, lane_first)
    machine.set_channels(moved_bytes, channel_of, shared_rate, queue_rate, latency)
    machine.set_pools(pool_first, pool_rate)
    finished = machine.run()
    for column, values in (
        (lane_ready, machine.lane_ready),
        (start, machine.start),
        (issue_end, machine.issue_end),
        (transfer_start, machine.transfer_start),
        (done, machine.done),
        (blocker, machine.blocker),
    ):
        column[:] = values
    return finished


class _Machine:
    """State of the simulation, in plain lists, which Python reads faster than arrays."""

    def __init__(
        self,
        cycles: Floats,
        queue_of: npt.NDArray[np.int32],
        dependency_first: npt.NDArray[np.uint32],
        dependency_source: npt.NDArray[np.uint32],
        lane_first: npt.NDArray[np.int64],
    ) -> None:
        """Build the lanes, and the users of every command from its dependencies."""
        count = len(cycles)
        self.cycles, self.queue_of = cycles.tolist(), queue_of.tolist()
        self.first, self.source = dependency_first.tolist(), dependency_source.tolist()
        self.missing = [end - begin for begin, end in zip(self.first, self.first[1:], strict=False)]
        self.users: list[list[int]] = [[] for _ in range(count)]
        for command in range(count):
            for source in self.source[self.first[command] : self.first[command + 1]]:
                self.users[source].append(command)
        self.lanes = len(lane_first) - 1
        self.lane_of = np.repeat(np.arange(self.lanes), np.diff(lane_first)).tolist()
        self.head, self.lane_end = lane_first[:-1].tolist(), lane_first[1:].tolist()
        self.lane_busy = [False] * self.lanes
        self.events: list[
            tuple[float, int, int]
        ] = []  # time; lane, lanes + channel or lanes + channels + channel; version of an arrival
        self.lane_ready, self.start, self.issue_end = ([np.nan] * count for _ in range(3))
        self.transfer_start, self.done, self.blocker = [np.nan] * count, [np.nan] * count, [_NONE] * count
        self.finished = 0

    def set_channels(
        self,
        moved_bytes: Floats,
        channel_of: npt.NDArray[np.int32],
        shared_rate: Floats,
        queue_rate: Floats,
        latency: Floats,
    ) -> None:
        """Build the queues and channels that transfers go through."""
        self.bytes, self.channel_of = moved_bytes.tolist(), channel_of.tolist()
        self.shared_rate: list[float] = shared_rate.tolist()
        self.queue_rate: list[float] = queue_rate.tolist()
        self.queue: list[list[int]] = [[] for _ in self.channel_of]  # commands, first at queue_at
        self.queue_at = [0] * len(self.channel_of)
        self.flying: list[list[tuple[float, int]]] = [[] for _ in self.shared_rate]  # level when done, queue
        self.level, self.updated = [0.0] * len(self.shared_rate), [0.0] * len(self.shared_rate)
        self.version = [0] * len(self.shared_rate)
        self.rate, self.latency = [0.0] * len(self.shared_rate), latency.tolist()  # rate: of each transfer in flight
        self.landing: list[deque[int]] = [deque() for _ in self.shared_rate]  # commands that arrived and are not done
        self.first_landing = self.lanes + len(self.shared_rate)  # number of the first landing's event

    def set_pools(self, pool_first: npt.NDArray[np.int32], pool_rate: Floats) -> None:
        """Build the pools of channels that share a memory."""
        self.pool = [range(begin, end) for begin, end in pairwise(pool_first.tolist())]
        self.pool_of = np.repeat(np.arange(len(self.pool)), np.diff(pool_first)).tolist()
        self.pool_rate: list[float] = pool_rate.tolist()

    def run(self) -> int:
        for lane in range(self.lanes):
            if self.head[lane] < self.lane_end[lane]:
                self.lane_ready[self.head[lane]] = 0.0
            self.try_start(lane, 0.0)
        while self.events:
            now, item, version = heappop(self.events)
            if item < self.lanes:
                self.lane_event(item, now)
            elif item >= self.first_landing:
                self.landing_event(item - self.first_landing, now)
            elif version == self.version[item - self.lanes]:
                self.channel_event(item - self.lanes, now)
        return self.finished

    def try_start(self, lane: int, now: float) -> None:
        """Start the lane's next command if the lane is free and all dependencies are done."""
        command = self.head[lane]
        if command == self.lane_end[lane] or self.missing[command] or self.lane_busy[lane]:
            return
        self.start[command] = now
        # The lane had to wait: the dependency that finished last is the one that blocked it.
        if now > self.lane_ready[command]:
            sources = self.source[self.first[command] : self.first[command + 1]]
            self.blocker[command] = max(sources, key=self.done.__getitem__)
        self.lane_busy[lane] = True
        heappush(self.events, (now + self.cycles[command], lane, 0))

    def complete(self, command: int, now: float) -> None:
        """Mark a command as done, and start the commands that waited for it alone."""
        self.done[command] = now
        self.finished += 1
        for user in self.users[command]:
            self.missing[user] -= 1
            lane = self.lane_of[user]
            if not self.missing[user] and self.head[lane] == user:
                self.try_start(lane, now)

    def lane_event(self, lane: int, now: float) -> None:
        """End the issue of a lane's command: a transfer goes to its queue, other commands are done."""
        command = self.head[lane]
        self.head[lane] += 1
        self.lane_busy[lane] = False
        self.issue_end[command] = now
        if self.head[lane] < self.lane_end[lane]:
            self.lane_ready[self.head[lane]] = now
        if self.queue_of[command] == _NONE:
            self.transfer_start[command] = now
            self.complete(command, now)
        else:
            self.enqueue(command, now)
        self.try_start(lane, now)

    def enqueue(self, command: int, now: float) -> None:
        """Append a transfer to its queue; start it if the queue was idle."""
        queue = self.queue_of[command]
        self.queue[queue].append(command)
        if len(self.queue[queue]) - self.queue_at[queue] > 1:
            return
        pool = self.pool_of[self.channel_of[queue]]
        self.advance(pool, now)
        self.take_off(queue, now)
        self.reschedule(pool)

    def take_off(self, queue: int, now: float) -> None:
        """Put the queue's first transfer in flight; it is done when the channel's level has risen by its bytes."""
        channel, command = self.channel_of[queue], self.queue[queue][self.queue_at[queue]]
        self.transfer_start[command] = now
        heappush(self.flying[channel], (self.level[channel] + self.bytes[command], queue))

    def cap_of(self, channel: int) -> float:
        """Return what each transfer in flight gets at most: an equal share of the channel, or one queue's rate."""
        share: float = self.shared_rate[channel] / len(self.flying[channel])
        return min(share, self.queue_rate[channel])

    def share_out(self, pool: int) -> None:
        """Share a pool equally among transfers, lowest cap first: what one cannot use is left to the others."""
        left = self.pool_rate[pool]
        flying = [channel for channel in self.pool[pool] if self.flying[channel]]
        sharing = sum(len(self.flying[channel]) for channel in flying)
        for channel in sorted(flying, key=self.cap_of):
            self.rate[channel] = min(self.cap_of(channel), left / sharing)
            left -= self.rate[channel] * len(self.flying[channel])
            sharing -= len(self.flying[channel])

    def advance(self, pool: int, now: float) -> None:
        """Advance the levels of a pool to `now`: rates are about to change."""
        for channel in self.pool[pool]:
            if self.flying[channel]:
                level = self.level[channel] + (now - self.updated[channel]) * self.rate[channel]
                self.level[channel] = min(level, self.flying[channel][0][0])  # rounding must not pass the next arrival
            self.updated[channel] = now

    def schedule(self, channel: int) -> None:
        """Schedule the channel's next arrival and invalidate the event scheduled before."""
        self.version[channel] += 1
        if not self.flying[channel]:
            self.level[channel] = 0.0
            return
        left = self.flying[channel][0][0] - self.level[channel]
        due = self.updated[channel] + left / self.rate[channel]
        heappush(self.events, (due, self.lanes + channel, self.version[channel]))

    def reschedule(self, pool: int) -> None:
        """Share a pool out anew, and set the next arrival of each of its channels."""
        self.share_out(pool)
        for channel in self.pool[pool]:
            self.schedule(channel)

    def channel_event(self, channel: int, now: float) -> None:
        """Finish the first transfer to arrive; start the next of its queue, or leave its share to the others."""
        self.level[channel], queue = heappop(self.flying[channel])
        self.updated[channel] = now
        command = self.queue[queue][self.queue_at[queue]]
        self.queue_at[queue] += 1
        if self.queue_at[queue] < len(self.queue[queue]):
            self.take_off(queue, now)
            self.schedule(channel)
        else:
            self.advance(self.pool_of[channel], now)
            self.reschedule(self.pool_of[channel])
        self.land(channel, command, now)

    def land(self, channel: int, command: int, now: float) -> None:
        """A transfer has arrived to its last byte: it is done now, or after the latency of its channel."""
        if not self.latency[channel] > 0:
            self.complete(command, now)
            return
        self.done[command] = now + self.latency[channel]
        self.landing[channel].append(command)
        if len(self.landing[channel]) == 1:
            heappush(self.events, (self.done[command], self.first_landing + channel, 0))

    def landing_event(self, channel: int, now: float) -> None:
        """End the first transfer that arrived on a channel; those behind it arrived later and are done later."""
        command = self.landing[channel].popleft()
        if self.landing[channel]:
            heappush(self.events, (self.done[self.landing[channel][0]], self.first_landing + channel, 0))
        self.complete(command, now)
