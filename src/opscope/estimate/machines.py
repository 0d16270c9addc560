"""Names that users give → the machine to estimate, compile or simulate for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..core.errors import UsageError
from ..graph.graph import Graph
from ..graph.kinds import Family
from ..machine import catalogue as targets
from ..machine.target import Target
from .price import Machine
from .work import work_of


def use_machine(target: str | Path | Target, *, cores: int | None = None, devices: int = 1) -> Machine:
    """So many cores and devices of a target."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    have_cores, have_devices = round(chosen.topology.cores.value), round(chosen.topology.devices.value)
    for word, asked, have in (("cores", cores, have_cores), ("devices", devices, have_devices)):
        if asked is not None and not 1 <= asked <= have:
            raise UsageError(f"--{word} {asked}: {chosen.name} has {have}; expected 1 to {have}")
    return Machine(chosen, devices=devices, cores=have_cores if cores is None else cores)


def at_clock_of(graph: Graph, machine: Machine) -> Machine:
    """The machine at the clock that it reaches with a graph: that of integers, where most products are of them."""
    target = machine.target
    if target.clocks.integer_hz is None:
        return machine
    macs = {True: 0, False: 0}
    for op in graph.ops:
        if op.family is Family.CONTRACTION:
            macs[not graph.tensors[op.inputs[0]].dtype.is_float] += work_of(op, graph).macs
    if macs[True] <= macs[False]:
        return machine
    clocks = replace(target.clocks, core_hz=target.clocks.integer_hz)
    return replace(machine, target=replace(target, clocks=clocks))
