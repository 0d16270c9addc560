"""What surrounds the engines of a target: the host, what the simulated device adds, and the counters of a core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .figure import Figure


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Stages of an inference outside the device: microseconds, and rates of what depends on bytes."""

    enqueue: Figure
    preprocess: Figure  # beside the bytes of the inputs at the rate of the host's memory
    submit: Figure
    driver: Figure  # from the submit call to the device's queue
    link_latency: Figure  # of each transfer, with its doorbell or interrupt; its bytes are at the rate of the link
    completion: Figure  # from the interrupt until the runtime has it
    postprocess: Figure  # beside the bytes of the outputs and of the stats buffer
    dequeue: Figure  # until the application has it
    application: Figure  # from a result to the next request
    open_decoder: Figure  # per recorded operator, once in an activation whose profile is decoded on the host
    link_bytes_per_second: Figure  # each way
    memory_bytes_per_second: Figure  # that one thread of the runtime copies or converts


@dataclass(frozen=True, slots=True)
class Simulation:
    """What the simulated device adds to the figures above."""

    thread_spread: Figure  # how far threads of one op finish apart, as a share of its time
    activate_ticks: Figure  # set-up before the first inference, in ticks of the statistics timer: its fixed part
    inference_spread: Figure  # standard deviation of the time of one inference, as a share
    activate_ticks_per_gigabyte: Figure | None = None  # of constants, which are mapped
    activate_thread_ticks: Figure | None = None  # less on every further thread of a core: it is started later
    activate_core_ticks: Figure | None = None  # less on every further core
    activate_least_ticks: Figure | None = None  # on the thread that issues transfers, and on any other at the least
    clock_spread: Figure | None = None  # how far the clocks of cores lie off the nominal one, as a share


@dataclass(frozen=True, slots=True)
class PmuEvent:
    """Something the performance monitoring unit can count. `counts` is one of `program.PMU_COUNTS`, or one of them
    with the name of a thread group behind a colon: "busy_cycles:NAME"."""

    name: str
    counts: str
    block: str = ""  # the part of a core that it tells about, as shown; empty: the thread group in `counts`


@dataclass(frozen=True, slots=True)
class Pmu:
    """The performance monitoring unit of a core."""

    counters: Figure  # events that can be counted at once
    events: Mapping[str, PmuEvent]  # by number, hexadecimal
    recipes: Mapping[str, tuple[str, ...]]  # name → events
    request_bytes: Figure | None = None  # of one request of the bus at the most, for events that count requests

    def __post_init__(self) -> None:
        requests = [event.name for event in self.events.values() if "requests" in event.counts]
        if requests and self.request_bytes is None:
            raise ValueError(f"event {requests[0]!r} counts requests; expected pmu.request_bytes, the size of one")
