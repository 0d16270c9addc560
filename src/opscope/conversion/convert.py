"""A model brought to the form that a backend takes: steps run one after the other, each file checked and kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import cast

from ..backends import environments
from ..backends.registry import converts
from ..core.converting_options import AS_IS, DATA, PRECISION
from ..core.errors import ModelError, UsageError, printable
from ..core.manifest import BackendEntry, Conversion, Form, Value
from ..core.plugins import load_place, manifests
from ..graph.graph import Graph
from ..quantization.samples import FileSamples, RandomSamples, Samples
from ..readers import model_format, read_model
from ..recording.quantized import OutputDifference, summary_line, worst_of
from . import plan
from .check import MOST_CHECKED, RUNNABLE, Outputs, as_data, compared, garbage, outputs_of
from .steps import MOST_SAMPLES, FileToConvert, Made, MovedSamples

Shapes = Mapping[str, tuple[int, ...]]
Tell = Callable[[str], None]
_RANDOM_SAMPLES = 8
_POOR_DB = 10.0  # noise of a tenth of the signal


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """One step that was done."""

    conversion: Conversion
    form: Form  # before
    makes: Form
    version: str
    seconds: float
    file: Path
    outputs: tuple[OutputDifference, ...]  # against the model; empty: nothing here runs the file
    notes: tuple[str, ...]

    def told(self, kept: str, samples: str) -> str:
        """In one line."""
        error = f"{summary_line(self.outputs)}, {samples}" if self.outputs else "outputs not compared: nothing runs it"
        tool = f"{self.conversion.name} {self.version}".strip()
        return f"converted by {tool}: {plan.told(self.form)} → {plan.told(self.makes)} ({kept}); {error}"


@dataclass(frozen=True, slots=True)
class Converted:
    """What a backend is given instead of the model; the model itself where it takes that."""

    file: Path
    options: Mapping[str, Value]  # without those of conversion
    shapes: Shapes | None
    steps: tuple[ConversionStep, ...] = ()
    notes: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    kept: Mapping[str, bytes] = field(default_factory=dict)  # name → file, for the folder of the run

    @property
    def details(self) -> list[Mapping[str, object]]:
        """The steps as data, for the files of a run."""
        return [
            {
                "tool": step.conversion.name,
                "version": step.version,
                "from": step.form._asdict(),
                "to": step.makes._asdict(),
                "seconds": round(step.seconds, 3),
                "file": name,
                "outputs": [as_data(output) for output in step.outputs],
                "notes": list(step.notes),
            }
            for step, name in zip(self.steps, self.kept, strict=True)
        ]


@contextmanager
def converted(
    model: Path,
    entry: BackendEntry,
    options: Mapping[str, Value],
    *,
    shapes: Shapes | None = None,
    tell: Tell | None = None,
) -> Iterator[Converted]:
    """The model in a form that the backend takes; files that were made are there as long as this is open."""
    if not converts(entry):
        yield Converted(model, options, shapes)
        return
    asked = cast("str | None", options.get(PRECISION))
    rest = {name: value for name, value in options.items() if name not in (PRECISION, DATA)}
    form = model_format(model).name.lower()
    if form in entry.models and (asked == AS_IS or (asked is None and not entry.precisions)):
        _check_used(options)
        yield Converted(model, rest, shapes)
        return
    graph = read_model(model, shapes=shapes)
    start = Form(form, plan.precision_of(graph))
    way = _way(model, entry, start, asked)
    if not way:
        _check_used(options)
        yield Converted(model, rest, shapes)
        return
    with TemporaryDirectory(prefix="opscope-convert-") as place:
        data = options.get(DATA)
        chain = _Chain(model, graph, Path(place), Path(str(data)) if data else None, tell or _silent)
        made = chain.done(way, start, rest)
        try:
            yield made
        except ModelError as error:  # of the backend, about a file that the user never saw
            problem = str(error).removeprefix(f"{made.file}: ")
            raise ModelError(str(model), "", f"converted, {problem}") from error


def _silent(_: str) -> None:
    """For who does not want to know."""


def _check_used(options: Mapping[str, Value]) -> None:
    if options.get(DATA):
        raise UsageError("--data: nothing is converted for this backend; expected a model that has to be")


def _way(model: Path, entry: BackendEntry, form: Form, asked: str | None) -> tuple[Conversion, ...]:
    """The steps to what the backend takes; none: it takes the model as it is."""
    wanted = plan.goal(entry, form.precision, form.precision if asked == AS_IS else asked)
    if form.format in entry.models and form.precision == wanted:
        return ()
    way = plan.shortest(form, entry.models, wanted, plan.known())
    takes = f"{wanted} in {' or '.join(entry.models)}"
    if not way:
        why = f"{plan.told(form)}, and no tool here makes {takes} of it"
        hint = "its float model" if form.precision != plan.FLOAT else "such a model"
        raise ModelError(str(model), "", f"{why}; --backend {entry.name} expected {hint}")
    lacking = plan.missing(way)
    if lacking:
        tools = ", ".join(dict.fromkeys(step.name for step in way if step.environment in lacking))
        raise ModelError(
            str(model),
            "",
            f"{plan.told(form)}, and --backend {entry.name} takes {takes}; expected such a model, or "
            f"`opscope setup {lacking[0]}`, which brings what converts it ({tools})",
        )
    return way


class _Chain:
    """A model on its way through the steps."""

    def __init__(self, model: Path, graph: Graph, folder: Path, data: Path | None, tell: Tell) -> None:
        self.model, self.folder, self.tell = model, folder, tell
        self.ports = [
            (tensor.name, tensor.dtype.label, tensor.shape or ())
            for tensor in (graph.tensors[number] for number in graph.inputs)
        ]
        drawn: Samples = RandomSamples(self.ports, _RANDOM_SAMPLES) if data is None else FileSamples(data, self.ports)
        self.samples = MovedSamples(drawn)
        self.assumptions = graph.assumptions
        self.shapes = {name: shape for name, _, shape in self.ports}
        self.wanted: Outputs | None = None

    def done(self, way: Sequence[Conversion], start: Form, options: Mapping[str, Value]) -> Converted:
        """Every step, and what is said of it."""
        steps: list[ConversionStep] = []
        file, now, samples = self.model, start, self.samples
        for number, conversion in enumerate(way):
            makes = Form(conversion.makes.format, conversion.makes.precision or now.precision)
            self.tell(f"converting to {plan.told(makes)} by {conversion.name}")
            began = perf_counter()
            place, tools = self._place(f"step{number}"), _tools(conversion)
            made = self._made(conversion, FileToConvert(file, now, makes, place, self._inputs(file), samples, tools))
            seconds = perf_counter() - began
            samples = samples.then(made.inputs, [name for name, _, _ in self.ports])
            outputs = self._checked(start.format, made.file, makes, samples, conversion)
            steps.append(ConversionStep(conversion, now, makes, made.version, seconds, made.file, outputs, made.notes))
            file, now = made.file, makes
        return self._told(file, steps, options)

    def _inputs(self, file: Path) -> list[tuple[str, str, tuple[int, ...]]]:
        if file == self.model:
            return self.ports
        try:
            graph = read_model(file)
        except ModelError as error:  # a file that the user never saw
            problem = str(error).removeprefix(f"{file}: ")
            raise ModelError(
                str(self.model), "", f"converted, it cannot be read ({problem}); expected a model"
            ) from error
        tensors = [graph.tensors[number] for number in graph.inputs]
        return [(tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in tensors]

    def _place(self, name: str) -> Path:
        place = self.folder / name / "work"
        place.mkdir(parents=True)
        return place

    def _made(self, conversion: Conversion, work: FileToConvert) -> Made:
        (manifest,) = (each for each in manifests() if conversion in each.conversions)
        convert = cast("Callable[[FileToConvert], Made]", load_place(manifest, conversion.place))
        try:
            return convert(work)
        except ModelError as error:  # of a file that the user never saw
            raise ModelError(str(self.model), "", str(error).removeprefix(f"{work.model}: ")) from error

    def _checked(
        self, form: str, file: Path, makes: Form, samples: MovedSamples, conversion: Conversion
    ) -> tuple[OutputDifference, ...]:
        """How far the outputs are from the model's; those that have nothing in common with them are refused."""
        if form not in RUNNABLE or makes.format not in RUNNABLE:
            return ()
        tools = _tools(conversion)
        python = tools.python if tools is not None else None
        if self.wanted is None:
            ours = python if form == "tflite" else None
            self.wanted = outputs_of(
                self.model, form, self.samples, self.folder / "model", runtime="its runtime", python=ours
            )
        try:
            found = outputs_of(file, makes.format, samples, file.parent / "check", runtime="LiteRT", python=python)
        except ModelError as error:
            problem = str(error).removeprefix(f"{file}: ")
            raise ModelError(str(self.model), "", f"converted by {conversion.name}, {problem}") from error
        outputs = compared(self.wanted, found, model=str(self.model))
        if problem := garbage(outputs, exact=makes.precision == plan.FLOAT):
            raise ModelError(
                str(self.model),
                "",
                f"what {conversion.name} makes of it is another function ({problem}); expected outputs like the "
                f"model's ({self._samples_told()})",
            )
        return outputs

    def _samples_told(self) -> str:
        with_what = self.samples.calibration
        count = min(with_what.samples, MOST_CHECKED)
        return f"{count} random samples" if with_what.is_random else f"{count} samples of {with_what.source}"

    def _told(self, file: Path, steps: Sequence[ConversionStep], options: Mapping[str, Value]) -> Converted:
        stem = re.sub(r"[^\w.-]+", "-", self.model.stem) or "model"
        names = [f"{stem}.{step.makes.precision}{step.file.suffix}" for step in steps]
        notes, caveats = [*self.assumptions], []
        for step, name in zip(steps, names, strict=True):
            notes.append(step.told(f"kept as {name}, {step.seconds:.1f} s", self._samples_told()))
            notes.extend(f"{step.conversion.name}: {printable(note, 500)}" for note in step.notes)
        if any(step.makes.precision != step.form.precision for step in steps):
            with_what = self.samples.calibration
            notes.append(f"quantised with {with_what.told}")
            if with_what.samples > MOST_SAMPLES:
                notes.append(f"calibrated with the first {MOST_SAMPLES} of {with_what.samples} samples")
            caveats = ["quantised with random data"] * with_what.is_random
        caveats += _poor(steps[-1].outputs)
        kept = {name: step.file.read_bytes() for name, step in zip(names, steps, strict=True)}
        named = file.rename(file.with_name(f"{stem}{file.suffix}"))  # backends call what they make after the file
        return Converted(named, options, None, tuple(steps), tuple(notes), tuple(caveats), kept)


def _poor(outputs: Sequence[OutputDifference]) -> list[str]:
    """What is said where most of an output is noise: the times are of such a network, its answers are not."""
    worst = worst_of(outputs)
    error = None if worst is None or worst.difference is None else worst.difference.sqnr_db
    if worst is None or error is None or error >= _POOR_DB:
        return []
    return [f"output {printable(worst.name)} of what was converted is off by much ({error:.1f} dB SQNR)"]


def _tools(conversion: Conversion) -> environments.Toolchain | None:
    return environments.found(conversion.environment) if conversion.environment else None
