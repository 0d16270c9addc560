"""Memory that the kernels of CMSIS-NN ask for in TensorFlow Lite Micro, by what the core can do.

Rules of tensorflow/lite/micro/kernels/cmsis_nn at 90b983c2 and of the functions *_get_buffer_size of CMSIS-NN at
99f736a6, as GCC builds them for speed, the default of the runtime's makefile: Arm's own compiler takes two columns more
for 1x1 convolutions on cores with the DSP extension. An operator without a kernel in CMSIS-NN runs the reference one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ...graph.graph import DType
from ...readers.tflite.model import StoredTensor
from .nodes import INT, Node, dtype, extent, extents
from .scratch import lstm, reference, svdf, transpose_conv

_PADDING, _STRIDE_W, _STRIDE_H = 0, 1, 2  # fields of the options of convolutions
_DILATION = {"CONV_2D": (4, 5), "DEPTHWISE_CONV_2D": (5, 6)}  # width and height
_SAME = 0
_CHANNELS_AT_ONCE = 124  # of a depthwise convolution with MVE
_REVERSED_ABOVE = 16  # input channels: a transposed convolution then runs as a convolution with the weights reversed


class Core(Enum):
    """Instructions of a core that the kernels use."""

    PLAIN = "plain"  # Cortex-M0, M0+, M3, M23
    DSP = "dsp"  # Cortex-M4, M7, M33, M35P
    MVE = "mve"  # Cortex-M52, M55, M85


class Window(NamedTuple):
    """A convolution along one axis."""

    data: int
    kernel: int
    result: int
    stride: int
    dilation: int
    padding: int  # before the first element

    @property
    def is_even(self) -> bool:
        """No dilation."""
        return self.dilation == 1


def scratch(node: Node, core: Core) -> Sequence[int]:
    """What the kernel of an operator asks for; pointers of these chips have 4 bytes."""
    rule = _RULES.get(node.type)
    if rule is None or node.input(0) is None or node.output() is None:
        return reference(node, pointer=4)
    return tuple(size for size in rule(node, core) if size > 0 or node.type == "TRANSPOSE_CONV")


def kernel_sums(node: Node, core: Core) -> Sequence[int]:
    """Bytes of sums over constant weights, which kernels built for speed keep from one inference to the next."""
    data = dtype(node.input(0))
    if node.type == "UNIDIRECTIONAL_SEQUENCE_LSTM" and _is_whole_lstm(node):
        return (extent(node.input(18), -1) * (INT if data is DType.I8 else 8),) * 8
    if core is not Core.MVE or data is not DType.I8:
        return ()
    if node.type == "SVDF":
        return (extent(node.input(1), 0) * INT,)
    if node.type == "FULLY_CONNECTED" and _sums_of_rows(node) and _is_constant(node.input(1)):
        bias = node.input(2)
        return (extent(node.output(), -1) * INT,) if bias is None or _is_constant(bias) else ()
    return ()


def _conv(node: Node, core: Core) -> Sequence[int]:
    """Columns of the input side by side (im2col): two of 16 bits, or four padded to whole vectors with MVE."""
    data, weights = node.input(0), node.input(1)
    channels, vertical, horizontal = extent(data, 3), window(node, 1), window(node, 2)
    if dtype(data) is DType.I16:
        column = channels * vertical.kernel * horizontal.kernel
        return (4 * rounded(column, 8) * 2 if core is Core.MVE else 2 * column * 2,)
    if dtype(data) is not DType.I8:
        return ()
    return (_columns(vertical, horizontal, channels, core, is_whole=channels == extent(weights, 3)),)


def _columns(vertical: Window, horizontal: Window, channels: int, core: Core, *, is_whole: bool) -> int:
    """Of an int8 convolution; `is_whole`: in one group."""
    is_point = (vertical.kernel, horizontal.kernel, vertical.padding, horizontal.padding) == (1, 1, 0, 0)
    if is_point and vertical.is_even and horizontal.is_even and is_whole:
        return 0
    column = channels * vertical.kernel * horizontal.kernel
    if core is not Core.MVE:
        return 2 * rounded(column, 4) * 2
    is_row = vertical.data == vertical.kernel == 1 and horizontal.is_even and is_whole
    if is_row and horizontal.stride * channels % 4 == 0:
        return _row_with_mve(horizontal, channels)
    return 4 * rounded(column, 16)


def _row_with_mve(window: Window, channels: int) -> int:
    """A convolution along one row copies only what lies at its padded ends."""
    total = (window.result - 1) * window.stride + window.kernel - window.data
    uneven = total % 2
    right = max(1, -(-(window.padding + uneven) // window.stride)) if window.padding + uneven else 0
    left = max(1, -(-window.padding // window.stride)) if window.padding else 0
    if right + left + max(window.result - right - left, 0) != window.result:
        return 4 * rounded(channels * window.kernel, 16)
    before = window.padding * channels
    behind = right * channels if uneven else before
    return max(window.kernel * channels + before, (window.kernel - 1) * channels + behind)


def _depthwise(node: Node, core: Core) -> Sequence[int]:
    data, weights, result = node.input(0), node.input(1), node.output()
    if dtype(data) is not DType.I8:
        return ()
    vertical, horizontal = window(node, 1), window(node, 2)
    channels, made = extent(data, 3), extent(result, 3)
    kernel = vertical.kernel * horizontal.kernel
    is_packed = dtype(weights) is DType.I4
    if core is Core.MVE and channels == 1 and made > 1 and not is_packed:  # runs as a convolution, weights turned round
        return (_columns(vertical, horizontal, 1, core, is_whole=True) + made * kernel,)
    if channels != made or extent(data, 0) != 1 or not (vertical.is_even and horizontal.is_even):
        return ()
    if core is Core.MVE:
        return (4 * _CHANNELS_AT_ONCE * kernel,)
    is_three = vertical.kernel == horizontal.kernel == 3 and max(vertical.padding, horizontal.padding) <= 1
    if is_packed or (core is Core.DSP and not is_three):
        return (channels * kernel * 2,)
    return ()


def _fully_connected(node: Node, core: Core) -> Sequence[int]:
    if dtype(node.input(0)) is not DType.I8 or dtype(node.input(1)) is DType.I4:
        return ()
    if not _sums_of_rows(node):  # runs as a 1x1 convolution, which wants a scale for each channel
        return () if node.scales(1) > 1 else (2 * INT * extent(node.output(), -1),)
    return (INT * extent(node.output(), -1),) if core is Core.MVE and not kernel_sums(node, core) else ()


def _sums_of_rows(node: Node) -> bool:
    """Whether a fully connected operator runs as one, and not as a 1x1 convolution."""
    return len(extents(node.output())) <= 2 or extent(node.input(1), -1) % 4 != 0


def _average_pool(node: Node, core: Core) -> Sequence[int]:
    is_whole_numbers = dtype(node.input(0)) in {DType.I8, DType.I16}
    return (INT * extent(node.output(), 3),) if core is Core.DSP and is_whole_numbers else ()


def _transpose_conv(node: Node, core: Core) -> Sequence[int]:
    data, weights, result = node.input(2), node.input(1), node.output()
    if dtype(data) is not DType.I8:
        return transpose_conv(node)
    stride_w, stride_h = node.option(_STRIDE_W, 1), node.option(_STRIDE_H, 1)
    channels, height, width = extent(data, 3), extent(weights, 1), extent(weights, 2)
    if max(stride_w, stride_h) <= 2 and channels > _REVERSED_ABOVE:
        column = channels * height * width
        columns = 4 * rounded(column, 16) if core is Core.MVE else 2 * rounded(column, 4) * 2
        return (columns, column * extent(weights, 0))
    row = ((extent(data, 2) - 1) * stride_w + max(width, stride_h)) * extent(result, 3)
    return (row * max(height, stride_h) * INT, 0)


def _lstm(node: Node, core: Core) -> Sequence[int]:
    return lstm(node, buffers=3 if _is_whole_lstm(node) else 4)


def _is_whole_lstm(node: Node) -> bool:
    """In whole numbers, which CMSIS-NN computes."""
    return dtype(node.input(0)) in {DType.I8, DType.I16} and dtype(node.input(19)) is DType.I16


def _batch_matmul(node: Node, core: Core) -> Sequence[int]:
    return (INT * extent(node.output(), -1),) if core is Core.MVE and dtype(node.input(0)) is DType.I8 else ()


def _svdf(node: Node, core: Core) -> Sequence[int]:
    return svdf(node)


def window(node: Node, axis: int) -> Window:
    data, kernel, result = (extent(tensor, axis) for tensor in (node.input(0), node.input(1), node.output()))
    stride = max(node.option(_STRIDE_W if axis == 2 else _STRIDE_H, 1), 1)
    across, down = _DILATION[node.type]
    dilation = node.option(across if axis == 2 else down, 1)
    padded = (result - 1) * stride + (kernel - 1) * dilation + 1 - data if node.choice(_PADDING) == _SAME else 0
    return Window(data, kernel, result, stride, dilation, max(padded, 0) // 2)


def _is_constant(tensor: StoredTensor | None) -> bool:
    return tensor is not None and bool(tensor.data.size)


def rounded(count: int, step: int) -> int:
    return -(-count // step) * step


_RULES: Mapping[str, Callable[[Node, Core], Sequence[int]]] = {
    "AVERAGE_POOL_2D": _average_pool,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
