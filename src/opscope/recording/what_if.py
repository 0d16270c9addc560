"""Choices that were tried with a real compiler, and what each comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .recording import Recording, Value


@dataclass(frozen=True, slots=True)
class WhatIfPoint:
    """One combination of choices, and what it comes to."""

    label: str  # "a part, 4 MB of local memory, w8a8"
    choices: Mapping[str, Value]
    recording: Recording | None
    problem: str = ""  # why there is no profile
    time_us: float | None = None  # of the accelerator
    low_us: float | None = None
    high_us: float | None = None
    outer_bytes: float | None = None  # read and written
    local_bytes: float | None = None  # most in use
    on_front: bool = False  # no other point is at least as good in time, outer bytes and local memory


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A grid of points, best first."""

    model: str
    backend: str
    points: tuple[WhatIfPoint, ...]
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outer_memory: str = "outer memory"  # what its memories are called
    local_memory: str = "local memory"
