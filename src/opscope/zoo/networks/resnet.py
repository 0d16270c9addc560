"""Residual networks: ResNet, its wide and grouped forms, ResNet v2, and RegNet.

ResNet, ResNeXt and RegNet are as torchvision exports them. Where the stride of a bottleneck sits differs between
publications and changes the work: `strides` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ..blueprint import Blueprint, Value
from ..image_layers import add, classify, conv, excite, normalise, pool
from ..network import Network, Option, Settings, image_input, image_options

_EXPANSION = 4


@dataclass(frozen=True, slots=True)
class _ResNet:
    """Blocks of each of the four stages, and the kind of block."""

    blocks: tuple[int, int, int, int]
    bottleneck: bool = True
    groups: int = 1
    group_width: int = 64  # channels of a group where the stage has 64 · 2ⁿ


@dataclass(frozen=True, slots=True)
class _RegNet:
    """Blocks and channels of each of the four stages, channels of a group, and whether channels are excited."""

    blocks: tuple[int, int, int, int]
    widths: tuple[int, int, int, int]
    group_width: int
    excited: bool


def _build(net: _ResNet, plan: Blueprint, settings: Settings) -> None:
    strides = settings.word("strides") if net.bottleneck else "v1.5"
    classify(plan, _stages(net, plan, image_input(plan, settings), strides)[-1], settings.number("classes"))


def _stages(net: _ResNet, plan: Blueprint, image: Value, strides: str) -> list[Value]:
    """Return what each of the four stages makes."""
    x, results = _stem(plan, image), dict[int, Value]()
    for at, stage, stride in _blocks(net.blocks, late=strides == "slim"):
        if net.bottleneck:
            width = (64 << stage) * net.group_width // 64 * net.groups
            x = _bottleneck(plan, at, x, width, 256 << stage, stride=stride, groups=net.groups, first=strides == "v1")
        else:
            x = _basic(plan, at, x, 64 << stage, stride)
        results[stage] = x
    return list(results.values())


def resnext50_stages(plan: Blueprint, image: Value) -> list[Value]:
    """Return what each of the four stages of ResNeXt-50 makes, for a detector that reads them."""
    return _stages(_RESNEXT50, plan, image, "v1.5")


def _build_v2(net: _ResNet, plan: Blueprint, settings: Settings) -> None:
    x = _stem(plan, image_input(plan, settings))
    for at, stage, stride in _blocks(net.blocks, late=settings.word("strides") == "slim"):
        x = _activated_bottleneck(plan, at, x, 64 << stage, stride)
    classify(plan, normalise(plan, "norm", x), settings.number("classes"))


def _build_regnet(net: _RegNet, plan: Blueprint, settings: Settings) -> None:
    x = conv(plan, "stem/stem.0", image_input(plan, settings), 32, (3, 3), stride=(2, 2), padding=1, activation="relu")
    for at, stage, stride in _blocks(net.blocks, first_stride=2):
        width = net.widths[stage]
        squeezed = round(x.shape[1] / 4) if net.excited else 0
        groups = width // net.group_width
        x = _bottleneck(plan, at, x, width, width, stride=stride, groups=groups, squeezed=squeezed, pooled=False)
    classify(plan, x, settings.number("classes"))


def _stem(plan: Blueprint, image: Value) -> Value:
    x = conv(plan, "conv1", image, 64, (7, 7), stride=(2, 2), padding=3, activation="relu")
    return pool(plan, "maxpool", x, (3, 3), stride=(2, 2), padding=1)


def _blocks(counts: tuple[int, ...], *, late: bool = False, first_stride: int = 1) -> Iterator[tuple[str, int, int]]:
    """Yield place, stage and stride of each block; the stride is in the first, or in the last before it."""
    for stage, blocks in enumerate(counts):
        for block in range(blocks):
            if late:
                stride = 2 if block == blocks - 1 and stage < len(counts) - 1 else 1
            else:
                stride = 1 if block else 2 if stage else first_stride
            yield f"layer{stage + 1}/layer{stage + 1}.{block}", stage, stride


def _basic(plan: Blueprint, at: str, x: Value, width: int, stride: int) -> Value:
    strides = (stride, stride)
    y = conv(plan, f"{at}/conv1", x, width, (3, 3), stride=strides, padding=1, activation="relu")
    y = conv(plan, f"{at}/conv2", y, width, (3, 3), padding=1)
    return add(plan, at, y, _shortcut(plan, at, x, width, stride), activation="relu")


def _bottleneck(
    plan: Blueprint,
    at: str,
    x: Value,
    width: int,
    wide: int,
    *,
    stride: int,
    groups: int = 1,
    first: bool = False,
    squeezed: int = 0,
    pooled: bool = True,
) -> Value:
    """Narrow, filter, widen. The stride is in the filter, or in the `first` convolution."""
    strides, narrow = ((1, stride), (stride, 1))[first]
    y = conv(plan, f"{at}/conv1", x, width, (1, 1), stride=(strides, strides), padding=0, activation="relu")
    y = conv(
        plan, f"{at}/conv2", y, width, (3, 3), stride=(narrow, narrow), padding=1, groups=groups, activation="relu"
    )
    if squeezed:
        y = excite(plan, f"{at}/se", y, squeezed)
    y = conv(plan, f"{at}/conv3", y, wide, (1, 1), padding=0)
    return add(plan, at, y, _shortcut(plan, at, x, wide, stride, pooled=pooled), activation="relu")


def _activated_bottleneck(plan: Blueprint, at: str, x: Value, width: int, stride: int) -> Value:
    """Normalise and activate first, add last: nothing is done to a sum."""
    wide = width * _EXPANSION
    active = normalise(plan, f"{at}/bn1", x)
    y = conv(plan, f"{at}/conv1", active, width, (1, 1), padding=0, activation="relu")
    y = conv(plan, f"{at}/conv2", y, width, (3, 3), stride=(stride, stride), padding=1, activation="relu")
    y = conv(plan, f"{at}/conv3", y, wide, (1, 1), padding=0)
    return add(plan, at, y, _shortcut(plan, at, x if x.shape[1] == wide else active, wide, stride))


def _shortcut(plan: Blueprint, at: str, x: Value, channels: int, stride: int, *, pooled: bool = True) -> Value:
    """Return the input at the size of the output; one that only shrinks is pooled, but not in RegNet."""
    strides = (stride, stride)
    if x.shape[1] == channels and (stride == 1 or pooled):
        return pool(plan, f"{at}/downsample", x, (1, 1), stride=strides) if stride != 1 else x
    return conv(plan, f"{at}/downsample/downsample.0", x, channels, (1, 1), stride=strides, padding=0)


_RESNEXT50 = _ResNet((3, 4, 6, 3), groups=32, group_width=4)
_STRIDES = Option(
    "strides",
    "v1.5",
    "where bottlenecks of ResNet have their stride: v1 in the first convolution, v1.5 in the 3×3, "
    "slim in the 3×3 of the last block of a stage",
    choices=("v1", "v1.5", "slim"),
)
_V2_STRIDES = Option("strides", "v1.5", _STRIDES.description, choices=("v1.5", "slim"))


def _resnet(name: str, description: str, net: _ResNet) -> Network:
    options = (*image_options(224), *((_STRIDES,) if net.bottleneck else ()))
    return Network(name, description, partial(_build, net), options, ("onnx", "tflite"))


def _regnet(name: str, description: str, net: _RegNet) -> Network:
    return Network(name, description, partial(_build_regnet, net), image_options(224), ("onnx", "tflite"))


def _v2(name: str, description: str, net: _ResNet) -> Network:
    options = (*image_options(224), _V2_STRIDES)
    return Network(name, description, partial(_build_v2, net), options, ("onnx", "tflite"))


_REGNETS = (  # kind, multiplications that it is made for, blocks and channels of its stages, channels of a group
    ("x", "200mf", (1, 1, 4, 7), (24, 56, 152, 368), 8, "2.67 M parameters, 0.2 G MACs"),
    ("x", "400mf", (1, 2, 7, 12), (32, 64, 160, 400), 16, "5.5 M parameters, 0.41 G MACs"),
    ("x", "800mf", (1, 3, 7, 5), (64, 128, 288, 672), 16, "7.2 M parameters, 0.80 G MACs"),
    ("x", "1.6gf", (2, 4, 10, 2), (72, 168, 408, 912), 24, "9.2 M parameters, 1.60 G MACs"),
    ("x", "3.2gf", (2, 6, 15, 2), (96, 192, 432, 1008), 48, "15.3 M parameters, 3.18 G MACs"),
    ("y", "400mf", (1, 3, 6, 6), (48, 104, 208, 440), 8, "4.3 M parameters, 0.40 G MACs"),
    ("y", "800mf", (1, 3, 8, 2), (64, 144, 320, 784), 16, "6.4 M parameters, 0.83 G MACs"),
    ("y", "1.6gf", (2, 6, 17, 2), (48, 120, 336, 888), 24, "11.2 M parameters, 1.61 G MACs"),
    ("y", "3.2gf", (2, 5, 13, 1), (72, 216, 576, 1512), 24, "19.4 M parameters, 3.18 G MACs"),
)
NETWORKS = (
    _resnet(
        "resnet18", "ResNet-18, 11.7 M parameters, 1.81 G MACs at 224×224", _ResNet((2, 2, 2, 2), bottleneck=False)
    ),
    _resnet(
        "resnet34", "ResNet-34, 21.8 M parameters, 3.66 G MACs at 224×224", _ResNet((3, 4, 6, 3), bottleneck=False)
    ),
    _resnet("resnet50", "ResNet-50 v1.5, 25.5 M parameters, 4.09 G MACs at 224×224", _ResNet((3, 4, 6, 3))),
    _resnet("resnet101", "ResNet-101 v1.5, 44.5 M parameters, 7.80 G MACs at 224×224", _ResNet((3, 4, 23, 3))),
    _resnet("resnet152", "ResNet-152 v1.5, 60.1 M parameters, 11.5 G MACs at 224×224", _ResNet((3, 8, 36, 3))),
    _resnet(
        "resnext50",
        "ResNeXt-50 32x4d, 25.0 M parameters, 4.23 G MACs at 224×224",
        _RESNEXT50,
    ),
    _resnet(
        "resnext101",
        "ResNeXt-101 32x8d, 88.7 M parameters, 16.4 G MACs at 224×224",
        _ResNet((3, 4, 23, 3), groups=32, group_width=8),
    ),
    _resnet(
        "wide-resnet50",
        "Wide ResNet-50-2, 68.8 M parameters, 11.4 G MACs at 224×224",
        _ResNet((3, 4, 6, 3), group_width=128),
    ),
    _v2("resnet50v2", "ResNet-50 v2, 25.6 M parameters, 4.09 G MACs at 224×224", _ResNet((3, 4, 6, 3))),
    _v2("resnet101v2", "ResNet-101 v2, 44.6 M parameters, 7.80 G MACs at 224×224", _ResNet((3, 4, 23, 3))),
    _v2("resnet152v2", "ResNet-152 v2, 60.2 M parameters, 11.5 G MACs at 224×224", _ResNet((3, 8, 36, 3))),
    *(
        _regnet(
            f"regnet{kind}-{speed}",
            f"RegNet{kind.upper()} {speed.upper()}, {counts} at 224×224",
            _RegNet(depths, widths, group, excited=kind == "y"),
        )
        for kind, speed, depths, widths, group, counts in _REGNETS
    ),
)
