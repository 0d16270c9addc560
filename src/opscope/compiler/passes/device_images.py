"""Devices that share the images of a batch: each runs its own as it would alone, and they exchange nothing.

The splits are those of one device for its part of the batch, laid out on all of them: the batch is cut once more,
between devices, outside of whatever cores cut. What does not depend on the batch every device computes for itself.

    one device, 2 images     rows in 16                      images in 2 × channels in 8
    four devices, 8 images   images in 4 × rows in 16        images in 8 × channels in 8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...graph.graph import Graph, Op
from ..plan import Part, Plan, Split
from ..sharding import Cut, Sharding, sharding
from .axes import needs
from .batch import batch_size, is_cuttable, some_of, with_images


def share_of_device(plan: Plan, axes: Mapping[int, int], devices: int) -> Plan | None:
    """The plan of one device for its images, the most that any has; None where devices cannot share them."""
    batch = batch_size(plan.graph)
    if batch < devices or not is_cuttable(plan.graph, dict(axes)):
        return None
    own = -(-batch // devices)
    placed = (
        some_of(each, each.op, own / batch if any(t in axes for t in each.op.outputs) else 1.0) for each in plan.placed
    )
    graph, machine = with_images(plan.graph, dict(axes), own), replace(plan.machine, devices=1)
    return replace(plan, graph=graph, machine=machine, placed=tuple(placed))


def on_all_devices(
    parts: tuple[Part, ...], plan: Plan, axes: Mapping[int, int], devices: int
) -> tuple[Part, ...] | None:
    """Parts of one device's images, as parts of the whole batch on all devices; None: a split cannot be laid out so."""
    batch, found = batch_size(plan.graph), []
    if len(parts) > 1 and batch % devices:  # the rest would differ between devices
        return None
    for part in parts:
        images = part.images * devices if batch % devices == 0 else batch
        graph = with_images(plan.graph, dict(axes), part.unit * devices)
        splits = [
            _laid_out(split, each.op, graph, axes, devices)
            for split, each in zip(part.splits, plan.placed, strict=True)
        ]
        known = tuple(split for split in splits if split is not None)
        if len(known) < len(splits):
            return None
        found.append(replace(part, images=images, unit=images // part.units, splits=known))
    return tuple(found)


def _laid_out(split: Split, op: Op, graph: Graph, axes: Mapping[int, int], devices: int) -> Split | None:
    axis = axes.get(op.outputs[0]) if op.outputs else None
    extent = None if axis is None else (graph.tensors[op.outputs[0]].shape or ())[axis]
    wide = _on_devices(split.sharding, axis, extent, devices)
    needed = needs(op, graph, wide) if wide is not None and split.needs else ()
    if wide is None or needed is None:
        return None
    tried = ((_on_devices(each, axis, extent, devices), cycles) for each, cycles in split.prices)
    return Split(wide, needed, split.exchanges, tuple((each, cycles) for each, cycles in tried if each is not None))


def _on_devices(found: Sharding, axis: int | None, extent: int | None, devices: int) -> Sharding | None:
    """A sharding of one device on each of several: the same part everywhere, or its own images for each.

    None where the batch is cut inside of another axis: a place's part of it would then be no single range.
    """
    cuts, own = found.cuts, None if axis is None else found.cut_on(axis)
    if axis is not None and extent is not None:
        if own is None:
            cuts = (Cut(axis, extent, devices, found.places), *cuts)
        elif own.inner * own.parts == found.places:
            cuts = tuple(replace(cut, extent=extent, parts=cut.parts * devices) if cut is own else cut for cut in cuts)
        else:
            return None
    return sharding(cuts, found.places * devices, tuple(range(devices)), found.places, found.of_cores)
