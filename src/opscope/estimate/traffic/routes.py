"""Op, Machine → bytes by memory: through which memories the operands of an op travel."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...graph.work_families import WorkFamily, work_family
from ...machine.target import Holds
from ..forms.state import State
from ..memory import MemoryPlan
from ..price import Machine, Sharing
from ..work import Work, number
from .stores import RESIDENT, Stores, loop_bytes, ratio_of, reads_in_part, whole_constant_sizes

# Of the local memory that activations leave free, where a compiler cuts work in tiles: what it gives to weights, since
# activations need gaps between them; and of that, what is for tiles that are read ahead. The rest is for what stays.
FILLED, READ_AHEAD = 0.9, 0.25
SLICES = 4  # of what does not fit local memory, at the least: two of them take half of it


class Routes:
    """Decides through which memory the bytes of an op travel.

    With a local memory (on-chip SRAM), every byte passes through it. Activations cross to the outer memory only at the
    network's inputs and outputs, or if the live set does not fit at that step; constants are re-read from where they
    are stored in each inference unless they all fit beside the activations, or a part of local memory keeps some. A
    table that rows are gathered from stays where it is stored: the rows are read there. Weights that are compressed
    travel so, up to the engine.
    """

    def __init__(self, graph: Graph, machine: Machine, plan: MemoryPlan) -> None:
        """Work out once what holds for all ops: how much local memory there is, and what stays in it.

        With 14 cores and a batch of 28, 14 images are in local memory at a time, half of what the plan counts. What
        activations leave free there holds constants: all, where each core has room for them; else a share, if the
        target's compiler keeps any (`kept`: of a compiler that cuts tiles; `resident_share`: of the target itself).
        """
        target = machine.target
        self.graph = graph
        self.plan = plan
        self.activations = target.home(Holds.ACTIVATIONS).name
        self.burst = target.home(Holds.ACTIVATIONS).burst_bytes
        self.target = target
        self.local = target.local
        images = images_of(graph) if target.tiling is not None else 1
        # Devices that share the images of a batch read all constants each; else each reads its own part of them.
        self.copies = machine.devices if machine.sharing is Sharing.IMAGES else 1
        together = replace(machine, devices=machine.devices // self.copies)  # what works on the same images
        at_once = -(-images // self.copies)
        own, instances = 0.0, 1
        if self.local is not None:
            own = self.local.bytes.value
            instances = target.instances(self.local, devices=together.devices, cores=machine.cores)
        self.capacity, self.lanes = own * instances, together.lanes
        self.held = {scope for scope, size in loop_bytes(graph).items() if size <= own}  # loops, which one core runs
        # Where work is cut in tiles, an image for every core is in local memory at a time, however large the batch; and
        # where that is too much, fewer: cores share an image then.
        self.least_at_a_time, self.at_a_time = 1 / images, min(at_once, together.lanes) / images
        self.own_share = at_once / images
        room = own - plan.bound_bytes / self.copies / instances
        self.kept = _kept_share(graph, together, room, at_once) if own else 0.0
        self.outputs = frozenset(graph.outputs)
        self.state = State.of(graph)
        self.live = self.state.live_beside(plan, len(graph.ops))
        self.slices: dict[int, int] = {}  # of tensors within an attention, how many parts of them are independent
        share = None if self.local is None else self.local.resident_share
        keeps = target.tiling is None or target.tiling.keeps_constants
        resident = 0.0 if share is None or not keeps else max(0.0, room) * share.value
        self.keeps_some = share is not None
        self.stores = Stores(
            graph,
            target,
            resident_bytes=resident * (1 if at_once >= together.lanes else instances),
            copies=together.devices,
        )

    def traffic(self, step: int, op: Op, work: Work, *, readers: int = 1) -> dict[str, int]:
        """Return the bytes per memory for one trip of an op, of whose constants so many devices read all."""
        if not work.bytes:
            return {}
        moved, read = {}, self.constants(op, work, readers=readers)
        if self.local is None:
            moved[self.activations] = work.read_bytes + work.write_bytes + self._lost_bytes(op)
        else:
            moved[self.local.name] = work.read_bytes + work.write_bytes
            if self.activations != self.local.name:  # otherwise its bytes are counted already
                boundary = self._boundary_bytes(op, work)
                inside = work.read_bytes + work.write_bytes - boundary - self.state.streamed_bytes(op, self.graph)
                leaves = round(inside * self._outer_share(step, op, work))
                moved[self.activations] = boundary + leaves + self._lost_bytes(op)
        for name, size in read.items():
            moved[name] = moved.get(name, 0) + size
        return moved

    def constants(self, op: Op, work: Work, *, readers: int = 1) -> dict[str, int]:
        """Return the bytes per memory of the constants of one trip, as they are stored."""
        store, ratio = self.stores.of(op, self.graph), ratio_of(op, self.target)
        size = work.constant_bytes / ratio / ((op.trips or 1) if op.scope in self.held else 1)
        if self.local is None:
            return {store: round(size)}
        found = {self.local.name: round(size)}
        kept = store == RESIDENT if self.keeps_some else self.kept
        read = round(size * self.copies * readers * (1.0 if reads_in_part(op) else 1.0 - kept))
        if work.state_weight_bytes > self.capacity:  # they pass in every step
            read += round((work.steps - 1) * work.state_weight_bytes / ratio * self.copies)
        if read and store not in (RESIDENT, self.local.name):
            found[store] = read
        return found

    def written(self, step: int, op: Op, work: Work) -> int:
        """Return the bytes of results among the traffic of the memory that holds activations."""
        if self.local is None or self.activations == self.local.name:
            return work.write_bytes
        result = min(self._output_bytes(op), work.write_bytes)
        return result + round((work.write_bytes - result) * self._outer_share(step, op, work))

    def entering(self, op: Op, work: Work) -> int:
        """Return the bytes of network inputs that are there before an op begins, which is the first of the network.

        A product waits for all that its cores have room for, other ops for the first piece that they are cut in.
        """
        size = self._at_once(min(self._input_bytes(op), work.read_bytes))
        return size if op.family in (Family.CONTRACTION, Family.RECURRENT) else min(size, self._piece_bytes)

    def leaving(self, op: Op, work: Work) -> int:
        """Return the bytes of network outputs that leave when the last op is done: the last piece that they are in."""
        return min(self._at_once(min(self._output_bytes(op), work.write_bytes)), self._piece_bytes)

    def _at_once(self, size_bytes: int) -> int:
        """Return how much of a tensor a device has at a time: of so many images as all that is live has room for."""
        most = max(self.live, default=0)
        share = min(self.own_share, max(self.at_a_time, self.capacity / most if most else 1.0))
        return round(min(size_bytes * share, self.capacity / SLICES))

    @property
    def _piece_bytes(self) -> int:
        """Bytes of the pieces that transfers and vector ops are cut in, one for every core."""
        tiling = self.target.tiling
        return 0 if tiling is None else round(tiling.activation_bytes.value * self.lanes)

    def _outer_share(self, step: int, op: Op, work: Work) -> float:
        """Return the share of what an op reads and writes inside the network that passes the outer memory."""
        ruled = self.local is not None and self.local.op_share is not None
        return float(self._streams(op, work)) if ruled else self._spilled_share(step)

    def _streams(self, op: Op, work: Work) -> bool:
        """Whether the operands of an op pass through local memory tile by tile, since they do not fit it together.

        Heads of an attention do not depend on each other: scores, softmax and weighted sum are computed head by head,
        and it is one head that has to fit.
        """
        if self.local is None or self.local.op_share is None:
            return False
        slices = self._slices(op)
        self.slices.update(dict.fromkeys(op.outputs, slices))
        return work.bytes / slices > self.local.op_share.value * self.capacity

    def _slices(self, op: Op) -> int:
        """Parts of an op that can run to the end of its attention one after the other; 1 outside of one."""
        if told := number(op, "slices", 0):
            return told
        family = work_family(op, self.graph)
        if family in (WorkFamily.ACTIVATIONS_PRODUCT, WorkFamily.SOFTMAX):
            shape = self.graph.tensors[op.outputs[0]].shape or ()
            return max(1, prod(shape[:-2]))
        if family is not None and family.general in (WorkFamily.ELEMENTWISE, WorkFamily.TRANSCENDENTAL):
            return max((self.slices.get(t, 1) for t in op.inputs), default=1)
        return 1

    def _spilled_share(self, step: int) -> float:
        """Return the share of what is live at a step that local memory has no room for.

        Only that much goes out and comes back: of 154 MB in 116 MB, a quarter.
        """
        live = min(self.live[step] * self.at_a_time, max(self.live[step] * self.least_at_a_time, self.capacity))
        return max(0.0, 1 - self.capacity / live) if live else 0.0

    def _lost_bytes(self, op: Op) -> int:
        """Return what bursts carry in vain: a convolution reads an input of the network pixel by pixel, and a pixel of
        three channels fills a part of a burst only. Inside the network, tensors are laid out as the memory likes it."""
        tensor = self.graph.tensors[op.inputs[0]] if op.kind == "conv" and op.inputs[0] != ABSENT else None
        if self.burst is None or tensor is None or tensor.role is not Role.INPUT or not tensor.elements:
            return 0
        channels = (tensor.shape or ())[number(op, "channel_axis")]
        size = tensor.bytes or 0
        return max(0, round(size * self.burst.value * tensor.elements / (channels * size)) - size)

    def _boundary_bytes(self, op: Op, work: Work) -> int:
        """Return the bytes of network inputs, outputs and state that the op moves to or from outer memory."""
        return min(self._input_bytes(op), work.read_bytes) + min(self._output_bytes(op), work.write_bytes)

    def _input_bytes(self, op: Op) -> int:
        return sum(self.graph.tensors[t].bytes or 0 for t in op.inputs if t in self.state.outside)

    def _output_bytes(self, op: Op) -> int:
        return sum(self.graph.tensors[t].bytes or 0 for t in op.outputs if t in self.outputs)


def _kept_share(graph: Graph, machine: Machine, room: float, images: int) -> float:
    """Share of the constants that stay in local memory: all where each core has room for all of them.

    A compiler that cuts work in tiles keeps as many as there is room for beside tiles that are read ahead, each whole.
    Cores that share images need all constants each, those that share one image a part.
    """
    tiling, sizes = machine.target.tiling, whole_constant_sizes(graph)
    if tiling is not None and not tiling.keeps_constants:
        return 0.0
    whole = sum(sizes)
    if not whole or whole <= room:
        return 1.0
    if tiling is None or tiling.whole_weights:
        return 0.0
    cores = 1 if images >= machine.lanes else machine.lanes
    ahead = tiling.buffers.value * tiling.weight_bytes.value
    free, kept = (room - ahead) * FILLED * (1 - READ_AHEAD) * cores, 0
    for size in sizes:
        kept += size if kept + size <= free else 0
    return kept / whole


def images_of(graph: Graph) -> int:
    """Images in a batch: the leading extent that all inputs and outputs have in common; 1 where they differ."""
    found = {(graph.tensors[t].shape or (1,))[0] for t in (*graph.inputs, *graph.outputs)}
    return max(1, *found) if len(found) == 1 else 1
