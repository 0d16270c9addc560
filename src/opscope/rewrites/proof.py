"""Whether a rewritten model gives what the model gives: both run in the reference runtime on the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from math import sqrt
from pathlib import Path

import numpy as np

from ..conversion.check import Outputs, outputs_of
from ..conversion.steps import MovedSamples
from ..core.errors import ModelError, ProfilerError, printable
from ..core.random_arrays import Port, random_arrays
from ..graph.graph import Graph
from ..options.optimize import MAX_ERROR
from ..quantization.samples import Feed, FileSamples, RandomSamples
from ..readers import read_model
from ..recording.quantized import Calibration
from .rounding import DEVIATIONS, Array, Limits, apart, longest_walk

SPREADS = (1.0, 1.0, 8.0)  # of the values that are drawn: other branches of what saturates are taken
BATCHES = (1, 2, 3)  # of the values that are drawn, where the model leaves the batch open
MOST_DATA = 8  # samples of the user's


@dataclass(frozen=True, slots=True)
class Drawn:
    """Random inputs, then the user's; `nudged` moves every float by one rounding, up or down."""

    ports: Sequence[Port]
    data: FileSamples | None = None
    nudged: bool = False
    spreads: tuple[float, ...] = SPREADS  # of random inputs, one each
    batches: tuple[Sequence[Port], ...] = ()  # ports for each of them, where an open batch is another; else as given

    @property
    def count(self) -> int:
        return len(self.spreads) + (0 if self.data is None else min(self.data.count, MOST_DATA))

    def feeds(self, most: int | None = None) -> Iterator[Feed]:
        ports = self.batches or (self.ports,) * len(self.spreads)
        drawn = chain.from_iterable(RandomSamples(each, 1, seed).feeds() for seed, each in enumerate(ports))
        pairs = zip(drawn, self.spreads, strict=True)
        spread = ({name: _times(array, factor) for name, array in feed.items()} for feed, factor in pairs)
        given = () if self.data is None else self.data.feeds(MOST_DATA)
        for number, feed in enumerate(islice(chain(spread, given), most)):
            yield self._moved(feed, number) if self.nudged else feed

    def _moved(self, feed: Feed, seed: int) -> Feed:
        signs = random_arrays([(name, "f32", array.shape) for name, array in feed.items()], seed=1000 + seed)
        return {
            name: (array * (1 + unit_of(array) * np.sign(sign))).astype(array.dtype)
            if array.dtype.kind == "f"
            else array
            for (name, array), sign in zip(feed.items(), signs, strict=True)
        }

    @property
    def calibration(self) -> Calibration:
        drawn = f"{len(self.spreads)} drawn inputs" if self.spreads else ""
        drawn += f", of batches {', '.join(map(str, BATCHES))}" if self.batches else ""
        given = "" if self.data is None else f"{self.count - len(self.spreads)} samples of {self.data.place}"
        return Calibration(" and ".join(filter(None, (drawn, given))), self.data is None, self.count)

    @property
    def metadata(self) -> dict[str, str]:
        return {}


def unit_of(array: Array) -> float:
    """As far as one rounding moves a value."""
    return float(np.finfo(array.dtype).eps)


def _times(array: Array, factor: float) -> Array:
    return (array * factor).astype(array.dtype) if array.dtype.kind == "f" else array


@dataclass(frozen=True, slots=True)
class Proof:
    """How far a candidate is from the model."""

    problem: str = ""  # why it is not the same; empty: it is
    error: float = 0.0  # noise for one of signal, as amplitudes, at the worst output
    used: float | None = None  # of what rounding allows, at the worst element; None: not held to that
    outputs: Outputs | None = None


