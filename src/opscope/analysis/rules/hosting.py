"""The host: its stages around an inference, and calls that the device waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers, distinct
from ...core.meaning import Does, Party
from ...core.units import format_counted, format_ns, format_percent
from ...recording.finding import Finding
from ...recording.summary import HostStage
from ...recording.trace import NONE, SpanKind
from ..causes import HOST
from ..run_analysis import RunAnalysis
from ..timeline.intervals import union
from .draft import Draft

HOST_SHARE = 0.05  # of what the application waits, or of the critical path
IT_STANDS_STILL = "with more inferences on their way at once the device need not stand still for it"
IT_HAS_WORK = "it costs latency, not throughput: the device has work meanwhile"
_PARTY_OF_WORK = {Does.MOVE: Party.DRIVER, Does.SYNC: Party.QUEUE}  # of a stage that the summary does not have
QUEUE_SHARE = 0.01  # of what the application waits: below it the queue counts as the device


def host_stages(analysis: RunAnalysis) -> Iterator[Draft]:
    """Application, runtime, driver and device: who takes how much of what the application waits."""
    stages = _stages(analysis)
    whole, own = sum(stage.ns for stage in stages), [stage for stage in stages if not stage.party.is_device]
    cost = sum(stage.ns for stage in own)
    if not whole or cost < HOST_SHARE * whole:
        return
    longest, positions = max(own, key=lambda stage: stage.ns), _stage_positions(analysis)
    so = IT_HAS_WORK if _queue_ns(stages) >= HOST_SHARE * whole else IT_STANDS_STILL
    yield Draft(
        Finding(
            "host-stages",
            f"{format_percent(cost / whole)} of what the application waits is not the device",
            _parties(stages, whole),
            cost_ns=cost,
            share=cost / whole,
            action=f"{longest.name} is the longest with {format_ns(longest.ns)}; {so}",
            spans=analysis.rows(positions, analysis.path_ns),
        ),
        positions if len(positions) else None,
    )


def device_queue(analysis: RunAnalysis) -> Iterator[Draft]:
    """Time that an inference stands before a device that is busy with others."""
    stages = _stages(analysis)
    whole, cost = sum(stage.ns for stage in stages), _queue_ns(stages)
    if not whole or cost < HOST_SHARE * whole:
        return
    positions = np.flatnonzero(_queues(analysis)) if analysis.work.staged else np.zeros(0, np.int64)
    yield Draft(
        Finding(
            "device-queue",
            f"{format_percent(cost / whole)} of what the application waits is the queue of the device",
            f"{format_ns(cost)} behind inferences that came before, {format_ns(_device_ns(stages))} on the device",
            cost_ns=cost,
            share=cost / whole,
            action="fewer on their way at once wait less; only a faster device serves more",
            spans=analysis.rows(positions, analysis.path_ns),
        ),
        positions if len(positions) else None,
    )


def _parties(stages: tuple[HostStage, ...], whole: int) -> str:
    """Who takes how long; the queue where there is one to speak of."""
    parties: Counter[str] = Counter()
    for stage in stages:
        parties[stage.name if stage.party is Party.UNKNOWN else stage.party.value] += stage.ns
    if parties[Party.QUEUE.value] < QUEUE_SHARE * whole:
        parties[Party.DEVICE.value] += parties.pop(Party.QUEUE.value, 0)
    return ", ".join(f"{party} {format_ns(ns)}" for party, ns in parties.items())


def _queue_ns(stages: tuple[HostStage, ...]) -> int:
    return sum(stage.ns for stage in stages if stage.party is Party.QUEUE)


def _device_ns(stages: tuple[HostStage, ...]) -> int:
    return sum(stage.ns for stage in stages if stage.party is Party.DEVICE)


def _stages(analysis: RunAnalysis) -> tuple[HostStage, ...]:
    """Of the inference that is looked at, where the timeline shows them; else as the summary has them."""
    work = analysis.work
    if not work.staged or not analysis.on_host.any():
        return analysis.run.summary.host
    known = {stage.name: stage.party for stage in analysis.run.summary.host}
    does = analysis.run.trace.spans["does"][work.row]
    found = []
    for place in np.flatnonzero(analysis.on_host).tolist():
        name = _stage_name(analysis, place)
        party = known.get(name, _PARTY_OF_WORK.get(does[place], Party.UNKNOWN))
        found.append(HostStage(name, int(work.ns[place]), party, Does(does[place]).label))
    return (*found, HostStage("device", work.wall_ns - sum(stage.ns for stage in found), Party.DEVICE))


def _queues(analysis: RunAnalysis) -> npt.NDArray[np.bool_]:
    """Stages of the timeline in which an inference waits for the device."""
    waits = analysis.run.trace.spans["does"][analysis.work.row] == Does.SYNC
    return np.asarray(analysis.on_host & waits, np.bool_)


def _stage_positions(analysis: RunAnalysis) -> Numbers:
    """Stages on the path that are not the device's; the device's own are no activities where it tells what it did."""
    if not analysis.work.staged:
        return np.zeros(0, np.int64)
    return np.flatnonzero(analysis.on_host & (analysis.path_ns > 0) & ~_queues(analysis))


def _stage_name(analysis: RunAnalysis, place: int) -> str:
    """`input transfer` of `input transfer-Inf-0`."""
    return analysis.work.name(place).removesuffix(f"-Inf-{analysis.work.inference}")


def host_calls(analysis: RunAnalysis) -> Iterator[Draft]:
    """Time on the critical path in which the host works, and the device has nothing that it could do."""
    work = analysis.work
    on_path = analysis.path.cause == HOST
    cost = int(analysis.path.ns[on_path].sum())
    if work.staged or not work.wall_ns or cost < HOST_SHARE * work.wall_ns:
        return
    positions = np.flatnonzero(work.cause == HOST)
    gaps = analysis.path.activity[on_path & (analysis.path.is_gap == 1) & (analysis.path.activity != NONE)]
    yield Draft(
        Finding(
            "host-bound",
            f"the host is what {format_percent(cost / work.wall_ns)} of the time depends on",
            _host_detail(analysis, int(analysis.gap_ns[gaps].sum())),
            analysis.costliest_ops(positions, analysis.path_ns),
            cost,
            action="launch ahead: fewer and larger ops, a captured graph, the next inference while this one runs",
            spans=analysis.rows(positions, analysis.path_ns),
        ),
        positions,
        gaps=gaps,
    )


def _host_detail(analysis: RunAnalysis, between_ns: int) -> str:
    work = analysis.work
    device = np.flatnonzero(analysis.run.trace.spans["kind"][work.row] != SpanKind.HOST)
    busy = union(np.zeros(len(device), np.int64), work.start[device], work.end[device])
    calls = format_counted(len(distinct(work.row)) - len(device), "call")
    works = f"the device works {format_ns(int((busy.end - busy.start).sum()))} of {format_ns(work.wall_ns)}"
    between = f"; {format_ns(between_ns)} lie between calls that were recorded" if between_ns else ""
    return f"{calls} on the host; {works}{between}"
