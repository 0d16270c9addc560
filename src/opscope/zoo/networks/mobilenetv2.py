"""MobileNetV2 at width 1.0, as torchvision exports it."""

from __future__ import annotations

from ..blueprint import Blueprint, Value
from ..image_layers import add, conv, dense, flat_mean
from ..network import Network, Option, Settings

_GROUPS = (  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def build(plan: Blueprint, settings: Settings) -> None:
    size = settings.number("size")
    x = plan.input("input", (settings.batch, 3, size, size))
    x = _unit(plan, "features/features.0", x, 32, kernel=3, stride=2)
    number = 1
    for expansion, channels, blocks, stride in _GROUPS:
        for block in range(blocks):
            at = f"features/features.{number}"
            x = _inverted_residual(plan, at, x, channels, expansion=expansion, stride=1 if block else stride)
            number += 1
    x = _unit(plan, f"features/features.{number}", x, 1280, kernel=1)
    x = flat_mean(plan, "", "", x)
    plan.output("output", dense(plan, "classifier/classifier.1", x, settings.number("classes")))


def _inverted_residual(plan: Blueprint, at: str, x: Value, channels: int, *, expansion: int, stride: int) -> Value:
    """Expand, filter each channel, project; add the input if the shape is unchanged."""
    y, index = x, 0
    if expansion != 1:
        y = _unit(plan, f"{at}/conv/conv.0", y, x.shape[1] * expansion, kernel=1)
        index = 1
    wide = y.shape[1]
    y = _unit(plan, f"{at}/conv/conv.{index}", y, wide, kernel=3, stride=stride, groups=wide)
    y = conv(plan, f"{at}/conv/conv.{index + 1}", y, channels, (1, 1), padding=0)
    return add(plan, at, x, y) if stride == 1 and x.shape[1] == channels else y


def _unit(plan: Blueprint, at: str, x: Value, channels: int, *, kernel: int, stride: int = 1, groups: int = 1) -> Value:
    """Add a convolution and ReLU6: items 0 and 2 of their container, as the normalisation between them is folded."""
    name = at.rpartition("/")[2]
    return conv(
        plan,
        f"{at}/{name}.0",
        x,
        channels,
        (kernel, kernel),
        stride=(stride, stride),
        padding=kernel // 2,
        groups=groups,
        activation="relu6",
        activation_at=f"{at}/{name}.2",
    )


NETWORK = Network(
    "mobilenetv2",
    "MobileNetV2 1.0, image classification, 3.5 M parameters, 0.30 G multiply-accumulates at 224×224",
    build,
    (
        Option("size", 224, "height and width of the image", smallest=32, largest=8192),
        Option("classes", 1000, "classes told apart"),
    ),
    ("onnx", "tflite"),
)
