"""Recording → Run → folder: tables, findings, timeline and page; what every verb that makes a Run leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..program.file_names import PROGRAM_FILE
from ..recording.build import to_run
from ..recording.finding import Findings
from ..recording.recording import Recording
from ..recording.run import Run

if TYPE_CHECKING:
    from ..analysis.run_analysis import RunAnalysis
    from ..analysis.timeline.path_marks import PathMarks
    from ..recording.folder_writer import RunFolder

MOST_TRACE_SPANS = 100_000  # above it the timeline is written in the binary form, which is a tenth of the size


@dataclass(frozen=True, slots=True, repr=False)
class Recorded:
    """The result of one profile, and where it was written."""

    run: Run
    findings: Findings
    recording: Recording  # what its source told
    folder: Path | None = None  # None: nothing was written
    files: tuple[str, ...] = ()  # that a user opens, in the folder
    reused: str = ""  # what of an earlier profile was up to date: "program", "run"

    def __repr__(self) -> str:
        return f"<Recorded {self.run.info.headline(self.run.summary.latency)}>"

    def __str__(self) -> str:
        """The screen of `opscope profile`."""
        from ..views.text.profile_text import ProfileText

        screen = StringIO()
        ProfileText(more="run.summary.ops").render(self.run, self.findings, self.recording, screen)
        return screen.getvalue()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from ..views.page.run_card import card

        return card(self.run.info, self.run.summary, self.findings)


def analysis_of(recording: Recording, *, command: Sequence[str], created: str, sha256: str | None) -> RunAnalysis:
    """The Run of a recording, with what its timeline tells of the totals, and all that was computed for that."""
    from ..analysis.run_totals import with_breakdown
    from ..analysis.timeline.over_time import with_use

    return with_breakdown(with_use(to_run(recording, command=command, created=created, sha256=sha256)))


def analysed(
    recording: Recording, folder: Path | None, *, command: Sequence[str], created: str, sha256: str | None
) -> Recorded:
    """A recording as a Run with its findings, in its folder where there is one."""
    from .analysing import findings_for

    analysis = analysis_of(recording, command=command, created=created, sha256=sha256)
    return recorded(analysis, findings_for(analysis, recording), recording, folder)


def recorded(
    analysis: RunAnalysis,
    findings: Findings,
    recording: Recording,
    folder: Path | None,
    *,
    program: bytes | None = None,
    reused: str = "",
) -> Recorded:
    """Write the folder whole, where there is one.

    Args:
        program: the file of it, kept in the folder, so that the run can be timed again.
    """
    run = analysis.run
    if folder is None:
        return Recorded(run, findings, recording, reused=reused)
    from ..recording.folder_writer import RunFolder, write_part

    files = RunFolder(folder)
    try:
        write_part(run.trace, files.part(0))
        files.fill(run, [(files.part(0), 0)])
        if program is not None:
            files.keep(PROGRAM_FILE, program)
        shown = finish(files, analysis, findings, recording)
    finally:
        files.discard()
    return Recorded(run, findings, recording, folder, shown, reused)


def finish(files: RunFolder, analysis: RunAnalysis, findings: Findings, recording: Recording) -> tuple[str, ...]:
    """What lies beside the tables of a run; returns the names of the files that a user opens."""
    from ..recording.findings_file import FINDINGS_FILE, findings_bytes
    from ..recording.recording_file import RECORDING_FILE, encode_recording

    shown = {**page_of(analysis.run, findings), **trace_of(analysis)}
    for name, data in {**recording.files, **shown}.items():
        files.keep(name, data)
    files.keep(RECORDING_FILE, encode_recording(recording))
    files.keep(FINDINGS_FILE, findings_bytes(files.folder, findings))
    files.appear()
    return tuple(shown)


def page_of(run: Run, findings: Findings) -> dict[str, bytes]:
    """The page, under the name it has in a run."""
    from ..views.page.page import RunPage

    text = StringIO()
    RunPage().render(run, findings, text)
    return {"report.html": text.getvalue().encode()}


def trace_of(analysis: RunAnalysis) -> dict[str, bytes]:
    """The timeline for Perfetto and chrome://tracing; none where there are no spans."""
    from ..analysis.timeline.path_marks import path_marks

    run = analysis.run
    if not len(run.trace.spans):
        return {}
    if len(run.trace.spans) <= MOST_TRACE_SPANS:
        return {"trace.json": trace_json(analysis)}
    from ..views.timeline.perfetto_trace import PerfettoTrace

    out = BytesIO()
    PerfettoTrace(run, flows=True, path=path_marks(analysis)).render(run.trace, out)
    return {"trace.pftrace": out.getvalue()}


def trace_json(analysis: RunAnalysis) -> bytes:
    """The timeline as Chrome JSON, with arrows and the critical path."""
    from ..analysis.timeline.path_marks import path_marks
    from ..views.timeline.chrome_trace import ChromeTrace

    out = BytesIO()
    ChromeTrace(analysis.run, flows=True, path=path_marks(analysis)).render(analysis.run.trace, out)
    return out.getvalue()


def path_of(run: Run) -> PathMarks:
    """The critical path of a run that is analysed for nothing else."""
    from ..analysis.run_analysis import RunAnalysis
    from ..analysis.timeline.path_marks import path_marks

    return path_marks(RunAnalysis(run))
