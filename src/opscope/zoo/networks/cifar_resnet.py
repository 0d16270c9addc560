"""ResNet-8 for CIFAR-10, as in MLPerf Tiny."""

from __future__ import annotations

from ..blueprint import Blueprint, Value
from ..image_layers import add, conv, dense, flat_mean
from ..network import Network, Option, Settings
from ..tensor_layers import softmax

_STACKS = ((16, 1), (32, 2), (64, 2))  # channels, stride of the first convolution


def build(plan: Blueprint, settings: Settings) -> None:
    x = plan.input("input", (settings.batch, 3, 32, 32))
    x = conv(plan, "conv", x, 16, (3, 3), activation="relu")
    for stack, (channels, stride) in enumerate(_STACKS):
        x = _stack(plan, f"stacks.{stack}", x, channels, stride)
    x = flat_mean(plan, "pool", x)
    plan.output("output", softmax(plan, "", dense(plan, "fc", x, settings.number("classes"))))


def _stack(plan: Blueprint, at: str, x: Value, channels: int, stride: int) -> Value:
    y = conv(plan, f"{at}/conv1", x, channels, (3, 3), stride=(stride, stride), activation="relu")
    y = conv(plan, f"{at}/conv2", y, channels, (3, 3))
    if stride != 1:
        x = conv(plan, f"{at}/shortcut", x, channels, (1, 1), stride=(stride, stride))
    return add(plan, at, x, y, activation="relu")


NETWORK = Network(
    "cifar-resnet",
    "ResNet-8 of MLPerf Tiny, 0.0777 M parameters, 0.0125 G MACs at 32×32",
    build,
    (Option("classes", 10, "classes told apart"),),
    ("onnx", "tflite"),
)
