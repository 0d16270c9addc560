"""Devices that share the images of a batch: each runs its own as it would alone, and they exchange nothing.

The splits are those of one device for its part of the batch, laid out on all of them: the batch is cut once more,
between devices, outside of whatever cores cut. What does not depend on the batch every device computes for itself.

    one device, 2 images     rows in 16                      images in 2 × channels in 8
    four devices, 8 images   images in 4 × rows in 16        images in 8 × channels in 8

Where the batch does not divide, some devices have an image fewer: of 14, four devices have 3, 4, 3 and 4. The plan of
one is made for 4. Whatever its cores cut in images stays together on a device, since 14 in 16 parts and 14 in 4 meet
where a device ends; rows that cores cut within images would not, and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...graph.batch import batch_size
from ...graph.graph import Graph, Op
from ..plan import Part, Plan, Split
from ..sharding import Cut, Sharding, sharding
from .axes import needs
from .batch import for_images, is_cuttable, with_images


def share_of_device(plan: Plan, axes: Mapping[int, int], devices: int) -> Plan | None:
    """The plan of one device for its images, the most that any has; None where devices cannot share them."""
    batch = batch_size(plan.graph)
    if batch < devices or not is_cuttable(plan.graph, dict(axes)):
        return None
    return replace(for_images(plan, dict(axes), -(-batch // devices)), machine=replace(plan.machine, devices=1))


def on_all_devices(
    parts: tuple[Part, ...], plan: Plan, axes: Mapping[int, int], devices: int
) -> tuple[Part, ...] | None:
    """Parts of one device's images, as parts of the whole batch on all devices; None: a split cannot be laid out so."""
    batch, found = batch_size(plan.graph), []
    uneven = batch % devices != 0
    if uneven and (len(parts) > 1 or parts[0].units > 1):  # a rest, or a unit, would differ between devices
        return None
    for part in parts:
        images = batch if uneven else part.images * devices
        graph = with_images(plan.graph, dict(axes), images // part.units)
        laid = _Layout(graph, axes, devices, part.unit, images // part.units)
        splits = [laid.split(split, each.op) for split, each in zip(part.splits, plan.placed, strict=True)]
        known = tuple(split for split in splits if split is not None)
        if len(known) < len(splits):
            return None
        found.append(replace(part, images=images, unit=images // part.units, splits=known))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Splits of one device for its own images, on all devices for those of a graph."""

    graph: Graph
    axes: Mapping[int, int]
    devices: int
    own: int  # images of the device that has most
    images: int  # of all devices

    def split(self, split: Split, op: Op) -> Split | None:
        axis = self.axes.get(op.outputs[0]) if op.outputs else None
        wide = self._on_devices(split.sharding, axis)
        needed = needs(op, self.graph, wide) if wide is not None and split.needs else ()
        if wide is None or needed is None:
            return None
        tried = ((self._on_devices(each, axis), cycles) for each, cycles in split.prices)
        return Split(wide, needed, split.exchanges, tuple((each, cycles) for each, cycles in tried if each is not None))

    def _on_devices(self, found: Sharding, axis: int | None) -> Sharding | None:
        """A sharding of one device on each of several: the same part everywhere, or its own images for each."""
        cuts, own = found.cuts, None if axis is None else found.cut_on(axis)
        if axis is not None and own is None:
            cuts = (Cut(axis, self.images, self.devices, found.places), *cuts)
        elif own is not None:
            extent = self._extent(own)
            if extent is None or own.inner * own.parts != found.places:  # cut inside of another axis: no single range
                return None
            wide = replace(own, extent=extent, parts=own.parts * self.devices)
            cuts = tuple(wide if cut is own else cut for cut in cuts)
        return sharding(cuts, found.places * self.devices, tuple(range(self.devices)), found.places, found.of_cores)

    def _extent(self, cut: Cut) -> int | None:
        """Units of the batch that all devices cut; None where some would have a part of an image."""
        if self.images == self.own * self.devices:
            return cut.extent * self.devices
        return self.images if cut.extent == self.own or self.own % cut.parts == 0 else None
