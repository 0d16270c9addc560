"""Links: ways in which devices may share the work, and what crosses the links between them in each.

Devices that share the images of a batch send each other nothing, and read all constants each. Devices that share
products have a part of the channels of each, and of its weights: before the next one needs all channels, every device
sends its part to the others. What views and elementwise ops make of a part is a part; what was sent once is there.

    x ── W1 ─▶ h ── relu ─▶ h' ── W2 ─▶ y     x: an input, everybody reads it      h': sent before W2: 3/4 of it each,
                                                                                      with four devices

Of a convolution over a large image devices have rows instead: all weights each, and of the rows of others those that
windows reach into. Of 64 channels on 224 × 224 in f16 four devices would send 4.8 MB each; two rows more are 57 KB, and
74 KB of weights are read four times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from ...core.meaning import Carries
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Holds
from ..kernels import has_weights
from ..price import Machine, Sharing
from ..work import number, numbers
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


@dataclass(frozen=True, slots=True)
class SharedOp:
    """What it takes that devices share an op."""

    linked_bytes: int = 0  # that a device sends to others before it
    readers: int = 1  # devices that read all of its constants


def shared_ops(graph: Graph, machine: Machine) -> list[SharedOp]:
    """What each op takes on devices that share products; nothing where they do not."""
    if machine.sharing is not Sharing.PRODUCTS or machine.devices == 1:
        return [SharedOp()] * len(graph.ops)
    walk = _Parts(graph, machine.devices)
    return [walk.share(op) for op in graph.ops]


class _Parts:
    """Follows which tensors every device has, and of which it has rows; of all others it has channels."""

    def __init__(self, graph: Graph, devices: int) -> None:
        self.graph, self.devices, self.others = graph, devices, (devices - 1) / devices
        self.there = {t for t, tensor in enumerate(graph.tensors) if tensor.role is not Role.ACTIVATION}
        self.rows: set[int] = set()

    def share(self, op: Op) -> SharedOp:
        """What the next op takes. Call once per op, in order."""
        if self._is_better_by_rows(op):
            data, sent = op.inputs[0], 0.0
            if data not in self.there:
                sent = (
                    _halo_bytes(op, self.graph) if data in self.rows else self.others * self._bytes(data) / self.devices
                )
            self.rows.update(op.outputs)
            return SharedOp(round(sent), readers=self.devices)
        missing = {t for t in _needed_whole(op, self.graph) if t not in self.there}
        self.there |= missing
        if op.family is not Family.CONTRACTION:
            self._pass_on(op)
        return SharedOp(round(self.others * sum(map(self._bytes, missing))))

    def _pass_on(self, op: Op) -> None:
        """Results of other ops are what their operands are: whole, or rows."""
        inputs = [t for t in op.inputs if t != ABSENT]
        if all(t in self.there for t in inputs):
            self.there.update(op.outputs)
        elif all(t in self.there or t in self.rows for t in inputs):
            self.rows.update(op.outputs)

    def _is_better_by_rows(self, op: Op) -> bool:
        """Whether rows that are needed twice, and weights that all devices read, are less than activations to send."""
        if op.kind != "conv" or number(op, "groups", 1) > 1 or _image_rows(op, self.graph) < 2 * self.devices:
            return False
        activations = max(self._bytes(op.inputs[0]), self._bytes(op.outputs[0]))
        more = _halo_bytes(op, self.graph) + self.others * self._bytes(op.inputs[1])
        return more < self.others * activations

    def _bytes(self, tensor: int) -> int:
        return self.graph.tensors[tensor].bytes or 0


def _image_rows(op: Op, graph: Graph) -> int:
    """Rows of the images that a convolution reads; 0 where they are not known."""
    shape, channel = graph.tensors[op.inputs[0]].shape or (), op.attributes.get("channel_axis")
    return next((extent for axis, extent in enumerate(shape) if axis and axis != channel), 0)


def _halo_bytes(op: Op, graph: Graph) -> float:
    """Bytes of the rows that the windows of one device reach into, of those that others have."""
    kernel, strides, dilations = (numbers(op, key) for key in ("kernel", "strides", "dilations"))
    taps = (kernel[0] - 1) * (dilations[0] if dilations else 1) + 1 if kernel else 1
    over = max(0, taps - (strides[0] if strides else 1))
    return over * (graph.tensors[op.inputs[0]].bytes or 0) / _image_rows(op, graph)


def _needed_whole(op: Op, graph: Graph) -> tuple[int, ...]:
    """Inputs of which every device needs all channels: a product sums over them, a norm too; not one channel by one."""
    apart = op.kind in ("conv", "conv_transpose") and number(op, "groups", 1) > 1
    sums = op.family in (Family.NORMALISE, Family.REDUCE) or (has_weights(op, graph) and op.family is not Family.POOL)
    return tuple(t for t in op.inputs[:1] if sums and not apart and t != ABSENT)
