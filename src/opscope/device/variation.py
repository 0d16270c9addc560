"""Random variation between cores, threads and inferences, drawn from a seed.

Every draw is a hash (splitmix64) of its purpose and a counter, so that it depends neither on the order of the draws nor
on a library.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ..core.columns import Floats
from ..program.check import fault
from ..program.program import Program
from ..simulation import Timeline

Words = npt.NDArray[np.uint64]

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_SIGMAS = 3.0


_INFERENCES = "inference_spread"  # figure of a target: one sigma of the time of inferences


class _Stream(IntEnum):
    """Purpose of a draw; draws of different streams are independent."""

    SHARE = 1
    SLOWEST = 2
    CLOCK = 3
    INFERENCE = 4


def thread_shares(program: Program, timeline: Timeline, commands: npt.NDArray[np.int64], threads: int) -> Floats:
    """Return the share of a command's cycles that each thread of a group works; one thread works them all."""
    spread = _spread(program, "thread_spread", below=1.0)
    rows = commands.astype(np.uint64)
    column = np.arange(threads, dtype=np.uint64)
    counters = rows[:, None] * np.uint64(0x10000) + column
    shares = 1.0 - spread * _uniform(_Stream.SHARE, timeline.seed, timeline.inference, counters)
    draw = _uniform(_Stream.SLOWEST, timeline.seed, timeline.inference, rows)
    shares[np.arange(len(rows)), (draw * threads).astype(np.int64)] = 1.0
    return shares


def clock_factor(program: Program, timeline: Timeline, device: int, core: int) -> float:
    """Return the clock of one core as a multiple of the program's."""
    spread = _spread(program, "clock_spread", below=1.0)
    draw = _uniform(_Stream.CLOCK, timeline.seed, 0, np.array([device * 0x10000 + core], np.uint64))
    return 1.0 + spread * (2.0 * float(draw[0]) - 1.0)


def steady_state_ns(program: Program, timeline: Timeline) -> int:
    """Return the time of one inference with all weights loaded and no variation."""
    return round(timeline.total_cycles / program.clock_hz * 1e9)


def vary(program: Program, *, seed: int, inference: int) -> float:
    """Return the time of an inference that is not simulated in full, as a multiple of `steady_state_ns`."""
    spread = _spread(program, _INFERENCES, below=1.0 / _SIGMAS)
    normal = NormalDist()
    # A normal distribution truncated at ±3 sigma, by inverting its distribution function between the tails.
    tail = normal.cdf(-_SIGMAS)
    draw = float(_uniform(_Stream.INFERENCE, seed, inference, np.zeros(1, np.uint64))[0])
    return 1.0 + spread * normal.inv_cdf(tail + draw * (1.0 - 2.0 * tail))


def without_spread(program: Program) -> Program:
    """The program with inferences that all take the steady time."""
    return replace(program, simulation={**program.simulation, _INFERENCES: 0.0})


def least_factor(program: Program) -> float:
    """Return the smallest number that `vary` returns."""
    return 1.0 - _SIGMAS * _spread(program, _INFERENCES, below=1.0 / _SIGMAS)


def _spread(program: Program, name: str, *, below: float) -> float:
    """Return a variation parameter of the target; 0 if the target does not give it."""
    value = program.simulation.get(name, 0.0)
    if not 0.0 <= value < below:
        raise fault(program, f"simulation: {name} is {value}; expected 0 to less than {below:.3g}")
    return value


def _uniform(stream: _Stream, seed: int, inference: int, counters: Words) -> Floats:
    """Return numbers in [0, 1), one per counter."""
    key = 0
    for word in (stream, seed, inference):
        key = _mix(np.array([(key + word * _GOLDEN) & _MASK], np.uint64)).item()
    # 53 random bits fill the mantissa of a double.
    mixed = _mix(np.uint64(key) + counters * np.uint64(_GOLDEN))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(words: Words) -> Words:
    """Apply the finaliser of splitmix64, a bijection that spreads every input bit over the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
