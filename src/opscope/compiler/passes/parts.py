"""Parts: how much of the batch runs at a time, with a split of every op for it.

A part of the batch runs through the whole network before the next one starts, and within it ops run on units of so
many images. The unit decides the splits: 64 images on 14 cores are best run as four units of 14, an image for each
core, and one of 8; as one unit of 64 some cores would have five images and none could be spared from local memory.

Every unit that may be good is priced: the prices of its splits for all images, as if local memory held what is needed;
those of the whole batch with what it would spill. The best few are tried out when memory is allocated (`tiling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from ...estimate.traffic.links import device_counts
from ...graph.graph import Graph
from ..plan import Part, Placed, Plan
from .batch import batch_axes, batch_size, is_cuttable, some_of, with_images
from .device_images import on_all_devices, share_of_device
from .split import Splitter
from .split_prices import Prices

MOST_ALTERNATIVES = 3
_PROMISING = 1.15  # times the lowest price
_FEW_OPS = 100  # in a graph, for which more numbers of cores are priced


class Sharing(Enum):
    """What devices have of the work."""

    OPS = auto()  # a part of every op
    STAGES = auto()  # a stage of the network each
    IMAGES = auto()  # images of the batch, each device its own


@dataclass(frozen=True, slots=True)
class MachineSize:
    """Devices and cores of each that take part, and what the devices share."""

    devices: int
    cores: int
    sharing: Sharing = Sharing.OPS


def split(plan: Plan) -> Plan:
    """The plan with the parts that are priced lowest, and with alternatives to them."""
    priced: list[tuple[float, int, tuple[Part, ...]]] = []
    for size in machine_sizes(plan):
        for price, parts in _by_images(plan, size) if size.sharing is Sharing.IMAGES else _priced(plan, size):
            priced.append((price, len(priced), parts))
    undivided = next(parts for _, _, parts in priced if parts[0].unit == batch_size(plan.graph))
    priced.sort(key=lambda each: each[:2])
    found = [parts for price, _, parts in priced[:MOST_ALTERNATIVES] if price <= _PROMISING * priced[0][0]]
    if undivided not in found:  # what small units cost in commands is known best once they are emitted
        found.insert(1, undivided)
    return replace(plan, parts=found[0], alternatives=tuple(found[1:]))


def _priced(plan: Plan, size: MachineSize) -> Iterator[tuple[float, tuple[Part, ...]]]:
    """Prices and parts of every unit that may be good."""
    chooser = PartsChooser(plan, size)
    whole = chooser.batch
    spills = chooser.price(whole) > chooser.price(whole, may_spill=False)
    for unit in chooser.units() if spills else [whole]:
        yield chooser.price(unit), chooser.parts(unit)


def _by_images(plan: Plan, size: MachineSize) -> Iterator[tuple[float, tuple[Part, ...]]]:
    """The same of devices that share the images: what one of them takes for its own."""
    axes = batch_axes(plan.graph)
    alone = share_of_device(plan, axes, size.devices)
    if alone is None:
        return
    for price, parts in _priced(alone, MachineSize(1, size.cores)):
        found = on_all_devices(parts, plan, axes, size.devices)
        if found is not None:
            yield price, found


class PartsChooser:
    """Splits for units of different sizes; each is computed once."""

    def __init__(self, plan: Plan, size: MachineSize | None = None) -> None:
        """For a part of the plan's machine; None: for all of it."""
        machine = plan.machine
        size = size or MachineSize(machine.devices, machine.cores, _asked(plan))
        self.plan, self.batch, self.groups = plan, batch_size(plan.graph), device_groups(plan, size)
        self.cores, self.lanes = size.cores, size.devices * size.cores
        self.axes = batch_axes(plan.graph)
        self._part: dict[tuple[int, int], Part] = {}

    def units(self) -> list[int]:
        """Numbers of images that may be good to run at a time."""
        batch, lanes = self.batch, self.lanes
        if batch < 2 or self.plan.machine.target.tiling is None:
            return [batch]
        most = -(-batch // lanes)  # images of a lane
        tried = {batch, lanes, -(-batch // most), 1 if lanes < 4 or lanes > batch else 2 * lanes}
        return sorted(unit for unit in tried if self.is_possible(unit))

    def is_possible(self, unit: int) -> bool:
        """Whether the batch can run in units of so many images: with a rest, only all of the network can."""
        fits = 0 < unit <= self.batch
        return fits and (self.batch % unit == 0 or is_cuttable(self.plan.graph, self.axes))

    def parts(self, unit: int) -> tuple[Part, ...]:
        """The batch in units of so many images, and the rest."""
        rest = self.batch % unit
        first = self._split(self.batch - rest, unit)
        return (first, self._split(rest, rest)) if rest else (first,)

    def price(self, unit: int, *, may_spill: bool = True) -> float:
        """Cycles of the whole batch in such units."""
        total = 0.0
        for part in self.parts(unit):
            graph, placed = self._some(part.images)
            prices = Prices(graph, placed, self.plan.machine, units=part.units, cores=self.cores)
            total += prices.total(part.splits, may_spill=may_spill)
        return total

    def _split(self, images: int, unit: int) -> Part:
        if (images, unit) not in self._part:
            graph, placed = self._some(images)
            prices = Prices(graph, placed, self.plan.machine, units=images // unit, cores=self.cores)
            smaller = with_images(self.plan.graph, self.axes, unit)
            limit = self.plan.options.channel_parts
            splits = Splitter(smaller, placed, prices, self.groups, channel_parts=limit).run()
            self._part[images, unit] = Part(images, unit, splits, (1,) * len(splits))
        return self._part[images, unit]

    def _some(self, images: int) -> tuple[Graph, Sequence[Placed]]:
        """Graph and ops for so many images."""
        graph = with_images(self.plan.graph, self.axes, images)
        share = images / self.batch
        placed = [
            some_of(each, each.op, share if any(t in self.axes for t in each.op.outputs) else 1.0)
            for each in self.plan.placed
        ]
        return graph, placed


def _asked(plan: Plan) -> Sharing:
    return Sharing.STAGES if plan.options.parallel == "pipeline" else Sharing.OPS


def machine_sizes(plan: Plan) -> list[MachineSize]:
    """Parts of a machine that may be best: all; fewer cores or devices, since small ops gain nothing by more."""
    devices, cores, parallel = plan.machine.devices, plan.machine.cores, plan.options.parallel
    if devices == 1:
        fewer = {cores // 2} if len(plan.placed) > _FEW_OPS else {cores // 2, 4, 2, 1}
        counts = sorted({cores, *(n for n in fewer if 0 < n < cores)}, reverse=True)
        return [MachineSize(1, count) for count in counts]
    if parallel != "auto":
        return [MachineSize(devices, cores, _asked(plan))]
    counts = device_counts(plan.graph, plan.machine)
    sharing = min(devices, batch_size(plan.graph))
    by_images = [MachineSize(sharing, cores, Sharing.IMAGES)] if sharing > 1 and 1 in counts else []
    stages = MachineSize(devices, cores, Sharing.STAGES)
    return [*(MachineSize(count, cores) for count in counts), *by_images, stages]


def device_groups(plan: Plan, size: MachineSize) -> list[list[tuple[int, ...]]]:
    """Groups of devices that may work on each op: all or one; in a pipeline, one per op in stages of equal cycles."""
    everybody = tuple(range(size.devices))
    if size.devices == 1:
        return [[everybody]] * len(plan.placed)
    if size.sharing is not Sharing.STAGES:
        return [[everybody, (0,)]] * len(plan.placed)
    total = sum(placed.cycles for placed in plan.placed) or 1.0
    stages: list[list[tuple[int, ...]]] = []
    done = 0.0
    for placed in plan.placed:
        stages.append([(min(size.devices - 1, int(size.devices * done / total)),)])
        done += placed.cycles
    return stages
