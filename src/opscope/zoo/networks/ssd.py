"""SSD on MobileNetV1, and SSDLite on MobileNetV2, as in TensorFlow's object detection zoo: no decoding of boxes."""

from __future__ import annotations

from collections.abc import Sequence

from ..blueprint import Blueprint, Value
from ..image_layers import conv
from ..network import Network, Settings, image_input, image_options
from .inverted_residual import MOBILENETV2, features
from .plain import mobilenetv1_features

_EXTRAS = (512, 256, 256, 128)  # channels of the levels after the backbone, each half the size of the one before
_TASK = "object detection"


def _v1(plan: Blueprint, settings: Settings) -> None:
    results = mobilenetv1_features(plan, image_input(plan, settings), 100)
    _heads(plan, [results[10], results[12]], settings.number("classes"), light=False)


def _v2(plan: Blueprint, settings: Settings) -> None:
    widened: list[Value] = []
    x = features(plan, image_input(plan, settings), MOBILENETV2, widened)
    finer = [value for value in widened if value.shape[2] > x.shape[2]]
    _heads(plan, [finer[-1], x], settings.number("classes"), light=True)


def _heads(plan: Blueprint, levels: Sequence[Value], classes: int, *, light: bool) -> None:
    """Add the coarser levels and, at each, convolutions for boxes and classes; three boxes at the first, else six."""
    every, x = list(levels), levels[-1]
    for number, channels in enumerate(_EXTRAS):
        at = f"extra{number}"
        x = conv(plan, f"{at}/narrow", x, channels // 2, (1, 1), activation="relu6")
        x = _halve(plan, at, x, channels, light=light)
        every.append(x)
    for number, level in enumerate(every):
        boxes = 6 if number else 3
        for name, count in (("box", 4), ("class", classes)):
            at, y = f"{name}{number}", level
            if light:
                y = conv(plan, f"{at}/depthwise", y, y.shape[1], (3, 3), groups=y.shape[1], activation="relu6")
            plan.output(at, conv(plan, f"{at}/predict", y, count * boxes, (1, 1)))


def _halve(plan: Blueprint, at: str, x: Value, channels: int, *, light: bool) -> Value:
    strides, inside = (2, 2), x.shape[1]
    if not light:
        return conv(plan, f"{at}/conv", x, channels, (3, 3), stride=strides, activation="relu6")
    x = conv(plan, f"{at}/depthwise", x, inside, (3, 3), stride=strides, groups=inside, activation="relu6")
    return conv(plan, f"{at}/pointwise", x, channels, (1, 1), activation="relu6")


NETWORKS = (
    Network(
        "ssd-mobilenetv1",
        "SSD MobileNetV1, 6.81 M parameters, 1.24 G MACs at 300×300",
        _v1,
        image_options(300, classes=91),
        ("onnx", "tflite"),
        task=_TASK,
    ),
    Network(
        "ssdlite-mobilenetv2",
        "SSDLite MobileNetV2, 4.48 M parameters, 0.75 G MACs at 300×300",
        _v2,
        image_options(300, classes=91),
        ("onnx", "tflite"),
        task=_TASK,
    ),
)
