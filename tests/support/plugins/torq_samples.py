"""Torq files typed by hand: text written to a file, or one of the samples."""

from __future__ import annotations

from pathlib import Path

from opscope.importers.formats import read_profile
from opscope.recording.recording import Recording

FUSED = 'loc(fused["fc.mlir":7:10, "fc.mlir":9:10])'


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
