"""DS-CNN for keyword spotting, as in MLPerf Tiny: 49 frames of 10 cepstral coefficients, 12 words."""

from __future__ import annotations

from ..blueprint import Blueprint
from ..image_layers import conv, dense, flat_mean
from ..network import Network, Option, Settings
from ..tensor_layers import softmax

_FRAMES, _COEFFICIENTS = 49, 10
_BLOCKS = 4


def build(plan: Blueprint, settings: Settings) -> None:
    channels = settings.number("channels")
    x = plan.input("input", (settings.batch, 1, _FRAMES, _COEFFICIENTS))
    x = conv(plan, "conv", x, channels, (10, 4), stride=(2, 2), activation="relu")
    for block in range(_BLOCKS):
        at = f"blocks.{block}"
        x = conv(plan, f"{at}/depthwise", x, channels, (3, 3), groups=channels, activation="relu")
        x = conv(plan, f"{at}/pointwise", x, channels, (1, 1), activation="relu")
    x = flat_mean(plan, "pool", x)
    plan.output("output", softmax(plan, "", dense(plan, "fc", x, settings.number("classes"))))


NETWORK = Network(
    "kws-cnn",
    "DS-CNN of MLPerf Tiny, keyword spotting, 0.0226 M parameters, 0.00266 G MACs",
    build,
    (
        Option("channels", 64, "channels of every convolution", largest=4096),
        Option("classes", 12, "words told apart"),
    ),
    ("onnx", "tflite"),
    task="audio",
)
