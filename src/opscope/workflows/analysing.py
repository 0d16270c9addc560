"""`opscope analyze` and `check` behind the api: read a Run, ask every question, keep the answers beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ..analysis.analyse import analyse
from ..analysis.laws import laws_of
from ..analysis.run_analysis import RunAnalysis
from ..analysis.run_totals import with_known_breakdown
from ..analysis.timeline.activities import typical_inference
from ..core.errors import ProfilerError, UsageError
from ..core.files import write_bytes
from ..recording.finding import WHAT_IF, Finding, Findings, LawCheck, Prediction, Trial, in_order
from ..recording.findings_file import FINDINGS_FILE, findings_bytes, known_findings
from ..recording.recording import Recording
from ..recording.recording_file import read_recording
from ..recording.run import Run
from ..recording.unknown import in_a_line

MOST_VIEWED_SPANS = 500_000  # beyond that one inference is written for a viewer and read back; beyond that, none
_VIEWED = "spans written = spans a viewer reads"


class _Predicted(msgspec.Struct):
    id: str
    title: str
    predicted: Prediction | str | None = None


class _Earlier(msgspec.Struct):
    findings: list[_Predicted] = []
    trials: list[Trial] = []


# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
_EARLIER = msgspec.json.Decoder(_Earlier)


def analyze_place(place: Path, *, created: str) -> tuple[Run, Findings]:
    """A Run in its folder, or a profile file of another tool."""
    if place.is_dir():
        return analyze(place)
    if not place.exists():
        raise UsageError(f"{place}: is not there; expected a run, a profile file, or a model file with --target")
    from ..importers.formats import is_profile

    if not is_profile(place):
        raise UsageError(f"{place}: is no run and no profile file; a model is profiled first, expected --target")
    return analyze_file(place, created=created)


def analyze(folder: Path) -> tuple[Run, Findings]:
    """Read a Run, find causes, and leave `findings.json` in its folder."""
    from ..recording.folder_reader import read_run

    analysis = with_known_breakdown(read_run(folder))
    findings = findings_of(folder, analysis)
    write_findings(folder, findings)
    return analysis.run, findings


def analyze_file(path: Path, *, created: str) -> tuple[Run, Findings]:
    """The same of a profile file of another tool, which leaves nothing."""
    from .importing import analysis_of_file

    analysis, recording = analysis_of_file(path, created=created)
    return analysis.run, findings_for(analysis, recording)


def current_findings(folder: Path, run: Run) -> Findings:
    """The analysis of a Run: the one in its folder where that is of this very Run, else made now."""
    return known_findings(folder, run) or findings_of(folder, RunAnalysis(run))


def findings_of(folder: Path, analysis: RunAnalysis) -> Findings:
    """The analysis of a Run, with what lies beside its tables: checks of the importer, gains that were simulated."""
    told = read_recording(folder, analysis.run)
    return _with_simulated(findings_for(analysis, told), _earlier(folder))


def findings_for(analysis: RunAnalysis, recording: Recording | None) -> Findings:
    """The analysis of a Run, with what its source found, checked and noted by itself."""
    found = analyse(analysis)
    if recording is None:
        return found
    return replace(
        found,
        findings=merged(recording.causes, found.findings),
        checks=(*found.checks, *_carried(recording)),
        notes=(*found.notes, *recording.notes),
    )


def merged(told: Sequence[Finding], found: Sequence[Finding]) -> tuple[Finding, ...]:
    """What a backend told of its own run and what every run is asked; the same cause once.

    The backend's words are kept, with what to do and what it would gain from the other where it does not say.
    """
    left = list(found)
    own = []
    for cause in told:
        twins = [other for other in left if other.id == cause.id]
        left = [other for other in left if other not in twins]
        own.append(_with_advice(cause, twins[0]) if twins else cause)
    return in_order((*own, *left))


def _with_advice(told: Finding, found: Finding) -> Finding:
    return replace(
        told,
        action=told.action or found.action,
        predicted=told.predicted or _at_most(found.predicted, told.cost_ns),
        spans=told.spans or found.spans,
    )


def _at_most(predicted: Prediction | None, cost_ns: int | None) -> Prediction | None:
    """The prediction, its gain limited to what the backend says that the finding costs."""
    if predicted is None or not predicted.gain_ns:
        return None
    if cost_ns is None or predicted.gain_ns <= cost_ns:
        return predicted
    return replace(predicted, gain_ns=cost_ns, latency_ns=predicted.latency_ns + predicted.gain_ns - cost_ns)


def check(folder: Path) -> tuple[LawCheck, ...]:
    """Every law, the ones of the importer, and what a viewer would read."""
    from ..recording.folder_reader import read_run

    analysis = with_known_breakdown(read_run(folder))
    run = analysis.run
    return (*laws_of(analysis), *_carried(read_recording(folder, run)), costed(run), viewed(run))


def write_findings(folder: Path, findings: Findings) -> None:
    write_bytes(folder / FINDINGS_FILE, findings_bytes(folder, findings))


def _carried(recording: Recording | None) -> tuple[LawCheck, ...]:
    if recording is None:
        return ()
    return tuple(LawCheck(f"{recording.maker}: {check.name}", check.holds, check.detail) for check in recording.checks)


def _earlier(folder: Path) -> _Earlier:
    """What an earlier analysis of the same run left."""
    try:
        return _EARLIER.decode((folder / FINDINGS_FILE).read_bytes())
    except (OSError, ValueError):
        return _Earlier()


def _with_simulated(findings: Findings, earlier: _Earlier) -> Findings:
    """With gains that were simulated, which are better than upper bounds, and changes that were tried."""
    known = {
        (found.id, found.title): found.predicted
        for found in earlier.findings
        if isinstance(found.predicted, Prediction) and found.predicted.basis == WHAT_IF
    }
    kept = tuple(
        replace(finding, predicted=known.get((finding.id, finding.title), finding.predicted))
        for finding in findings.findings
    )
    return replace(findings, findings=kept, trials=tuple(earlier.trials))


def costed(run: Run) -> LawCheck:
    """Whether the totals hold every op; where they do not, laws on them say nothing of the model."""
    unknown = run.unknown_ops
    return LawCheck(
        "no op is of unknown cost",
        None if unknown else True,
        in_a_line(unknown, len(run.ops)) or f"{len(run.ops)} ops",
    )


def viewed(run: Run) -> LawCheck:
    """The timeline written for a viewer and read back: every span is there, on its lane, with its times."""
    from ..views.timeline.trace_args import is_instant
    from ..views.timeline.trace_flows import apart

    spans, which = run.trace.spans, "all"
    if len(spans) > MOST_VIEWED_SPANS:
        spans, which = spans[spans["inference"] == typical_inference(run)], "of one inference"
    if not len(spans) or len(spans) > MOST_VIEWED_SPANS:
        reason = f"more than {MOST_VIEWED_SPANS:,} spans" if len(spans) else "the run has no spans"
        return LawCheck(_VIEWED, None, reason)
    try:
        count, time = _read_back(replace(run, trace=replace(run.trace, spans=spans)))
    except (ProfilerError, IndexError, ValueError) as error:
        return LawCheck(_VIEWED, False, f"the timeline cannot be written and read back ({error})")
    shown = apart(replace(run.trace, spans=spans))  # as they are drawn where arrows are
    spans = shown.spans[~is_instant(shown)]  # these are events of another kind
    length = int((spans["end_ns"] - spans["start_ns"]).sum())
    return LawCheck(
        _VIEWED,
        (count, time) == (len(spans), length),
        f"{len(spans):,} and {count:,} ({which}), {length:,} and {time:,} ns",
    )


def _read_back(run: Run) -> tuple[int, int]:
    """How many spans, and how long all together, of the Chrome timeline."""
    from ..importers.reading import read_bytes
    from ..importers.trace_events import decode_events
    from ..views.timeline.chrome_trace import ChromeTrace

    with TemporaryDirectory() as scratch:
        path = Path(scratch, "trace.json")
        with path.open("wb") as out:
            ChromeTrace(run, flows=True).render(run.trace, out)
        found = decode_events(read_bytes(path), source=str(path)).spans()
    return len(found.start), int((found.end - found.start).sum())
