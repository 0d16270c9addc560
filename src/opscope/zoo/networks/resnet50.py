"""ResNet-50 v1.5, as torchvision exports it: the stride of a block sits in its 3×3 convolution."""

from __future__ import annotations

from ..blueprint import Blueprint, Value
from ..image_layers import add, conv, dense, flat_mean, max_pool
from ..network import Network, Option, Settings

_BLOCKS = (3, 4, 6, 3)
_EXPANSION = 4


def build(plan: Blueprint, settings: Settings) -> None:
    size = settings.number("size")
    x = plan.input("input", (settings.batch, 3, size, size))
    x = conv(plan, "conv1", x, 64, (7, 7), stride=(2, 2), padding=3, activation="relu")
    x = max_pool(plan, "maxpool", x, (3, 3), stride=(2, 2), padding=1)
    for stage, blocks in enumerate(_BLOCKS):
        for block in range(blocks):
            at = f"layer{stage + 1}/layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            x = _bottleneck(plan, at, x, 64 << stage, stride)
    x = flat_mean(plan, "avgpool", "", x)
    plan.output("output", dense(plan, "fc", x, settings.number("classes")))


def _bottleneck(plan: Blueprint, at: str, x: Value, width: int, stride: int) -> Value:
    strides, wide = (stride, stride), width * _EXPANSION
    y = conv(plan, f"{at}/conv1", x, width, (1, 1), padding=0, activation="relu")
    y = conv(plan, f"{at}/conv2", y, width, (3, 3), stride=strides, padding=1, activation="relu")
    y = conv(plan, f"{at}/conv3", y, wide, (1, 1), padding=0)
    if x.shape[1] != wide:
        x = conv(plan, f"{at}/downsample/downsample.0", x, wide, (1, 1), stride=strides, padding=0)
    return add(plan, at, y, x, activation="relu")


NETWORK = Network(
    "resnet50",
    "ResNet-50 v1.5, image classification, 25.5 M parameters, 4.09 G multiply-accumulates at 224×224",
    build,
    (
        Option("size", 224, "height and width of the image", smallest=32, largest=8192),
        Option("classes", 1000, "classes told apart"),
    ),
    ("onnx", "tflite"),
)
