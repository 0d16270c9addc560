"""Blocks of the arena map, read off a Run as its page does it, and off the plan of the report: by what one sees."""

from __future__ import annotations

from dataclasses import replace

from opscope.estimate.memory import plan_memory
from opscope.estimate.report import Report
from opscope.recording.resources import Range
from opscope.recording.run import Run

Seen = tuple[int, int, int, int]  # address, bytes, from and to in ns


def evenly(report: Report) -> Report:
    """The same with layers of 1 us each, so that every moment tells its layer: some layers take no time."""
    layers = tuple(replace(layer, latency_s=1e-6) for layer in report.layers)
    whole = len(layers) * 1e-6
    return replace(report, layers=layers, totals=replace(report.totals, latency_s=Range(whole, whole, whole)))


def drawn(run: Run) -> list[Seen]:
    """From the start of a command until the last one that depends on its data is done."""
    when: dict[int, tuple[int, int]] = {}
    for span in run.trace.spans:  # what comes before the work of a command lies before it in the table
        first, _ = when.get(int(span["command"]), (int(span["start_ns"]), 0))
        when[int(span["command"])] = first, int(span["end_ns"])
    found = []
    for command, row in enumerate(run.commands.rows):
        if row["local_bytes"]:
            readers = [int(edge["target"]) for edge in run.trace.edges if edge["source"] == command and edge["data"]]
            until = max(when[reader][1] for reader in (command, *readers))
            found.append((int(row["local_address"]), int(row["local_bytes"]), when[command][0], until))
    return sorted(found)


def planned(report: Report) -> list[Seen]:
    """From the start of the first layer that needs a buffer to the end of the last; layers take 1 us."""
    if report.memory.runtime_parts:
        blocks = report.arena
        return sorted((b.address, b.size_bytes, b.first * 1000, (b.last + 1) * 1000) for b in blocks)
    plan = plan_memory(report.graph, report.target.runtime)
    placed = [(buffer, address) for buffer, address in zip(plan.buffers, plan.offsets, strict=True)]
    found = [(address, b.size_bytes, b.first * 1000, (b.last + 1) * 1000) for b, address in placed if b.size_bytes]
    if report.memory.runtime_bytes:
        top = report.memory.arena_bytes + report.memory.scratch_bytes
        found.append((top, report.memory.runtime_bytes, 0, len(report.layers) * 1000))
    return sorted(found)


def counter(run: Run, name: str) -> list[float]:
    (number,) = [place for place, track in enumerate(run.trace.counters) if track.name == name]
    return [float(value) for value in run.trace.samples["value"][run.trace.samples["counter"] == number]]
