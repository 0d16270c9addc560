"""`opscope view` and `opscope.open_run` behind the api: what a Run's folder can be shown as.

A Run may come from anyone: nothing in it is followed out of its folder, and only plain files are opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

import msgspec

from ..core.errors import UsageError
from ..core.files import as_text, open_plain
from ..gate.comparison import Comparison
from ..recording.bounds_file import BOUNDS_FILE
from ..recording.finding import Findings
from ..recording.findings_file import FINDINGS_FILE
from ..recording.head_file import INFO
from ..recording.recording_file import OLD_FILES, RECORDING_FILE
from ..recording.resources_file import RESOURCES_FILE
from ..recording.run import Run, RunInfo
from ..recording.schema import GRAPH_FILE, HEAD_FILE, RUN_SCHEMA, TABLE_FILES
from ..recording.summary import Latency, Summary
from ..recording.summary_file import SUMMARY_FILE, decode_summary
from ..views.page.spans import MOST_ROWS, SpanRows, rows_of
from .record import MOST_TRACE_SPANS, path_of

PAGE = "report.html"
TRACES = ("trace.json", "trace.json.gz", "trace.pftrace")  # timelines that a run may hold, the first found is shown
SIDE_FILES = (FINDINGS_FILE, RECORDING_FILE, *OLD_FILES, GRAPH_FILE, RESOURCES_FILE, BOUNDS_FILE)
RUN_FILES = (HEAD_FILE, SUMMARY_FILE, *TABLE_FILES)
MOST_HEAD_BYTES = 1 << 20
MOST_SUMMARY_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class RunHead:
    """What a list of runs says about one of them."""

    info: RunInfo
    latency: Latency


class _SummaryHead(msgspec.Struct):
    """The part of summary.json that a list needs; the rest is skipped unread."""

    latency: Latency


class _Schema(msgspec.Struct):
    schema: str


# made here, before threads serve: see importers/run_folder
_SCHEMA, _SUMMARY_HEAD = msgspec.json.Decoder(_Schema), msgspec.json.Decoder(_SummaryHead)


def is_plain(path: Path) -> bool:
    """A file of its own: no link to somewhere else, no pipe, no device."""
    try:
        return S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def looks_like_run(folder: Path) -> bool:
    """Whether the folder has the head of a run, whatever else is wrong with it."""
    return is_plain(folder / HEAD_FILE) and is_plain(folder / SUMMARY_FILE)


def read_head(folder: Path) -> RunHead:
    """The head of a run, without its tables."""
    head = _small(folder / HEAD_FILE, MOST_HEAD_BYTES)
    try:
        if _SCHEMA.decode(head).schema != RUN_SCHEMA:
            raise UsageError(f"{folder / HEAD_FILE}: has another schema; expected {RUN_SCHEMA}")
        info = INFO.decode(head)
        latency = _SUMMARY_HEAD.decode(_small(folder / SUMMARY_FILE, MOST_SUMMARY_BYTES)).latency
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder}: run.json or summary.json is damaged ({error}); expected {RUN_SCHEMA}") from error
    return RunHead(info, latency)


def _small(path: Path, most: int) -> bytes:
    with open_plain(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UsageError(f"{path}: has more than {most} bytes; expected less in the file of a run")
    return data


def open_folder(folder: Path) -> Run:
    """The whole run; a table that is a link is refused."""
    from ..analysis.run_totals import with_known_breakdown
    from ..recording.folder_reader import read_run

    for name in (*RUN_FILES, *SIDE_FILES):
        if (folder / name).exists() and not is_plain(folder / name):
            raise UsageError(f"{folder / name}: is no plain file; expected the file of a run, not a link")
    return with_known_breakdown(read_run(folder)).run


def read_summary(folder: Path) -> Summary:
    """The totals of a run, without its tables."""
    return decode_summary(_small(folder / SUMMARY_FILE, MOST_SUMMARY_BYTES), source=str(folder / SUMMARY_FILE))


def findings_of(folder: Path, run: Run) -> Findings:
    """The analysis of a run: the same that `opscope analyze` prints."""
    from .analysing import current_findings

    return current_findings(folder, run)


def write_page(folder: Path, run: Run, out: BinaryIO) -> None:
    """The page of a run as a server gives it: spans that do not fit the page are asked for in pieces."""
    from ..views.page.page import RunPage

    with as_text(out) as text:
        RunPage(most_rows=MOST_ROWS, served=True).render(run, findings_of(folder, run), text)


def write_compare_page(runs: Sequence[tuple[str, Run]], out: BinaryIO) -> None:
    """Labelled runs beside each other, the first is the base; of two, what explains the difference."""
    from ..views.page.compare_page import ComparePage

    labels, whole = [label for label, _ in runs], [run for _, run in runs]
    with as_text(out) as text:
        ComparePage(labels=labels).render(whole, _comparison(whole), text)


def _comparison(runs: Sequence[Run]) -> Comparison | None:
    """None: there are more than two, or they are of different things and only stand side by side.

    A prediction beside a measurement is compared all the same: by how much it is off.
    """
    from ..core.meaning import ALLOWABLE
    from .comparing import compare

    if len(runs) != 2:
        return None
    try:
        return compare(*runs)
    except UsageError:
        pass
    try:
        found = compare(*runs, allow=ALLOWABLE)
    except UsageError:
        return None
    return found if found.families else None


def span_pieces(run: Run) -> SpanRows | None:
    """All spans in pieces, where the page holds fewer."""
    return rows_of(run.trace, most=None) if len(run.trace.spans) > MOST_ROWS else None


def has_own_page(folder: Path) -> bool:
    """Whether the run's own page is newer than its tables and shows all of them."""
    page = folder / PAGE
    if not is_plain(page):
        return False
    newest = max((path.lstat().st_mtime_ns for name in RUN_FILES if (path := folder / name).exists()), default=0)
    return page.lstat().st_mtime_ns >= newest and _span_count(folder) <= MOST_ROWS


def _span_count(folder: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(folder / "spans.parquet").num_rows)
    except (OSError, pa.ArrowException):
        return 0


def own_trace(folder: Path) -> Path | None:
    """The timeline that lies in the run."""
    return next((folder / name for name in TRACES if is_plain(folder / name)), None)


def trace_name(folder: Path) -> str:
    """Name of the timeline that lies in the run, or that would be drawn."""
    own = own_trace(folder)
    if own is not None:
        return own.name
    return "trace.json" if _span_count(folder) <= MOST_TRACE_SPANS else "trace.pftrace"


def has_timeline(folder: Path) -> bool:
    """Totals alone, as many files of other tools have, make no timeline."""
    return own_trace(folder) is not None or _span_count(folder) > 0


def write_trace(run: Run, out: BinaryIO) -> None:
    """The timeline of a run for Perfetto, drawn from its tables alone; of a large one without arrows."""
    from ..views.timeline.chrome_trace import ChromeTrace
    from ..views.timeline.perfetto_trace import PerfettoTrace

    is_small = len(run.trace.spans) <= MOST_TRACE_SPANS
    (ChromeTrace if is_small else PerfettoTrace)(run, flows=is_small, path=path_of(run)).render(run.trace, out)
