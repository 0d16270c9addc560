"""Compile-time CSV of the Torq compiler, in the three forms it has had, and with proper quotes as we write it.

A  ID,start,end,location,op type                      no header
B  the same, with bytes behind it in DMA rows
C  taskId, elapsed_time(us), timestamp(us), event, location, bytes

All numbers are cycles, whatever the header of C says. Locations hold commas and quotes; fields are taken from both ends
of a line. Times were held in 32 bits for a while: what fell below its predecessor by more than 2^31 has wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....core.columns import Numbers
from ....core.errors import ImportFileError
from ....core.meaning import Does, LaneRole
from ....core.provenance import Provenance
from ....importers.column_trace import Clock, SpanColumns, column_trace, op_totals, open_length
from ....importers.line_columns import Lines, Texts, joined, read_lines, unwrapped
from ....importers.mlir_location import labels, plain_location
from ....importers.reading import Unread
from ....recording.recording import CLOCK, LATENCY, Check, Metric, OpRecord, Recording, ResourceCycles, empty_trace
from ....recording.trace import NONE, Lane, SpanKind, Trace
from ..parts import CLOCKS_HZ, part_of

TOOLS = {Provenance.VENDOR_MODEL: "Torq compiler", Provenance.ESTIMATED: "opscope torq-compile"}
ROLES = {  # in the order of lanes; a slice has its number behind it, where the file tells it
    "DMA In": LaneRole.TRANSFER,
    "DMA Out": LaneRole.TRANSFER,
    "CDMA": LaneRole.TRANSFER,
    "Slice": LaneRole.ENGINE,
    "CSS": LaneRole.ENGINE,
}

_SL2610 = Clock(CLOCKS_HZ["SL2610"], "the vendor's own conversion of cycles; no file says it")
_SEED_HEADER = re.compile(rb"id\s*,\s*start\s*,\s*end\s*,", re.IGNORECASE)
_C_HEADER = re.compile(
    rb"(?:taskId|actionIndex),\s*elapsed_time\(us\),\s*timestamp\(us\),\s*event,\s*location,\s*bytes"
)
_SLICE = re.compile(r"S\d+(?:_(\d+))?|Slice\s*(\d+)")
_OF_ID = (
    ("DI", "DMA In"),
    ("DO", "DMA Out"),
    ("CDMA", "CDMA"),
    ("CSS", "CSS"),
    ("DMA In", "DMA In"),
    ("DMA Out", "DMA Out"),
)


@dataclass(frozen=True, slots=True)
class CompileRows:
    """Every row that could be read, in file order; times in cycles."""

    unit: Numbers  # position in `units`
    units: tuple[str, ...]
    start: Numbers
    end: Numbers
    location: Numbers  # position in `locations`; NONE: empty
    locations: tuple[str, ...]
    type: Numbers  # position in `types`
    types: tuple[str, ...]
    bytes: Numbers  # NONE: not told
    task: Numbers  # number of the sequencer's task; NONE: not told
    notes: tuple[str, ...]
    ours: bool = False  # locations are quoted as CSV wants it: the vendor's writer never does, ours always


class TorqCompile:
    """One row per DMA transfer, slice task or CSS call."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.name = f"torq-compile-{form.lower()}"

    def read(self, path: Path) -> Recording:
        """Rows as spans on a lane per unit, where a clock turns their cycles into times."""
        rows = read_rows(path, self.form)
        provenance = Provenance.ESTIMATED if rows.ours else Provenance.VENDOR_MODEL
        clock, note = _clock(rows) if self.form == "C" and not rows.ours else (_SL2610, _shown_at(_SL2610))
        return Recording(
            maker=self.name,
            tool=TOOLS[provenance],
            provenance=provenance,
            trace=empty_trace(provenance) if clock is None else _trace(rows, clock, provenance),
            ops=tuple(_ops(rows, clock, by_label=self.form == "C")),
            metrics=tuple(_metrics(rows, clock)),
            checks=tuple(_one_at_a_time(rows)),
            notes=(note, *rows.notes),
            inferences=1,
        )


def role_of(unit: str) -> LaneRole:
    return ROLES.get(_kind_of(unit), LaneRole.UNKNOWN)


def computes(unit: str) -> bool:
    return role_of(unit) is LaneRole.ENGINE


def _kind_of(unit: str) -> str:
    return "Slice" if unit.startswith("Slice") else unit


def _clock(rows: CompileRows) -> tuple[Clock | None, str]:
    """That of the part that the file was made for, which its transfers tell; and a note on it."""
    if not len(rows.unit):
        return None, "no row tells what part the file is for"
    routed = np.array([unit in ("DMA In", "DMA Out") for unit in rows.units])[rows.unit] & (rows.bytes > 0)
    slices = sum(_kind_of(unit) == "Slice" for unit in rows.units)
    part = part_of(rows.bytes[routed], (rows.end - rows.start)[routed], slices)
    if part in CLOCKS_HZ:
        clock = Clock(CLOCKS_HZ[part], f"the vendor's own conversion for {part}, whose rate the transfers have")
        return clock, _shown_at(clock)
    whose = f"of {part}, for which no clock is published" if part else "of no part that is known, or of several"
    return None, f"transfers have the rate {whose}: cycles are told, times are not"


