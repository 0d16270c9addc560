"""What several commands print: of a profile, of a program that was compiled, and of one that ran."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import printable
from ..core.manifest import USUAL_SECTIONS, Section
from .command import screen_width, wants_colour, write_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..workflows.execution import RunOutcome
    from ..workflows.model_compiler import Compiled
    from ..workflows.record import Recorded


def show_profile(
    recorded: Recorded,
    *,
    as_json: bool,
    top: int | None,
    sections: Sequence[Section] = USUAL_SECTIONS,
    more: str = "--all",
) -> None:
    """The one screen that every profile has, whatever made it; or the same as JSON."""
    from ..views.json.recorded_json import RecordedJson
    from ..views.text.profile_text import ProfileText

    colour, width = wants_colour(sys.stdout), screen_width(sys.stdout)
    text = ProfileText(
        top=top,
        sections=sections,
        colour=colour,
        width=width,
        more=more,
        places=_places(recorded),
    )
    view = RecordedJson() if as_json else text
    write_result(lambda out: view.render(recorded.run, recorded.findings, recorded.recording, out), None)
    if recorded.reused:
        print(f"note: nothing that the {recorded.reused} depends on has changed: it was re-used", file=sys.stderr)


def _places(recorded: Recorded) -> list[tuple[str, str]]:
    """The files to open next, and the command that shows them."""
    if recorded.folder is None:
        return []
    names = {"report.html": "page", "trace.json": "timeline", "trace.pftrace": "timeline"}
    files = [(names[name], str(recorded.folder / name)) for name in recorded.files if name in names]
    return [*files, ("both", f"opscope view {shlex.quote(str(recorded.folder))}")]


def report_compiled(
    compiled: Compiled,
    *,
    metrics: bool,
    warnings: bool,
    timeline: Path | None = None,
    spelling: Mapping[str, str] | None = None,
) -> None:
    """Print what the user asked to see of a compiled program; notes in words of `spelling`, ours → theirs."""
    from ..core.units import format_bytes
    from ..machine.target import Holds
    from ..recording.unknown import unknown_of
    from ..views.text.columns import unknown_lines
    from ..views.text.memory_metrics import MemoryMetricsText
    from ..views.text.timeline_csv import TimelineCsv
    from .vendor_flags import respelt

    program, target = compiled.program, compiled.target
    outer = target.home(Holds.ACTIVATIONS).name
    read = sum(row.read for row in program.metrics.traffic)
    print(
        f"{len(program.ops)} ops → {len(program.commands):,} commands on {program.devices} × {program.cores} cores; "
        f"constants {format_bytes(program.metrics.constants_bytes)}, "
        f"local memory {format_bytes(max(program.metrics.local_bytes, default=0))} of "
        f"{format_bytes(program.metrics.local_capacity)}, {outer} read {format_bytes(read)} per inference"
    )
    for line in unknown_lines(unknown_of(program.ops), len(program.ops)):
        print(line)
    if metrics and target.local is not None:
        MemoryMetricsText(local=target.local.name, outer=outer).render(program, sys.stdout)
    for note in program.notes:
        print(f"note: {respelt(printable(note, 300), spelling or {})}", file=sys.stderr)
    for warning in compiled.warnings if warnings else ():
        cost = "cost unknown" if warning.cycles is None else f"{warning.cycles:,.0f} cycles"
        print(f"warning: {warning.kind}: {warning.op[:100]}: {warning.text}; {cost}")
    if timeline is not None:
        start, end = compiled.times()
        write_result(lambda out: TimelineCsv().render(program, start, end, out), timeline)


def report_outcome(outcome: RunOutcome, *, spelling: Mapping[str, str] | None = None) -> int:
    """Print what a run comes to, notes in words of `spelling`, ours → theirs; 130 when it was interrupted."""
    from ..recording.unknown import unknown_of
    from ..views.text.columns import unknown_lines
    from ..views.text.run_stdout import RunStdout
    from .vendor_flags import respelt

    RunStdout().render(outcome.statistics, sys.stdout)
    for line in unknown_lines(unknown_of(outcome.program.ops), len(outcome.program.ops)):
        print(line)
    sys.stdout.flush()
    for note in outcome.notes:
        print(f"note: {respelt(note, spelling or {})}", file=sys.stderr)
    for path in outcome.written:
        print(f"wrote {path}", file=sys.stderr)
    if outcome.interrupted:
        print("opscope: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    return 0
