"""One cell of a sweep: profiled, and its rows written, in the process that this runs in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from .. import __version__
from ..core.entries import known_entries
from ..core.errors import ProfilerError, UsageError
from ..core.files import sha256_of
from ..core.provenance import Provenance
from ..graph.graph import Graph
from ..language_models.cell import BACKEND as LANGUAGE_MODELS
from ..language_models.cell import profile_point
from ..options import shapes_of
from ..options.shared import TIME_LIMIT_S
from ..options.sweep import OPS, PROFILE, ROWS, RUNS
from ..recording.recording import COMPILE_TIME, Metric
from ..workflows.own_backends import OWN
from .plan import SHAPE, Cell
from .rows import Origin, cell_row, failed_row, op_columns
from .schema import FAILED, OK, REFUSED
from .spec import Value
from .store import Store

if TYPE_CHECKING:
    from ..workflows.record import Recorded

_READING = ("batch", "shapes-from-run", SHAPE)  # options that are heeded when a model is read
_MOST_GRAPHS = 4  # that a process remembers; cells come model by model


class Job(msgspec.Struct, frozen=True):
    """What all cells of a sweep have in common; goes to every worker."""

    store: str
    sweep: str
    created: str
    commit: str | None = None
    keep: str = OPS
    time_limit_s: float = TIME_LIMIT_S
    memory_limit_bytes: int | None = None
    profile: str = PROFILE


class Outcome(msgspec.Struct, frozen=True):
    """How a cell ended; its row is in the store."""

    id: str
    status: str
    reason: str = ""


Outcomes = Generator[Outcome, None, None]  # as cells end; closed, it ends those that are under way
Profile = Callable[["Cell", "Job", "Models", Path | None], "Recorded"]


class Models:
    """Graphs that were read before, the least recently used forgotten first."""

    def __init__(self) -> None:
        self._graphs: OrderedDict[tuple[object, ...], Graph] = OrderedDict()
        self._seen: dict[str, str] = {}  # path → hash of its file

    def check(self, cell: Cell) -> None:
        """The file is the one that was planned: here, and on this machine."""
        if cell.path not in self._seen:
            try:
                self._seen[cell.path] = sha256_of(Path(cell.path))
            except OSError as error:
                raise UsageError(f"{cell.path}: cannot be read here ({error.strerror}); expected the model") from error
        if self._seen[cell.path] != cell.sha256:
            raise UsageError(f"{cell.path}: is not the file that was planned; expected it unchanged on every machine")

    def read(self, cell: Cell) -> Graph:
        """The graph of a cell's model in the shapes that its options ask for."""
        batch, inputs, shapes = (cell.options.get(name) for name in _READING)
        key = cell.sha256, batch, inputs, shapes
        if key not in self._graphs:
            from ..readers import read_model

            number = batch if isinstance(batch, int) else None
            source = None if inputs is None else str(inputs)
            self._graphs[key] = read_model(
                Path(cell.path), batch=number, shapes_from_run=source, shapes=shapes_of(str(shapes or ""))
            )
            while len(self._graphs) > _MOST_GRAPHS:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        return self._graphs[key]