def _shown_at(clock: Clock) -> str:
    return f"cycles are shown as time at {clock.hz / 1e6:g} MHz: {clock.source}"


def _trace(rows: CompileRows, clock: Clock, provenance: Provenance) -> Trace:
    lanes = [Lane(0, NONE, unit, role=role_of(unit)) for unit in rows.units]
    moves = np.array([not computes(unit) for unit in rows.units] or [False])[rows.unit]
    columns = SpanColumns(
        rows.unit,
        rows.type,
        clock.ns(rows.start),
        clock.ns(rows.end),
        rows.location,
        np.where(moves, SpanKind.TRANSFER, SpanKind.OP),
        0,
        rows.end - rows.start,
        np.where(moves, Does.MOVE, _does(rows.types)[rows.type]),
    )
    return column_trace(columns, lanes, rows.types, provenance=provenance)


def _metrics(rows: CompileRows, clock: Clock | None) -> Iterator[Metric]:
    if clock is not None:
        yield Metric(CLOCK, clock.hz, "Hz")
    if len(rows.unit):
        ends = np.array([rows.start.min(), rows.end.max()])
        yield Metric("cycles", int(ends[1] - ends[0]), "cycles")
        if clock is not None:
            yield Metric(LATENCY, int(np.diff(clock.ns(ends))[0]), "ns")
    if (rows.bytes >= 0).any():
        yield Metric("DMA bytes", int(rows.bytes[rows.bytes > 0].sum()), "bytes")


def read_rows(path: Path, form: str) -> CompileRows:
    """The rows of one form. Rows that cannot be read are counted in the notes."""
    unread, words = Unread("rows"), (Texts(), Texts(), Texts())
    parts: list[tuple[Numbers, ...]] = []
    header = False
    for block in read_lines(path, b","):
        kept = block
        if block.number == 1 and _is_header(block.first_line()):
            header, kept = True, block.without_first()
        parts.append((_c_rows if form == "C" else _ab_rows)(kept.lines(), words, unread))
    unit, start, end, location, kind, size, task = (joined([part[i] for part in parts]) for i in range(7))
    if not len(unit) and unread.count:
        raise ImportFileError(str(path), "", f"no row of form {form}; {unread.notes()[0]}")
    if not len(unit) and not header:
        raise ImportFileError(str(path), "", f"no rows; expected rows of form {form}")
    units, unit = _lanes(words[0].texts, unit)
    start, end = _unwrap_per_unit(unit, len(units), start, end)
    late = end < start
    if late.any():
        unread.add(f"{int(late.sum())} rows", "end before start")
        unread.count += int(late.sum()) - 1
        columns = (unit, start, end, location, kind, size, task)
        unit, start, end, location, kind, size, task = (column[~late] for column in columns)
    locations, location = _locations(words[1].texts, location)
    notes = unread.notes() if len(unit) else (*unread.notes(), "the file has a header and no rows")
    types = tuple(text.strip() for text in words[2].texts)
    ours = any(text.startswith('"') and '""' in text for text in words[1].texts)
    return CompileRows(unit, units, start, end, location, locations, kind, types, size, task, notes, ours)


def _does(types: tuple[str, ...]) -> Numbers:
    """Of work that computes: where a file has the unit in the place of its type, it computes; a type is a word."""
    known = [Does.COMPUTE if computes(_unit_of(word)) else Does.UNKNOWN for word in types]
    return np.array(known or [Does.UNKNOWN], np.int64)


def _is_header(first: bytes) -> bool:
    return bool(_C_HEADER.match(first) or _SEED_HEADER.match(first))


def _ab_rows(lines: Lines, words: tuple[Texts, Texts, Texts], unread: Unread) -> tuple[Numbers, ...]:
    """`ID,start,end,LOCATION,type[,bytes]`."""
    size, has_size = lines.right(0).whole()
    has_size &= lines.separators >= 5
    start, good_start = lines.left(1).whole()
    end, good_end = lines.left(2).whole()
    good = good_start & good_end & (lines.separators >= 4)
    lines.refuse(~good, unread)
    kept, behind = lines.chosen(good), has_size[good].astype(np.int64)
    unit = words[0].number(kept.left(0))
    location = words[1].number(kept.rest(3, 1 + behind))
    kind = words[2].number(kept.right(behind))
    sizes = np.where(behind > 0, size[good], NONE)
    return unit, start[good], end[good], location, kind, sizes, np.full(len(sizes), NONE, np.int64)


def _c_rows(lines: Lines, words: tuple[Texts, Texts, Texts], unread: Unread) -> tuple[Numbers, ...]:
    """`taskId,duration,start,event,LOCATION,[bytes]`."""
    duration, good_duration = lines.left(1).whole()
    start, good_start = lines.left(2).whole()
    size, has_size = lines.right(0).whole()
    blank = lines.right(0).empty()
    task, good_task = lines.left(0).whole()
    good = good_task & good_duration & good_start & (has_size | blank) & (lines.separators >= 5)
    lines.refuse(~good, unread)
    kept = lines.chosen(good)
    event = kept.left(3)
    unit, location = words[0].number(event), words[1].number(kept.rest(4, 1))
    length = np.where(duration[good] < 0, duration[good] + (1 << 32), duration[good])
    size = np.where(has_size[good], size[good], NONE)
    return unit, start[good], start[good] + length, location, words[2].number(event), size, task[good]


