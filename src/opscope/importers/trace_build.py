"""Spans and counters of a Trace Event file → Trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers, places
from ..core.errors import UsageError
from ..core.meaning import Does, LaneRole
from ..core.provenance import Provenance
from ..recording.trace import COUNTER, EDGE, NONE, CounterTrack, Lane, Trace, blank_spans
from .trace_events import CounterSamples, Key, Spans, Thread
from .trace_lanes import levels

LONGEST_AXIS_NS = 1 << 50  # 13 days: a folder of a run holds no later time
_ROWS_AT_A_TIME = 1 << 13


class AxisError(UsageError):
    """Times of a file that lie further apart than any recording lasts."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What an importer knows of spans beside their times: a column each, or one value for all."""

    kind: Numbers | int
    op: Numbers | int = NONE
    inference: Numbers | int = NONE
    command: Numbers | int = NONE
    edges: tuple[Numbers, Numbers] | None = None  # commands: from, to
    cycles: Numbers | int = NONE
    does: Numbers | int = int(Does.UNKNOWN)


def build_trace(
    spans: Spans,
    samples: CounterSamples,
    lanes: Sequence[Lane],
    tracks: Sequence[CounterTrack],
    *,
    marks: Marks,
    provenance: Provenance,
) -> Trace:
    """Everything on an axis that starts at the first span or sample. `lanes` has one entry per thread of `spans`."""
    origin = min((int(column.min()) for column in (spans.start, samples.time) if len(column)), default=0)
    latest = max((int(column.max()) for column in (spans.end, samples.time) if len(column)), default=0)
    if latest - origin >= LONGEST_AXIS_NS:
        raise AxisError(f"times of it lie {latest - origin} ns apart; expected less than {LONGEST_AXIS_NS}, 13 days")
    lane, all_lanes = _spread(lanes, spans.thread, levels(spans.thread, spans.start, spans.end))
    columns: dict[str, Numbers | int] = {
        "lane": lane,
        "name": spans.name,
        "kind": marks.kind,
        "op": marks.op,
        "inference": marks.inference,
        "command": marks.command,
        "pcycles": marks.cycles,
        "does": marks.does,
    }
    rows = blank_spans(len(spans.start))
    for low in range(0, len(rows), _ROWS_AT_A_TIME):  # a column of all rows would go through all memory, each anew
        part = slice(low, low + _ROWS_AT_A_TIME)
        some = rows[part]
        some["start_ns"], some["end_ns"] = spans.start[part] - origin, spans.end[part] - origin
        for column, value in columns.items():
            some[column] = value if isinstance(value, int) else value[part]
    values = np.zeros(len(samples.time), COUNTER)
    values["counter"], values["time_ns"], values["value"] = samples.track, samples.time - origin, samples.value
    return Trace(all_lanes, tuple(spans.names), rows, _edges(marks.edges), tuple(tracks), values, provenance)


def _edges(ends: tuple[Numbers, Numbers] | None) -> npt.NDArray[np.void]:
    edges = np.zeros(0 if ends is None else len(ends[0]), EDGE)
    if ends is not None:
        edges["source"], edges["target"], edges["data"] = ends[0], ends[1], True
    return edges


def _spread(lanes: Sequence[Lane], thread: Numbers, level: Numbers) -> tuple[Numbers, tuple[Lane, ...]]:
    """A lane for every level of every thread, in order of threads; no two lanes look the same."""
    deep = int(level.max(initial=0)) + 1
    codes, place = places(thread * deep + level)
    taken: dict[Lane, int] = {}
    spread: list[Lane] = []
    outermost: dict[int, int] = {}
    for code in codes.tolist():
        owner, depth = divmod(code, deep)
        lane = lanes[owner] if not depth else _deeper(lanes[owner], depth, outermost.get(owner, NONE))
        outermost.setdefault(owner, len(spread))
        spread.append(_unlike(lane, taken))
    return place, tuple(spread)


def _deeper(lane: Lane, depth: int, owner: int) -> Lane:
    return replace(lane, name=f"{lane.name} {depth + 1}", role=LaneRole.NESTED, owner=owner)


def _unlike(lane: Lane, taken: dict[Lane, int]) -> Lane:
    """The lane, or one with a number behind its name; `taken` holds the last number of every name."""
    number = taken.get(lane, 0) + 1
    while number > 1 and replace(lane, name=f"{lane.name} ({number})") in taken:
        number += 1
    taken[lane] = number
    if number == 1:
        return lane
    numbered = replace(lane, name=f"{lane.name} ({number})")
    taken[numbered] = 1
    return numbered


def thread_label(thread: Thread, processes: dict[Key, str], threads: dict[Thread, str]) -> str:
    """`process / thread`, by name where there is one."""
    return f"{processes.get(thread[0], _text(thread[0]))} / {threads.get(thread, _text(thread[1]))}"


def _text(key: Key) -> str:
    return "-" if key is None else str(key)
