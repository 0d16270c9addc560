"""`opscope import` behind `api.import_profile`: files of other tools, or stats buffers of our own, into a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.errors import UsageError
from ..core.files import PROGRAM_FILE
from ..importers import combine, reading
from ..importers.formats import read_profile
from ..program.wire import PROGRAM_MAGIC, STATS_MAGIC
from ..recording import imported_file
from ..recording import imported_run as as_run
from ..recording.imported import Imported
from ..recording.run import Run


def import_files(
    files: Sequence[Path],
    run: Path | None,
    *,
    form: str | None,
    provenance: str | None,
    command: tuple[str, ...],
    created: str,
) -> Imported:
    """All files together make one run; `provenance` takes the place of what the files let one think."""
    kinds = {path: reading.head_of(path)[:8] for path in files}
    if {PROGRAM_MAGIC, STATS_MAGIC} & set(kinds.values()):
        return _import_captures(kinds, run, command=command, created=created)
    imported = combine.combine([read_profile(path, form=form) for path in files])
    if provenance is not None:
        imported = replace(imported, provenance=provenance, trace=replace(imported.trace, provenance=provenance))
    if run is not None:
        _write(imported, run, command=command, created=created)
    return imported


def run_of_file(path: Path, *, created: str) -> tuple[Run, Imported]:
    """A profile file of another tool as a run that is left nowhere, and what the file says beside it."""
    imported = read_profile(path)
    return as_run.as_run(imported, command=(), created=created)[0], imported


def _write(imported: Imported, run: Path, *, command: tuple[str, ...], created: str) -> None:
    from ..recording.folder_writer import RunFolder, write_part

    whole, program = as_run.as_run(imported, command=command, created=created)
    folder = RunFolder(run)
    try:
        write_part(whole.trace, folder.part(0))
        folder.keep(imported_file.FILE, imported_file.encode_imported(imported))
        folder.finish(whole.info, program, whole.summary, [(folder.part(0), 0)])
    finally:
        folder.discard()


def _import_captures(
    kinds: Mapping[Path, bytes], run: Path | None, *, command: tuple[str, ...], created: str
) -> Imported:
    """Stats buffers of our own, decoded with the program that left them."""
    from ..recording.folder_reader import read_run
    from .decoding import OpstatsOptions, decode_everything

    programs = [path for path, kind in kinds.items() if kind == PROGRAM_MAGIC]
    captures = [path for path, kind in kinds.items() if kind == STATS_MAGIC]
    if len(programs) != 1 or not captures or len(kinds) > 1 + len(captures):
        words = f"{len(programs)} programs, {len(captures)} stats buffers, {len(kinds)} files in all"
        raise UsageError(f"{words}; expected one {PROGRAM_FILE} with the stats buffers of its runs, and nothing else")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "in")
        folder.mkdir()
        for capture in captures:
            (folder / capture.name).symlink_to(capture.resolve())
        leave = Path(scratch, "run") if run is None else run
        decode_everything(
            programs[0],
            folder,
            Path(scratch, "out"),
            OpstatsOptions(),
            run=leave,
            workers=1,
            command=command,
            created=created,
            progress=None,
        )
        return as_run.from_run(read_run(leave), source=", ".join(map(str, kinds)))