def profile_cell(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """Profile as `opscope profile` does; changes are tried only where the run is kept, as rows do not tell of them."""
    from ..changes.profile_model import COMPILING, profile_by
    from ..workflows.profiling import PROFILING

    if cell.backend == LANGUAGE_MODELS:
        return profile_point(Path(cell.path), cell.target, cell.options, folder=folder, created=job.created)
    options: dict[str, Value] = {name: value for name, value in cell.options.items() if name != SHAPE}
    model: Path | Graph = Path(cell.path)
    if cell.backend in OWN and folder is None:
        model = models.read(cell)
        options = {name: value for name, value in options.items() if name not in _READING}
    clock = StepClock()
    found = profile_by(
        cell.backend,
        model,
        cell.target or None,
        options,
        shapes=None if isinstance(model, Graph) else shapes_of(str(cell.options.get(SHAPE, ""))),
        folder=folder,
        trials=folder is not None,
        created=job.created,
        command=("opscope", "sweep"),
        step=clock.tell,
    )
    clock.tell("")
    stage = COMPILING if cell.backend in OWN else PROFILING if compiles(cell.backend) else None
    recording = found.recording
    if stage not in clock.seconds or recording.metric(COMPILE_TIME) is not None:
        return found
    note = "on this machine, with the start of the tool and copies of the model"
    took = Metric(COMPILE_TIME, round(clock.seconds[stage] * 1e9), "ns", Provenance.MEASURED, note)
    return replace(found, recording=replace(recording, metrics=(*recording.metrics, took)))


class StepClock:
    """How long each step of a profile took."""

    def __init__(self) -> None:
        self.seconds: dict[str | None, float] = {}
        self._step, self._since = "", perf_counter()

    def tell(self, step: str) -> None:
        """A step begins, and the one before has ended."""
        now = perf_counter()
        self.seconds[self._step] = self.seconds.get(self._step, 0.0) + now - self._since
        self._step, self._since = step, now


def compiles(backend: str) -> bool:
    """Whether a backend of a plug-in is a compiler: it tells what one decided, or what its vendor's model says."""
    told = {kind for known in known_entries() if known.backend.name == backend for kind in known.entry.tells}
    return bool(told & {Provenance.COMPILER_FACT, Provenance.VENDOR_MODEL})


def run_cell(cell: Cell, job: Job, models: Models, store: Store, profile: Profile, *, host: str) -> Outcome:
    """Profile a cell and write its rows, whatever comes of it; running out of memory is left to the caller."""
    start = perf_counter()
    folder = store.run_folder(cell.id) if job.keep == RUNS else None
    origin = origin_of(cell, job, host=host)
    try:
        models.check(cell)
        found = profile(cell, job, models, folder)
    except MemoryError:
        raise
    except ProfilerError as error:
        return _without_figures(store, origin, REFUSED, str(error), perf_counter() - start)
    except Exception as error:  # whatever a vendor's tool raises is the cell's, and no reason for others to wait
        reason = f"{type(error).__name__}: {error}"
        return _without_figures(store, origin, FAILED, reason, perf_counter() - start)
    add_recorded(store, origin, found, job, seconds=perf_counter() - start, folder=folder)
    return Outcome(cell.id, OK)


def add_recorded(
    store: Store, origin: Origin, found: Recorded, job: Job, *, seconds: float, folder: Path | None
) -> None:
    """The rows of a cell that has figures."""
    from ..gate.run_figures import of_run

    run = found.run
    figures = of_run(run, label="")
    row = cell_row(origin, figures, run, found.findings, seconds=seconds, recording=found.recording)
    row |= {
        "batch": row["batch"] or origin.options.get("batch"),
        "run": None if folder is None else f"runs/{origin.id}",
    }
    store.add(row, None if job.keep == ROWS else op_columns(figures, run))


def _without_figures(store: Store, origin: Origin, status: str, reason: str, seconds: float) -> Outcome:
    store.add(failed_row(origin, status=status, reason=reason, seconds=seconds))
    return Outcome(origin.id, status, reason)


def record_failure(store: Store, cell: Cell, job: Job, reason: str, seconds: float, *, host: str) -> Outcome:
    """The row of a cell whose process did not live to write it."""
    return _without_figures(store, origin_of(cell, job, host=host), FAILED, reason, seconds)


def origin_of(cell: Cell, job: Job, *, host: str) -> Origin:
    """What the row of a cell says besides figures."""
    versions = {"opscope": __version__} | ({cell.backend: cell.version} if cell.version else {})
    return Origin(
        id=cell.id,
        key=cell.key,
        series=cell.series,
        model=cell.model,
        model_path=cell.shown_path,
        model_sha256=cell.sha256,
        target=cell.target_name,
        backend=cell.backend,
        options=cell.options,
        commit=job.commit,
        host=host,
        created=job.created,
        sweep=job.sweep,
        versions=versions,
    )
