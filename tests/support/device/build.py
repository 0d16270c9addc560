"""Programs by hand for the simulated device: the least that a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opscope.core.meaning import Carries, Does
from opscope.program.program import (
    COMMAND,
    NO_ROUTE,
    Channel,
    Detail,
    Group,
    MemoryInfo,
    MemoryMetrics,
    OpInfo,
    Program,
    StatsOptions,
)

HVX, HMX, DMA = 0, 1, 2
READ, WRITE = 0, 1
COMPUTE, COPY, INPUT, OUTPUT = 0, 1, 2, 3  # positions in KINDS
KINDS = ("elementadd", "aiccopytovtcm", "aicinputsemaphoreinc", "aicoutputsemaphoreinc")
GROUPS = (Group("HVX", "HVX", 4), Group("HMX", "HMX", 1), Group("DMAIssue", "", 1))
DOES = (Does.COMPUTE, Does.MOVE, Does.SYNC, Does.SYNC)  # of KINDS
DDR, VTCM = 0, 1  # positions in MEMORIES
MEMORIES = (MemoryInfo("DDR", is_outer=True), MemoryInfo("VTCM", is_outer=False))
ROUTES = (Channel("DDR read", Carries.READ, 8.0, 4.0, DDR), Channel("DDR write", Carries.WRITE, 8.0, 4.0, DDR))
METRICS = MemoryMetrics(0, (), 0, (), 0, 0, 0, {})


@dataclass(frozen=True)
class Step:
    """One command; `needs` are positions in the list of steps, which need not be sorted by lane."""

    group: int = HVX
    cycles: int = 0
    needs: tuple[int, ...] = ()
    core: int = 0
    device: int = 0
    route: int = NO_ROUTE
    moved_bytes: int = 0
    macs: int = 0
    kind: int = COMPUTE


def program_of(
    steps: Sequence[Step],
    *,
    groups: tuple[Group, ...] = GROUPS,
    routes: tuple[Channel, ...] = ROUTES,
    stats: StatsOptions | None = None,
    simulation: Mapping[str, float] | None = None,
    clock_hz: float = 1.0e9,
    stats_hz: float = 1.0e8,
) -> Program:
    """Sort the steps by lane, keeping their order within one, and number dependencies anew."""
    order = sorted(range(len(steps)), key=lambda i: (steps[i].device, steps[i].core, steps[i].group))
    number = {old: new for new, old in enumerate(order)}
    commands = np.zeros(len(steps), COMMAND)
    commands["does"] = [DOES[steps[old].kind] for old in order]
    place: dict[tuple[int, int, int], int] = {}
    offsets, sources = [0], []
    for new, old in enumerate(order):
        step = steps[old]
        lane = (step.device, step.core, step.group)
        for name in ("device", "core", "group", "route", "kind", "cycles", "moved_bytes", "macs"):
            commands[name][new] = getattr(step, name)
        commands["ordinal"][new] = place[lane] = place.get(lane, -1) + 1
        sources += [number[need] for need in step.needs]
        offsets.append(len(sources))
    return Program(
        name="net",
        target="hand-made",
        devices=1 + max((step.device for step in steps), default=0),
        cores=1 + max((step.core for step in steps), default=0),
        batch=1,
        clock_hz=clock_hz,
        stats_hz=stats_hz,
        groups=groups,
        routes=routes,
        kinds=KINDS,
        ops=(OpInfo("op", "", "", ""),),
        details=(Detail("", "", "", "", (), ""),),
        commands=commands,
        dependency_offsets=np.array(offsets, np.uint32),
        dependency_sources=np.array(sources, np.uint32),
        dependency_kinds=np.ones(len(sources), np.uint8),
        stats=stats or StatsOptions(),
        metrics=METRICS,
        inputs=(),
        outputs=(),
        simulation=simulation or {},
        memories=MEMORIES,
    )
