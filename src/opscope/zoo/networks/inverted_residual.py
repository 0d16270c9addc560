"""Networks of inverted residuals: MobileNetV2 and V3, MnasNet, and the EfficientNets.

A block widens its input, filters each channel, and projects back. Tables give one row per stage; the names of modules
are those of torchvision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from ..blueprint import Blueprint, Value
from ..image_layers import activate, add, conv, dense, excite, flat_mean
from ..network import Network, Option, Settings, divisible, image_input, image_options


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks that differ in the first one's stride alone."""

    expansion: int
    channels: int
    blocks: int
    stride: int
    kernel: int = 3
    wide: int = 0  # channels inside a block where they are no multiple of its input
    squeeze: int = 0  # channels inside over those of the excitation: of the block's input, or of `wide`
    activation: str = ""  # where it differs from the network's
    fused: bool = False  # one dense filter instead of widening and filtering each channel
    late: bool = False  # fused: the stride is in the projection
    dilation: int = 1  # of the filter of each channel
    skips: bool = True  # if not, a fused block widens the channels it returns, not those it reads


@dataclass(frozen=True, slots=True)
class _Net:
    """A network; `stem` and `head` are the channels of the first and the last convolution."""

    stages: tuple[Stage, ...]
    stem: int = 32
    head: int = 1280
    activation: str = "silu"
    width: float = 1.0
    depth: float = 1.0
    fixed_ends: bool = False  # depth of the first and last stage, stem and head do not follow the multipliers
    container: str = "block"  # name of a block's list of modules
    hidden: int = 0  # features of a dense layer before the last


def _build(net: _Net, plan: Blueprint, settings: Settings) -> None:
    if "width" in settings.options:
        net = replace(net, width=settings.number("width") / 100)
    x = image_input(plan, settings)
    x = features(plan, x, net)
    x = flat_mean(plan, "", x)
    if net.hidden:
        x = activate(
            plan, "classifier/classifier.1", dense(plan, "classifier/classifier.0", x, net.hidden), "hard_swish"
        )
    last = "classifier/classifier.3" if net.hidden else "classifier/classifier.1"
    plan.output("output", dense(plan, last, x, settings.number("classes")))


def features(plan: Blueprint, x: Value, net: _Net, widened: list[Value] | None = None) -> Value:
    """Add everything up to the last convolution; `widened` collects what each block widens its input to."""
    x = trunk(plan, x, net, widened)
    last = f"features/features.{1 + sum(1 for _ in _scaled(net))}"
    return _unit(plan, last, x, _head(net), activation=net.activation)


def trunk(plan: Blueprint, x: Value, net: _Net, widened: list[Value] | None = None) -> Value:
    """Add the first convolution and the blocks."""
    stem = net.stem if net.fixed_ends else divisible(net.stem * net.width)
    x = _unit(plan, "features/features.0", x, stem, activation=net.activation, kernel=3, stride=2)
    for number, scaled in enumerate(_scaled(net), start=1):
        block, start = _fused if scaled.fused else _inverted, len(plan.steps)
        x = block(plan, f"features/features.{number}/{net.container}", x, scaled)
        if widened is not None:
            widened.append(plan.steps[start].output)
    return x


def _head(net: _Net) -> int:
    """Return the channels of the last convolution: MobileNetV2 and EfficientNet never narrow it."""
    return net.head if net.fixed_ends or net.width <= 1 else divisible(net.head * net.width)


def _scaled(net: _Net) -> Iterator[Stage]:
    """Yield one stage per block, with scaled channels and the block's own stride and activation."""
    for number, stage in enumerate(net.stages):
        end = net.fixed_ends and number in (0, len(net.stages) - 1)
        blocks = stage.blocks if end else ceil(stage.blocks * net.depth)
        channels, wide = divisible(stage.channels * net.width), stage.wide and divisible(stage.wide * net.width)
        for block in range(blocks):
            yield replace(
                stage,
                channels=channels,
                wide=wide,
                stride=1 if block else stage.stride,
                activation=stage.activation or net.activation,
            )


