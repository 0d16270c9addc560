"""What a step of a conversion is given, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..backends.environments import Toolchain
from ..core.manifest import Form
from ..core.random_arrays import Port
from ..quantization.samples import Feed, Samples
from ..recording.quantized import Calibration

MOST_SAMPLES = 200  # that a step calibrates with: each is written down for another process


@dataclass(frozen=True, slots=True)
class MovedInput:
    """Where an input of the model is after a step: its name, and its axes in another order where there is one."""

    name: str
    axes: tuple[int, ...] | None = None

    def then(self, later: MovedInput) -> MovedInput:
        """Moved once more."""
        if self.axes is None or later.axes is None:
            return MovedInput(later.name, self.axes or later.axes)
        return MovedInput(later.name, tuple(self.axes[axis] for axis in later.axes))


@dataclass(frozen=True, slots=True)
class FileToConvert:
    """A file to convert."""

    model: Path
    form: Form
    makes: Form
    folder: Path  # empty, for the step alone
    inputs: Sequence[Port]  # of the file, with shapes for its open dimensions
    samples: MovedSamples  # for the inputs of the file
    toolchain: Toolchain | None  # of the step's environment


@dataclass(frozen=True, slots=True)
class Made:
    """A converted file."""

    file: Path
    version: str  # of the tool
    inputs: Mapping[str, MovedInput] = field(default_factory=dict)  # those that moved, by their name before
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedSamples:
    """Samples of the model the user gave, as an input of a converted file takes them."""

    samples: Samples
    moved: Mapping[str, MovedInput] = field(default_factory=dict)

    def feeds(self, most: int | None = None) -> Iterator[Feed]:
        for feed in self.samples.feeds(most):
            found = {}
            for name, array in feed.items():
                place = self.moved.get(name, MovedInput(name))
                found[place.name] = array if place.axes is None else np.ascontiguousarray(array.transpose(place.axes))
            yield found

    @property
    def calibration(self) -> Calibration:
        return self.samples.calibration

    def then(self, inputs: Mapping[str, MovedInput], names: Sequence[str]) -> MovedSamples:
        """After one more step, for the inputs of the model that have these names."""
        now = {name: self.moved.get(name, MovedInput(name)) for name in names}
        return MovedSamples(
            self.samples,
            {name: place.then(inputs.get(place.name, MovedInput(place.name))) for name, place in now.items()},
        )

    def write(self, folder: Path, most: int) -> list[str]:
        """One archive of arrays for each sample, `0` the first input; the names of the inputs in that order."""
        folder.mkdir(parents=True, exist_ok=True)
        names: list[str] = []
        for number, feed in enumerate(self.feeds(most)):
            names = list(feed)
            arrays = {str(place): array for place, array in enumerate(feed.values())}
            np.savez(folder / f"{number:05}.npz", **arrays)  # type: ignore[arg-type]
        return names
