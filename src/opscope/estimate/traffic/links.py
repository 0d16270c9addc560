"""Links: ways in which devices may share the work, and what crosses the links between them in each.

Devices that share the images of a batch send each other nothing, and read all constants each. Devices that share
products have a part of the channels of each, and of its weights: before the next one needs all channels, every device
sends its part to the others. What views and elementwise ops make of a part is a part; what was sent once is there.

    x ── W1 ─▶ h ── relu ─▶ h' ── W2 ─▶ y     x: an input, everybody reads it      h': sent before W2: 3/4 of it each,
                                                                                      with four devices
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ...core.meaning import Carries
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Holds
from ..kernels import has_weights
from ..price import Machine, Sharing
from ..work import number
from .routes import images_of
from .stores import parameter_bytes


def device_counts(graph: Graph, machine: Machine) -> list[int]:
    """Numbers of devices that may be best: all, half of them, one; without those that cannot hold all constants."""
    devices, room = machine.devices, machine.target.home(Holds.CONSTANTS).bytes.value
    least = max(1, ceil(parameter_bytes(graph) / room))
    return sorted({count for count in (devices, -(-devices // 2), 1) if count >= least} or {devices}, reverse=True)


def ways_to_share(graph: Graph, machine: Machine) -> list[Machine]:
    """The machine with every way to share that is open; the one that takes least is to be taken."""
    if machine.devices == 1 or machine.sharing is not Sharing.LEAST:
        return [machine]
    counts = device_counts(graph, machine)
    linked = any(route.carries is Carries.LINK for route in machine.target.routes)
    found = [replace(machine, devices=count, sharing=Sharing.PRODUCTS) for count in counts if count == 1 or linked]
    shared = min(machine.devices, images_of(graph))
    if shared > 1 and 1 in counts:
        found.append(replace(machine, devices=shared, sharing=Sharing.IMAGES))
    return found or [replace(machine, sharing=Sharing.PRODUCTS)]


def linked_bytes(graph: Graph, machine: Machine) -> list[int]:
    """Bytes that a device sends to others before each op, of devices that share products."""
    share = (machine.devices - 1) / machine.devices if machine.sharing is Sharing.PRODUCTS else 0.0
    there = {t for t, tensor in enumerate(graph.tensors) if tensor.role is not Role.ACTIVATION}
    found = []
    for op in graph.ops:
        missing = {t for t in _needed_whole(op, graph) if t not in there}
        found.append(round(share * sum(graph.tensors[t].bytes or 0 for t in missing)))
        there |= missing
        if op.family is not Family.CONTRACTION and all(t in there for t in op.inputs if t != ABSENT):
            there.update(op.outputs)
    return found


def _needed_whole(op: Op, graph: Graph) -> tuple[int, ...]:
    """Inputs of which every device needs all channels: a product sums over them, a norm too; not one channel by one."""
    apart = op.kind in ("conv", "conv_transpose") and number(op, "groups", 1) > 1
    sums = op.family in (Family.NORMALISE, Family.REDUCE) or (has_weights(op, graph) and op.family is not Family.POOL)
    return tuple(t for t in op.inputs[:1] if sums and not apart and t != ABSENT)
