"""What differs from core to core, thread to thread and inference to inference: drawn from a seed and a counter.

Every draw is a hash of what it is for (splitmix64), so it depends neither on the order of draws nor on a library.
"""

from __future__ import annotations

from enum import IntEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ...program.check import fault
from ...program.program import Program
from .simulate import Timeline

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_SIGMAS = 3.0


class _Stream(IntEnum):
    """Draws of different streams have nothing to do with each other."""

    SHARE = 1
    SLOWEST = 2
    CLOCK = 3
    INFERENCE = 4


def thread_shares(program: Program, timeline: Timeline, commands: npt.NDArray[np.int64], threads: int) -> Floats:
    """How long each thread of a group works on each command, as a share of its cycles: one thread takes them all."""
    spread = _spread(program, "thread_spread", below=1.0)
    rows = commands.astype(np.uint64)
    column = np.arange(threads, dtype=np.uint64)
    counters = rows[:, None] * np.uint64(0x10000) + column
    shares = 1.0 - spread * _uniform(_Stream.SHARE, timeline.seed, timeline.inference, counters)
    draw = _uniform(_Stream.SLOWEST, timeline.seed, timeline.inference, rows)
    shares[np.arange(len(rows)), (draw * threads).astype(np.int64)] = 1.0
    return shares


def clock_factor(program: Program, timeline: Timeline, device: int, core: int) -> float:
    """Clock of one core, as a multiple of the program's."""
    spread = _spread(program, "clock_spread", below=1.0)
    draw = _uniform(_Stream.CLOCK, timeline.seed, 0, np.array([device * 0x10000 + core], np.uint64))
    return 1.0 + spread * (2.0 * float(draw[0]) - 1.0)


def steady_state_ns(program: Program, timeline: Timeline) -> int:
    """Time of one inference when nothing is loaded for the first time and nothing disturbs it."""
    return round(timeline.total_cycles / program.clock_hz * 1e9)


def vary(program: Program, *, seed: int, inference: int) -> float:
    """Time of an inference that is not simulated in full, as a multiple of `steady_state_ns`."""
    spread = _spread(program, "inference_spread", below=1.0 / _SIGMAS)
    normal = NormalDist()
    tail = normal.cdf(-_SIGMAS)
    draw = float(_uniform(_Stream.INFERENCE, seed, inference, np.zeros(1, np.uint64))[0])
    return 1.0 + spread * normal.inv_cdf(tail + draw * (1.0 - 2.0 * tail))


def _spread(program: Program, name: str, *, below: float) -> float:
    """A figure of the simulation; a target that does not give it has no such variation."""
    value = program.simulation.get(name, 0.0)
    if not 0.0 <= value < below:
        raise fault(program, f"simulation: {name} is {value}; expected 0 to less than {below:.3g}")
    return value


def _uniform(stream: _Stream, seed: int, inference: int, counters: Words) -> Floats:
    """Numbers from 0 to less than 1, one per counter."""
    key = 0
    for word in (stream, seed, inference):
        key = _mix(np.array([(key + word * _GOLDEN) & _MASK], np.uint64)).item()
    mixed = _mix(np.uint64(key) + counters * np.uint64(_GOLDEN))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
