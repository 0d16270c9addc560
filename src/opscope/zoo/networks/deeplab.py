"""DeepLabV3 on MobileNetV2, as in TensorFlow's DeepLab: strides become dilations, and the pyramid is one level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..blueprint import Blueprint, Value
from ..image_layers import conv, join, resize
from ..network import Network, Option, Settings, image_input, image_options
from .inverted_residual import MOBILENETV2, Stage, trunk

_WIDTH = 256


def _build(plan: Blueprint, settings: Settings) -> None:
    size = settings.number("size")
    image = image_input(plan, settings)
    net = replace(MOBILENETV2, stages=tuple(_dilated(MOBILENETV2.stages, int(settings.word("output_stride")))))
    x = trunk(plan, image, net)
    y = conv(plan, "aspp0", x, _WIDTH, (1, 1), activation="relu")
    y = conv(plan, "concat_projection", join(plan, "aspp", [_pooled(plan, x), y]), _WIDTH, (1, 1), activation="relu")
    y = conv(plan, "logits", y, settings.number("classes"), (1, 1))
    plan.output("output", resize(plan, "upsample", y, (size, size), mode="linear"))


def _pooled(plan: Blueprint, x: Value) -> Value:
    """Return the mean of the image, filtered, at every place."""
    mean = plan.step("GlobalAveragePool", "image_pooling", [x], (*x.shape[:2], 1, 1), rms=x.rms, span=x.span)
    mean = conv(plan, "image_pooling", mean, _WIDTH, (1, 1), activation="relu")
    return resize(plan, "image_pooling", mean, (x.shape[2], x.shape[3]), mode="linear")


def _dilated(stages: tuple[Stage, ...], output_stride: int) -> Iterator[Stage]:
    """Yield one stage per block; past `output_stride`, a stride dilates all that follows instead."""
    reached, rate = 2, 1
    for stage in stages:
        replaced = stage.stride == 2 and reached >= output_stride
        for block in range(stage.blocks):
            dilation = rate * 2 if replaced and block else rate
            yield replace(stage, blocks=1, stride=1 if block or replaced else stage.stride, dilation=dilation)
        reached, rate = (reached, rate * 2) if replaced else (reached * stage.stride, rate)


NETWORK = Network(
    "deeplabv3-mobilenetv2",
    "DeepLabV3 MobileNetV2, 2.1 M parameters, 8.8 G MACs at 513×513",
    _build,
    (
        *image_options(513, classes=21),
        Option("output_stride", "8", "pixels of the image per pixel of the features", choices=("8", "16", "32")),
    ),
    ("onnx", "tflite"),
    task="segmentation",
)
