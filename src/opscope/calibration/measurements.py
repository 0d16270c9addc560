"""CSV files and Runs → Measurements: what a network took on a chip, with the place that says so."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import median

from ..core.errors import ImportFileError, printable
from ..core.provenance import Provenance
from ..recording.folder_reader import read_run

MOST_ROWS = 100_000
_SUFFIXES = (".onnx", ".tflite", ".mlir")
_FLOAT = ("", "float", "float32", "f32", "fp32", "float16", "fp16", "f16")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured latency."""

    place: str  # file and line, or the run
    model: Path
    seconds: float
    chip: str = ""
    precision: str | None = None  # None: as the target runs float, or as the file is quantised
    batch: int | None = None
    shapes: Mapping[str, tuple[int, ...]] | None = None
    cores: int | None = None

    @property
    def network(self) -> str:
        """What cross-validation leaves out as one: the same file in any size, precision and batch."""
        return self.model.stem


def read_measurements(sources: Sequence[Path], *, models: Path | None = None) -> list[Measurement]:
    """Read rows of CSV files, and latencies of Runs.

    Args:
        models: folder of the models that rows name; else the folder of the file.
    """
    found = [row for source in sources for row in _read(source, models)]
    if not found:
        raise ImportFileError(
            str(sources[0]) if sources else "--from", "", "no rows; expected at least one measurement"
        )
    return found


def repeated_once(rows: Sequence[Measurement]) -> list[Measurement]:
    """Rows that measure the same become one, with the median of their times: ten repeats are not ten networks."""
    groups: dict[object, list[Measurement]] = {}
    for row in rows:
        shapes = tuple(sorted((row.shapes or {}).items()))
        groups.setdefault((row.model, row.chip, row.precision, row.batch, row.cores, shapes), []).append(row)
    return [replace(same[0], seconds=median(row.seconds for row in same)) for same in groups.values()]


def _read(source: Path, models: Path | None) -> Iterator[Measurement]:
    if source.is_dir():
        yield _run(source)
        return
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or ()
            for wanted in ("model", "latency_ms"):
                if wanted not in names:
                    raise ImportFileError(
                        str(source), "line 1", f"no column {wanted!r}; expected columns model, latency_ms"
                    )
            for number, row in enumerate(rows):
                if number >= MOST_ROWS:
                    raise ImportFileError(str(source), f"line {rows.line_num}", f"more than {MOST_ROWS} rows")
                yield _row(row, source, f"line {rows.line_num}", models or source.parent)
    except OSError as error:
        raise ImportFileError(
            str(source), "", f"cannot be read ({error.strerror}); expected a CSV file or a run"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(
            str(source), "", f"not CSV text ({printable(str(error))}); expected a CSV file"
        ) from error


def _row(row: Mapping[str, str | None], source: Path, line: str, models: Path) -> Measurement:
    def text(name: str) -> str:
        return (row.get(name) or "").strip()

    def whole(name: str) -> int | None:
        found = text(name)
        if not found:
            return None
        if not found.isdecimal() or not 1 <= int(found) <= 1 << 20:
            raise ImportFileError(str(source), line, f"{name} is {printable(repr(found))}; expected a number above 0")
        return int(found)

    try:
        milliseconds = float(text("latency_ms"))
    except ValueError:
        milliseconds = -1.0
    if not (isfinite(milliseconds) and 0 < milliseconds < 1e9):
        found = printable(repr(text("latency_ms")))
        raise ImportFileError(str(source), line, f"latency_ms is {found}; expected milliseconds above 0")
    precision = text("precision").lower()
    return Measurement(
        place=f"{source.name}:{line.removeprefix('line ')}",
        model=_model(text("model"), models, source, line),
        seconds=milliseconds / 1e3,
        chip=text("chip"),
        precision=None if precision in _FLOAT else precision,
        batch=whole("batch"),
        shapes=_shapes(text("shapes"), source, line),
        cores=whole("cores"),
    )


def _model(name: str, folder: Path, source: Path, line: str) -> Path:
    given = folder / name
    candidates = [given, *(given.with_name(f"{given.name}{suffix}") for suffix in _SUFFIXES)]
    found = next((path for path in candidates if name and path.is_file()), None)
    if found is None:
        problem = f"model {printable(repr(name))} is not in {printable(str(folder))}; expected a model file"
        raise ImportFileError(str(source), line, problem)
    return found


def _shapes(text: str, source: Path, line: str) -> Mapping[str, tuple[int, ...]] | None:
    """`input=1x3x224x224;mask=1x128`, as `--shape` takes them."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(";")):
        name, equals, extents = part.partition("=")
        numbers = extents.split("x")
        if not equals or not all(number.isdecimal() for number in numbers):
            raise ImportFileError(str(source), line, f"shapes is {printable(repr(part))}; expected NAME=1x3x224x224")
        found[name.strip()] = tuple(int(number) for number in numbers)
    return found or None


def _run(folder: Path) -> Measurement:
    run = read_run(folder)
    latency = run.summary.latency
    if latency.provenance is not Provenance.MEASURED or not latency.value_ns:
        raise ImportFileError(str(folder), "", f"its latency is {latency.provenance}; expected a measured run")
    model = Path(run.info.model)
    if not model.is_file():
        raise ImportFileError(
            str(folder), "", f"its model {printable(str(model))} is not there; expected the file it is of"
        )
    return Measurement(place=folder.name, model=model, seconds=latency.value_ns / 1e9, cores=None)
