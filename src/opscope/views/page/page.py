"""A Run as one self-contained page: overview, timeline, operators, memory, roofline, findings, graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

import numpy as np

from ... import __version__
from ...analysis.op_edges import op_edges
from ...core.units import format_count
from ...recording.finding import Findings
from ...recording.resources import Resources
from ...recording.run import Run
from ...recording.summary import Summary
from . import spans as page_spans
from . import tables as page_tables
from .contract import SCHEMA, CommandWords, PageData, PageGraph, PageLane, PageSpans, PathWords, Producer, Served
from .html import write_page
from .spans import PIECE_ROWS, SpanRows, rows_of

MOST_OPS = 20_000  # rows of one table of totals
_TABLES = ("ops", "layers", "blocks", "op_types")


class RunPage:
    """One HTML file that needs no network and no other file.

    Args:
        most_rows: rows of the timeline in the file; a run with more spans is thinned until it fits.
        served: the page is answered by a server that also has every span under `spans/<number>.bin`.
    """

    suffix = ".html"

    def __init__(self, *, most_rows: int = page_spans.MOST_ROWS, served: bool = False) -> None:
        self.most_rows = most_rows
        self.served = served

    def render(self, run: Run, findings: Findings | None, out: TextIO) -> None:
        rows = rows_of(run.trace, most=self.most_rows)
        blocks = _Blocks(run, findings, rows)
        write_page(
            out,
            title=f"{run.info.network} on {run.info.target} – opscope",
            generator=f"opscope {__version__}",
            data=self._data(run, findings, rows, blocks),
            blocks=blocks.all(),
            served=self.served,
        )

    def _data(self, run: Run, findings: Findings | None, rows: SpanRows, blocks: _Blocks) -> PageData:
        """What the page's script gets; long tables are cut, and the cut is told."""
        summary, cut = _shortened(run.summary)
        resources, layers_cut = _first_layers(run.resources)
        return PageData(
            schema=SCHEMA,
            producer=Producer("opscope", __version__),
            info=run.info,
            summary=summary,
            findings=None if findings is None else page_tables.page_findings(findings, rows),
            ops=run.ops,
            lanes=_lanes(run, rows),
            counters=blocks.counters,
            names=tuple(run.trace.names),
            spans=self._spans(run, rows),
            commands=blocks.commands,
            path=blocks.path,
            graph=PageGraph(*op_edges(run)),
            resources=resources,
            notes=(*cut, *layers_cut, *blocks.notes),
        )

    def _spans(self, run: Run, rows: SpanRows) -> PageSpans:
        trace, served = run.trace, None
        if self.served and rows.window_ns:
            served = _served(run)
        ends = [int(column.max()) for column in (trace.spans["end_ns"], trace.samples["time_ns"]) if len(column)]
        return PageSpans(
            len(trace.spans), len(rows), rows.window_ns, PIECE_ROWS, rows.pieces, max(ends, default=0), served
        )


class _Blocks:
    """Tables of numbers beside the data, and what had to stay out of the page."""

    def __init__(self, run: Run, findings: Findings | None, rows: SpanRows) -> None:
        self._rows = rows
        self._named: list[tuple[str, bytes]] = []
        self.notes: list[str] = []
        self.commands = self._commands(run)
        self._edges(run)
        self.counters, counters = page_tables.counter_block(run.trace)
        if self.counters:
            self._named.append(("counters", counters))
        self.path = self._path(findings)

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Spans last: they are many, and the page is read front to back."""
        yield from self._named
        for number, piece in enumerate(self._rows.all_pieces()):
            yield f"spans-{number}", piece

    def _commands(self, run: Run) -> CommandWords | None:
        count = len(run.commands.rows)
        if count > page_tables.MOST_COMMANDS:
            self.notes.append(
                f"operands, cost parts and the arena map of {format_count(count)} commands are not in this page; "
                "commands.parquet has them"
            )
            return None
        found = page_tables.command_block(run)
        if found is None:
            return None
        self._named.append(("commands", found[1]))
        return found[0]

    def _edges(self, run: Run) -> None:
        count = len(run.trace.edges)
        if count > page_tables.MOST_EDGES:
            self.notes.append(f"{format_count(count)} dependencies are not in this page; edges.parquet has them")
        elif count:
            self._named.append(("edges", page_tables.edge_block(run.trace)))

    def _path(self, findings: Findings | None) -> PathWords | None:
        found = None if findings is None else page_tables.path_block(findings, self._rows)
        if found is None:
            return None
        self._named.append(("path", found[1]))
        return found[0]


def _served(run: Run) -> Served:
    """What `rows_of` with no limit comes to, without sorting every span again."""
    spans = run.trace.spans
    each = np.bincount(spans["lane"], minlength=len(run.trace.lanes))
    return Served(len(spans), -(-len(spans) // PIECE_ROWS), (0, *np.cumsum(each).tolist()))


def _lanes(run: Run, rows: SpanRows) -> tuple[PageLane, ...]:
    first = rows.lane_first.tolist()
    return tuple(
        PageLane(lane.device, lane.core, lane.name, lane.thread, first[i], first[i + 1] - first[i])
        for i, lane in enumerate(run.trace.lanes)
    )


def _shortened(summary: Summary) -> tuple[Summary, list[str]]:
    """The costliest rows of tables that no one would read to the end, and what was left out."""
    notes = []
    for name in _TABLES:
        table = getattr(summary, name)
        if len(table) > MOST_OPS:
            notes.append(
                f"the table of {name.replace('_', ' ')} has the first {format_count(MOST_OPS)} of "
                f"{format_count(len(table))} rows; summary.json has all"
            )
            summary = replace(summary, **{name: table[:MOST_OPS]})
    return summary, notes


def _first_layers(resources: Resources | None) -> tuple[Resources | None, list[str]]:
    """As many layers as the table of ops has rows, and what was left out."""
    if resources is None or len(resources.layers) <= MOST_OPS:
        return resources, []
    note = (
        f"resources of the first {format_count(MOST_OPS)} of {format_count(len(resources.layers))} layers are in this "
        "page; the JSON report and resources.json have all"
    )
    return replace(resources, layers=resources.layers[:MOST_OPS]), [note]
