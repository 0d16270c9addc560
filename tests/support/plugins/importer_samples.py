"""Where the files are that importers are tried on, and a few words to ask them with."""

from __future__ import annotations

from pathlib import Path

from opscope.importers.formats import read_profile
from opscope.recording.recording import OpRecord, Recording

SAMPLES = Path(__file__).parents[2] / "samples"


def sample(name: str) -> Recording:
    """A small file, typed by hand."""
    return read_profile(SAMPLES / name)


def changed(tmp_path: Path, name: str, old: str, new: str) -> Recording:
    """That file with other words in it."""
    text = (SAMPLES / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    return read_profile(tmp_path / name)


def op(imported: Recording, name: str) -> OpRecord:
    return next(op for op in imported.ops if op.name == name)


def all_hold(imported: Recording) -> bool:
    return bool(imported.checks) and all(check.holds for check in imported.checks)
