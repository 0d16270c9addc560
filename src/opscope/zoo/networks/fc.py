"""One fully connected layer: the head of MobileNet, 1280 features to 1000 classes."""

from __future__ import annotations

from ..blueprint import Blueprint
from ..image_layers import dense
from ..network import Network, Option, Settings


def build(plan: Blueprint, settings: Settings) -> None:
    x = plan.input("input", (settings.batch, settings.number("features")))
    plan.output("output", dense(plan, "fc", x, settings.number("units")))


NETWORK = Network(
    "fc",
    "one fully connected layer, 1280 to 1000, 1.28 M parameters, 0.00128 G MACs",
    build,
    (Option("features", 1280, "values of the input"), Option("units", 1000, "values of the output")),
    ("onnx", "tflite", "tosa"),
    task="small parts",
)
