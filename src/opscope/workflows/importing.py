"""`opscope import` behind `api.import_profile`: files of other tools, or stats buffers of our own, into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.errors import ImportFileError, ModelError, UsageError
from ..core.files import PROGRAM_FILE
from ..core.provenance import Provenance
from ..importers import combine, reading
from ..importers.formats import UnknownFormatError, read_profile, read_profiles
from ..importers.power_join import Align
from ..program.wire import PROGRAM_MAGIC, STATS_MAGIC
from ..recording.folder_reader import read_run
from ..recording.recording import Recording
from ..recording.recording_file import read_recording
from ..recording.run import Run
from .record import Recorded, analysed, run_of


def import_files(
    files: Sequence[Path],
    folder: Path | None,
    *,
    form: str | None,
    provenance: Provenance | None,
    clock_hz: float | None = None,
    align: Align | None = None,
    command: tuple[str, ...],
    created: str,
) -> Recorded:
    """All files together make one run; `provenance` takes the place of what the files let one think.

    A folder of a run among them is one of the parts: a log of power is laid over it.
    """
    runs = [_run_part(path) for path in files if path.is_dir()]
    if runs and len(runs) < len(files):
        logs = read_profiles([path for path in files if not path.is_dir()], form=form)
        sha256 = runs[0][0].info.sha256
        whole = combine.combine([*(part for _, part in runs), *logs], align)
        return analysed(whole, folder, command=command, created=created, sha256=sha256)
    kinds = {path: reading.head_of(path)[:8] for path in files}
    if {PROGRAM_MAGIC, STATS_MAGIC} & set(kinds.values()):
        return _import_captures(kinds, folder, command=command, created=created)
    try:
        recording = combine.combine(read_profiles(files, form=form), align)
    except UnknownFormatError:
        for path in files:
            _refuse_model(path)
        raise
    if clock_hz is not None:
        recording = combine.with_clock(recording, clock_hz)
    if provenance is not None:
        recording = replace(recording, provenance=provenance, trace=replace(recording.trace, provenance=provenance))
    return analysed(recording, folder, command=command, created=created, sha256=None)


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


def run_of_file(path: Path, *, created: str) -> tuple[Run, Recording]:
    """A profile file of another tool as a run that is left nowhere, and what the file says beside it."""
    recording = read_profile(path)
    return run_of(recording, command=(), created=created, sha256=None), recording


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
