"""Run → folder: tables, program, findings, timeline and page; what `opscope profile` leaves, whatever made the Run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.files import PROGRAM_FILE
from ..program.program import Program
from ..program.program_file import encode_program
from ..recording.finding import Findings
from ..recording.run import Run

if TYPE_CHECKING:
    from ..recording.profiled import Profiled

MOST_TRACE_SPANS = 100_000  # above it the timeline is written in the binary form, which is a tenth of the size


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one profile comes to, and where it lies."""

    run: Run
    findings: Findings
    folder: Path | None = None  # None: nothing was written
    files: tuple[str, ...] = ()  # that a user opens, in the folder
    reused: str = ""  # what of an earlier profile was still true: "program", "run"
    profiled: Profiled | None = None  # what a real runtime told, in its own words

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from ..views.page.run_card import card

        return card(self.run.info, self.run.summary, self.findings)


def record(
    run: Run,
    program: Program,
    findings: Findings,
    folder: Path,
    *,
    model: Path | None,
    extra: Mapping[str, bytes] | None = None,
) -> tuple[str, ...]:
    """Write the folder whole; returns the names of the files that a user opens.

    Args:
        model: kept in the program, relative to the folder, so that it can be compiled again; None keeps no program.
        extra: further files by name.
    """
    from ..recording.folder_writer import RunFolder, write_part
    from ..recording.known_findings import FINDINGS_FILE, findings_bytes

    files = RunFolder(folder)
    try:
        write_part(run.trace, files.part(0))
        if model is not None:
            located = replace(program, model=os.path.relpath(model.resolve(), folder.resolve()))
            files.keep(PROGRAM_FILE, encode_program(located))
        shown = {**page_of(run, findings), **trace_of(run, program)}
        for name, data in (shown | dict(extra or {})).items():
            files.keep(name, data)
        files.fill(run.info, program, run.summary, [(files.part(0), 0)], graph=run.graph, resources=run.resources)
        files.keep(FINDINGS_FILE, findings_bytes(files.folder, findings))
        files.appear()
    finally:
        files.discard()
    return tuple(shown)


def page_of(run: Run, findings: Findings) -> dict[str, bytes]:
    """The page, under the name it has in a run."""
    from ..views.page.page import RunPage

    text = StringIO()
    RunPage().render(run, findings, text)
    return {"report.html": text.getvalue().encode()}


def trace_of(run: Run, program: Program) -> dict[str, bytes]:
    """The timeline for Perfetto and chrome://tracing; none where there are no spans."""
    from ..views.timeline.chrome_trace import ChromeTrace
    from ..views.timeline.perfetto_trace import PerfettoTrace

    if not len(run.trace.spans):
        return {}
    few = len(run.trace.spans) <= MOST_TRACE_SPANS
    out = BytesIO()
    (ChromeTrace if few else PerfettoTrace)(program, flows=True).render(run.trace, out)
    return {"trace.json" if few else "trace.pftrace": out.getvalue()}