@dataclass(slots=True)
class Prover:
    """The model, run once; candidates are held against it.

    Args:
        folder: for samples and outputs; they are there as long as it is.
        max_error: of rewrites that are not exact.
    """

    model: Path
    form: str  # onnx, tflite
    graph: Graph
    folder: Path
    data: Path | None = None
    max_error: float = MAX_ERROR
    notes: list[str] = field(default_factory=list)
    wanted: Outputs = field(init=False)
    limits: list[Limits] = field(init=False)
    samples: Drawn = field(init=False)
    _loose: list[list[Array]] = field(init=False)  # sample → output → where rounding alone changes a whole number
    _count: int = 0

    def __post_init__(self) -> None:
        ports = _ports(self.graph)
        self.samples, self.wanted = self._first(ports, None if self.data is None else FileSamples(self.data, ports))
        others = [self._run(self.model, replace(self.samples, nudged=True))]
        try:
            others.append(self._run(self.model, self.samples, plain=True))
        except ModelError as error:
            self.notes.append(f"not run without the runtime's own optimisations: {printable(str(error), 300)}")
        walk = longest_walk(self.graph)
        self.limits = [Limits(DEVIATIONS * walk.deviation) for _ in self.wanted.names]
        self._loose = []
        factors = (sqrt(max(walk.ops, 1)), 1.0)[: len(others)]  # inputs are rounded once, and every op rounds
        for wanted, *moved in zip(self.wanted.samples(), *(other.samples() for other in others), strict=True):
            self._loose.append([_unlike(one, each) for one, each in zip(wanted, zip(*moved, strict=True), strict=True)])
            for limit, one, each in zip(self.limits, wanted, zip(*moved, strict=True), strict=True):
                if one.dtype.kind == "f":
                    limit.see(one, each, factors)

    def _first(self, ports: Sequence[Port], data: FileSamples | None) -> tuple[Drawn, Outputs]:
        """What the model gives for random inputs and the user's; for the user's alone where it takes no others."""
        both = Drawn(ports, data)
        several = replace(both, batches=self._batches())
        try:
            if several.batches:
                return several, self._run(self.model, several)
        except ModelError as error:
            self.notes.append(f"compared at batch 1 alone: others fail ({printable(str(error), 200)})")
        try:
            return both, self._run(self.model, both)
        except ModelError as error:
            if data is None:
                hint = "on random inputs; expected a model that takes them, or --data with inputs that it takes"
                raise ModelError(str(error), "", hint) from error
            self.notes.append(f"compared on the data alone: random inputs fail ({printable(str(error), 200)})")
            alone = Drawn(ports, data, spreads=())
            return alone, self._run(self.model, alone)

    def _batches(self) -> tuple[Sequence[Port], ...]:
        """Ports of several batches, where the model leaves the batch open."""
        if self.form != "onnx" or all(note.code != "open-batch" for note in self.graph.notes):
            return ()
        with suppress(ProfilerError):  # one that cannot be read so is not run so
            return tuple(_ports(read_model(self.model, batch=batch)) for batch in BATCHES)
        return ()

    def _run(self, file: Path, samples: Drawn, *, plain: bool = False) -> Outputs:
        self._count += 1
        place = self.folder / str(self._count)
        runtime = "ONNX Runtime" if self.form == "onnx" else "LiteRT"
        return outputs_of(
            file, self.form, MovedSamples(samples), place, runtime=runtime, most=samples.count, plain=plain
        )

    def prove(self, candidate: Path, *, exact: bool, since: Outputs | None = None) -> Proof:
        """Hold a file against the model.

        Args:
            exact: whether only rounding may tell them apart; else `max_error` holds.
            since: outputs that it must equal up to rounding, where it follows one that is not exact; the model's own
                where not given.
        """
        try:
            found = self._run(candidate, self.samples)
        except ModelError as refused:
            return Proof(str(refused).removeprefix(f"{candidate}: "))
        if problem := _ports_differ(self.wanted.ports, found.ports):
            return Proof(problem)
        used, problem = self._compared(since or self.wanted, found) if exact else (None, "")
        error, other = self._error(found)
        if not exact and not other and error > self.max_error:
            other = f"off by {error:.2%} (noise for one of signal), more than {self.max_error:.2%} (--max-error)"
        return Proof(problem or other, error, used, found)

    def _compared(self, wanted: Outputs, found: Outputs) -> tuple[float, str]:
        """What of the limits is used up, and where they are broken."""
        used, problem = 0.0, ""
        for number, (ours, theirs) in enumerate(zip(wanted.samples(), found.samples(), strict=True)):
            for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                share, words = self._output(one, other, place, self._loose[number][place])
                used = max(used, share)
                problem = problem or (words and f"output {printable(wanted.names[place])}, sample {number}: {words}")
        return used, problem

    def _output(self, one: Array, other: Array, place: int, loose: Array) -> tuple[float, str]:
        if words := _unalike(one, other, loose):
            return 0.0, words
        if one.dtype.kind != "f" or one.shape != other.shape or not one.size:
            return 0.0, ""
        off = apart(one, other)
        allowed = self.limits[place].allowed(one.shape)
        over = np.divide(off, allowed, out=np.where(off > 0, np.inf, 0.0), where=allowed > 0)
        worst = np.unravel_index(int(over.argmax()), over.shape)
        if over[worst] <= 1:
            return float(over[worst]), ""
        found, wanted, most = (float(array[worst]) for array in (other, one, allowed))
        return 0.0, f"{found:.6g} instead of {wanted:.6g}, where rounding moves it by at most {most:.2g}"

    def _error(self, found: Outputs) -> tuple[float, str]:
        """Noise for one of signal at the worst output; whole numbers that differ count as their share."""
        signal, noise = (np.zeros(len(self.wanted.names)) for _ in range(2))
        problem = ""
        for number, (ours, theirs) in enumerate(zip(self.wanted.samples(), found.samples(), strict=True)):
            for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                loose = self._loose[number][place]
                if one.dtype != other.dtype or (one.shape != other.shape and not loose.all()):
                    problem = problem or f"output {printable(self.wanted.names[place])}: another type or shape"
                elif one.shape == other.shape and one.dtype.kind == "f":
                    off = apart(one, other)
                    signal[place] += float(np.square(np.where(np.isfinite(one), one, 0), dtype=np.float64).sum())
                    noise[place] += float((off * off).sum())
                elif one.shape == other.shape:
                    signal[place] += one.size
                    noise[place] += float(((one != other) & ~loose).sum())
        shares = [sqrt(n / s) if s else float(n > 0) for n, s in zip(noise, signal, strict=True)]
        return max(shares, default=0.0), problem


