"""The host: its stages around an inference, and calls that the device waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ...finding import Finding
from ...summary import HostStage
from ...trace import NONE, SpanKind
from ...units import format_percent
from ..bound_words import HOST
from ..distinct import distinct
from ..facts import Facts
from ..intervals import union
from .claim import Claim, count, time

HOST_SHARE = 0.05  # of what the application waits, or of the critical path
DEVICE = "device"
PARTIES = {  # stage of host.STAGES → whose it is, as system profiles group them
    "enqueue": "application", "preprocess": "runtime", "submit": "runtime", "return": "runtime",
    "postprocess": "runtime", "driver": "driver", "input transfer": "driver", "output transfer": "driver",
    "device queue": DEVICE, "device": DEVICE,
}  # fmt: skip


def host_stages(facts: Facts) -> Iterator[Claim]:
    """Application, runtime, driver and device: who takes how much of what the application waits."""
    stages = facts.run.summary.host
    whole, own = sum(stage.ns for stage in stages), [stage for stage in stages if _party(stage) != DEVICE]
    cost = sum(stage.ns for stage in own)
    if not whole or cost < HOST_SHARE * whole:
        return
    parties: Counter[str] = Counter()
    for stage in stages:
        parties[_party(stage)] += stage.ns
    longest = max(own, key=lambda stage: stage.ns)
    yield Claim(Finding(
        "host-stages", f"{format_percent(cost / whole)} of what the application waits is not the device",
        ", ".join(f"{party} {time(ns)}" for party, ns in parties.items()), cost_ns=cost, share=cost / whole,
        action=f"{longest.name} is the longest with {time(longest.ns)}; more inferences on their way at once hide it",
    ))  # fmt: skip


def _party(stage: HostStage) -> str:
    return PARTIES.get(stage.name, stage.name)


def host_calls(facts: Facts) -> Iterator[Claim]:
    """Time on the critical path in which the host works, and the device has nothing that it could do."""
    work = facts.work
    on_path = facts.path.cause == HOST
    cost = int(facts.path.ns[on_path].sum())
    if work.staged or not work.wall_ns or cost < HOST_SHARE * work.wall_ns:
        return
    positions = np.flatnonzero(work.cause == HOST)
    gaps = facts.path.activity[on_path & (facts.path.is_gap == 1) & (facts.path.activity != NONE)]
    yield Claim(
        Finding(
            "host-bound", f"the host is what {format_percent(cost / work.wall_ns)} of the time depends on",
            _host_detail(facts), facts.costliest_ops(positions, facts.path_ns), cost,
            action="launch ahead: fewer and larger ops, a captured graph, the next inference while this one runs",
            spans=facts.rows(positions, facts.path_ns),
        ),
        positions, gaps=gaps,
    )  # fmt: skip


def _host_detail(facts: Facts) -> str:
    work = facts.work
    device = np.flatnonzero(facts.run.trace.spans["kind"][work.row] != SpanKind.HOST)
    busy = union(np.zeros(len(device), np.int64), work.start[device], work.end[device])
    calls = count(len(distinct(work.row)) - len(device), "call")
    return f"{calls} on the host; the device works {time(int((busy.end - busy.start).sum()))} of {time(work.wall_ns)}"
