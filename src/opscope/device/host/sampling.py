"""Chooses the inferences of a run that are profiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...options import RunOptions
from ...recording.host_times import HostTimes, Rows


@dataclass(frozen=True, slots=True)
class Sampling:
    """The profiled inferences of each activation."""

    rows: tuple[Rows, ...]
    requested: int
    note: str = ""

    @property
    def count(self) -> int:
        return sum(map(len, self.rows))


def choose_samples(times: HostTimes, options: RunOptions) -> Sampling:
    """Choose `samples` inferences per activation after the start delay; else the last ones, with a note."""
    chosen, late = [], False
    for activation in range(options.activations):
        own = times.of_activation(activation)
        enough = own["enqueued_ns"] >= options.start_delay * 1e6
        candidates = own[enough & (own["inference"] >= options.start_iter)]
        late |= not len(candidates)
        chosen.append(candidates[: options.num_samples] if len(candidates) else own[-options.num_samples :])
    return Sampling(tuple(chosen), options.num_samples, _note(times, options) if late else "")


def _note(times: HostTimes, options: RunOptions) -> str:
    last = np.unique(times.rows["activation"], return_counts=True)[1].max() - 1
    return (
        f"the run enqueued its last inference (number {last}) {times.rows['enqueued_ns'].max() / 1e6:.3f} ms after its "
        f"start, before profiling was to begin (iteration {options.start_iter}, {options.start_delay:g} ms); "
        "its last inferences are profiled instead"
    )