def _ports(graph: Graph) -> list[Port]:
    inputs = [graph.tensors[number] for number in graph.inputs]
    return [(tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in inputs]


def _unlike(one: Array, others: Sequence[Array]) -> Array:
    """Where rounding alone changes what can be compared: whole numbers, what is finite; everywhere where a shape is."""
    if any(other.shape != one.shape for other in others):
        return np.ones(one.shape, bool)
    loose = np.zeros(one.shape, bool)
    for other in others:
        loose |= (np.isfinite(one) != np.isfinite(other)) if one.dtype.kind == "f" else (one != other)
    return loose


def _unalike(one: Array, other: Array, loose: Array) -> str:
    """What tells two outputs apart at first sight; empty: nothing."""
    if one.dtype != other.dtype:
        return f"{other.dtype} instead of {one.dtype}"
    if one.shape != other.shape:
        return "" if loose.all() and loose.size else f"{list(other.shape)} instead of {list(one.shape)}"
    if one.dtype.kind != "f":
        return "" if ((one == other) | loose).all() else "whole numbers differ"
    bad = ((np.isnan(one) != np.isnan(other)) | (np.isinf(one) != np.isinf(other))) & ~loose
    return "values that are not finite in other places" if bad.any() else ""


def _ports_differ(wanted: object, found: object) -> str:
    """Names, types, shapes and order of inputs and outputs are kept; empty: they are.

    A dimension that the model leaves open may be told by the other: what it comes to, every sample shows.
    """
    if not isinstance(wanted, Mapping) or not isinstance(found, Mapping):
        return ""
    for side in ("inputs", "outputs"):
        if len(wanted[side]) != len(found[side]):
            return f"it has {len(found[side])} {side} instead of {len(wanted[side])}"
        for one, other in zip(wanted[side], found[side], strict=True):
            if one[:2] != other[:2] or not _fits(one[2], other[2]):
                return f"its {side} are others: {printable(str(other))} instead of {printable(str(one))}"
    return ""


def _fits(one: Sequence[object] | None, other: Sequence[object] | None) -> bool:
    if one is None or other is None:
        return one is None
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a == b or not isinstance(a, int) or a < 0 for a, b in pairs)
