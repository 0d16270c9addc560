"""The 54-operator residual network of the published sample of a resource report.

Reconstructed from the figures of that sample: 12 blocks of three convolutions and an addition, 48 channels at 32×32, 48
channels halving at every block, 128 channels at 1×1; shortcut convolutions of one width share one bias tensor.
"""

from __future__ import annotations

from ..blueprint import Blueprint, OperandRole, Value, Weight
from ..image_layers import add, bias_weight, conv, dense, kernel_weight
from ..network import Network, Option, Settings
from ..tensor_layers import softmax

_STAGES = ((48, 1, 4), (48, 2, 4), (128, 2, 4))  # channels, stride of every block, blocks


def build(plan: Blueprint, settings: Settings) -> None:
    x = plan.input("input", (settings.batch, 3, 32, 32))
    x = conv(plan, "conv", x, 16, (3, 3), activation="relu")
    for stage, (channels, stride, blocks) in enumerate(_STAGES):
        for block in range(blocks):
            x = _block(plan, f"stages.{stage}/blocks.{block}", x, channels, stride)
    x = _scale_and_offset(plan, "norm", x)
    pooled = plan.step("ReduceMean", "pool", [x], x.shape[:2], rms=x.rms, attributes={"axes": (2, 3), "keepdims": 0})
    plan.output("output", softmax(plan, "", dense(plan, "fc", pooled, settings.number("classes"))))


def _block(plan: Blueprint, at: str, x: Value, channels: int, stride: int) -> Value:
    y = conv(plan, f"{at}/conv1", x, channels, (3, 3), stride=(stride, stride), activation="relu")
    y = conv(plan, f"{at}/conv2", y, channels, (3, 3))
    return add(plan, at, _shortcut(plan, f"{at}/shortcut", x, channels, stride), y, activation="relu")


def _shortcut(plan: Blueprint, at: str, x: Value, channels: int, stride: int) -> Value:
    """Add a 1×1 convolution whose bias is shared with the others of its width."""
    weight = kernel_weight(at, (channels, x.shape[1], 1, 1), x.shape[1], x.rms, channel_axis=0)
    shape = (x.shape[0], channels, *(-(-extent // stride) for extent in x.shape[2:]))
    window = {"dilations": (1, 1), "kernel_shape": (1, 1), "pads": (0, 0, 0, 0), "strides": (stride, stride)}
    bias = bias_weight(f"shared/width{channels}", channels)
    return plan.step("Conv", at, (x, weight, bias), shape, attributes={"group": 1, **window})


def _scale_and_offset(plan: Blueprint, at: str, x: Value) -> Value:
    """Add a batch normalisation that is not folded: a factor and an offset per channel."""
    shape = (1, x.shape[1], 1, 1)
    for op, leaf, centre in (("Mul", "scale", 1.0), ("Add", "offset", 0.0)):
        weight = Weight(f"{at}.{leaf}", shape, OperandRole.TENSOR, 0.1, centre=centre)
        x = plan.step(op, at, (x, weight), x.shape, rms=x.rms, span=x.span)
    return x


NETWORK = Network(
    "sample-resnet",
    "Residual network behind the published sample of a resource report, 1.48 M parameters, 0.18 G MACs",
    build,
    (Option("classes", 10, "classes told apart"),),
    ("onnx", "tflite"),
    task="small parts",
)
