"""Where the files are that importers are tried on, and a few words to ask them with."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.importers.formats import read_profile
from opscope.recording.recording import OpRecord, Recording

SAMPLES = Path(__file__).parents[1] / "samples"
SHARED = Path(__file__).parents[3] / "shared" / "fixtures"


def sample(name: str) -> Recording:
    """A small file, typed by hand."""
    return read_profile(SAMPLES / name)


def shared(name: str) -> Path:
    """A real file that is not part of the repository; the test is skipped where it is not there."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def op(imported: Recording, name: str) -> OpRecord:
    return next(op for op in imported.ops if op.name == name)


def all_hold(imported: Recording) -> bool:
    return bool(imported.checks) and all(check.holds for check in imported.checks)
