"""Rules: each is a function from the analysis of a Run to drafts of findings. Add yours to RULES."""

from __future__ import annotations

from .draft import Rule, finding_of
from .hosting import device_queue, host_calls, host_stages
from .memory import exposed_transfers, reads_again, residency, serial_transfers, spills
from .overhead import computed_again, launches, layout_changes, on_the_cpu, small_ops
from .slow_ops import far_from_bound, slow_ops
from .waiting import idle_engines, uneven_work, unexplained_gaps, waits
from .wasted import computes_nothing, outliers

RULES: tuple[Rule, ...] = (
    computes_nothing,
    outliers,
    slow_ops,
    far_from_bound,
    computed_again,
    layout_changes,
    exposed_transfers,
    reads_again,
    spills,
    residency,
    serial_transfers,
    waits,
    idle_engines,
    uneven_work,
    launches,
    small_ops,
    host_stages,
    device_queue,
    host_calls,
    on_the_cpu,
    unexplained_gaps,
)

__all__ = ["RULES", "Rule", "finding_of"]
