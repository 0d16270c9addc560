"""The other tables of a Run – commands, dependencies, counters, critical path – as blocks of a page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.columns import Numbers
from ...recording.finding import Findings
from ...recording.run import Run
from ...recording.trace import Trace
from .contract import CommandWords, PageCounter, PathWords
from .packed_columns import encode
from .spans import SpanRows

MOST_COMMANDS = 400_000
MOST_EDGES = 1_500_000
_COMMAND_COLUMNS = (
    "device",
    "core",
    "group",
    "route",
    "kind",
    "op",
    "detail",
    "cycles",
    "out_bytes",
    "moved_bytes",
    "macs",
    "local_address",
    "local_bytes",
)


def command_block(run: Run) -> tuple[CommandWords, bytes] | None:
    """Commands and their words; None: the run has none, or only numbers that say nothing."""
    table = run.commands
    if not len(table.rows) or not (any(table.kinds) or any(table.names)):
        return None
    words = CommandWords(
        len(table.rows),
        table.groups,
        tuple(route.name for route in table.routes),
        table.kinds,
        table.names,
        table.memories,
        table.types,
        table.shapes,
        tuple(tuple(operand.text(table.place(operand)) for operand in operands) for operands in table.operands),
        table.attributes,
    )
    return words, encode({name: table.rows[name] for name in _COMMAND_COLUMNS})


def edge_block(trace: Trace) -> bytes:
    """Dependencies by the command that waits: the sources are what moves."""
    order = np.argsort(trace.edges["target"], kind="stable")
    edges = trace.edges[order]
    return encode({name: edges[name] for name in ("source", "target", "data")}, steps=("target", "source"))


def counter_block(trace: Trace) -> tuple[tuple[PageCounter, ...], bytes]:
    """Samples by counter and time."""
    samples = trace.samples[np.lexsort((trace.samples["time_ns"], trace.samples["counter"]))]
    first = np.searchsorted(samples["counter"], np.arange(len(trace.counters) + 1)).tolist()
    counters = tuple(
        PageCounter(track.device, track.core, track.name, track.unit, first[number], first[number + 1] - first[number])
        for number, track in enumerate(trace.counters)
    )
    return counters, encode({"time": samples["time_ns"], "value": samples["value"]}, steps=("time",))


def path_block(findings: Findings, rows: SpanRows) -> tuple[PathWords, bytes] | None:
    """The critical path with rows of the page in place of rows of the span table."""
    path = findings.path
    if not path:
        return None
    causes, after = _Words(), _Words()
    columns = {
        "start": np.array([step.start_ns for step in path], np.int64),
        "length": np.array([step.end_ns - step.start_ns for step in path], np.int64),
        "row": page_rows([-1 if step.span is None else step.span for step in path], rows),
        "cause": np.array([causes.number(step.cause) for step in path], np.int64),
        "after": np.array([after.number(step.after) for step in path], np.int64),
    }
    return PathWords(len(path), causes.known, after.known), encode(columns, steps=("start",))


def page_findings(findings: Findings, rows: SpanRows) -> Findings:
    """The same findings, pointing at rows of the page. The path has a block of its own; the page adds ops up itself."""
    moved = tuple(
        replace(found, spans=tuple(page_rows(list(found.spans), rows).tolist())) for found in findings.findings
    )
    return replace(findings, findings=moved, path=(), rollups=())


def page_rows(spans: list[int], rows: SpanRows) -> Numbers:
    """Rows of the span table → rows of the page; what is outside the table stays unknown (-1)."""
    found = np.array(spans, np.int64)
    inside = (found >= 0) & (found < len(rows.row_of_span))
    found[inside] = rows.row_of_span[found[inside]]
    found[~inside] = -1
    return found


class _Words:
    """Words in the order in which they are first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(self._numbers)
