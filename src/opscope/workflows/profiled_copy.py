"""The model and its copy, profiled: one that a backend refuses does not hide the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..core.errors import ModelError
from ..recording.quantized import ProfiledCopy
from .record import Recorded


def profiled(profile: Callable[[], Recorded], folder: Path | None) -> ProfiledCopy:
    """What a profile came to, or why the model cannot be profiled there."""
    try:
        recorded = profile()
    except ModelError as error:
        return ProfiledCopy("", None, problem=str(error))
    info, place = recorded.run.info, None if folder is None else str(folder)
    return ProfiledCopy(f"{info.target} ({recorded.recording.maker})", recorded.run.summary.latency, place)
