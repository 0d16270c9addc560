"""Memory over time in a PyTorch trace: every call of an allocator is an instant that says what it holds since."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from ...importers.reading import LONGEST_NS
from ...importers.trace_events import CounterSamples, Events, Key

ALLOCATED = "allocated memory"  # first words of a track's name
_INSTANT, _NAME = "i", "[memory]"
_CPU = 0  # number of that type of device


class _Args(msgspec.Struct):
    total: Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)] = msgspec.field(name="Total Allocated")
    kind: int = msgspec.field(name="Device Type", default=_CPU)
    device: int = msgspec.field(name="Device Id", default=-1)


def is_memory(title: str) -> bool:
    """Whether a track of this name is of an allocator, in bytes."""
    return title.startswith(ALLOCATED)


def with_memory(file: Events) -> CounterSamples:
    """The counters of a file, and a track for every allocator; such instants count as read."""
    samples, decode = file.samples(), msgspec.json.Decoder(_Args).decode
    tracks: dict[tuple[Key, str], int] = {key: number for number, key in enumerate(samples.tracks)}
    rows: list[tuple[int, int, int]] = []
    for _, event in file.of_kind(_INSTANT):
        if event.name != _NAME or event.ts is None or abs(event.ts) >= LONGEST_NS / 1000:
            continue
        try:
            args = decode(event.args)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        title = f"{ALLOCATED}, {'CPU' if args.kind == _CPU else f'device {args.device}'}"
        rows.append((tracks.setdefault((event.pid, title), len(tracks)), round(event.ts * 1000), args.total))
    if not rows:
        return samples
    file.kinds[_INSTANT] -= len(rows)
    if not file.kinds[_INSTANT]:
        del file.kinds[_INSTANT]
    track, time, total = (np.array(column, np.int64) for column in zip(*sorted(rows, key=_by_time), strict=True))
    return CounterSamples(
        list(tracks),
        np.concatenate([samples.track, track]),
        np.concatenate([samples.time, time]),
        np.concatenate([samples.value, total.astype(np.float64)]),
    )


def _by_time(row: tuple[int, int, int]) -> tuple[int, int]:
    return row[0], row[1]
