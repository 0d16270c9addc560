"""Where the files are that importers are tried on, and a few words to ask them with."""

from __future__ import annotations

from pathlib import Path

from opscope.importers.formats import read_profile
from opscope.recording.imported import Imported, ImportedOp

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> Imported:
    """A small file, typed by hand."""
    return read_profile(SAMPLES / name)


def op(imported: Imported, name: str) -> ImportedOp:
    return next(op for op in imported.ops if op.name == name)


def all_hold(imported: Imported) -> bool:
    return bool(imported.checks) and all(check.holds for check in imported.checks)
