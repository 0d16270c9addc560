"""Memory metrics: what the compiler knows of memory and traffic before anything runs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from ..core.meaning import Carries
from ..estimate.traffic.stores import parameter_bytes
from ..program.program import MemoryMetrics, TrafficRow
from .codegen.emit import Columns
from .codegen.lower import Lowering
from .plan import Plan


def memory_metrics(plan: Plan, lowering: Lowering, columns: Columns) -> MemoryMetrics:
    """Traffic per core and route, peak use of local memory, and a histogram of op sizes."""
    table = columns.commands
    carries = {number: route.carries for number, route in enumerate(plan.machine.target.routes)}
    constant = np.isin(table["detail"], columns.detail_of[lowering.context.constant_details])
    rows = []
    for device in range(plan.machine.devices):
        for core in range(plan.machine.cores):
            here = (table["device"] == device) & (table["core"] == core)
            moved = {c: here & (table["route"] == number) for number, c in carries.items()}
            nothing = np.zeros(len(table), np.bool_)
            read, write, cast = (moved.get(c, nothing) for c in (Carries.READ, Carries.WRITE, Carries.MULTICAST))
            rows.append(
                TrafficRow(
                    device,
                    core,
                    _bytes(table, read),
                    _bytes(table, read & constant),
                    _bytes(table, write),
                    _bytes(table, cast),
                    _bytes(table, cast & constant),
                )
            )
    sizes = Counter(plan.graph.tensors[op.outputs[0]].elements or 0 for op in plan.graph.ops if op.outputs)
    resident = sum(plan.graph.tensors[t].bytes or 0 for t in lowering.context.resident_constants)
    return MemoryMetrics(
        constants_bytes=parameter_bytes(plan.graph),
        local_bytes=tuple(memory.peak + lowering.weights.reserved_bytes for memory in lowering.tensors.memory),
        local_capacity=lowering.context.capacity,
        staying_bytes=lowering.weights.staying_bytes,
        traffic=tuple(rows),
        first_read=resident,
        barriers=int(((table["group"] == 0) & (table["route"] < 0)).sum()),
        macs=sum(placed.task.work.macs * placed.task.trips for placed in plan.placed),
        size_histogram=dict(sorted(sizes.items())),
    )


def _bytes(table: npt.NDArray[np.void], mask: npt.NDArray[np.bool_]) -> int:
    return int(table["moved_bytes"][mask].sum())
