"""Views of a bakeoff: text, Markdown, JSON. A table for each kind of number, as two kinds are not ranked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TextIO

from ..core.errors import printable
from ..core.json_files import PRODUCER, write_json
from ..core.units import (
    UNKNOWN,
    format_bytes,
    format_counted,
    format_joules,
    format_latency,
    format_percent,
    format_seconds,
)
from ..fleet.schema import OK
from ..machine.entry import WHY
from ..views.markdown import safe, table
from ..views.table import LEFT, Column, known_columns, markdown_table, text_table
from .rows import Bakeoff, BakeoffRow

SCHEMA = "opscope.bakeoff/1"
FRONT = "*"
FRONT_WORDS = "no other row of its kind is as good in latency, peak memory and energy, and better in one of them"
KINDS_WORDS = (
    "numbers of different kinds are not comparable digit by digit, and each kind is ranked alone: a vendor's model, "
    "a fit to measurements and formulas are off in ways of their own"
)


def fits_text(row: BakeoffRow) -> str:
    """`yes, RAM 12%`, `no, RAM 2.4 × 512 KB`"""
    need = row.tightest
    if need is None or need.share is None:
        return UNKNOWN
    if need.share > 1:
        return f"no, {need.name} {need.share:.3g} × {format_bytes(need.capacity_bytes)}"
    return f"yes, {need.name} {format_percent(need.share, 0) if need.share >= 0.005 else '<1%'}"


def latency_text(row: BakeoffRow) -> str:
    """With its range."""
    found = row.latency
    return UNKNOWN if found is None else format_latency(found.value_ns, found.low_ns, found.high_ns)


def energy_text(row: BakeoffRow) -> str:
    """At least so much, where something is left out."""
    if row.energy is None:
        return UNKNOWN
    return f"{'≥ ' if row.energy.note else ''}{format_joules(row.energy.value_j)}"


def cpu_text(row: BakeoffRow) -> str:
    """Types of ops that the processor runs, those with most ops first."""
    if row.op_share == 0:
        return "all"
    counts: dict[str, int] = {}
    for left in row.cpu_ops:
        counts[left.type] = counts.get(left.type, 0) + left.count
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) or ("none" if row.op_share == 1 else UNKNOWN)


def error_text(row: BakeoffRow) -> str:
    """Signal to noise of the copy that was profiled, at its worst output."""
    if row.copy is None:
        return UNKNOWN
    if row.copy.sqnr_db is not None:
        return f"{row.copy.sqnr_db:.1f} dB"
    return "exact" if row.copy.cosine == 1 else UNKNOWN


COLUMNS: Sequence[Column[BakeoffRow]] = (
    Column("", lambda row: FRONT if row.is_on_front else "", LEFT),
    Column("chip", lambda row: row.target, LEFT, 30),
    Column("told by", lambda row: row.backend, LEFT),
    Column("precision", lambda row: row.precision, LEFT),
    Column("latency", latency_text),
    Column("peak memory", lambda row: format_bytes(row.peak_bytes)),
    Column("fits", fits_text, LEFT, 26),
    Column("energy", energy_text),
    Column("NPU time", lambda row: format_percent(row.time_share, 0)),
    Column("NPU ops", lambda row: format_percent(row.op_share, 0)),
    Column("ops on the CPU", cpu_text, LEFT, 24),
    Column("compile", lambda row: format_seconds(row.compile_s)),
    Column("copy error", error_text),
)


def head_line(found: Bakeoff) -> str:
    """`kws: 12 rows on 10 chips, 2 without a latency`"""
    chips = len({row.target for row in found.rows})
    without = f", {len(found.without)} without a latency" if found.without else ""
    return f"{found.model}: {format_counted(len(found.rows), 'row')} on {format_counted(chips, 'chip')}{without}"


def words_below(found: Bakeoff) -> Iterator[str]:
    """What to know of the table, line by line."""
    timed = [row for rows in found.kinds.values() for row in rows]
    if any(row.is_on_front for row in timed):
        yield f"{FRONT} {FRONT_WORDS}"
    if len(found.kinds) > 1:
        yield KINDS_WORDS
    kept = known_columns(COLUMNS, timed)
    missing = [column.head for column in COLUMNS if column not in kept]
    if timed and missing:
        yield f"nothing is known here of: {', '.join(missing)}"
    yield from _grouped("times", ((row, row.basis) for row in timed))
    yield from _grouped("energy", ((row, row.energy.note if row.energy else "") for row in timed))
    with_copies = ((row, f"calibrated with {row.copy.data}" if row.copy and row.copy.data else "") for row in timed)
    yield from _grouped("copy", with_copies)
    yield from found.notes


def _grouped(what: str, told: Iterator[tuple[BakeoffRow, str]]) -> Iterator[str]:
    """A line for each thing that is said of some rows."""
    chips: dict[str, dict[str, None]] = {}
    for row, words in told:
        if words:
            chips.setdefault(words, {})[row.target] = None
    for words, names in chips.items():
        listed = list(names)
        more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
        yield f"{what} of {', '.join(listed[:4])}{more}: {words}"


class BakeoffText:
    """For a terminal."""

    def render(self, found: Bakeoff, out: TextIO) -> None:
        print(f"{printable(head_line(found), 300)}\n", file=out)
        timed = [row for rows in found.kinds.values() for row in rows]
        lines = iter(text_table(known_columns(COLUMNS, timed), timed) if timed else ())
        for line in islice(lines, 2):
            print(line, file=out)
        for kind, rows in found.kinds.items():
            print(f"{kind} – {WHY[kind]}", file=out)
            for line in islice(lines, len(rows)):
                print(line, file=out)
        if found.without:
            print("without a latency", file=out)
        for row in found.without:
            print(f"   {printable(f'{row.target} by {row.backend}, {row.precision}: {why(row)}', 600)}", file=out)
        print(file=out)
        for line in words_below(found):
            print(printable(line, 1000), file=out)


class BakeoffMarkdown:
    """For a page or a comment."""

    def render(self, found: Bakeoff, out: TextIO) -> None:
        print(f"## {safe(head_line(found))}", file=out)
        kept = known_columns(COLUMNS, [row for rows in found.kinds.values() for row in rows])
        for kind, rows in found.kinds.items():
            print("", f"### {kind} – {WHY[kind]}", "", *markdown_table(kept, rows), sep="\n", file=out)
        if found.without:
            cells = [(each.target, each.backend, each.precision, why(each)) for each in found.without]
            lines = table(("chip", "told by", "precision", ""), cells, limit=1000)
            print("", "### without a latency", "", *lines[:-1], sep="\n", file=out)
        for words in words_below(found):
            print(f"\n{safe(words, 1000)}", file=out)


class BakeoffJson:
    """For programs."""

    def render(self, found: Bakeoff, out: TextIO) -> None:
        data = {
            "schema": SCHEMA,
            "producer": PRODUCER,
            "model": {"name": found.model, "path": found.path, "sha256": found.sha256},
            "kinds": {kind: WHY[kind] for kind in found.kinds},
            "rows": [row_json(row) for row in found.rows],
            "cells_run": found.cells_run,
            "notes": list(words_below(found)),
        }
        write_json(data, out)


def row_json(row: BakeoffRow) -> dict[str, object]:
    """Units are in the names; null is not known."""
    return {
        "target": row.target,
        "title": row.title,
        "group": row.group,
        "backend": row.backend,
        "version": row.version or None,
        "precision": row.precision,
        "status": row.status,
        "reason": row.reason or None,
        "provenance": row.provenance,
        "basis": row.basis or None,
        "latency": asdict(row.latency) if row.latency else None,
        "peak_bytes": row.peak_bytes,
        "fits": row.fits,
        "memories": [asdict(need) | {"share": need.share} for need in row.memories],
        "energy": asdict(row.energy) if row.energy else None,
        "accelerator_time_share": row.time_share,
        "accelerator_op_share": row.op_share,
        "cpu_ops": [asdict(left) for left in row.cpu_ops],
        "unknown": row.unknown or None,
        "compile_s": row.compile_s,
        "copy": asdict(row.copy) if row.copy else None,
        "caveats": list(row.caveats),
        "seconds": row.seconds,
        "is_on_front": row.is_on_front,
    }


def why(row: BakeoffRow) -> str:
    """Why there is no latency: the ops that nobody can cost, what the tool said; and by how much it does not fit."""
    told = row.reason if row.status == OK else f"{row.status}: {row.reason}"
    reasons = dict.fromkeys(left.reason for left in row.cpu_ops if left.reason)
    if row.unknown and reasons:
        ops = {
            reason: ", ".join(f"{left.count} {left.type}" for left in row.cpu_ops if left.reason == reason)
            for reason in reasons
        }
        told = f"cost not known of {'; '.join(f'{listed}: {reason}' for reason, listed in ops.items())}"
    return f"{told}; does not fit: {fits_text(row)}" if row.fits is False else told
