"""A converted file against the model: both run on the same samples, and every output is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.process import checked_answer, run_worker
from ..core.errors import ModelError
from ..quantization.errors import OutputSums
from ..recording.quantized import OutputDifference
from .steps import MovedSamples

MOST_CHECKED = 8  # samples
LONGEST_S = 1800
RUNNABLE = ("onnx", "tflite")  # formats that a runtime here runs
_WORKER = Path(__file__).with_name("model_runner.py")
_GARBAGE_COSINE = 0.5  # below it outputs have little in common: unrelated ones are near 0
Arrays = Sequence[npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a file gave for every sample."""

    names: tuple[str, ...]
    folder: Path
    ports: object = None  # names, types and shapes of inputs and outputs, as the runtime has them

    def samples(self) -> Iterator[Arrays]:
        for file in sorted(self.folder.glob("*.npz")):
            with np.load(file) as arrays:
                yield [arrays[str(place)] for place in range(len(self.names))]


def outputs_of(
    file: Path,
    form: str,
    samples: MovedSamples,
    folder: Path,
    *,
    runtime: str,
    python: Path | None = None,
    most: int = MOST_CHECKED,
    plain: bool = False,
) -> Outputs:
    """Run a file on the first samples, in a process of its own; `python` is one that has the runtime.

    With `plain` every op runs as it stands in the file, by the runtime's simplest kernels.
    """
    work, found = folder / "work", folder / "outputs"
    work.mkdir(parents=True)
    found.mkdir()
    names = samples.write(folder / "samples", most)
    request: dict[str, object] = {"format": form, "model": str(file.resolve()), "inputs": names, "plain": plain}
    request |= {"samples": str((folder / "samples").resolve()), "outputs": str(found.resolve())}
    answer, ended = run_worker(_WORKER, request, work, longest_s=LONGEST_S, python=python)
    told = checked_answer(answer, ended, runtime=runtime, model=file)
    return Outputs(tuple(map(str, told["outputs"])), found, told["ports"])  # type: ignore[call-overload]


def compared(wanted: Outputs, found: Outputs, *, model: str) -> tuple[OutputDifference, ...]:
    """Every output of the model, over all samples; axes in another order are put back."""
    if len(wanted.names) != len(found.names):
        raise ModelError(
            model, "", f"converted, it has {len(found.names)} outputs; expected the model's {len(wanted.names)}"
        )
    places = _places(wanted.names, found.names)
    sums = [OutputSums(name) for name in wanted.names]
    orders: dict[int, tuple[int, ...] | None] = {}
    for ours, theirs in zip(wanted.samples(), found.samples(), strict=True):
        for number, (one, place) in enumerate(zip(ours, places, strict=True)):
            other = theirs[place]
            if number not in orders:
                orders[number] = _order(one, other)
            axes = orders[number]
            sums[number].add(one, other if axes is None else other.transpose(axes))
    return tuple(each.difference() for each in sums)


def _places(wanted: Sequence[str], found: Sequence[str]) -> list[int]:
    """Where each output is: by its name, as far as letters and digits go, else by its place."""
    plain = {plain_name(name): place for place, name in enumerate(found)}
    named = [plain.get(plain_name(name)) for name in wanted]
    known = [place for place in named if place is not None]
    return known if len(set(known)) == len(wanted) else list(range(len(wanted)))


def plain_name(name: str) -> str:
    """What is left of a name in the formats of all tools."""
    return "".join(letter for letter in name if letter.isalnum())


def _order(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> tuple[int, ...] | None:
    """The order of axes in which an output is nearest to the model's; None: they are in order, or no order fits."""
    same = one.shape == other.shape
    if one.ndim != other.ndim or not 3 <= one.ndim <= 5 or sorted(one.shape) != sorted(other.shape):
        return None
    last = (0, one.ndim - 1, *range(1, one.ndim - 1))  # channels last, put back behind the batch
    orders = [last, *(order for order in permutations(range(one.ndim)) if order != last)]
    fitting = [order for order in orders if tuple(other.shape[axis] for axis in order) == one.shape]
    if same and (len(fitting) == 1 or _apart(one, other) <= _apart(one, other.transpose(fitting[0]))):
        return None
    return min(fitting[:4], key=lambda order: _apart(one, other.transpose(order)))


def _apart(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).sum())


def garbage(outputs: Sequence[OutputDifference], *, exact: bool) -> str:
    """Why outputs cannot be those of the model, in words; empty: they can.

    Args:
        exact: whether nothing was quantised since: then a single output that is off shows a mistake of the tool.
    """
    problems = [_problem(each) for each in outputs if each.difference is not None or "finite" in each.problem]
    bad = [problem for problem in problems if problem]
    return bad[0] if bad and (exact or len(bad) == len(problems)) else ""


def _problem(output: OutputDifference) -> str:
    if output.difference is None:
        return f"output {output.name}: {output.problem}"
    cosine = output.difference.cosine
    if cosine is not None and cosine < _GARBAGE_COSINE:
        return f"output {output.name}: cosine {cosine:.2f} to the model's"
    return ""


def as_data(output: OutputDifference) -> Mapping[str, object]:
    """For the files of a run."""
    found = output.difference
    told: dict[str, object] = {"name": output.name, "top1": output.top1, "problem": output.problem}
    if found is not None:
        told |= {"sqnr_db": found.sqnr_db, "cosine": found.cosine, "max_error": found.max_abs, "largest": found.largest}
    return told
