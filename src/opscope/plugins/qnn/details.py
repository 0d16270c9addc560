"""What only this vendor's compiler tells of a profile: `Recording.details` of its backend."""

from __future__ import annotations

from dataclasses import dataclass

from ...recording.recording import Recording
from ...recording.summary import Latency

PARTS = "parts"  # name in `Recording.details`


@dataclass(frozen=True, slots=True)
class Part:
    """One compiled graph of the model: the accelerator runs them one after the other."""

    name: str
    latency: Latency | None
    cycles: int | None
    low_cycles: int | None
    high_cycles: int | None
    peak_local_bytes: int | None


def parts_of(recording: Recording) -> tuple[Part, ...]:
    found = recording.details.get(PARTS)
    return tuple(part for part in found if isinstance(part, Part)) if isinstance(found, tuple) else ()