def _inverted(plan: Blueprint, at: str, x: Value, stage: Stage) -> Value:
    """Expand, filter each channel, project; add the input if the shape is unchanged."""
    wide, name = stage.wide or x.shape[1] * stage.expansion, at.rpartition("/")[2]
    activation = stage.activation
    y, index = x, 0
    if wide != x.shape[1]:
        y, index = _unit(plan, f"{at}/{name}.0", y, wide, activation=activation), 1
    y = _unit(
        plan,
        f"{at}/{name}.{index}",
        y,
        wide,
        activation=activation,
        kernel=stage.kernel,
        stride=stage.stride,
        groups=wide,
        dilation=stage.dilation,
    )
    if stage.squeeze:
        index += 1
        place = f"{at}/{name}.{index}"
        if stage.wide:
            y = excite(plan, place, y, divisible(wide // stage.squeeze), gate="hard_sigmoid")
        else:
            y = excite(plan, place, y, max(1, x.shape[1] // stage.squeeze), activation=activation)
    return _project(plan, f"{at}/{name}.{index + 1}", x, y, stage)


def _fused(plan: Blueprint, at: str, x: Value, stage: Stage) -> Value:
    """Filter densely, to more channels, and project; without expansion the filter is all."""
    name = at.rpartition("/")[2]
    if stage.expansion == 1:
        y = _unit(
            plan,
            f"{at}/{name}.0",
            x,
            stage.channels,
            activation=stage.activation,
            kernel=stage.kernel,
            stride=stage.stride,
        )
        return add(plan, at, x, y) if y.shape == x.shape else y
    wide = (x.shape[1] if stage.skips else stage.channels) * stage.expansion
    early = 1 if stage.late else stage.stride
    y = _unit(plan, f"{at}/{name}.0", x, wide, activation=stage.activation, kernel=stage.kernel, stride=early)
    return _project(plan, f"{at}/{name}.1", x, y, stage)


def _project(plan: Blueprint, at: str, x: Value, y: Value, stage: Stage) -> Value:
    left = stage.stride if stage.late else 1
    y = conv(plan, at, y, stage.channels, (1, 1), stride=(left, left), padding=0)
    return add(plan, "/".join(at.split("/")[:-2]), x, y) if stage.skips and x.shape == y.shape else y


def _unit(
    plan: Blueprint,
    at: str,
    x: Value,
    channels: int,
    *,
    activation: str,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
) -> Value:
    """Add a convolution and activation: items 0 and 2 of their container, as the normalisation between is folded."""
    name = at.rpartition("/")[2]
    return conv(
        plan,
        f"{at}/{name}.0",
        x,
        channels,
        (kernel, kernel),
        stride=(stride, stride),
        padding=kernel // 2 * dilation,
        groups=groups,
        dilation=dilation,
        activation=activation,
        activation_at=f"{at}/{name}.2",
    )


MOBILENETV2 = _Net(
    (
        Stage(1, 16, 1, 1),
        Stage(6, 24, 2, 2),
        Stage(6, 32, 3, 2),
        Stage(6, 64, 4, 2),
        Stage(6, 96, 3, 1),
        Stage(6, 160, 3, 2),
        Stage(6, 320, 1, 1),
    ),
    activation="relu6",
    container="conv",
)
_MNASNET = _Net(
    (
        Stage(1, 16, 1, 1),
        Stage(3, 24, 3, 2),
        Stage(3, 40, 3, 2, 5),
        Stage(6, 80, 3, 2, 5),
        Stage(6, 96, 2, 1),
        Stage(6, 192, 4, 2, 5),
        Stage(6, 320, 1, 1),
    ),
    activation="relu",
)


def _v3(*shape: int, squeeze: int = 0, activation: str = "") -> Stage:
    """Return the stage of one block: channels, stride, kernel, channels inside."""
    channels, stride, kernel, wide = shape
    return Stage(0, channels, 1, stride, kernel, wide=wide, squeeze=squeeze, activation=activation)


_MOBILENETV3_LARGE = _Net(
    (
        _v3(16, 1, 3, 16, activation="relu"),
        _v3(24, 2, 3, 64, activation="relu"),
        _v3(24, 1, 3, 72, activation="relu"),
        _v3(40, 2, 5, 72, squeeze=4, activation="relu"),
        _v3(40, 1, 5, 120, squeeze=4, activation="relu"),
        _v3(40, 1, 5, 120, squeeze=4, activation="relu"),
        _v3(80, 2, 3, 240),
        _v3(80, 1, 3, 200),
        _v3(80, 1, 3, 184),
        _v3(80, 1, 3, 184),
        _v3(112, 1, 3, 480, squeeze=4),
        _v3(112, 1, 3, 672, squeeze=4),
        _v3(160, 2, 5, 672, squeeze=4),
        _v3(160, 1, 5, 960, squeeze=4),
        _v3(160, 1, 5, 960, squeeze=4),
    ),
    stem=16,
    head=960,
    activation="hard_swish",
    hidden=1280,
)
_MOBILENETV3_SMALL = _Net(
    (
        _v3(16, 2, 3, 16, squeeze=4, activation="relu"),
        _v3(24, 2, 3, 72, activation="relu"),
        _v3(24, 1, 3, 88, activation="relu"),
        _v3(40, 2, 5, 96, squeeze=4),
        _v3(40, 1, 5, 240, squeeze=4),
        _v3(40, 1, 5, 240, squeeze=4),
        _v3(48, 1, 5, 120, squeeze=4),
        _v3(48, 1, 5, 144, squeeze=4),
        _v3(96, 2, 5, 288, squeeze=4),
        _v3(96, 1, 5, 576, squeeze=4),
        _v3(96, 1, 5, 576, squeeze=4),
    ),
    stem=16,
    head=576,
    activation="hard_swish",
    hidden=1024,
)
_EFFICIENTNET = _Net(
    (
        Stage(1, 16, 1, 1, squeeze=4),
        Stage(6, 24, 2, 2, squeeze=4),
        Stage(6, 40, 2, 2, 5, squeeze=4),
        Stage(6, 80, 3, 2, squeeze=4),
        Stage(6, 112, 3, 1, 5, squeeze=4),
        Stage(6, 192, 4, 2, 5, squeeze=4),
        Stage(6, 320, 1, 1, squeeze=4),
    )
)
_EFFICIENTNET_LITE = replace(
    _EFFICIENTNET,
    stages=tuple(replace(stage, squeeze=0) for stage in _EFFICIENTNET.stages),
    activation="relu6",
    fixed_ends=True,
)
_EFFICIENTNET_EDGETPU = _Net(
    (
        Stage(4, 24, 1, 1, fused=True, late=True, skips=False),
        Stage(8, 32, 2, 2, fused=True, late=True),
        Stage(8, 48, 4, 2, fused=True, late=True),
        Stage(8, 96, 5, 2, 5),
        Stage(8, 144, 4, 1, 5),
        Stage(8, 192, 2, 2, 5),
    ),
    activation="relu",
)
_EFFICIENTNETV2_S = _Net(
    (
        Stage(1, 24, 2, 1, fused=True),
        Stage(4, 48, 4, 2, fused=True),
        Stage(4, 64, 4, 2, fused=True),
        Stage(4, 128, 6, 2, squeeze=4),
        Stage(6, 160, 9, 1, squeeze=4),
        Stage(6, 256, 15, 2, squeeze=4),
    ),
    stem=24,
)
_EFFICIENTNETV2_B = _Net(
    (
        Stage(1, 16, 1, 1, fused=True),
        Stage(4, 32, 2, 2, fused=True),
        Stage(4, 48, 2, 2, fused=True),
        Stage(4, 96, 3, 2, squeeze=4),
        Stage(6, 112, 5, 1, squeeze=4),
        Stage(6, 192, 8, 2, squeeze=4),
    )
)


def _network(name: str, description: str, net: _Net, size: int, *more: Option) -> Network:
    return Network(name, description, partial(_build, net), (*image_options(size), *more), ("onnx", "tflite"))


WIDTH = Option("width", 100, "channels in percent of the published network's", smallest=5, largest=400)
_SCALED = (  # title, what is scaled, its factors of width and depth, size of the image, what that comes to
    ("EfficientNet-B0", _EFFICIENTNET, 1.0, 1.0, 224, "5.27 M parameters, 0.386 G MACs"),
    ("EfficientNet-B1", _EFFICIENTNET, 1.0, 1.1, 240, "7.76 M parameters, 0.687 G MACs"),
    ("EfficientNet-B2", _EFFICIENTNET, 1.1, 1.2, 260, "9.08 M parameters, 0.994 G MACs"),
    ("EfficientNet-B3", _EFFICIENTNET, 1.2, 1.4, 300, "12.2 M parameters, 1.83 G MACs"),
    ("EfficientNet-B4", _EFFICIENTNET, 1.4, 1.8, 380, "19.3 M parameters, 4.39 G MACs"),
    ("EfficientNet-Lite0", _EFFICIENTNET_LITE, 1.0, 1.0, 224, "4.63 M parameters, 0.385 G MACs"),
    ("EfficientNet-Lite1", _EFFICIENTNET_LITE, 1.0, 1.1, 240, "5.39 M parameters, 0.6 G MACs"),
    ("EfficientNet-Lite2", _EFFICIENTNET_LITE, 1.1, 1.2, 260, "6.06 M parameters, 0.86 G MACs"),
    ("EfficientNet-Lite3", _EFFICIENTNET_LITE, 1.2, 1.4, 280, "8.16 M parameters, 1.38 G MACs"),
    ("EfficientNet-Lite4", _EFFICIENTNET_LITE, 1.4, 1.8, 300, "13.0 M parameters, 2.55 G MACs"),
    ("EfficientNet-EdgeTPU-S", _EFFICIENTNET_EDGETPU, 1.0, 1.0, 224, "5.41 M parameters, 2.35 G MACs"),
    ("EfficientNet-EdgeTPU-M", _EFFICIENTNET_EDGETPU, 1.0, 1.1, 240, "6.87 M parameters, 3.66 G MACs"),
    ("EfficientNet-EdgeTPU-L", _EFFICIENTNET_EDGETPU, 1.2, 1.4, 300, "10.5 M parameters, 9.66 G MACs"),
    ("EfficientNetV2-B0", _EFFICIENTNETV2_B, 1.0, 1.0, 224, "7.11 M parameters, 0.718 G MACs"),
    ("EfficientNetV2-B1", _EFFICIENTNETV2_B, 1.0, 1.1, 240, "8.1 M parameters, 1.2 G MACs"),
    ("EfficientNetV2-B2", _EFFICIENTNETV2_B, 1.1, 1.2, 260, "10.1 M parameters, 1.7 G MACs"),
    ("EfficientNetV2-B3", _EFFICIENTNETV2_B, 1.2, 1.4, 300, "14.3 M parameters, 3.21 G MACs"),
)

NETWORKS = (
    _network("mobilenetv2", "MobileNetV2 1.0, 3.49 M parameters, 0.301 G MACs at 224×224", MOBILENETV2, 224, WIDTH),
    _network(
        "mobilenetv3-large", "MobileNetV3 large, 5.47 M parameters, 0.217 G MACs at 224×224", _MOBILENETV3_LARGE, 224
    ),
    _network(
        "mobilenetv3-small", "MobileNetV3 small, 2.54 M parameters, 0.0565 G MACs at 224×224", _MOBILENETV3_SMALL, 224
    ),
    _network("mnasnet", "MnasNet-B1 1.0, 4.36 M parameters, 0.314 G MACs at 224×224", _MNASNET, 224, WIDTH),
    *(
        _network(title.lower(), f"{title}, {counts} at {size}×{size}", replace(net, width=width, depth=depth), size)
        for title, net, width, depth, size, counts in _SCALED
    ),
    _network("efficientnetv2-s", "EfficientNetV2-S, 21.4 M parameters, 8.37 G MACs at 384×384", _EFFICIENTNETV2_S, 384),
)
