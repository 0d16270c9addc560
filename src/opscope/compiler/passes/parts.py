"""Parts: how much of the batch runs at a time, with a split of every op for it.

A part of the batch runs through the whole network before the next one starts, and within it ops run on units of so
many images. The unit decides the splits: 64 images on 14 cores are best run as four units of 14, an image for each
core, and one of 8; as one unit of 64 some cores would have five images and none could be spared from local memory.

Every unit that may be good is proposed, on all cores and on fewer; `tiling` prices and tries the proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import gcd, inf

from ...estimate.traffic.links import device_counts
from ...graph.batch import batch_size
from ..plan import Join, Part, Plan, Schedule, Split
from ..sharding import Sharding as Shares
from ..sharding import whole
from .batch import batch_axes, for_images, is_cuttable, passing, with_images
from .device_images import on_all_devices, share_of_device
from .footprint import part_footprints
from .op_order import run_when_wanted
from .residency import is_resident
from .split import Splitter, even_parts
from .split_prices import OpPrice, Prices, parts_done_after

_PROMISING = 1.25  # times the lowest price
_WORTH = 0.01  # of the cycles of all ops, that joining parts of the batch saves at the least
_FEW_OPS = 100  # in a graph, for which more numbers of cores are tried


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
    """The plan with all of the batch at once on all of the machine, and with alternatives to it."""
    plan = run_when_wanted(plan)
    found: list[tuple[Part, ...]] = []
    least = whole = inf  # price of the best so far, and of the best that runs the whole batch at once
    work, batch = sum(placed.cycles for placed in plan.placed), batch_size(plan.graph)
    for size in machine_sizes(plan):
        known = len(found)
        if work / (size.devices * size.cores) > _PROMISING * least:  # engines alone would take longer
            continue
        for price, parts in _by_images(plan, size) if size.sharing is Sharing.IMAGES else _in_units(plan, size):
            if parts[0].unit == batch:
                whole = min(whole, price)
            if price <= _PROMISING * least:
                least = min(least, price)
                found.append(parts)
            elif parts[0].unit == batch and price > _PROMISING * whole:  # its units are no better than others'
                break
        if len(found) == known and plan.machine.devices == 1:  # still fewer cores are no better
            break
    return replace(plan, parts=found[0], alternatives=tuple(found[1:]))


def _in_units(plan: Plan, size: MachineSize) -> Iterator[tuple[float, tuple[Part, ...]]]:
    """Prices and parts: of the whole batch; where some cores have more images or local memory may not do, of units."""
    chooser = PartsChooser(plan, size)
    whole = chooser.parts(chooser.batch)
    yield chooser.price(whole), whole
    if chooser.batch % chooser.lanes or part_footprints(plan, whole[0], chooser.axes).may_spill:
        for unit in chooser.units():
            if unit != chooser.batch:
                parts = chooser.parts(unit)
                yield chooser.price(parts), parts
                joined = chooser.joined(parts)
                if joined is not None:
                    yield chooser.price(joined), joined


def _by_images(plan: Plan, size: MachineSize) -> Iterator[tuple[float, tuple[Part, ...]]]:
    """The same of devices that share the images: what one of them takes for its own."""
    axes = batch_axes(plan.graph)
    alone = share_of_device(plan, axes, size.devices)
    if alone is None:
        return
    for price, parts in _in_units(alone, MachineSize(1, size.cores)):
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
        self._prices: dict[tuple[int, int], list[OpPrice]] = {}  # of the ops of a part
        self._pricing: dict[tuple[int, int], Prices] = {}  # by which they were chosen
        self._vector = ""

    def units(self) -> list[int]:
        """Numbers of images that may be good to run at a time."""
        batch, lanes = self.batch, self.lanes
        if batch < 2 or self.plan.machine.target.tiling is None:
            return [batch]
        most = -(-batch // lanes)  # images of a lane
        tried = {batch, lanes, 2 * lanes, -(-batch // most), gcd(batch, lanes), lanes // self.cores, 1}
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

    def price(self, parts: Sequence[Part]) -> float:
        """Cycles of parts that have been chosen, if local memory holds what they need: of all of them at once, where
        the rest of a batch is interleaved with what comes before it.
        """
        found = [self._prices[part.images, part.unit] for part in parts]
        return parts_done_after(self.plan.placed, parts, found, self._vector)

    def joined(self, parts: tuple[Part, ...]) -> tuple[Part, ...] | None:
        """Parts that become one where that takes least; None: nowhere, or there is no rest of the batch.

        The last ops of a network that makes smaller and smaller images take as long for two of them as for fourteen.
        """
        if len(parts) == 1:
            return None
        all_images = self._split(self.batch, self.batch)
        apart = [self._prices[part.images, part.unit] for part in parts]
        again = [sum([prices[index].total for prices in apart]) for index in range(len(self.plan.placed))]
        together = [price.total for price in self._prices[self.batch, self.batch]]
        held = whole(tuple(range(self.lanes // self.cores)), self.cores, self.plan.machine.cores)
        behind, best, least = sum(again) - sum(together), None, -_WORTH * sum(again)  # cycles
        for begin, tensors in enumerate(passing(self.plan.graph, self.axes)):
            behind -= again[begin - 1] - together[begin - 1] if begin else 0.0  # that ops from here on take more apart
            if tensors is not None and -behind < least:
                cycles = self._sending(parts, tensors, held)
                if cycles - behind < least:
                    best, least = Join(begin, held, cycles), cycles - behind
        return None if best is None else (*parts, replace(all_images, joined=best))

    def _sending(self, parts: Sequence[Part], tensors: Sequence[int], held: Shares) -> float:
        """Cycles until every core has all of some tensors of parts."""
        cycles = 0.0
        for part in parts:
            prices = self._pricing[part.images, part.unit]
            cycles += sum(prices.sent(t, part.splits[prices.maker[t]].sharding.made, held) for t in tensors)
        return cycles

    def _split(self, images: int, unit: int) -> Part:
        key = images, unit
        if key not in self._part:
            some = for_images(self.plan, self.axes, images)
            splits, prices = self._chosen(some, images, unit, resident=False)
            if not prices.resident and self._stay(some, splits):  # then what reading them takes should decide nothing
                again, others = self._chosen(some, images, unit, resident=True)
                if self._stay(some, again):
                    splits, prices = again, others
            self._part[key] = Part(images, unit, splits, (1,) * len(splits))
            self._prices[key], self._vector = prices.by_op(splits), prices.vector
            self._pricing[key] = prices
        return self._part[key]

    def _chosen(self, some: Plan, images: int, unit: int, *, resident: bool) -> tuple[tuple[Split, ...], Prices]:
        """Splits of the ops for some images, and the prices that they were chosen by."""
        machine, units = self.plan.machine, images // unit
        prices = Prices(some.graph, some.placed, machine, units=units, cores=self.cores, resident=resident)
        smaller, limit = with_images(self.plan.graph, self.axes, unit), self.plan.options.channel_parts
        return Splitter(smaller, some.placed, prices, self.groups, channel_parts=limit).run(), prices

    def _stay(self, some: Plan, splits: tuple[Split, ...]) -> bool:
        """Whether all constants stay in local memory, split so."""
        whole = Schedule(some.graph, some.machine, some.placed, splits, tuple(range(len(splits))))
        return is_resident(whole, self.plan.graph)


def _asked(plan: Plan) -> Sharing:
    return Sharing.STAGES if plan.options.parallel == "pipeline" else Sharing.OPS


def machine_sizes(plan: Plan) -> list[MachineSize]:
    """Parts of a machine that may be best: all; fewer cores or devices, since small ops gain nothing by more."""
    devices, cores, parallel = plan.machine.devices, plan.machine.cores, plan.options.parallel
    if devices == 1:
        half, power = cores // 2, 1 << (cores - 1).bit_length() >> 1  # the largest below all
        even = even_parts(batch_size(plan.graph), cores)  # the least that have no more images each than all would
        fours = (cores - 1) // 4 * 4
        fewer = {half, power, even} if len(plan.placed) > _FEW_OPS else {half, power, even, fours, 4, 2, 1}
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
