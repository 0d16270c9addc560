"""A small convolutional network with a residual connection: the smallest that has every layer of an image network."""

from __future__ import annotations

from ..blueprint import Blueprint
from ..image_layers import add, conv, dense, flat_mean
from ..network import Network, Option, Settings


def build(plan: Blueprint, settings: Settings) -> None:
    channels = settings.number("channels")
    x = plan.input("input", (settings.batch, 3, 32, 32))
    x = conv(plan, "conv", x, channels, (3, 3), activation="relu")
    x = conv(plan, "block/down", x, 2 * channels, (3, 3), stride=(2, 2), activation="relu")
    y = conv(plan, "block/depthwise", x, 2 * channels, (3, 3), groups=2 * channels, activation="relu")
    y = conv(plan, "block/pointwise", y, 2 * channels, (1, 1))
    x = flat_mean(plan, "pool", add(plan, "block", x, y, activation="relu"))
    plan.output("output", dense(plan, "fc", x, settings.number("classes")))


NETWORK = Network(
    "conv-small",
    "five layers on 32 x 32 images with a residual connection, 0.00679 M parameters, 0.00196 G MACs",
    build,
    (
        Option("channels", 16, "channels of the first convolution; later ones have twice as many", largest=4096),
        Option("classes", 10, "classes told apart"),
    ),
    ("onnx", "tflite", "tosa"),
    task="small parts",
)
