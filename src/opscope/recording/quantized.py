"""A quantised copy of a model: what it was calibrated with, how far it is from the float model, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log10

import msgspec

from .summary import Latency

CALIBRATION, RANDOM = "opscope.calibration", "random"  # key of the metadata of a copy, and the value that warns
CONVERSION = "conversion"  # name in `Recording.details`: steps that made another file of the model, each checked
COPY = "quantization"  # name in `Recording.details`: a copy that was profiled in place of the model, and its errors


@dataclass(frozen=True, slots=True)
class Difference:
    """How far values of a copy are from those of the float model, over all samples."""

    signal: float  # sum of squares of the float values
    noise: float  # of the differences
    cosine: float | None  # None: one of the two is zero throughout
    max_abs: float  # largest difference
    largest: float  # largest float value, without its sign

    @property
    def sqnr_db(self) -> float | None:
        """Signal to quantisation noise; None: there is no noise, or no signal."""
        return 10 * log10(self.signal / self.noise) if self.noise and self.signal else None

    @property
    def is_exact(self) -> bool:
        return not self.noise

    @property
    def is_only_noise(self) -> bool:
        """Whether the float model has zeros only, and the copy has not."""
        return bool(self.noise) and not self.signal

    @property
    def share(self) -> float:
        """Noise for one of signal; 0 where there is no signal."""
        return self.noise / self.signal if self.signal else 0.0


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """One output of the model."""

    name: str
    difference: Difference | None  # None: it is no tensor of floats, or some of its values are not finite
    top1: float | None = None  # share of rows with the same largest value; None: it is no table of class scores
    rows: int = 0
    problem: str = ""  # why there is no difference


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One op, by its output in both graphs; `added` is the noise for one of signal that its inputs did not have."""

    op: str
    type: str
    tensor: str
    difference: Difference
    inputs_db: float | None  # the worst of its inputs; None: they are exact, or nobody knows
    added: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """What ranges were found with."""

    told: str  # in words
    is_random: bool
    samples: int
    source: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ProfiledCopy:
    """What the float model, or the copy, takes where it was profiled."""

    where: str  # target, and who told
    latency: Latency | None
    run: str | None = None  # folder
    problem: str = ""  # why there is no latency


@dataclass(frozen=True, slots=True)
class Quantized:
    """A copy and its errors."""

    model: str
    output: str
    precision: str
    backend: str | None  # whose rules it was made by; None: those of ONNX Runtime's own kernels
    calibration: Calibration | None  # None: nothing is calibrated, as in f16
    model_bytes: int = 0  # with the weights of files beside it
    output_bytes: int = 0
    outputs: tuple[OutputDifference, ...] = ()
    layers: tuple[LayerDifference, ...] = ()  # the one that adds most noise first
    layers_compared: int = 0
    layer_samples: int = 0
    quantized_ops: int = 0
    float_ops: Mapping[str, Sequence[str]] = field(default_factory=dict)  # type → names of those that stayed float
    notes: tuple[str, ...] = ()
    producer: Mapping[str, str] = field(default_factory=dict)
    before: ProfiledCopy | None = None  # None: not profiled
    after: ProfiledCopy | None = None

    @property
    def worst(self) -> OutputDifference | None:
        """The output that is furthest from the float model."""
        return worst_of(self.outputs)


def worst_of(outputs: Sequence[OutputDifference]) -> OutputDifference | None:
    known = [(each.difference, each) for each in outputs if each.difference is not None]
    return max(known, key=lambda pair: (pair[0].is_only_noise, pair[0].share), default=(None, None))[1]


def summary_line(outputs: Sequence[OutputDifference]) -> str:
    """How far off a copy is, in words: its worst output."""
    worst = worst_of(outputs)
    if worst is None or worst.difference is None:
        problems = "; ".join(dict.fromkeys(f"{each.name}: {each.problem}" for each in outputs if each.problem))
        return f"error against float: unknown ({problems or 'no output of floats'})"
    found = worst.difference
    error = "exact" if found.is_exact else f"off by {found.max_abs:.3g} where the model gives zeros"
    error = error if found.sqnr_db is None else f"{found.sqnr_db:.1f} dB SQNR"
    classes = next((each for each in outputs if each.top1 is not None), None)
    agreeing = f", top-1 of {classes.name} agrees in {classes.top1:.0%} of {classes.rows}" if classes else ""
    return f"error against float: {worst.name} {error}{agreeing}"


@dataclass(frozen=True, slots=True)
class CopyError:
    """How far the copy that was profiled is from the model, at the output that is furthest off."""

    precision: str
    sqnr_db: float | None  # None: there is no noise, or no signal
    cosine: float | None
    data: str  # what its ranges were found with; empty: nothing is calibrated


class _Part(msgspec.Struct):
    signal: float
    noise: float
    cosine: float | None
    max_abs: float
    largest: float


class _Output(msgspec.Struct):
    difference: _Part | None = None


class _Told(msgspec.Struct):
    told: str


class _Copy(msgspec.Struct):
    precision: str
    outputs: list[_Output]
    calibration: _Told | None = None


class _Checked(msgspec.Struct):
    sqnr_db: float | None = None
    cosine: float | None = None


class _Made(msgspec.Struct):
    precision: str = ""


class _Step(msgspec.Struct):
    outputs: list[_Checked]
    to: _Made


def _converted_error(steps: Sequence[_Step]) -> CopyError | None:
    """Of the last step, whose file was profiled; each step is checked against the model itself."""
    known = [each for each in (steps[-1].outputs if steps else ()) if each.cosine is not None]
    worst = min(known, key=lambda each: inf if each.sqnr_db is None else each.sqnr_db, default=None)
    return None if worst is None else CopyError(steps[-1].to.precision, worst.sqnr_db, worst.cosine, "")


def copy_error(details: Mapping[str, object]) -> CopyError | None:
    """Of `Recording.details`; None: the model itself was profiled, or nobody compared the two."""
    try:
        if COPY not in details:
            return _converted_error(msgspec.convert(details.get(CONVERSION), list[_Step]))
        copy = msgspec.convert(details[COPY], _Copy)
    except msgspec.ValidationError:
        return None
    parts = [Difference(**msgspec.structs.asdict(each.difference)) for each in copy.outputs if each.difference]
    worst = max(parts, key=lambda part: (part.is_only_noise, part.share), default=None)
    if worst is None:
        return None
    return CopyError(copy.precision, worst.sqnr_db, worst.cosine, copy.calibration.told if copy.calibration else "")
