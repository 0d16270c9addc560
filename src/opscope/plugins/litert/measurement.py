"""One measurement with LiteRT, in a process of its own → what the runtime left, read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...backends.host_cpu import ports_of
from ...backends.kernel_times import KernelTimes
from ...backends.measuring import Measuring
from ...backends.process import checked_answer, run_worker, work_folder
from ...core.columns import Numbers
from ...graph.graph import Graph
from .kernels import NO_OP, Kernel

_LONGEST_S = 3600
_OPERATOR, _DELEGATE_OPERATOR, _RUNTIME = 2, 8, 16  # kinds of events, as in the library's litert_profiler_event.h
_WORKER = "opscope.plugins.litert.worker"

Event = tuple[str, int, int, int, int, int]  # tag, kind, start in µs, length in µs, node, subgraph


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the runtime left."""

    events: tuple[tuple[Event, ...], ...]  # of every inference that counts; empty: its profiler cannot be had
    unavailable: str  # why it cannot
    samples_ns: tuple[int, ...]  # without the profiler
    producer: Mapping[str, str]


def measure(model: Path, graph: Graph, measuring: Measuring, *, kernels: str, resized: bool) -> Measurement:
    """Run the model in a process of its own; should the way to the profiler crash, once more without it."""
    request = {
        **measuring.request(model, ports_of(graph, str(model))),
        "kernels": kernels,
        "unavailable": "the library's profiler is reached for models of fixed shapes only" if resized else "",
    }
    with work_folder("litert") as folder:
        answer, ended = run_worker(_WORKER, request, folder, longest_s=_LONGEST_S)
        if answer is None and not resized and not ended.timed_out:
            request["unavailable"] = f"with the profiler, the library {ended.how}"
            answer, ended = run_worker(_WORKER, request, folder, longest_s=_LONGEST_S)
        return _measurement(checked_answer(answer, ended, runtime="LiteRT", model=model))


def _measurement(answer: Mapping[str, object]) -> Measurement:
    return Measurement(
        events=tuple(tuple(tuple(event) for event in one) for one in answer["events"]),  # type: ignore[attr-defined]
        unavailable=str(answer["unavailable"]),
        samples_ns=tuple(map(int, answer["samples_ns"])),  # type: ignore[call-overload]
        producer=dict(answer["producer"]),  # type: ignore[call-overload]
    )


@dataclass(frozen=True, slots=True)
class Times:
    """Kernels of one inference, in order, and their times in all of them."""

    ran: tuple[Kernel, ...]
    kernels: KernelTimes  # by kernel, with the profiler
    start_ns: Numbers | None  # kernel × inference; None: some kernels do not tell when they start
    whole_start_ns: Numbers  # per inference


def read_times(graph: Graph, events: Sequence[Sequence[Event]]) -> Times | None:
    """None: inferences differ in what they ran, so that nothing can be said of one."""
    tops = dict(enumerate(place for place, op in enumerate(graph.ops) if not op.scope))
    runs = [[event for event in one if _is_kernel(event, len(tops))] for one in events]
    told = [[(event[0], event[1], event[4]) for event in run] for run in runs]  # tag, kind, node
    wholes = [next((event for event in one if event[1] == _RUNTIME), None) for one in events]
    if not runs or not told[0] or any(other != told[0] for other in told[1:]) or None in wholes:
        return None
    ran = tuple(
        Kernel(tag, tops[node]) if kind == _OPERATOR else Kernel(tag, NO_OP, starts_part=node == 0)
        for tag, kind, node in told[0]
    )
    length, start = (np.array([[event[at] for event in run] for run in runs], np.int64).T * 1000 for at in (3, 2))
    has_starts = all(kind == _OPERATOR for _, kind, _ in told[0])
    begin, whole = (np.array([event[at] for event in wholes if event], np.int64) * 1000 for at in (2, 3))
    names = tuple(kernel.name for kernel in ran)
    times = KernelTimes(names, length, whole, np.ones(len(ran), np.bool_))
    return Times(ran, times, start if has_starts else None, begin)


def _is_kernel(event: Event, ops: int) -> bool:
    """A node of the model, or an operator inside of a delegate; not the delegate as a whole, nor what a body ran."""
    _, kind, _, _, node, subgraph = event
    return kind == _DELEGATE_OPERATOR or (kind == _OPERATOR and node < ops and subgraph == 0)
