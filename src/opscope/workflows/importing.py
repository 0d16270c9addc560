"""`opscope import` behind `api.import_profile`: files of other tools, or stats buffers of our own, into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from ..analysis.run_analysis import RunAnalysis
from ..core.errors import ImportFileError, ModelError, UsageError, printable
from ..core.provenance import Provenance
from ..importers import combine, reading
from ..importers.formats import UnknownFormatError, read_profile, read_profiles
from ..importers.power_join import Align
from ..program.file_names import PROGRAM_FILE
from ..program.wire import PROGRAM_MAGIC, STATS_MAGIC
from ..recording.folder_reader import read_run
from ..recording.recording import Recording
from ..recording.recording_file import read_recording
from ..recording.run import Run
from .record import Recorded, analysed, analysis_of

Word = TypeVar("Word", bound=StrEnum)


def import_files(
    files: Sequence[Path],
    folder: Path | None,
    *,
    form: str | None,
    provenance: str | None,
    clock_hz: float | None = None,
    align: str | None = None,
    command: tuple[str, ...],
    created: str,
) -> Recorded:
    """All files together make one run; `provenance` takes the place of what the files let one think.

    A folder of a run among them is one of the parts: a log of power is laid over it.
    """
    obtained, aligned = _word(Provenance, "provenance", provenance), _word(Align, "align", align)
    runs = [_run_part(path) for path in files if path.is_dir()]
    if runs and len(runs) < len(files):
        logs = read_profiles([path for path in files if not path.is_dir()], form=form)
        sha256 = runs[0][0].info.sha256
        whole = combine.combine([*(part for _, part in runs), *logs], aligned)
        return analysed(whole, folder, command=command, created=created, sha256=sha256)
    kinds = {path: reading.head_of(path)[:8] for path in files}
    if {PROGRAM_MAGIC, STATS_MAGIC} & set(kinds.values()):
        return _import_captures(kinds, folder, command=command, created=created)
    try:
        recording = combine.combine(read_profiles(files, form=form), aligned)
    except UnknownFormatError:
        for path in files:
            _refuse_model(path)
        raise
    if clock_hz is not None:
        recording = combine.with_clock(recording, clock_hz)
    if obtained is not None:
        recording = replace(recording, provenance=obtained, trace=replace(recording.trace, provenance=obtained))
    return analysed(recording, folder, command=command, created=created, sha256=None)


def _word(kind: type[Word], name: str, text: str | None) -> Word | None:
    """One of the words that an argument may be; None: nothing was said."""
    if text is not None and text not in list(kind):
        raise UsageError(f"{name} {printable(text)!r}: not known; expected one of {', '.join(kind)}")
    return None if text is None else kind(text)


def _run_part(folder: Path) -> tuple[Run, Recording]:
    run = read_run(folder)
    told = read_recording(folder, run)
    if told is None:
        raise ImportFileError(str(folder), "", "a run of an earlier version; expected one that keeps what was recorded")
    return run, told


def _refuse_model(path: Path) -> None:
    """A model that is given for a profile: there is none of it yet."""
    from ..readers import model_format

    try:
        form = model_format(path)
    except ModelError:
        return
    raise ImportFileError(
        str(path),
        "",
        f"a model ({form.value}), not a profile; expected a profile file: `opscope profile` makes one of it",
    )


def analysis_of_file(path: Path, *, created: str) -> tuple[RunAnalysis, Recording]:
    """A profile file of another tool as a run that is left nowhere, and what the file says beside it."""
    recording = read_profile(path)
    return analysis_of(recording, command=(), created=created, sha256=None), recording


def _import_captures(
    kinds: Mapping[Path, bytes], folder: Path | None, *, command: tuple[str, ...], created: str
) -> Recorded:
    """Stats buffers of our own, decoded with the program that left them."""
    from ..options import OpstatsOptions
    from .decoding import decode_everything

    programs = [path for path, kind in kinds.items() if kind == PROGRAM_MAGIC]
    captures = [path for path, kind in kinds.items() if kind == STATS_MAGIC]
    if len(programs) != 1 or not captures or len(kinds) > 1 + len(captures):
        words = f"{len(programs)} programs, {len(captures)} stats buffers, {len(kinds)} files in all"
        raise UsageError(f"{words}; expected one {PROGRAM_FILE} with the stats buffers of its runs, and nothing else")
    with TemporaryDirectory() as scratch:
        place = Path(scratch, "in")
        place.mkdir()
        for capture in captures:
            (place / capture.name).symlink_to(capture.resolve())
        options = OpstatsOptions(run=Path(scratch, "run") if folder is None else folder)
        outcome = decode_everything(programs[0], place, Path(scratch, "out"), options, command=command, created=created)
    if outcome.recorded is None:
        raise UsageError("; ".join(outcome.problems) or "no stats buffer could be decoded")
    return outcome.recorded if folder is not None else replace(outcome.recorded, folder=None, files=())
