"""YOLOv7 and YOLOv7-tiny as deployed: stacks of convolutions of which several results are joined (ELAN).

The blocks that train with branches beside a 3×3 convolution are that convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..blueprint import Blueprint, Value
from ..image_layers import conv, join, pool, resize
from ..network import Network, Settings
from .yolo import detector_options


@dataclass(frozen=True, slots=True)
class _Layers:
    """Adds layers with the network's activation."""

    plan: Blueprint
    activation: str

    def unit(self, at: str, x: Value, channels: int, kernel: int = 1, *, stride: int = 1) -> Value:
        return conv(
            self.plan,
            at,
            x,
            channels,
            (kernel, kernel),
            stride=(stride, stride),
            padding=kernel // 2,
            activation=self.activation,
        )

    def stack(
        self, at: str, x: Value, widths: tuple[int, Sequence[int]], channels: int, *, every: bool = True
    ) -> Value:
        """Add two 1×1 beside each other, 3×3 after the second, and a 1×1 over `every` result or each other one.

        `widths` are the channels of the 1×1 and of each 3×3.
        """
        first, inner = widths
        parts = [self.unit(f"{at}/side", x, first), self.unit(f"{at}/main", x, first)]
        for number, width in enumerate(inner):
            parts.append(self.unit(f"{at}/conv{number}", parts[-1], width, 3))
        kept = parts[::-1] if every else [parts[5], parts[3], parts[1], parts[0]]
        return self.unit(f"{at}/out", join(self.plan, at, kept), channels)

    def halve(self, at: str, x: Value, channels: int, *others: Value) -> Value:
        """Halve by maxima and by a convolution, beside each other."""
        most = self.unit(f"{at}/pooled", self.pool(f"{at}/pool", x, 2, 2), channels)
        filtered = self.unit(f"{at}/conv", self.unit(f"{at}/narrow", x, channels), channels, 3, stride=2)
        return join(self.plan, at, [filtered, most, *others])

    def pool(self, at: str, x: Value, kernel: int, stride: int) -> Value:
        padding = 0 if stride == 2 else kernel // 2
        return pool(self.plan, at, x, (kernel, kernel), stride=(stride, stride), padding=padding)

    def pyramid_pool(self, at: str, x: Value) -> list[Value]:
        return [x, *(self.pool(f"{at}/pool{kernel}", x, kernel, 1) for kernel in (5, 9, 13))]

    def up(self, at: str, x: Value, channels: int, other: Value) -> Value:
        """Narrow and double the image, and join it with an earlier level, narrowed too."""
        height, width = other.shape[2:]
        doubled = resize(self.plan, at, self.unit(f"{at}/narrow", x, channels), (height, width))
        return join(self.plan, at, [self.unit(f"{at}/route", other, channels), doubled])


def _start(plan: Blueprint, settings: Settings) -> tuple[_Layers, Value]:
    size = settings.number("size")
    settings.require(size % 32 == 0, f"size is {size}", "a multiple of 32")
    return _Layers(plan, settings.word("activation")), plan.input("images", (settings.batch, 3, size, size))


def _large(plan: Blueprint, settings: Settings) -> None:
    layers, x = _start(plan, settings)
    for number, (channels, stride) in enumerate(((32, 1), (64, 2), (64, 1), (128, 2))):
        x = layers.unit(f"stem.{number}", x, channels, 3, stride=stride)
    levels = []
    for stage, (inner, channels) in enumerate(((64, 256), (128, 512), (256, 1024), (256, 1024))):
        x = layers.halve(f"down{stage}", x, x.shape[1] // 2) if stage else x
        x = layers.stack(f"stack{stage}", x, (inner, (inner,) * 4), channels, every=False)
        levels.append(x)
    coarse = _cross_stage_pool(layers, x)
    x = layers.up("up0", coarse, 256, levels[2])
    middle = layers.stack("head0", x, (256, (128,) * 4), 256)
    x = layers.up("up1", middle, 128, levels[1])
    fine = layers.stack("head1", x, (128, (64,) * 4), 128)
    x = layers.halve("head_down0", fine, 128, middle)
    middle = layers.stack("head2", x, (256, (128,) * 4), 256)
    x = layers.halve("head_down1", middle, 256, coarse)
    coarse = layers.stack("head3", x, (512, (256,) * 4), 512)
    _outputs(layers, (fine, middle, coarse), settings.number("classes"))


def _cross_stage_pool(layers: _Layers, x: Value) -> Value:
    """Maxima over windows of several sizes between convolutions, with a path around them."""
    y = layers.unit("spp/cv1", x, 512)
    y = layers.unit("spp/cv4", layers.unit("spp/cv3", y, 512, 3), 512)
    y = layers.unit("spp/cv5", join(layers.plan, "spp/pools", layers.pyramid_pool("spp", y)), 512)
    y = layers.unit("spp/cv6", y, 512, 3)
    return layers.unit("spp/cv7", join(layers.plan, "spp", [y, layers.unit("spp/cv2", x, 512)]), 512)


def _tiny(plan: Blueprint, settings: Settings) -> None:
    layers, x = _start(plan, settings)
    x = layers.unit("stem.0", x, 32, 3, stride=2)
    x = layers.unit("stem.1", x, 64, 3, stride=2)
    levels = []
    for stage, inner in enumerate((32, 64, 128, 256)):
        x = layers.pool(f"pool{stage}", x, 2, 2) if stage else x
        x = layers.stack(f"stack{stage}", x, (inner, (inner, inner)), 2 * inner)
        levels.append(x)
    side, y = layers.unit("spp/side", x, 256), layers.unit("spp/main", x, 256)
    y = layers.unit("spp/pooled", join(plan, "spp/pools", layers.pyramid_pool("spp", y)), 256)
    coarse = layers.unit("spp/out", join(plan, "spp", [y, side]), 256)
    middle = layers.stack("head0", layers.up("up0", coarse, 128, levels[2]), (64, (64, 64)), 128)
    fine = layers.stack("head1", layers.up("up1", middle, 64, levels[1]), (32, (32, 32)), 64)
    x = join(plan, "head_join0", [layers.unit("head_down0", fine, 128, 3, stride=2), middle])
    middle = layers.stack("head2", x, (64, (64, 64)), 128)
    x = join(plan, "head_join1", [layers.unit("head_down1", middle, 256, 3, stride=2), coarse])
    coarse = layers.stack("head3", x, (128, (128, 128)), 256)
    _outputs(layers, (fine, middle, coarse), settings.number("classes"))


def _outputs(layers: _Layers, levels: Sequence[Value], classes: int) -> None:
    for number, x in enumerate(levels):
        y = layers.unit(f"detect{number}", x, 2 * x.shape[1], 3)
        plan = layers.plan
        plan.output(f"output{number}", conv(plan, f"predict{number}", y, 3 * (5 + classes), (1, 1)))


_network = partial(Network, formats=("onnx", "tflite"), task="object detection")

NETWORKS = (
    _network(
        "yolov7-tiny",
        "YOLOv7-tiny, 6.22 M parameters, 6.85 G MACs at 640×640",
        _tiny,
        detector_options(640, "leaky_relu"),
    ),
    _network("yolov7", "YOLOv7, 36.9 M parameters, 52.3 G MACs at 640×640", _large, detector_options(640)),
)
