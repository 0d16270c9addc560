"""`opscope quantize` behind the api: a model, data → a copy in a file, and how far it is from the float model."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import msgspec

from ..backends.process import run_worker, work_folder
from ..core.errors import ModelError, UsageError, printable
from ..core.files import check_apart, write_whole
from ..core.precisions import Precision, precision_of
from ..core.random_arrays import Port
from ..options import QuantizeOptions
from ..readers import ModelFormat, model_format, read_model, unpacked
from ..recording.quantized import LayerDifference, OutputDifference, Quantized
from .samples import FileSamples, RandomSamples, Samples
from .worker import PROGRESS

Tell = Callable[[str], None]

_LONGEST_S = 6 * 3600
_LOOK_S = 0.3  # between looks at how far the process is


def quantise(
    model: Path, output: Path, options: QuantizeOptions, *, backend: str | None = None, step: Tell | None = None
) -> Quantized:
    """Write a copy in another precision, and hold it against the model."""
    precision = check_choice(options)
    check_apart([output], [model])
    with unpacked(model) as file:
        if (form := model_format(file)) is not ModelFormat.ONNX:
            raise ModelError(str(model), "", f"a model of format {form.value}; expected ONNX")
        graph = read_model(file, shapes=options.shapes)
        inputs = [graph.tensors[number] for number in graph.inputs]
        ports = [(tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in inputs]
        samples = _samples(options, ports)
        request = {
            "model": str(file.resolve()),
            "precision": precision.word,
            "backend": backend,
            "shapes": {name: shape for name, _, shape in ports},
            "is_fixed": bool(options.shapes),
            "ports": ports,
            "data": None if options.data is None else str(options.data.resolve()),
            "random": options.random,
            "seed": options.seed,
        }
        with _answered(model, request, step or (lambda _: None)) as answer:
            made = Path(str(answer["file"]))
            with made.open("rb") as source:
                write_whole(output, lambda out: shutil.copyfileobj(source, out))
            told = samples.calibration if samples is not None and precision.is_integer else None
            blank = Quantized(str(model), str(output), precision.word, backend, told, notes=graph.assumptions)
            return _quantized(answer, blank)


def check_choice(options: QuantizeOptions) -> Precision:
    """The precision that is asked for; it is known, and integers have something to be calibrated with."""
    precision = precision_of(options.precision)
    if options.data is not None and options.random is not None:
        raise UsageError("--random: --data is given too; expected one of them")
    if precision.is_integer and options.data is None and options.random is None:
        raise UsageError(
            f"--precision {precision.word}: nothing to calibrate with; expected --data DIR|inputs.npz, or --random N "
            "where only speed is in question"
        )
    return precision


def _samples(options: QuantizeOptions, ports: Sequence[Port]) -> Samples | None:
    if options.data is not None:
        return FileSamples(options.data, ports)
    return None if options.random is None else RandomSamples(ports, options.random, options.seed)


@contextmanager
def _answered(model: Path, request: Mapping[str, object], step: Tell) -> Iterator[Mapping[str, object]]:
    """What the process answers; its files are there as long as this is open."""
    with work_folder("quantize") as folder:
        with _watched(folder / PROGRESS, step):
            answer, ended = run_worker("opscope.quantization.worker", request, folder, longest_s=_LONGEST_S)
        if answer is None:
            raise ModelError(str(model), "", f"the quantiser {ended.how}; it says: {ended.last_words}")
        if not answer["ok"]:
            raise ModelError(str(model), "", printable(str(answer["problem"]), 1000))
        yield answer


@contextmanager
def _watched(file: Path, step: Tell) -> Iterator[None]:
    """Tell how far a process is, as it writes it down."""
    ended = Event()

    def look() -> None:
        last = ""
        while not ended.wait(_LOOK_S):
            words = file.read_text(encoding="utf-8") if file.is_file() else ""
            if words and words != last:
                step(words)
                last = words

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _quantized(answer: Mapping[str, object], blank: Quantized) -> Quantized:
    """With what the process found out."""
    return replace(
        blank,
        model_bytes=int(str(answer["model_bytes"])),
        output_bytes=Path(blank.output).stat().st_size,
        outputs=msgspec.convert(answer.get("outputs", ()), tuple[OutputDifference, ...]),
        layers=msgspec.convert(answer.get("layers", ()), tuple[LayerDifference, ...]),
        layers_compared=int(str(answer.get("layers_compared", 0))),
        layer_samples=int(str(answer.get("layer_samples", 0))),
        quantized_ops=int(str(answer["quantized_ops"])),
        float_ops=msgspec.convert(answer["float_ops"], dict[str, tuple[str, ...]]),
        notes=(*blank.notes, *map(str, answer["notes"])),  # type: ignore[call-overload]
        producer=msgspec.convert(answer["producer"], dict[str, str]),
    )
