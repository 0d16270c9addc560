"""Shapes of operators that move elements: reshapes, slices, gathers, joins, pads.

Where the new shape is an operand, its value decides; the value is evaluated only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ....graph.graph import DType
from ..flatbuffer import INT64
from ..ops import Shape
from .site import Site, axis_of

Index = tuple[slice | int | None, ...]


def _reshape(site: Site) -> list[Shape]:
    return [reshaped(site.shape(0), _new_shape(site))]


def _new_shape(site: Site) -> Sequence[int]:
    """Return what a RESHAPE asks for: the operand if it is a vector of numbers, else the options."""
    if site.has(1) and site.dtype(1) is DType.I32 and len(site.shape(1)) == 1:
        return site.integers(1)
    wanted = site.numbers(0)
    return () if tuple(wanted) == (0,) else wanted  # how old converters write a scalar


def rebatched(site: Site) -> Shape | None:
    """Return the new shape with a leading extent that takes all elements; None if there is none."""
    elements, wanted = prod(site.shape(0)), _new_shape(site)
    rest = prod(wanted[1:])
    if not wanted or rest < 1 or elements % rest or min(wanted) < 1:
        return None
    return (elements // rest, *wanted[1:])


def reshaped(data: Shape, wanted: Sequence[int]) -> Shape:
    """Return the wanted shape with its one extent of -1 filled in."""
    elements, known = prod(data), prod(extent for extent in wanted if extent != -1)
    if list(wanted).count(-1) > 1 or min(wanted, default=0) < -1:
        raise ValueError(f"new shape {list(wanted)}; expected extents from 0, and at most one of -1")
    found = tuple((elements // known if known else 0) if extent == -1 else extent for extent in wanted)
    if prod(found) != elements:
        raise ValueError(f"data of shape {list(data)} cannot take the shape {list(wanted)}")
    return found


def _squeeze(site: Site) -> list[Shape]:
    data, axes = site.shape(0), site.numbers(0)
    drop = {axis_of(axis, len(data)) for axis in axes} or {a for a, extent in enumerate(data) if extent == 1}
    if any(data[axis] != 1 for axis in drop):
        raise ValueError(f"axes {sorted(drop)} of a tensor of shape {list(data)}; expected extents of 1")
    return [tuple(extent for axis, extent in enumerate(data) if axis not in drop)]


def _expand_dims(site: Site) -> list[Shape]:
    data = site.shape(0)
    axis = axis_of(site.integer(1), len(data) + 1)
    return [(*data[:axis], 1, *data[axis:])]


def _transpose(site: Site) -> list[Shape]:
    return [permuted(site.shape(0), site.integers(1))]


def permuted(data: Shape, axes: Sequence[int]) -> Shape:
    order = [axis_of(axis, len(data)) for axis in axes]
    if sorted(order) != list(range(len(data))):
        raise ValueError(f"permutation {list(axes)} of a tensor of shape {list(data)}")
    return tuple(data[axis] for axis in order)


def slice_index(site: Site) -> Index:
    """Return what SLICE or STRIDED_SLICE takes, as numpy would be told."""
    return _slice(site) if site.type == "SLICE" else _strided_slice(site)


def _slice(site: Site) -> Index:
    data, begin, size = site.shape(0), site.integers(1), site.integers(2)
    _one_per_axis(data, begin, size)
    found = []
    for extent, start, count in zip(data, begin, size, strict=True):
        stop = extent if count == -1 else start + count
        if not 0 <= start <= stop <= extent:
            raise ValueError(f"takes {count} elements from {start} out of {extent}")
        found.append(slice(start, stop))
    return tuple(found)


def _strided_slice(site: Site) -> Index:
    """Masks have one bit per entry of begin, end and strides; an ellipsis stands for all axes that have no entry."""
    rank = len(site.shape(0))
    begin, end, strides = (site.integers(operand) for operand in (1, 2, 3))
    if not len(begin) == len(end) == len(strides):
        raise ValueError(f"begin, end and strides have {len(begin)}, {len(end)} and {len(strides)} elements")
    skip_begin, skip_end, ellipsis, new_axis, shrink = (site.option(field) for field in range(5))
    entries = len(begin) - sum(bool((new_axis | ellipsis) >> i & 1) for i in range(len(begin)))
    found: list[slice | int | None] = []
    for i, (start, stop, step) in enumerate(zip(begin, end, strides, strict=True)):
        if ellipsis >> i & 1:
            found += [slice(None)] * (rank - entries)
        elif new_axis >> i & 1:
            found.append(None)
        elif shrink >> i & 1:
            found.append(start)
        else:
            last = start + stop if site.flag(5) else stop  # the end may be given as an offset
            found.append(slice(None if skip_begin >> i & 1 else start, None if skip_end >> i & 1 else last, step))
    return tuple(found)


def sliced(data: Shape, index: Index) -> Shape:
    """Return the shape of `data[index]`."""
    found: list[int] = []
    axis = 0
    for entry in index:
        if entry is None:
            found.append(1)
            continue
        if axis >= len(data):
            raise ValueError(f"takes {len(index)} axes of a tensor of shape {list(data)}")
        if isinstance(entry, slice):
            found.append(len(range(*entry.indices(data[axis]))))
        elif not -data[axis] <= entry < data[axis]:
            raise ValueError(f"takes element {entry} along axis {axis} of a tensor of shape {list(data)}")
        axis += 1
    return (*found, *data[axis:])


def _gather(site: Site) -> list[Shape]:
    data, indices = site.shape(0), site.shape(1)
    axis = axis_of(site.option(0), len(data))
    shared = site.option(1) % max(len(indices), 1) if site.option(1) < 0 else site.option(1)
    if not 0 <= shared <= min(axis, len(indices)):
        raise ValueError(f"{shared} shared axes of operands of shape {list(data)} and {list(indices)}")
    return [(*data[:axis], *indices[shared:], *data[axis + 1 :])]


def _gather_nd(site: Site) -> list[Shape]:
    data, indices = site.shape(0), site.shape(1)
    if not indices or indices[-1] > len(data):
        raise ValueError(f"indices of shape {list(indices)} for data of shape {list(data)}")
    return [(*indices[:-1], *data[indices[-1] :])]


def concatenated(shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    axis = axis_of(axis, len(first))
    for shape in shapes:
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) or len(shape) != len(first):
            raise ValueError(f"operands of shapes {list(first)} and {list(shape)} cannot be joined along axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _concatenation(site: Site) -> list[Shape]:
    return [concatenated(_some(site), site.option(0))]


def _some(site: Site) -> list[Shape]:
    if not site.input_count:
        raise ValueError("no input; expected at least one")
    return site.shapes()


def _pack(site: Site) -> list[Shape]:
    shapes = _some(site)
    if len(set(shapes)) != 1:
        raise ValueError(
            f"operands of shapes {', '.join(str(list(shape)) for shape in shapes[:4])}; expected one shape"
        )
    axis = axis_of(site.option(1), len(shapes[0]) + 1)
    return [(*shapes[0][:axis], len(shapes), *shapes[0][axis:])]


def _unpack(site: Site) -> list[Shape]:
    data = site.shape(0)
    axis = axis_of(site.option(1), len(data))
    if data[axis] != site.output_count:
        raise ValueError(f"{site.output_count} outputs from {data[axis]} along axis {axis}")
    return [(*data[:axis], *data[axis + 1 :])] * site.output_count


def _split(site: Site) -> list[Shape]:
    data = site.shape(1)
    axis, count = axis_of(site.integer(0), len(data)), site.output_count
    if not count or data[axis] % count:
        raise ValueError(f"{data[axis]} along axis {axis} cannot be split into {count}")
    return [(*data[:axis], data[axis] // count, *data[axis + 1 :])] * count


def split_sizes(site: Site) -> tuple[int, list[int]]:
    """Return the axis and the extents that SPLIT_V splits into; one of them may be -1, for the rest."""
    data, sizes = site.shape(0), list(site.integers(1))
    axis = axis_of(site.integer(2), len(data))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = data[axis] - sum(sizes) - 1
    if sum(sizes) != data[axis] or min(sizes, default=0) < 0 or len(sizes) != site.output_count:
        raise ValueError(f"{data[axis]} along axis {axis} cannot be split into {sizes[:8]}")
    return axis, sizes


def _split_v(site: Site) -> list[Shape]:
    axis, sizes = split_sizes(site)
    data = site.shape(0)
    return [(*data[:axis], size, *data[axis + 1 :]) for size in sizes]


def _pad(site: Site) -> list[Shape]:
    data, pads = site.shape(0), site.integers(1)
    _one_per_axis(data, pads[::2], pads[1::2])
    return [tuple(sum(each) for each in zip(data, pads[::2], pads[1::2], strict=True))]


def _tile(site: Site) -> list[Shape]:
    data, counts = site.shape(0), site.integers(1)
    _one_per_axis(data, counts)
    return [tuple(extent * count for extent, count in zip(data, counts, strict=True))]


def _one_per_axis(data: Shape, *values: Sequence[int]) -> None:
    for each in values:
        if len(each) != len(data):
            raise ValueError(f"{len(each)} numbers for a tensor of shape {list(data)}; expected one for each axis")


def _space_to_depth(site: Site) -> list[Shape]:
    batch, height, width, depth = site.ranked(0, 4)
    block = site.option(0)
    if block < 1 or height % block or width % block:
        raise ValueError(f"blocks of {block} from an area of {height} by {width}")
    return [(batch, height // block, width // block, depth * block * block)]


def _depth_to_space(site: Site) -> list[Shape]:
    batch, height, width, depth = site.ranked(0, 4)
    block = site.option(0)
    if block < 1 or depth % (block * block):
        raise ValueError(f"blocks of {block} from {depth} channels")
    return [(batch, height * block, width * block, depth // (block * block))]


def _space_to_batch(site: Site) -> list[Shape]:
    data, blocks, pads = site.ranked(0, 3, 4), site.integers(1), site.integers(2)
    spatial = data[1 : 1 + len(blocks)]
    _one_per_axis(spatial, blocks, pads[::2], pads[1::2])
    padded = [sum(each) for each in zip(spatial, pads[::2], pads[1::2], strict=True)]
    if min(blocks, default=1) < 1 or any(extent % block for extent, block in zip(padded, blocks, strict=True)):
        raise ValueError(f"blocks {list(blocks)} from padded extents {padded}")
    extents = [extent // block for extent, block in zip(padded, blocks, strict=True)]
    return [(data[0] * prod(blocks), *extents, *data[1 + len(blocks) :])]


def _batch_to_space(site: Site) -> list[Shape]:
    data, blocks, crops = site.ranked(0, 3, 4), site.integers(1), site.integers(2)
    spatial = data[1 : 1 + len(blocks)]
    _one_per_axis(spatial, blocks, crops[::2], crops[1::2])
    if min(blocks, default=1) < 1 or data[0] % prod(blocks):
        raise ValueError(f"blocks {list(blocks)} from a batch of {data[0]}")
    ends = [sum(each) for each in zip(crops[::2], crops[1::2], strict=True)]
    extents = [extent * block - end for extent, block, end in zip(spatial, blocks, ends, strict=True)]
    return [(data[0] // prod(blocks), *extents, *data[1 + len(blocks) :])]


def _of_value(operand: int) -> Callable[[Site], list[Shape]]:
    """Rule of an operator whose output shape is an operand."""
    return lambda site: [site.integers(operand)]


def _bitcast(site: Site) -> list[Shape]:
    data, old, new = site.shape(0), site.dtype(0).bits, site.output().dtype.bits
    if old == new:
        return [data]
    if old > new > 0:
        return [(*data, old // new)]
    return [data[:-1]]


def _stablehlo_slice(site: Site) -> list[Shape]:
    entries = zip(site.long_numbers(0), site.long_numbers(1), site.long_numbers(2), strict=True)
    return [sliced(site.shape(0), tuple(slice(*entry) for entry in entries))]


def _stablehlo_pad(site: Site) -> list[Shape]:
    data = site.shape(0)
    low, high, between = (site.long_numbers(field) for field in range(3))
    _one_per_axis(data, low, high, between)
    each = zip(data, low, high, between, strict=True)
    return [tuple(a + extent + b + max(extent - 1, 0) * gap for extent, a, b, gap in each)]


def _stablehlo_concatenate(site: Site) -> list[Shape]:
    options = site.stored.options
    return [concatenated(_some(site), 0 if options is None else options.number(0, INT64))]


RULES: Mapping[str, Callable[[Site], list[Shape]]] = {
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "EXPAND_DIMS": _expand_dims,
    "TRANSPOSE": _transpose,
    "BITCAST": _bitcast,
    "SLICE": lambda site: [sliced(site.shape(0), slice_index(site))],
    "STRIDED_SLICE": lambda site: [sliced(site.shape(0), slice_index(site))],
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "TILE": _tile,
    "SPACE_TO_DEPTH": _space_to_depth,
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "FILL": _of_value(0),
    "BROADCAST_TO": _of_value(1),
    "SPARSE_TO_DENSE": _of_value(1),
    "SCATTER_ND": _of_value(2),
    "RANDOM_UNIFORM": _of_value(0),
    "RANDOM_STANDARD_NORMAL": _of_value(0),
    "STABLEHLO_SLICE": _stablehlo_slice,
    "STABLEHLO_PAD": _stablehlo_pad,
    "STABLEHLO_CONCATENATE": _stablehlo_concatenate,
    "STABLEHLO_TRANSPOSE": lambda site: [permuted(site.shape(0), site.long_numbers(0))],
    "STABLEHLO_DYNAMIC_SLICE": lambda site: [tuple(site.long_numbers(0))],
}
