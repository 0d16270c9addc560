"""Hand-made Torq files, and the fixtures that are not part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.importers.formats import read_profile
from opscope.recording.recording import Recording

SHARED = Path(__file__).parents[3] / "shared" / "fixtures" / "torq"
FUSED = 'loc(fused["fc.mlir":7:10, "fc.mlir":9:10])'


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def written(folder: Path, text: str, name: str = "file.bin") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def imported(folder: Path, text: str, *, form: str | None = None) -> Recording:
    return read_profile(written(folder, text), form=form)


def spans(found: Recording) -> list[tuple[str, str, int, int]]:
    """Lane, name, start and end in ns, in file order."""
    rows = found.trace.spans
    return [
        (found.trace.lanes[lane].name, found.trace.names[name], start, end)
        for lane, name, start, end in zip(
            rows["lane"].tolist(),
            rows["name"].tolist(),
            rows["start_ns"].tolist(),
            rows["end_ns"].tolist(),
            strict=True,
        )
    ]
