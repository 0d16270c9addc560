"""CSV files and Runs → Measurements: what a network took on a chip, with the place that says so."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from statistics import median

from ..core.errors import ImportFileError, ProfilerError, printable
from ..core.meaning import Direction
from ..core.provenance import Provenance
from ..graph.graph import ABSENT, Graph, Tensor
from ..graph.kinds import Family
from ..machine.target import Target
from ..readers import graph_of
from ..recording.folder_reader import read_run
from ..recording.recording import OpRecord, Recording
from ..recording.recording_file import read_recording
from ..recording.run import RunInfo
from .op_rows import LOCAL, OUTER, op_graph
from .quantities import Quantity

MOST_ROWS = 100_000
_LEAST_JOINED = 0.5  # of the time of all ops, that is of ops of the model
MOST_APART = 3.0  # times that rows which measure the same may differ by
OP_COLUMNS = ("op_type", "shapes", "dtype", "time_ns")
_MOST_DIGITS = 9  # of a count
_SUFFIXES = (".onnx", ".tflite", ".mlir")
_FLOAT = ("", "float", "float32", "f32", "fp32", "float16", "fp16", "f16")


@dataclass(frozen=True, slots=True)
class Steps:
    """Graphs that were measured together, each so often: a token of a language model, or a prompt read in chunks."""

    network: str
    phase: str  # what was measured of it: decode, prefill
    point: tuple[int, ...]  # at which sizes
    graphs: Callable[[Target], Sequence[tuple[Graph, float]]]  # with the types that a target computes in


_FIELDS = {Quantity.LATENCY: "seconds", Quantity.ENERGY: "joules", Quantity.RAM: "ram_bytes"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of one inference: its latency, and what else was."""

    place: str  # file and line, or the run
    model: Path | Graph | Steps  # a graph: one op, by its shapes
    seconds: float
    chip: str = ""
    precision: str | None = None  # None: as the target runs float, or as the file is quantised
    batch: int | None = None
    shapes: Mapping[str, tuple[int, ...]] | None = None
    cores: int | None = None
    joules: float | None = None
    ram_bytes: float | None = None  # the peak: activations, scratch and what the runtime keeps; not weights
    ops: tuple[str, ...] = ()  # of the model, that were measured together; empty: the whole inference
    op_label: str = ""  # kind and shapes of the first of them

    def of(self, quantity: Quantity) -> float | None:
        """Seconds, joules or bytes; None: not measured."""
        return getattr(self, _FIELDS[quantity])  # type: ignore[no-any-return]

    @property
    def network(self) -> str:
        """What cross-validation leaves out as one: the same file in any size, precision and batch; or all rows of an op
        of one size."""
        if isinstance(self.model, Path):
            return self.op_label or self.model.stem
        if isinstance(self.model, Steps):
            return self.model.network
        return _label(self.model.name, self.model.tensors)

    @property
    def phase(self) -> str:
        """What was measured of the network; empty: an inference."""
        return self.model.phase if isinstance(self.model, Steps) else ""

    @property
    def label(self) -> str:
        """The network, and what of it."""
        return " ".join(filter(None, (self.network, self.phase)))

    @property
    def data_type(self) -> str:
        """The precision as a word."""
        return self.precision or "float"

    @property
    def graph_key(self) -> tuple[object, ...]:
        """What decides the graph of a row."""
        if isinstance(self.model, Steps):
            return (self.model.network, self.model.phase, self.model.point, self.precision)
        if isinstance(self.model, Graph):
            return (
                self.network,
                tuple((tensor.dtype, tensor.role) for tensor in self.model.tensors),
                self.model.outputs,
            )
        return (self.model, self.batch, tuple(sorted((self.shapes or {}).items())))


def _label(kind: str, tensors: Sequence[Tensor]) -> str:
    return f"{kind} {', '.join('x'.join(map(str, tensor.shape or ())) for tensor in tensors)}"


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


def of_chip(rows: Sequence[Measurement], chip: str) -> Sequence[Measurement]:
    """The rows of a chip and those that name none; all of them where none is of the chip."""
    return [row for row in rows if row.chip in ("", chip)] or rows


def of_one_op(target: Target) -> Target:
    """A target as a row of one op sees it: no inference is called."""
    return replace(target, call_seconds={}, call_bytes_per_second=None)


def quantities(rows: Sequence[Measurement]) -> tuple[Quantity, ...]:
    """What was measured in some row."""
    return tuple(quantity for quantity in Quantity if any(row.of(quantity) is not None for row in rows))


def repeated_once(rows: Sequence[Measurement]) -> list[Measurement]:
    """Rows that measure the same become one, with the median of what they say: ten repeats are not ten networks."""
    found = []
    for same in _repeats(rows):
        middle = {_FIELDS[quantity]: median(_told(same, quantity)) for quantity in quantities(same)}
        found.append(replace(same[0], **middle))  # type: ignore[arg-type]
    return found