def _lanes(texts: tuple[str, ...], number: Numbers) -> tuple[tuple[str, ...], Numbers]:
    """Units by name, and the unit of every row; the number in an ID is not part of it."""
    named = [_unit_of(text) for text in texts]
    units = tuple(sorted(set(named), key=_unit_order))
    place = {unit: at for at, unit in enumerate(units)}
    return units, np.array([place[unit] for unit in named] or [0], np.int64)[number]


def _unit_order(unit: str) -> tuple[int, int, str]:
    kind, order = _kind_of(unit), list(ROLES)
    number = unit.removeprefix("Slice ")
    return order.index(kind) if kind in order else len(order), int(number) if number.isdecimal() else 0, unit


def _unit_of(text: str) -> str:
    name = text.strip().strip('"')
    for prefix, unit in _OF_ID:
        if name.startswith(prefix):
            return unit
    slice_number = _SLICE.fullmatch(name)
    if slice_number is None:
        return name or "unnamed"
    number = slice_number[1] or slice_number[2]
    return f"Slice {number}" if number else "Slice"


def _locations(texts: tuple[str, ...], number: Numbers) -> tuple[tuple[str, ...], Numbers]:
    """Each location once, and that of every row; NONE where it is empty."""
    plain = [plain_location(text) for text in texts]
    known = {text: at for at, text in enumerate(dict.fromkeys(text for text in plain if text))}
    return tuple(known), np.array([known.get(text, NONE) for text in plain] or [NONE], np.int64)[number]


def _unwrap_per_unit(unit: Numbers, count: int, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Rows of a unit are in order of issue, so a counter of 32 bits can be put right unit by unit."""
    wrapped = (start < 0) | (end < start)
    if not wrapped.any() and not _falls(unit, count, start):
        return start, end
    fixed_start, fixed_end = start.copy(), end.copy()
    for number in range(count):
        of = unit == number
        fixed_start[of] = unwrapped(start[of])
    turns = (fixed_start - start) >> 32
    fixed_end = end + (turns << 32)
    fixed_end = np.where(fixed_start - fixed_end > 1 << 31, fixed_end + (1 << 32), fixed_end)
    return fixed_start, fixed_end


def _falls(unit: Numbers, count: int, start: Numbers) -> bool:
    return any(bool((np.diff(start[unit == number]) < -(1 << 31)).any()) for number in range(count))


def _ops(rows: CompileRows, clock: Clock | None, *, by_label: bool) -> Iterator[OpRecord]:
    """One per location. Its cycles are those in which any unit works for it; what each unit does stands beside."""
    count = len(rows.locations)
    length = rows.end - rows.start
    totals = op_totals(rows.location, length, count)
    known = rows.location >= 0
    cycles = open_length(rows.location[known], rows.start[known], rows.end[known], count)
    times = [None] * count if clock is None else clock.ns(cycles).tolist()
    per_unit = [
        np.rint(np.bincount(rows.location[of], length[of], minlength=count)).astype(np.int64).tolist()
        for of in (known & (rows.unit == number) for number in range(len(rows.units)))
    ]
    types = _types(rows, count)
    for number, location in enumerate(rows.locations):
        found = tuple((unit, per_unit[u][number]) for u, unit in enumerate(rows.units) if per_unit[u][number])
        yield OpRecord(
            (" + ".join(labels(location)) if by_label else "") or location,
            type=types[number],
            location=location,
            engines=(", ".join(unit for unit, _ in found),) if found else (),
            calls=float(totals.calls[number]),
            time_ns=times[number],
            cycles=int(cycles[number]),
            resource_cycles=tuple(ResourceCycles(unit, not computes(unit), n) for unit, n in found),
        )


def _types(rows: CompileRows, count: int) -> list[str]:
    """What computes for a location names it; else what moves its bytes."""
    result = [""] * count
    works = np.array([computes(unit) for unit in rows.units] or [False])[rows.unit]
    for of in (~works, works):
        for location, kind in np.unique(np.stack((rows.location[of], rows.type[of]), axis=1), axis=0).tolist():
            if location >= 0:
                result[location] = rows.types[kind]
    return result


def _one_at_a_time(rows: CompileRows) -> Iterator[Check]:
    """A unit does one thing at a time; of slices only where the file numbers them."""
    for number, unit in enumerate(rows.units):
        of = rows.unit == number
        if unit == "Slice":
            continue
        sum_of = int((rows.end[of] - rows.start[of]).sum())
        wall = int(open_length(np.zeros(int(of.sum()), np.int64), rows.start[of], rows.end[of], 1)[0])
        yield Check(f"{unit} does one thing at a time", sum_of == wall, f"{sum_of} cycles in {wall}")


FORM_A, FORM_B, FORM_C = (TorqCompile(form) for form in "ABC")
