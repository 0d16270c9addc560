"""Duration of every host stage of every inference: the target's figures with seeded variation.

A stage that handles bytes takes its fixed part and the bytes at a rate: pre- and post-processing at that of the host's
memory, transfers at that of the link. What comes back is the outputs and, of an instrumented program, its stats buffer.
Pre-processing reads inputs as the application has them and leaves them in the types of the device, in which they cross
the link; post-processing does the same the other way round.

Only raw words of PCG64 are used: they are the same on every machine and with every release of numpy, unlike its
ready-made distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.meaning import Does
from ...graph.graph import bytes_of
from ...options import RunOptions
from ...program.check import fault
from ...program.program import OP_LEVEL, THREAD_LEVEL, Port, Program

# Sigma of a log-normal stage, as ln(P90 / P50) / 1.28 (the 90 % quantile of the normal distribution) in a published
# run: 0.18 enqueue, 0.43 pre-processing, 0.12 submit, 0.14 driver, 0.11 post-processing. The median of these is the
# default for targets that give none.
HOST_SPREAD = 0.14

_BLOCK = 1024
_MOST_MICROSECONDS = 1e9


class StageTimes(NamedTuple):
    """Nanoseconds of the host stages of one inference; those of the link are what is beyond its bytes."""

    enqueue: int
    preprocess: int
    submit: int
    driver: int
    link_in: int
    link_out: int
    completion: int  # from the interrupt until the runtime has it
    postprocess: int
    dequeue: int
    application: int  # from one result to the next request


STAGES = (  # figures of the target that stages are drawn from, in the order of StageTimes
    "enqueue",
    "preprocess",
    "submit",
    "driver",
    "link_latency",
    "link_latency",
    "completion",
    "postprocess",
    "dequeue",
    "application",
)


class StageSource:
    """Draws the stages of one activation in blocks, so that the times of an inference depend on its number only."""

    def __init__(self, program: Program, *, seed: int, activation: int) -> None:
        traffic = HostTraffic.of(program)
        self.means_ns = _means_ns(program)
        self.spread = _spread(program)
        self.link_in_ns, self.link_out_ns = traffic.link_ns(program)  # of the bytes alone: no draw is faster
        self.key = (seed, activation)
        self.block = -1
        self.rows: list[StageTimes] = []

    def of(self, inference: int) -> StageTimes:
        block, row = divmod(inference, _BLOCK)
        if block != self.block:
            self.block, self.rows = block, self._draw(block)
        return self.rows[row]

    def _draw(self, block: int) -> list[StageTimes]:
        words = np.random.PCG64(np.random.SeedSequence((*self.key, block))).random_raw(2 * _BLOCK * len(STAGES))
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        first, second = uniform.reshape(2, _BLOCK, len(STAGES))
        # Box–Muller: two uniform numbers give one normal number.
        normal = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
        factor = np.exp(self.spread * normal - self.spread**2 / 2)  # log-normal with mean 1
        times = np.rint(self.means_ns * factor).astype(np.int64)
        return [StageTimes(*row) for row in times.tolist()]

    def lone_ns(self, inference: int) -> int:
        """What the host adds to an inference that has everything to itself."""
        *stages, _application = self.of(inference)
        return sum(stages) + self.link_in_ns + self.link_out_ns


def is_decoded(program: Program, options: RunOptions) -> bool:
    """Whether the host decodes what a profiled inference leaves, before the application goes on."""
    return bool({"stats", "trace"} & set(options.profile)) and program.stats.level >= THREAD_LEVEL


def decoding_ns(program: Program, *, is_first: bool) -> int:
    """Return how long the host decodes and writes one sample; the first of an activation also opens the decoder."""
    buffer = _bytes_ns(program, "memory", _stats_bytes(program))
    if not is_first or program.stats.level < OP_LEVEL:
        return buffer
    return buffer + round(len(program.commands) * _microseconds(program, "open_decoder") * 1e3)


class HostTraffic(NamedTuple):
    """Bytes that one inference sends to the device and gets back; state that stays there is none of them."""

    bytes_in: float
    bytes_out: float

    @classmethod
    def of(cls, program: Program) -> HostTraffic:
        inputs, outputs = program.link_ports
        return cls(port_bytes(inputs), port_bytes(outputs) + _stats_bytes(program))

    def link_ns(self, program: Program) -> tuple[int, int]:
        return _bytes_ns(program, "link", self.bytes_in), _bytes_ns(program, "link", self.bytes_out)


def _stats_bytes(program: Program) -> float:
    return float(program.commands["moved_bytes"][program.commands["does"] == Does.STATS].sum())


def _bytes_ns(program: Program, what: str, size: float) -> int:
    """Return the time of bytes at a rate of the host; 0 if the target has no figure for it."""
    rate = program.host_bytes_per_second.get(what)
    if rate is None:
        return 0
    if not 1.0 <= rate <= 1e15:
        raise fault(program, f"host_bytes_per_second: {what} is {rate}; expected 1 to 1e+15")
    return ceil(size / rate * 1e9)


def _means_ns(program: Program) -> npt.NDArray[np.float64]:
    """Return the mean of each stage; 0 if the target has no figure for it."""
    means = []
    inputs, outputs = program.host_ports
    moved = {
        "preprocess": _bytes_ns(program, "memory", port_bytes(inputs)),
        "postprocess": _bytes_ns(program, "memory", port_bytes(outputs) + _stats_bytes(program)),
    }
    for name in STAGES:
        means.append(_microseconds(program, name) * 1e3 + moved.get(name, 0))
    return np.array(means)


def _microseconds(program: Program, name: str) -> float:
    value = program.host_microseconds.get(name, 0.0)
    if not 0.0 <= value <= _MOST_MICROSECONDS:
        raise fault(program, f"host_microseconds: {name} is {value}; expected 0 to {_MOST_MICROSECONDS:.0e}")
    return value


def _spread(program: Program) -> float:
    value = program.simulation.get("host_spread", HOST_SPREAD)
    if not 0.0 <= value <= 1.0:
        raise fault(program, f"simulation: host_spread is {value}; expected 0 to 1")
    return value


def port_bytes(ports: Sequence[Port]) -> float:
    return float(sum(bytes_of(dtype, shape) for _, dtype, shape in ports))
