"""`opscope annotate`: wires the dump's reader, the runtime's logs, the join and the views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ....core.errors import UsageError
from ....core.files import check_apart, write_whole
from ....core.provenance import Provenance

if TYPE_CHECKING:
    from .annotated import Annotated, Listing

TABLES = (".csv", ".xlsx", ".json")
TIMELINES = (".pftrace", ".pb", ".perfetto-trace")
PROVENANCES = (Provenance.MEASURED, Provenance.SIMULATED)
CLOCK_HZ = 800_000_000  # of the compiler's own conversion


@dataclass(frozen=True, slots=True)
class AnnotateChoices:
    """What a user can choose."""

    headers: str = "auto"  # snake, human; auto: human in workbooks, snake elsewhere
    charge_gaps: bool = False  # give the host's time between two jobs to the later one
    provenance: Provenance | str | None = None  # of the times; None: simulated where the dump is ours
    clock_hz: int = CLOCK_HZ  # that the compiler's cycles are of
    source: Path | None = None  # the model's file, for the names of its ops
    tool: Path | None = None  # the vendor's iree-opt, for a dump in its own assembly
    inferences: int | None = None  # in a log of jobs whose numbers run on; None: found by numbers that start again


def annotate(
    listing: str | Path, runtime: str | Path, outputs: Sequence[str | Path], choices: AnnotateChoices | None = None
) -> Annotated:
    """Join a compiler's dump with a runtime's log, and write what was asked for.

    Args:
        listing: dump of the compiled model, or the folder that holds one.
        runtime: what the runtime logged; its form is found by content.
        outputs: .csv, .xlsx, .json or .pftrace files.
        choices: how.
    """
    chosen = choices or AnnotateChoices()
    paths = [Path(output) for output in outputs]
    _check(paths, (Path(listing), Path(runtime)), chosen)
    timeline = any(path.suffix in TIMELINES for path in paths)
    annotated = _joined(Path(listing), Path(runtime), chosen, timeline=timeline)
    for path in paths:
        write_whole(path, partial(_render, annotated, path, chosen.headers))
    return annotated


def _check(outputs: Sequence[Path], inputs: Sequence[Path], choices: AnnotateChoices) -> None:
    for output in outputs:
        if output.suffix not in (*TABLES, *TIMELINES):
            known = ", ".join((*TABLES, *TIMELINES))
            raise UsageError(f"{output}: suffix {output.suffix!r} is not known; expected one of {known}")
    check_apart(outputs, inputs)
    if choices.provenance is not None and choices.provenance not in PROVENANCES:
        raise UsageError(f"provenance {choices.provenance!r}: not known; expected one of {', '.join(PROVENANCES)}")
    if choices.clock_hz <= 0:
        raise UsageError(f"clock of {choices.clock_hz} Hz; expected more than 0")


def _joined(listing_path: Path, runtime: Path, choices: AnnotateChoices, *, timeline: bool) -> Annotated:
    """Read both files and the names of ops, and join them by job or by action, as the log has it."""
    from ....importers.mlir_location import short
    from . import inputs as jobs_and_actions
    from .join import AnnotateOptions, annotate_actions, annotate_jobs
    from .model_source import operators_of

    logged = jobs_and_actions.read_log(runtime)
    listing = jobs_and_actions.read_listing(listing_path, tool=choices.tool)
    steps = isinstance(logged, jobs_and_actions.JobTimes)
    wanted = list(_locations(listing)) if timeline or not steps else []
    places = {place: short(place) or place for place in (*wanted, *(() if steps else logged.locations))}
    operators, notes = operators_of(places, source=choices.source, folders=_folders(listing_path))
    options = AnnotateOptions(
        _provenance(choices, ours=bool(listing.producer)),
        choices.clock_hz,
        choices.inferences,
        choices.charge_gaps,
        timeline,
        operators,
        places,
    )
    if isinstance(logged, jobs_and_actions.JobTimes):
        found = annotate_jobs(listing, logged, options)
    else:
        found = annotate_actions(listing, logged, options)
    return replace(found, notes=(*found.notes, *notes))


def _locations(listing: Listing) -> Iterator[str]:
    for dispatch in listing.dispatches:
        yield from (job.location for job in dispatch.jobs if job.location)
        yield from (action.location for action in dispatch.actions if action.location)


def _folders(listing: Path) -> tuple[Path, ...]:
    """Beside the dump, and beside its folder: where a model's file tends to be."""
    return (listing.parent, listing.parent.parent)


def _render(annotated: Annotated, path: Path, headers: str, out: BinaryIO) -> None:
    """Write one output in the form that its suffix asks for."""
    from .columns import Headers
    from .csv_view import AnnotatedCsv
    from .json_view import AnnotatedJson
    from .xlsx_view import AnnotatedXlsx

    if path.suffix in TIMELINES:
        _render_timeline(annotated, out)
        return
    auto = Headers.HUMAN if path.suffix == ".xlsx" else Headers.SNAKE
    called = auto if headers == "auto" else Headers(headers)
    if path.suffix == ".csv":
        AnnotatedCsv(headers=called).render(annotated, out)
    elif path.suffix == ".xlsx":
        AnnotatedXlsx(headers=called).render(annotated, out)
    else:
        AnnotatedJson(headers=called).render(annotated, out)


def _provenance(choices: AnnotateChoices, *, ours: bool) -> Provenance:
    if choices.provenance is not None:
        return Provenance(choices.provenance)
    return Provenance.SIMULATED if ours else Provenance.MEASURED


def _render_timeline(annotated: Annotated, out: BinaryIO) -> None:
    from ....importers.column_trace import SpanColumns, column_trace
    from ....recording.trace import NONE, Lane, SpanKind
    from .trace_view import AnnotatedTrace

    work = annotated.work
    if work is None:
        raise UsageError("no timeline was made; expected it to be asked for")
    groups = tuple(dict.fromkeys(group for group, _ in work.lanes))
    lanes = [Lane(groups.index(group), NONE, name) for group, name in work.lanes]
    columns = SpanColumns(work.lane, work.name, work.start_ns, work.end_ns, kind=int(SpanKind.PHASE))
    trace = column_trace(columns, lanes, work.names, provenance=annotated.provenance)
    AnnotatedTrace(groups).render(trace, out)
