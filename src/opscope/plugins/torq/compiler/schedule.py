"""Schedule and program of a compilation → which op every row is for, what it carries, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ....core.columns import Numbers
from ....graph.graph import Graph
from ....importers.mlir_location import labels, plain_location
from ....recording.trace import NONE
from ..annotate.annotated import Listing, Payload, Phase, Task
from ..importers.compile_csv import CompileRows

Edge = tuple[int, int, bool]  # rows: from, to, and whether data goes from one to the other


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rows of the compiler's schedule, with what its program says of them."""

    rows: CompileRows
    op: Numbers  # position in the graph; NONE: of no single op
    payload: tuple[Payload, ...]
    kernel: tuple[str, ...]  # what a slice runs; empty: not told, or no slice
    edges: tuple[Edge, ...]
    host: Mapping[int, tuple[str, ...]]  # op → programs of the part's own processor that do work for it; NONE: no op

    @property
    def is_control(self) -> Numbers:
        return np.array([payload.is_control for payload in self.payload], bool)


def ops_by_label(graph: Graph) -> dict[str, list[int]]:
    """What the compiler's locations may call an op → ops: by tensors that they write, or by their own locations."""
    found: dict[str, list[int]] = {}
    for place, op in enumerate(graph.ops):
        words = labels(plain_location(op.location)) or [graph.tensors[tensor].name for tensor in op.outputs]
        for word in words:
            found.setdefault(word, []).append(place)
    return found


def join(rows: CompileRows, listing: Listing | None, leads: Mapping[str, int]) -> Schedule:
    """Rows with ops by their locations, then by the slices that use what they bring.

    Args:
        leads: label of a location → the op that stands for it.
    """
    of_location = [_op_of(location, leads) for location in rows.locations]
    op = np.array([*of_location, NONE], np.int64)[rows.location]
    row_of = {int(task): row for row, task in enumerate(rows.task)}
    payload = [Payload.UNKNOWN] * len(rows.unit)
    kernel = [""] * len(rows.unit)
    tasks = [] if listing is None else [t for d in listing.dispatches for job in d.jobs for t in job.tasks]
    for task, row in ((task, row_of[task.number]) for task in tasks if task.number in row_of):
        for step in task.steps:
            payload[row] = step.payload or payload[row]
            kernel[row] = step.invocation or kernel[row] if step.phase is Phase.START else kernel[row]
    for row, other in _used_by(tasks, row_of):
        if op[row] == NONE and payload[row] is not Payload.PROGRAM:
            op[row] = op[other]
    op[[what is Payload.PROGRAM for what in payload]] = NONE  # a program holds the tasks of several ops
    edges = [edge for edge in _edges(tasks, row_of) if rows.end[edge[0]] <= rows.start[edge[1]]]
    return Schedule(rows, op, tuple(payload), tuple(kernel), tuple(dict.fromkeys(edges)), _host(listing, leads))


def _op_of(location: str, leads: Mapping[str, int]) -> int:
    return next((leads[label] for label in labels(location) if label in leads), NONE)


def _host(listing: Listing | None, leads: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for action in () if listing is None else (a for d in listing.dispatches for a in d.actions):
        if action.host_program is not None:
            place = _op_of(action.location or "", leads)
            found[place] = tuple(dict.fromkeys((*found.get(place, ()), action.host_program)))
    return found


def _used_by(tasks: list[Task], row_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Transfer → the slice job that first uses what it brings, or that last touched what it takes away."""
    brought: dict[str, list[int]] = {}
    touched: dict[str, int] = {}
    for task in tasks:
        row = row_of.get(NONE if task.number is None else task.number)
        if row is None:
            continue
        for step in task.steps:
            if step.unit == "dma_in" and len(step.buffers) == 2:
                brought.setdefault(step.buffers[1], []).append(row)
            elif step.unit == "dma_out" and step.buffers and step.buffers[0] in touched:
                yield row, touched[step.buffers[0]]
            elif step.unit == "slice" and step.phase is Phase.START:
                for name in filter(None, step.buffers):
                    touched[name] = row
                    yield from ((other, row) for other in brought.pop(name, ()))


def _edges(tasks: list[Task], row_of: Mapping[int, int]) -> Iterator[Edge]:
    """One queue starts everything in order: a transfer holds it until it is done, a slice until it is waited for."""
    before: int | None = None  # transfer that the queue was last held by
    waited: list[int] = []  # slice jobs that it waited for since then
    running: dict[int | None, int] = {}
    for task in tasks:
        done = [step.number for step in task.steps if _is(step.unit, step.phase, Phase.WAIT)]
        waited += [running.pop(number) for number in done if number in running]
        row = row_of.get(NONE if task.number is None else task.number)
        if row is None:
            continue
        yield from ((source, row, False) for source in ([] if before is None else [before]) + waited if source != row)
        started = [step.number for step in task.steps if _is(step.unit, step.phase, Phase.START)]
        if started:
            running |= dict.fromkeys(started, row)
        else:
            before, waited = row, []
    yield from ((source, target, True) for source, target in _data(tasks, row_of))


def _is(unit: str, phase: Phase, wanted: Phase) -> bool:
    return unit == "slice" and phase is wanted


def _data(tasks: list[Task], row_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Transfer in → slice job that uses it; slice job → transfer out of what it left."""
    out_tasks = [task.number for task in tasks if any(step.unit == "dma_out" for step in task.steps)]
    outs = {row_of[number] for number in out_tasks if number is not None and number in row_of}
    for transfer, job in _used_by(tasks, row_of):
        yield (job, transfer) if transfer in outs else (transfer, job)
