"""Duration of every host stage of every inference: the target's figures with seeded variation.

Only raw words of PCG64 are used: they are the same on every machine and with every release of numpy, unlike its
ready-made distributions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...graph.graph import DType
from ...program.check import fault
from ...program.program import Program

# Sigma of a log-normal stage, as ln(P90 / P50) / 1.28 (the 90 % quantile of the normal distribution) in a published
# run: 0.18 enqueue, 0.43 pre-processing, 0.12 submit, 0.14 driver, 0.11 post-processing. The median of these is the
# default for targets that give none.
HOST_SPREAD = 0.14

STAGES = ("enqueue", "preprocess", "submit", "driver", "transfer", "postprocess")
_BLOCK = 1024
_MOST_MICROSECONDS = 1e9


class StageTimes(NamedTuple):
    """Nanoseconds of the host stages of one inference."""

    enqueue: int
    preprocess: int
    submit: int
    driver: int
    transfer_in: int
    transfer_out: int
    postprocess: int


class StageSource:
    """Draws the stages of one activation in blocks, so that the times of an inference depend on its number only."""

    def __init__(self, program: Program, *, seed: int, activation: int) -> None:
        self.means_ns = _means_ns(program)
        self.spread = _spread(program)
        self.input_share = _input_share(program)
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
        way_in = np.rint(times[:, 4] * self.input_share).astype(np.int64)
        columns = (*times[:, :4].T, way_in, times[:, 4] - way_in, times[:, 5])
        return [StageTimes(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _means_ns(program: Program) -> npt.NDArray[np.float64]:
    """Return the mean of each stage; 0 if the target has no figure for it."""
    means = []
    for name in STAGES:
        value = program.host_microseconds.get(name, 0.0)
        if not 0.0 <= value <= _MOST_MICROSECONDS:
            raise fault(program, f"host_microseconds: {name} is {value}; expected 0 to {_MOST_MICROSECONDS:.0e}")
        means.append(value * 1e3)
    return np.array(means)


def _spread(program: Program) -> float:
    value = program.simulation.get("host_spread", HOST_SPREAD)
    if not 0.0 <= value <= 1.0:
        raise fault(program, f"simulation: host_spread is {value}; expected 0 to 1")
    return value


def _input_share(program: Program) -> float:
    """Return the share of the transfer time that is before execution, by bytes."""
    inputs, outputs = port_bytes(program.inputs), port_bytes(program.outputs)
    return inputs / (inputs + outputs) if inputs + outputs else 0.5


def port_bytes(ports: tuple[tuple[str, str, tuple[int, ...]], ...]) -> float:
    bits = {dtype.label: dtype.bits or 0 for dtype in DType}
    total = 0.0
    for _, dtype, shape in ports:
        size = bits.get(dtype, 0) / 8
        for extent in shape:
            size *= max(0, extent)
        total += size
    return total
