"""A slow, obvious simulator to hold the fast one against: it looks at everything again after every event."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from opscope.program.program import NO_ROUTE, Program


@dataclass
class Outcome:
    """What happened to one command; None until it has."""

    lane_ready: float | None = None
    start: float | None = None
    issue_end: float | None = None
    done: float | None = None


@dataclass
class Flight:
    """A transfer at the head of its queue."""

    command: int
    bytes_left: float


@dataclass
class Reference:
    """The whole state of the machine, in dictionaries keyed by plain tuples."""

    program: Program
    now: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    lanes: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)  # commands not yet issued
    queues: dict[tuple[int, int, int], list[Flight]] = field(default_factory=dict)
    landing: list[tuple[float, int]] = field(default_factory=list)  # when it is done, command

    def __post_init__(self) -> None:
        self.rows = [
            {name: row[name].item() for name in ("device", "core", "group", "route", "cycles", "moved_bytes")}
            for row in self.program.commands
        ]
        for command, row in enumerate(self.rows):
            self.outcomes.append(Outcome())
            self.lanes.setdefault((row["device"], row["core"], row["group"]), []).append(command)

    def run(self) -> list[Outcome]:
        self.start_what_can()
        while (step := self.until_next_event()) < inf:
            self.now += step
            for flights in self.queues.values():
                if flights:
                    flights[0].bytes_left -= step * self.rate(flights[0].command)
            self.land_what_has_arrived()
            self.end_what_is_issued()
            self.start_what_can()
        return self.outcomes

    def rate(self, command: int) -> float:
        """An equal share for everybody in the pool, as high as the pool allows, but no more than one can use."""
        row, pools = self.rows[command], self.program.pool_of_routes()
        flying = [route for (device, _, route), flights in self.queues.items() if flights and device == row["device"]]

        def cap(number: int) -> float:
            route = self.program.routes[number]
            return min(route.bytes_per_cycle / flying.count(number), route.core_bytes_per_cycle)

        caps = [cap(number) for number in flying if pools[number] == pools[row["route"]]]
        limit = self.program.pool_rate(pools[row["route"]])
        low, high = 0.0, max(caps)
        if sum(caps) > limit:
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (low, middle) if sum(min(middle, cap) for cap in caps) > limit else (middle, high)
        return min(high, cap(row["route"]))

    def until_next_event(self) -> float:
        running = [waiting[0] for waiting in self.lanes.values() if waiting]
        ends = [
            self.outcomes[command].start + self.rows[command]["cycles"] - self.now  # type: ignore[operator]
            for command in running
            if self.outcomes[command].start is not None
        ]
        flights = [flights[0] for flights in self.queues.values() if flights]
        arrivals = [flight.bytes_left / self.rate(flight.command) for flight in flights]
        landings = [done - self.now for done, _ in self.landing]
        return max(0.0, min([*ends, *arrivals, *landings, inf]))

    def land_what_has_arrived(self) -> None:
        for flights in self.queues.values():
            if flights and flights[0].bytes_left <= 1e-9 * (1 + self.rows[flights[0].command]["moved_bytes"]):
                command = flights.pop(0).command
                latency = self.program.routes[self.rows[command]["route"]].latency_cycles
                self.landing.append((self.now + latency, command))
        for done, command in [pair for pair in self.landing if pair[0] <= self.now * (1 + 1e-12)]:
            self.outcomes[command].done = self.now
            self.landing.remove((done, command))

    def end_what_is_issued(self) -> None:
        for waiting in self.lanes.values():
            if not waiting or (start := self.outcomes[waiting[0]].start) is None:
                continue
            row, outcome = self.rows[waiting[0]], self.outcomes[waiting[0]]
            if start + row["cycles"] > self.now * (1 + 1e-12):
                continue
            outcome.issue_end = self.now
            if row["route"] == NO_ROUTE or row["moved_bytes"] == 0:
                outcome.done = self.now
            else:
                queue = self.queues.setdefault((row["device"], row["core"], row["route"]), [])
                queue.append(Flight(waiting[0], float(row["moved_bytes"])))
            waiting.pop(0)

    def start_what_can(self) -> None:
        for waiting in self.lanes.values():
            if not waiting or self.outcomes[waiting[0]].start is not None:
                continue
            outcome = self.outcomes[waiting[0]]
            outcome.lane_ready = self.now if outcome.lane_ready is None else outcome.lane_ready
            if all(self.outcomes[need].done is not None for need in self.program.dependencies(waiting[0])):
                outcome.start = self.now