def contradictions(rows: Sequence[Measurement]) -> list[str]:
    """What is to be said of rows that measure the same and differ by more than any runtime explains."""
    found = []
    for same in _repeats(rows):
        for quantity in quantities(same):
            told = _told(same, quantity)
            if max(told) / min(told) > MOST_APART:
                places = ", ".join(row.place for row in same[:3]) + (", …" if len(same) > 3 else "")
                apart = f"{quantity.words} differ by a factor of {max(told) / min(told):.3g}"
                found.append(f"{places}: the same, and {apart}; the median counts")
    return found


def _told(rows: Sequence[Measurement], quantity: Quantity) -> list[float]:
    return [value for value in (row.of(quantity) for row in rows) if value is not None]


def _repeats(rows: Sequence[Measurement]) -> list[list[Measurement]]:
    groups: dict[object, list[Measurement]] = {}
    for row in rows:
        groups.setdefault((*row.graph_key, row.ops, row.chip, row.precision, row.cores), []).append(row)
    return list(groups.values())


def _read(source: Path, models: Path | None) -> Iterator[Measurement]:
    if source.is_dir():
        yield from _run(source)
        return
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or ()
            by_op = "op_type" in names
            for wanted in OP_COLUMNS if by_op else ("model", "latency_ms"):
                if wanted not in names:
                    expected = f"expected columns model and latency_ms, or {', '.join(OP_COLUMNS)}"
                    raise ImportFileError(str(source), "line 1", f"no column {wanted!r}; {expected}")
            for number, row in enumerate(rows):
                if number >= MOST_ROWS:
                    raise ImportFileError(str(source), f"line {rows.line_num}", f"more than {MOST_ROWS} rows")
                line = f"line {rows.line_num}"
                yield _op_row(row, source, line) if by_op else _row(row, source, line, models or source.parent)
    except OSError as error:
        raise ImportFileError(
            str(source), "", f"cannot be read ({error.strerror}); expected a CSV file or a run"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(
            str(source), "", f"not CSV text ({printable(str(error))}); expected a CSV file"
        ) from error


def _op_row(row: Mapping[str, str | None], source: Path, line: str) -> Measurement:
    """A row that names an op with its shapes, in nanoseconds."""
    cell = {name: (row.get(name) or "").strip() for name in (*OP_COLUMNS, "chip", "cores", "memory")}
    seconds = _amount(cell["time_ns"], Quantity.LATENCY, source, line, column="time_ns", unit=1e-9)
    try:
        place = f"{source.name}:{line}"
        graph = op_graph(cell["op_type"], cell["shapes"], cell["dtype"], place, cell["memory"] or OUTER)
    except ValueError as error:
        raise ImportFileError(str(source), line, printable(str(error), 200)) from error
    return Measurement(
        place=f"{source.name}:{line.removeprefix('line ')}",
        model=graph,
        seconds=seconds,
        chip=cell["chip"],
        cores=_whole(cell["cores"], "cores", source, line),
    )


def _amount(text: str, quantity: Quantity, source: Path, line: str, *, column: str = "", unit: float = 0.0) -> float:
    """A measured value in seconds, joules or bytes, from a cell in the units of its column."""
    name, unit = column or quantity.column, unit or quantity.unit
    try:
        found = float(text) * unit
    except ValueError:
        found = -1.0
    if not (isfinite(found) and 0 < found < quantity.most):
        what = "a time" if quantity is Quantity.LATENCY else "a number"
        problem = f"{name} is {printable(repr(text))}; expected {what} above 0 and below {quantity.most / unit:g}"
        raise ImportFileError(str(source), line, problem)
    return found


def _whole(text: str, name: str, source: Path, line: str) -> int | None:
    if not text:
        return None
    count = _count(text)
    if count is None:
        raise ImportFileError(str(source), line, f"{name} is {printable(repr(text))}; expected a number above 0")
    return count


def _row(row: Mapping[str, str | None], source: Path, line: str, models: Path) -> Measurement:
    def text(name: str) -> str:
        return (row.get(name) or "").strip()

    def amount(quantity: Quantity) -> float:
        return _amount(text(quantity.column), quantity, source, line)

    precision = text("precision").lower()
    return Measurement(
        place=f"{source.name}:{line.removeprefix('line ')}",
        model=_model(text("model"), models, source, line),
        seconds=amount(Quantity.LATENCY),
        chip=text("chip"),
        precision=None if precision in _FLOAT else precision,
        batch=_whole(text("batch"), "batch", source, line),
        shapes=_shapes(text("shapes"), source, line),
        cores=_whole(text("cores"), "cores", source, line),
        joules=amount(Quantity.ENERGY) if text(Quantity.ENERGY.column) else None,
        ram_bytes=amount(Quantity.RAM) if text(Quantity.RAM.column) else None,
    )


def _count(text: str) -> int | None:
    """A number of something; None where a text is none that could be meant."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0 else None


def _model(name: str, folder: Path, source: Path, line: str) -> Path:
    candidates = [folder / f"{name}{suffix}" for suffix in ("", *_SUFFIXES)]
    try:
        found = next((path for path in candidates if name and path.is_file()), None)
    except OSError:  # a name that no file can have
        found = None
    if found is None:
        problem = f"model {printable(repr(name))} is not in {printable(str(folder))}; expected a model file"
        raise ImportFileError(str(source), line, problem)
    return found


def _shapes(text: str, source: Path, line: str) -> Mapping[str, tuple[int, ...]] | None:
    """`input=1x3x224x224;mask=1x128`, as `--shape` takes them."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(";")):
        name, equals, extents = part.partition("=")
        counts = [_count(number) for number in extents.split("x")]
        known = tuple(count for count in counts if count is not None)
        if not equals or len(known) < len(counts):
            raise ImportFileError(str(source), line, f"shapes is {printable(repr(part))}; expected NAME=1x3x224x224")
        found[name.strip()] = known
    return found or None


def _run(folder: Path) -> Iterator[Measurement]:
    """The ops of a run, by the model that it is of or by their shapes; where neither tells of them, its latency."""
    run = read_run(folder)
    latency, model = run.summary.latency, Path(run.info.model)
    told = read_recording(folder, run)
    rows: list[Measurement] = []
    if told is not None and run.info.provenance is Provenance.MEASURED:
        rows = _ops_of_model(told.ops, model, run.info, folder) if model.is_file() else []
        rows = rows or [row for row in (_recorded_op(told, n, folder) for n in range(len(told.ops))) if row]
    if rows:
        yield from rows
        return
    if latency.provenance is not Provenance.MEASURED or not latency.value_ns:
        raise ImportFileError(str(folder), "", f"its latency is {latency.provenance}; expected a measured run")
    if not model.is_file():
        raise ImportFileError(
            str(folder), "", f"its model {printable(str(model))} is not there; expected the file it is of"
        )
    yield Measurement(place=folder.name, model=model, seconds=latency.value_ns / 1e9, precision=_precision(run.info))


def _precision(info: RunInfo) -> str | None:
    """That it was asked for in; None: as the model has it."""
    found = info.options.get("precision")
    return found if isinstance(found, str) and found.lower() not in _FLOAT else None


def _ops_of_model(ops: Sequence[OpRecord], path: Path, info: RunInfo, folder: Path) -> list[Measurement]:
    """What ops of a model took, each with those that ran as a part of it; none where most of the time is of others.

    A row is what the runtime ran as one. Time of copies and reorders that it added is of no op of the model, and ops
    that only rename bytes have no time on any target.
    """
    batch = info.batch if info.batch is not None and info.batch > 1 else None
    try:
        graph = graph_of(path, batch=batch)
    except ProfilerError:
        return []  # the row of its latency says what is wrong with it
    counts = Counter(op.name for op in graph.ops)
    known = {op.name: op for op in graph.ops if counts[op.name] == 1}
    found = []
    for op in ops:
        took = op.time_ns if op.median_ns is None else op.median_ns
        own = known.get(op.name)
        if own is None or own.family is Family.VIEW or not took:
            continue
        tensors = [graph.tensors[t] for t in (*own.inputs, *own.outputs) if t != ABSENT]
        row = Measurement(
            place=f"{folder.name}: {printable(op.name)}",
            model=path,
            seconds=took / 1e9,
            precision=_precision(info),
            batch=batch,
            ops=tuple(dict.fromkeys((op.name, *op.covers))),
            op_label=_label(own.kind, tensors),
        )
        found.append(row)
    whole = sum(op.time_ns or 0 for op in ops) / 1e9
    return found if sum(row.seconds for row in found) >= _LEAST_JOINED * whole else []


def _recorded_op(told: Recording, number: int, folder: Path) -> Measurement | None:
    """One call of an op; None where it took no time, or is not told well enough to be priced."""
    op = told.ops[number]
    if not (op.kind and op.dtype and op.time_ns and op.calls):
        return None
    try:
        graph = op_graph(op.kind, op.shape, op.dtype, folder.name, _places(told, number))
    except ValueError:
        return None
    return Measurement(
        f"{folder.name}: op {number} {printable(op.name)}",
        graph,
        op.time_ns / op.calls / 1e9,
        cores=op.cores,
    )


def _places(told: Recording, number: int) -> str:
    """Where the operands of an op lie, as rows of ops have it; all outside where the source does not tell."""
    table = told.commands
    commands = [] if table is None else [row for row in table.rows if row["op"] == number][:1]
    if table is None or not commands:
        return OUTER
    operands = table.operands[int(commands[0]["detail"])]
    ends = []
    for way in (Direction.IN, Direction.OUT):
        known = [o.memory for o in operands if o.direction is way]
        if any(not 0 <= place < len(table.places) for place in known):
            return OUTER
        ends.append(";".join(OUTER if table.places[place].is_outer else LOCAL for place in known))
    return "->".join(ends) if all(ends) else OUTER
