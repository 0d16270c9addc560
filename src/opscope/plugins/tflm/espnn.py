"""Memory that the kernels of ESP-NN ask for in TensorFlow Lite Micro, by chip.

Rules of espressif/esp-tflite-micro (tensorflow/lite/micro/kernels/esp_nn) at 99f49e1 and of the functions
esp_nn_get_*_scratch_size of espressif/esp-nn at d45b843. It has kernels for int8 alone: convolutions, also depthwise
and without dilation, fully connected layers, poolings, softmax, additions and products of elements; whatever else, and
every other type, runs the reference kernels, which its copy of the runtime has too. What it takes is therefore what
they take. A convolution asks for the memory of its int8 kernel even where its dilation makes it run the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from ...graph.graph import DType
from .cmsis import rounded, window
from .nodes import INT, Node, dtype, extent
from .scratch import reference

_MARGIN, _ALIGNMENT = 64, 16
_WHOLE_INPUT_BYTES, _WHOLE_WIDE_BYTES = 40 * 1024, 48 * 1024  # above, a depthwise convolution works strip by strip
_FEW_POSITIONS = 8


class Chip(Enum):
    """Whose instructions the kernels use."""

    PLAIN = "plain"  # C for any chip: ESP32, S2, C3, C6
    S3 = "esp32s3"


def scratch(node: Node, chip: Chip) -> Sequence[int]:
    """What the kernel of an operator asks for; pointers of these chips have 4 bytes."""
    if dtype(node.input(0)) is not DType.I8 or node.output() is None:
        return reference(node, pointer=4)
    own = 0
    if node.type == "SOFTMAX":
        own = extent(node.input(0), 1) * INT if dtype(node.output()) is DType.I8 else 0
    elif chip is Chip.S3 and node.type in _RULES:
        own = _RULES[node.type](node)
    return (*reference(node, pointer=4), *((own,) if own > 0 else ()))


def _conv(node: Node) -> int:
    """Weights put in order for whole vectors, the input with its padding, and sums of each output channel."""
    down, across = window(node, 1), window(node, 2)
    channels, made = extent(node.input(0), 3), extent(node.output(), 3)
    positions, kernel = down.data * across.data, down.kernel * across.kernel
    is_padded = bool(down.padding or across.padding)
    if kernel == 1 and not is_padded and down.stride == across.stride == 1:
        whole = rounded(channels, 8)
        turned = 0 if positions < _FEW_POSITIONS else 2 * 8 * whole
        return (positions * whole if channels % 8 else 0) + whole * made + turned + _MARGIN
    row, column = across.kernel * channels, kernel * channels
    if row < _ALIGNMENT <= column:  # windows are gathered
        whole = rounded(column, _ALIGNMENT)
        return made * INT + _ALIGNMENT + made * whole + _ALIGNMENT + whole + _MARGIN
    padded = (across.data + 2 * across.padding) * (down.data + 2 * down.padding) * channels if is_padded else 0
    weights = kernel * rounded(channels, _ALIGNMENT) * made
    aligned = rounded(row, _ALIGNMENT) * down.kernel * made
    right, bottom = (max(0, w.result * w.stride + w.kernel - 1 - w.data) for w in (across, down))
    beyond = (across.data + right) * (down.data + bottom) * channels if right or bottom else 0
    return padded + weights + aligned + beyond + _MARGIN + made * INT


def _depthwise(node: Node) -> int:
    down, across = window(node, 1), window(node, 2)
    channels = extent(node.input(0), 3)
    multiplier = extent(node.output(), 3) // max(channels, 1)
    positions = down.data * across.data
    weights = down.kernel * across.kernel * channels * multiplier
    wide = 2 * (weights + positions * channels) + 32  # everything in 16 bits
    if multiplier == 1 and channels % 8 == 0:
        if down.kernel == across.kernel == 3:
            return wide if channels < 12 else _three_by_three(node, weights)
        strip = 2 * (weights + across.data * down.kernel * channels) + 32
        return wide if wide - 32 <= _WHOLE_WIDE_BYTES else strip
    if multiplier == 1 and channels > 3:
        return _with_channels_added(node)
    return wide if multiplier % 4 == 0 else 32


def _three_by_three(node: Node, weights: int) -> int:
    down, across = window(node, 1), window(node, 2)
    channels = extent(node.input(0), 3)
    beyond_w, beyond_h = (w.result * w.stride + w.kernel - 1 - w.data for w in (across, down))
    if channels % _ALIGNMENT == 0:
        is_padded = across.padding or down.padding
        more_w, more_h = (2 * across.padding, 2 * down.padding) if is_padded else (beyond_w, beyond_h)
        if not more_w and not more_h:
            return weights + _ALIGNMENT
        whole = (across.data + more_w) * (down.data + more_h) * channels
        strip = (across.data + more_w) * down.kernel * channels
        return weights + (whole if whole <= _WHOLE_INPUT_BYTES else strip) + _ALIGNMENT
    filled = rounded(channels, _ALIGNMENT)
    more_w, more_h = (2 * w.padding + max(0, w.result * w.stride + 2 - w.data) for w in (across, down))
    data = (across.data + more_w) * (down.data + more_h) * filled
    return 9 * filled + data + across.result * down.result * filled + _MARGIN


def _with_channels_added(node: Node) -> int:
    """Channels are filled up to eight: weights and input in 16 bits, the result, and three numbers a channel."""
    down, across = window(node, 1), window(node, 2)
    filled = rounded(extent(node.input(0), 3), 8)
    used = rounded(down.kernel * across.kernel * filled * 2, _ALIGNMENT)
    used = rounded(used + down.data * across.data * filled * 2, _ALIGNMENT)
    used = rounded(used + down.result * across.result * filled, _ALIGNMENT)
    return used + 3 * filled * INT + _ALIGNMENT


_RULES: Mapping[str, Callable[[Node], int]] = {"CONV_2D": _conv, "DEPTHWISE_CONV_2D": _depthwise}
