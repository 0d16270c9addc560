"""Parts: how much of the batch runs at a time, with a split of every op for it.

A part of the batch runs through the whole network before the next one starts, and within it ops run on units of so
many images. The unit decides the splits: 64 images on 14 cores are best run as four units of 14, an image for each
core, and one of 8; as one unit of 64 some cores would have five images and none could be spared from local memory.

Every unit that may be good is priced: the prices of its splits for all images, as if local memory held what is needed;
those of the whole batch with what it would spill. The best few are tried out when memory is allocated (`tiling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...graph.graph import Graph
from ..plan import Part, Placed, Plan
from .batch import batch_axes, batch_size, is_cuttable, some_of, with_images
from .split import Splitter
from .split_prices import Prices

MOST_ALTERNATIVES = 3
_PROMISING = 1.3  # times the lowest price


def split(plan: Plan) -> Plan:
    """The plan with the parts that are priced lowest, and with alternatives to them."""
    chooser = PartsChooser(plan)
    whole = chooser.batch
    units = chooser.units() if chooser.price(whole) > chooser.price(whole, may_spill=False) else [whole]
    priced = sorted((chooser.price(unit), unit) for unit in units)
    found = tuple(
        chooser.parts(unit) for price, unit in priced[:MOST_ALTERNATIVES] if price <= _PROMISING * priced[0][0]
    )
    return replace(plan, parts=found[0], alternatives=found[1:])


class PartsChooser:
    """Splits for units of different sizes; each is computed once."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.batch = plan, batch_size(plan.graph)
        self.axes = batch_axes(plan.graph)
        self.groups = device_groups(plan)
        self._part: dict[tuple[int, int], Part] = {}

    def units(self) -> list[int]:
        """Numbers of images that may be good to run at a time."""
        batch, lanes = self.batch, self.plan.machine.lanes
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
            prices = Prices(graph, placed, self.plan.machine, units=part.units)
            total += prices.total(part.splits, may_spill=may_spill)
        return total

    def _split(self, images: int, unit: int) -> Part:
        if (images, unit) not in self._part:
            graph, placed = self._some(images)
            prices = Prices(graph, placed, self.plan.machine, units=images // unit)
            smaller = with_images(self.plan.graph, self.axes, unit)
            splits = Splitter(smaller, placed, prices, self.groups).run()
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


def device_groups(plan: Plan) -> list[list[tuple[int, ...]]]:
    """Groups of devices that may work on each op: all of them or one; in a pipeline, one per op in equal stages."""
    devices = plan.machine.devices
    everybody = tuple(range(devices))
    if devices == 1:
        return [[everybody]] * len(plan.placed)
    if plan.options.parallel != "pipeline":
        return [[everybody, (0,)]] * len(plan.placed)
    total = sum(placed.cycles for placed in plan.placed) or 1.0
    stages: list[list[tuple[int, ...]]] = []
    done = 0.0
    for placed in plan.placed:
        stages.append([(min(devices - 1, int(devices * done / total)),)])
        done += placed.cycles
    return stages
