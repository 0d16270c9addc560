"""Shapes of operators that move a window over the data: convolutions, pools, window reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..flatbuffer import INT8
from ..ops import CONV_2D, CONV_3D, DEPTHWISE, Filter, Shape
from .site import Site

SAME = 0  # Padding: SAME keeps the extent (divided by the stride), VALID places whole windows only


def windows(extent: int, kernel: int, stride: int, dilation: int, *, same: bool) -> int:
    """Return how many places a window has along one axis."""
    if stride < 1 or dilation < 1 or kernel < 1:
        raise ValueError(f"kernel {kernel}, stride {stride}, dilation {dilation}; expected 1 or more")
    reach = 1 if same else (kernel - 1) * dilation + 1
    found = (extent + stride - reach) // stride
    if found < 1 and extent:
        raise ValueError(f"a window of {reach} does not fit into an extent of {extent}")
    return max(found, 0)


def _is_same(site: Site) -> bool:
    return site.stored.options is None or site.stored.options.number(0, INT8) == SAME


def _places(site: Site, data: Sequence[int], kernel: Sequence[int], layout: Filter) -> Shape:
    """Return the spatial extents of the output."""
    strides = [site.option(field) for field in layout.strides]
    dilations = [site.option(field, 1) for field in layout.dilations]
    same = _is_same(site)
    return tuple(windows(*each, same=same) for each in zip(data, kernel, strides, dilations, strict=True))


def convolution(layout: Filter, channels: int) -> Callable[[Site], list[Shape]]:
    """Rule of a convolution; `channels` is the axis of the weights that holds the output channels."""

    def rule(site: Site) -> list[Shape]:
        data, weights = site.ranked(0, layout.rank), site.ranked(1, layout.rank)
        kernel = [weights[axis] for axis in layout.kernel]
        return [(data[0], *_places(site, data[1:-1], kernel, layout), weights[channels])]

    return rule


def pool(site: Site) -> list[Shape]:
    data = site.ranked(0, 4)
    same = _is_same(site)
    height = windows(data[1], site.option(4), site.option(2), 1, same=same)
    width = windows(data[2], site.option(3), site.option(1), 1, same=same)
    return [(data[0], height, width, data[3])]


def transposed_convolution(site: Site) -> list[Shape]:
    """The output shape is operand 0; a batch that it fixes gives way to the batch of the data."""
    data = site.shape(2)
    found = site.integers(0)
    if len(found) != len(data):
        raise ValueError(f"output shape {list(found)} for data of shape {list(data)}; expected the same rank")
    return [(data[0], *found[1:])]


def window_reduction(data: Shape, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Shape:
    """Return the shape of a reduction by a window over every axis."""
    for name, each in (("window", kernel), ("strides", strides), ("dilations", dilations)):
        if len(each) != len(data):
            raise ValueError(f"{name} {list(each)} for data of shape {list(data)}; expected one for each axis")
    return tuple(windows(*each, same=False) for each in zip(data, kernel, strides, dilations, strict=True))


RULES: Mapping[str, Callable[[Site], list[Shape]]] = {
    "CONV_2D": convolution(CONV_2D, 0),
    "DEPTHWISE_CONV_2D": convolution(DEPTHWISE, 3),
    "CONV_3D": convolution(CONV_3D, 4),
    "TRANSPOSE_CONV": transposed_convolution,
    "CONV_3D_TRANSPOSE": transposed_convolution,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
    "L2_POOL_2D": pool,
    "REDUCE_WINDOW": lambda site: [
        window_reduction(site.shape(0), site.integers(2), site.integers(3), site.integers(4))
    ],
    "DILATE": lambda site: [
        tuple(
            (extent - 1) * factor + 1 if extent else 0
            for extent, factor in zip(site.shape(0), site.integers(1), strict=True)
        )
    ],
}
