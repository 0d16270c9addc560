"""YOLOv5 (release 6), YOLOv8, YOLOv10, YOLO11 and YOLOX: a backbone, a pyramid up and down, and heads at three scales.

The outputs are those of the last convolutions, before boxes are decoded: what accelerators run. Widths and depths are
multiples of one description, as published. Focus, the first layer of YOLOX, is the one operator it is, or the slices
that PyTorch exports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log, sqrt

from ..blueprint import Blueprint, Value, ValueKind
from ..image_layers import add, conv, corners, join, pool, resize, split
from ..network import Network, Option, Settings, divisible
from ..tensor_layers import attend, binary, matmul, reshape, softmax, transpose

_ACTIVATIONS = ("silu", "relu", "relu6", "leaky_relu")


@dataclass(frozen=True, slots=True)
class _Scale:
    """Multipliers of depth and width, and the most channels before the width is applied."""

    depth: float
    width: float
    limit: int = 1024
    inverted: tuple[int, ...] = ()  # YOLOv10: layers of inverted blocks
    large: bool = False  # YOLOv10: their filters are 7×7
    separable: bool = False  # YOLOX nano: a filter per channel, then a product over channels

    def repeats(self, count: int) -> int:
        return max(round(count * self.depth), 1)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Adds layers to one blueprint, each under the number the published description gives it."""

    plan: Blueprint
    activation: str
    separable: bool = False  # convolutions that see neighbours are two

    def unit(self, at: str, x: Value, channels: int, kernel: int = 1, *, stride: int = 1, groups: int = 1) -> Value:
        """Add a convolution that halves the image at a stride of 2 and else keeps its size, and the activation."""
        if self.separable and kernel > 1:
            whole = replace(self, separable=False)
            x = whole.unit(f"{at}/dconv", x, x.shape[1], kernel, stride=stride, groups=x.shape[1])
            # Nine weights do not average out: channels differ in reach, and the large ones pass SiLU as they pass ReLU.
            return whole.unit(f"{at}/pconv", replace(x, rms=max(x.rms, sqrt(0.5))), channels)
        return conv(
            self.plan,
            f"{at}/conv",
            x,
            channels,
            (kernel, kernel),
            stride=(stride, stride),
            padding=(kernel - 1) // 2,
            groups=groups,
            activation=self.activation,
        )

    def plain(self, at: str, x: Value, channels: int, kernel: int = 1, *, stride: int = 1, groups: int = 1) -> Value:
        return replace(self, activation="").unit(at, x, channels, kernel, stride=stride, groups=groups)

    def bottleneck(
        self, at: str, x: Value, kernels: tuple[int, int], *, ratio: float = 1.0, skip: bool = True
    ) -> Value:
        y = self.unit(f"{at}/cv1", x, int(x.shape[1] * ratio), kernels[0])
        y = self.unit(f"{at}/cv2", y, x.shape[1], kernels[1])
        return add(self.plan, at, x, y) if skip else y

    def c3(
        self, at: str, x: Value, channels: int, count: int, *, skip: bool = True, kernels: tuple[int, int] = (1, 3)
    ) -> Value:
        """Half of the channels pass bottlenecks, the other half one convolution."""
        y = self.unit(f"{at}/cv1", x, channels // 2)
        for number in range(count):
            y = self.bottleneck(f"{at}/m/m.{number}", y, kernels, skip=skip)
        return self.unit(f"{at}/cv3", join(self.plan, at, [y, self.unit(f"{at}/cv2", x, channels // 2)]), channels)

    def c2f(
        self, at: str, x: Value, channels: int, blocks: Sequence[Callable[[str, Value], Value]], *, half: int
    ) -> Value:
        """Half of the channels pass blocks one after another; what each returns is kept."""
        parts = split(self.plan, at, self.unit(f"{at}/cv1", x, 2 * half), (half, half))
        for number, block in enumerate(blocks):
            parts.append(block(f"{at}/m.{number}", parts[-1]))
        return self.unit(f"{at}/cv2", join(self.plan, at, parts), channels)

    def pyramid_pool(self, at: str, x: Value, channels: int, kernels: tuple[int, ...], *, chained: bool) -> Value:
        """Maxima over windows of several sizes, beside each other (SPP) or one of the other (SPPF)."""
        parts, extent = [self.unit(f"{at}/cv1", x, x.shape[1] // 2)], 1
        for kernel in kernels:
            source = parts[-1] if chained else parts[0]
            most = pool(self.plan, f"{at}/m", source, (kernel, kernel), stride=(1, 1), padding=kernel // 2)
            extent = extent + kernel - 1 if chained else kernel
            # The largest of n normal values is about √(2 ln n) deviations above their mean.
            parts.append(replace(most, rms=parts[0].rms * sqrt(2 * log(extent**2))))
        return self.unit(f"{at}/cv2", join(self.plan, at, parts), channels)

    def up(self, at: str, x: Value, other: Value) -> Value:
        """Double the image and put another's channels after it."""
        height, width = other.shape[2:]
        return join(self.plan, at, [resize(self.plan, at, x, (height, width)), other])


def _backbone(
    layers: _Layers,
    image: Value,
    widths: Sequence[int],
    block: Callable[[int, Value, int], Value],
    *,
    kernel: int = 3,
    down: Callable[[str, Value, int], Value] | None = None,
) -> list[Value]:
    """The last four of five levels, each half as large as the one before: a block at each, and a pool at the last.

    `block` takes its stage, from 0; `down` is how the last two levels are reached where that is not by a convolution.
    """
    x = layers.unit("model.0", image, widths[0], kernel, stride=2)
    levels = []
    for stage, channels in enumerate(widths[1:]):
        at = f"model.{2 * stage + 1}"
        x = down(at, x, channels) if down and stage >= 2 else layers.unit(at, x, channels, 3, stride=2)
        x = block(stage, x, channels)
        levels.append(x)
    levels[-1] = layers.pyramid_pool("model.9", x, widths[-1], (5, 5, 5), chained=True)
    return levels


def _pyramid(
    layers: _Layers,
    levels: Sequence[Value],
    widths: Sequence[int],
    block: Callable[[int, Value, int], Value],
    *,
    narrowed: bool,
    down: Callable[[str, Value, int], Value] | None = None,
) -> list[Value]:
    """Pass three levels of a backbone up and down again; `narrowed` halves the channels before going up.

    `down` is how the last level is reached where that is not by a convolution.
    """
    (low, middle, high), (small, medium, large) = levels, widths
    first = layers.unit("model.10", high, medium) if narrowed else high
    x = block(13, layers.up("model.12", first, middle), medium)
    second = layers.unit("model.14", x, small) if narrowed else x
    outputs = [block(17, layers.up("model.16", second, low), small)]
    halved = layers.unit("model.18", outputs[0], small, 3, stride=2)
    outputs.append(block(20, join(layers.plan, "model.19", [halved, second]), medium))
    halve = down or partial(layers.unit, kernel=3, stride=2)
    halved = halve("model.21", outputs[1], medium)
    outputs.append(block(23, join(layers.plan, "model.22", [halved, first]), large))
    return outputs


def _input(plan: Blueprint, settings: Settings) -> Value:
    size = settings.number("size")
    settings.require(size % 32 == 0, f"size is {size}", "a multiple of 32")
    return plan.input("images", (settings.batch, 3, size, size))


def _v5(scale: _Scale, plan: Blueprint, settings: Settings) -> None:
    layers = _Layers(plan, settings.word("activation"))
    widths = [ceil(channels * scale.width / 8) * 8 for channels in (64, 128, 256, 512, 1024)]

    def first(stage: int, x: Value, channels: int) -> Value:
        return layers.c3(f"model.{2 * stage + 2}", x, channels, scale.repeats((3, 6, 9, 3)[stage]))

    levels = _backbone(layers, _input(plan, settings), widths, first, kernel=6)

    def block(number: int, x: Value, channels: int) -> Value:
        return layers.c3(f"model.{number}", x, channels, scale.repeats(3), skip=False)

    for number, x in enumerate(_pyramid(layers, levels[1:], widths[2:], block, narrowed=True)):
        y = conv(plan, f"model.24/m.{number}", x, 3 * (5 + settings.number("classes")), (1, 1), padding=0)
        plan.output(f"output{number}", y)


def _x(scale: _Scale, plan: Blueprint, settings: Settings) -> None:
    whole = _Layers(plan, settings.word("activation"))
    layers = replace(whole, separable=scale.separable)
    widths = [int(channels * scale.width) for channels in (64, 128, 256, 512, 1024)]
    folded = _focus(plan, _input(plan, settings), sliced=settings.word("focus") == "slices")
    x = whole.unit("stem", folded, widths[0], 3)
    levels = []
    for stage, (channels, count) in enumerate(zip(widths[1:], (1, 3, 3, 1), strict=True)):
        at, last = f"dark{stage + 2}", stage == 3
        x = layers.unit(f"{at}/down", x, channels, 3, stride=2)
        if last:
            x = layers.pyramid_pool(f"{at}/spp", x, channels, (5, 9, 13), chained=False)
        x = layers.c3(f"{at}/csp", x, channels, count * scale.repeats(3), skip=not last)
        levels.append(x)

    def block(number: int, x: Value, channels: int) -> Value:
        return layers.c3(f"model.{number}", x, channels, round(3 * scale.depth), skip=False)

    for number, x in enumerate(_pyramid(layers, levels[1:], widths[2:], block, narrowed=True)):
        _decoupled(layers, f"head.{number}", x, int(256 * scale.width), settings.number("classes"))


def _focus(plan: Blueprint, image: Value, *, sliced: bool) -> Value:
    """Put each square of four pixels into one, with four times the channels."""
    if sliced:
        return join(plan, "stem", corners(plan, "stem", image, (2, 3)))
    batch, channels, height, width = image.shape
    shape = (batch, 4 * channels, height // 2, width // 2)
    return plan.step("SpaceToDepth", "stem", [image], shape, attributes={"blocksize": 2})


def _decoupled(layers: _Layers, at: str, x: Value, width: int, classes: int) -> None:
    """The head of YOLOX: classes apart from boxes, and whether there is an object."""
    x = layers.unit(f"{at}/stem", x, width)
    kinds, boxes = (
        layers.unit(f"{at}/{name}.1", layers.unit(f"{at}/{name}.0", x, width, 3), width, 3) for name in ("cls", "reg")
    )
    for name, source, channels in (("cls", kinds, classes), ("reg", boxes, 4), ("obj", boxes, 1)):
        plan = layers.plan
        plan.output(f"{name}{len(plan.outputs) // 3}", conv(plan, f"{at}/{name}_pred", source, channels, (1, 1)))


def _widths(scale: _Scale) -> list[int]:
    return [divisible(min(channels, scale.limit) * scale.width) for channels in (64, 128, 256, 512, 1024)]


def _v8(scale: _Scale, plan: Blueprint, settings: Settings, *, tenth: bool = False) -> None:
    """YOLOv8; with `tenth` YOLOv10, which has some blocks inverted, attention, and filters apart from channels."""
    layers, widths = _Layers(plan, settings.word("activation")), _widths(scale)

    def block(number: int, x: Value, channels: int, *, count: int = 3, skip: bool = False) -> Value:
        inner: Callable[[str, Value], Value] = partial(layers.bottleneck, kernels=(3, 3), skip=skip)
        if number in scale.inverted:
            inner = partial(_inverted, layers, kernel=7 if scale.large else 3)
        return layers.c2f(f"model.{number}", x, channels, [inner] * scale.repeats(count), half=channels // 2)

    def first(stage: int, x: Value, channels: int) -> Value:
        return block(2 * stage + 2, x, channels, count=(3, 6, 6, 3)[stage], skip=True)

    def separate(at: str, x: Value, channels: int) -> Value:
        """Change the channels, then halve each one's image."""
        return layers.plain(f"{at}/cv2", layers.unit(f"{at}/cv1", x, channels), channels, 3, stride=2, groups=channels)

    down = separate if tenth else None
    levels = _backbone(layers, _input(plan, settings), widths, first, down=down)
    if tenth:
        levels[-1] = _attentive(layers, "model.10", levels[-1], 1)
    outputs = _pyramid(layers, levels[1:], widths[2:], block, narrowed=False, down=down)
    _distributed(layers, outputs, settings.number("classes"), light=tenth)


def _inverted(layers: _Layers, at: str, x: Value, *, kernel: int) -> Value:
    """Filter each channel three times, with twice the channels in between."""
    channels = x.shape[1]
    y = layers.unit(f"{at}/cv1.0", x, channels, 3, groups=channels)
    y = layers.unit(f"{at}/cv1.1", y, 2 * channels)
    y = layers.unit(f"{at}/cv1.2", y, 2 * channels, kernel, groups=2 * channels)
    y = layers.unit(f"{at}/cv1.3", y, channels)
    return add(layers.plan, at, x, layers.unit(f"{at}/cv1.4", y, channels, 3, groups=channels))


def _v11(scale: _Scale, plan: Blueprint, settings: Settings) -> None:
    layers, widths = _Layers(plan, settings.word("activation")), _widths(scale)
    everywhere = scale.width >= 1  # the small sizes nest blocks at the coarse levels only

    def block(number: int, x: Value, channels: int, *, half: int = 0, nested: bool = False) -> Value:
        inner = (
            partial(_nested, layers) if nested or everywhere else partial(layers.bottleneck, kernels=(3, 3), ratio=0.5)
        )
        return layers.c2f(f"model.{number}", x, channels, [inner] * scale.repeats(2), half=half or channels // 2)

    def first(stage: int, x: Value, channels: int) -> Value:
        fine = stage < 2  # these blocks return twice the channels that they read
        wide = widths[stage + 2] if fine else channels
        return block(2 * stage + 2, x, wide, half=wide // 4 if fine else 0, nested=not fine)

    levels = _backbone(layers, _input(plan, settings), widths, first)
    levels[-1] = _attentive(layers, "model.10", levels[-1], scale.repeats(2))

    def coarse_nested(number: int, x: Value, channels: int) -> Value:
        return block(number, x, channels, nested=channels == widths[-1])

    outputs = _pyramid(layers, levels[1:], widths[2:], coarse_nested, narrowed=False)
    _distributed(layers, outputs, settings.number("classes"), light=True)


def _nested(layers: _Layers, at: str, x: Value) -> Value:
    return layers.c3(at, x, x.shape[1], 2, kernels=(3, 3))


def _attentive(layers: _Layers, at: str, x: Value, count: int) -> Value:
    """Half of the channels pass attention blocks over all places of the image."""
    half = x.shape[1] // 2
    kept, y = split(layers.plan, at, layers.unit(f"{at}/cv1", x, 2 * half), (half, half))
    for number in range(count):
        place = f"{at}/m/m.{number}"
        y = add(layers.plan, place, y, _attention(layers, f"{place}/attn", y))
        wide = layers.unit(f"{place}/ffn/ffn.0", y, 2 * half)
        y = add(layers.plan, place, y, layers.plain(f"{place}/ffn/ffn.1", wide, half))
    return layers.unit(f"{at}/cv2", join(layers.plan, at, [kept, y]), 2 * half)


def _attention(layers: _Layers, at: str, x: Value) -> Value:
    plan, (batch, channels, height, width) = layers.plan, x.shape
    heads = max(channels // 64, 1)
    size = channels // heads
    key_size, places = size // 2, height * width
    joint = layers.plain(f"{at}/qkv", x, channels + 2 * heads * key_size)
    joint = reshape(plan, at, joint, (batch, heads, 2 * key_size + size, places))
    query, key, value = split(plan, at, joint, (key_size, key_size, size), axis=2)
    scores = matmul(plan, at, transpose(plan, at, query, (0, 1, 3, 2)), key, rms=sqrt(key_size))
    scores = binary(plan, "Mul", at, scores, plan.literal(at, 1 / sqrt(key_size), ValueKind.FLOAT))
    shares = transpose(plan, at, softmax(plan, at, scores, keys=places), (0, 1, 3, 2))
    mixed = reshape(plan, at, attend(plan, at, value, shares), x.shape)
    position = layers.plain(f"{at}/pe", reshape(plan, at, value, x.shape), channels, 3, groups=channels)
    return layers.plain(f"{at}/proj", add(plan, at, mixed, position), channels)


def _distributed(layers: _Layers, levels: Sequence[Value], classes: int, *, light: bool) -> None:
    """The head of YOLOv8 and later: 16 distances per side, and classes; `light` filters each channel."""
    plan, first = layers.plan, levels[0].shape[1]
    wide, kinds = max(64, first // 4), max(first, min(classes, 100))
    for number, x in enumerate(levels):
        at = f"head.{number}"
        box = layers.unit(f"{at}/cv2.1", layers.unit(f"{at}/cv2.0", x, wide, 3), wide, 3)
        plan.output(f"box{number}", conv(plan, f"{at}/cv2.2", box, 4 * 16, (1, 1)))
        y = x
        for step in ("cv3.0", "cv3.1"):
            if light:
                y = layers.unit(f"{at}/{step}/{step}.0", y, y.shape[1], 3, groups=y.shape[1])
            y = layers.unit(f"{at}/{step}", y, kinds, 1 if light else 3)
        plan.output(f"class{number}", conv(plan, f"{at}/cv3.2", y, classes, (1, 1)))


def detector_options(size: int, activation: str = "silu") -> tuple[Option, ...]:
    return (
        Option("size", size, "height and width of the image", smallest=32, largest=8192),
        Option("classes", 80, "classes told apart"),
        Option("activation", activation, "the activation of every convolution but the last", choices=_ACTIVATIONS),
    )


def _network(
    name: str,
    counts: str,
    build: Callable[[_Scale, Blueprint, Settings], None],
    scale: _Scale,
    *,
    size: int = 640,
    formats: tuple[str, ...] = ("onnx", "tflite"),
    more: tuple[Option, ...] = (),
) -> Network:
    description, options = f"{counts} at {size}×{size}", (*detector_options(size), *more)
    return Network(name, description, partial(build, scale), options, formats, task="object detection")


_FOCUS = Option("focus", "operator", "the first layer as one operator, or as slices", choices=("operator", "slices"))
NETWORKS = (
    _network("yolov5n", "YOLOv5n 6.x, 1.87 M parameters, 2.23 G MACs", _v5, _Scale(0.33, 0.25)),
    _network("yolov5s", "YOLOv5s 6.x, 7.23 M parameters, 8.2 G MACs", _v5, _Scale(0.33, 0.5)),
    _network("yolov5m", "YOLOv5m 6.x, 21.2 M parameters, 24.4 G MACs", _v5, _Scale(0.67, 0.75)),
    _network("yolov5l", "YOLOv5l 6.x, 46.5 M parameters, 54.5 G MACs", _v5, _Scale(1.0, 1.0)),
    _network("yolov5x", "YOLOv5x 6.x, 86.7 M parameters, 102.7 G MACs", _v5, _Scale(1.33, 1.25)),
    _network("yolov8n", "YOLOv8n, 3.15 M parameters, 4.37 G MACs", _v8, _Scale(0.33, 0.25)),
    _network("yolov8s", "YOLOv8s, 11.2 M parameters, 14.3 G MACs", _v8, _Scale(0.33, 0.5)),
    _network("yolov8m", "YOLOv8m, 25.9 M parameters, 39.5 G MACs", _v8, _Scale(0.67, 0.75, 768)),
    _network("yolov8l", "YOLOv8l, 43.7 M parameters, 82.6 G MACs", _v8, _Scale(1.0, 1.0, 512)),
    _network("yolov8x", "YOLOv8x, 68.2 M parameters, 128.9 G MACs", _v8, _Scale(1.0, 1.25, 512)),
    *(
        _network(f"yolov10{letter}", f"YOLOv10{letter}, {counts}", partial(_v8, tenth=True), scale, formats=("onnx",))
        for letter, counts, scale in (
            ("n", "2.3 M parameters, 3.38 G MACs", _Scale(0.33, 0.25, inverted=(23,), large=True)),
            ("s", "7.25 M parameters, 10.9 G MACs", _Scale(0.33, 0.5, inverted=(8, 23), large=True)),
            ("m", "15.4 M parameters, 29.6 G MACs", _Scale(0.67, 0.75, 768, (8, 20, 23))),
            ("b", "19.1 M parameters, 46.0 G MACs", _Scale(0.67, 1.0, 512, (8, 13, 20, 23))),
            ("l", "24.4 M parameters, 60.2 G MACs", _Scale(1.0, 1.0, 512, (8, 13, 20, 23))),
            ("x", "29.5 M parameters, 80.3 G MACs", _Scale(1.0, 1.25, 512, (6, 8, 13, 20, 23))),
        )
    ),
    _network("yolo11n", "YOLO11n, 2.62 M parameters, 3.27 G MACs", _v11, _Scale(0.5, 0.25), formats=("onnx",)),
    _network("yolo11s", "YOLO11s, 9.44 M parameters, 10.8 G MACs", _v11, _Scale(0.5, 0.5), formats=("onnx",)),
    _network("yolo11m", "YOLO11m, 20.1 M parameters, 34.1 G MACs", _v11, _Scale(0.5, 1.0, 512), formats=("onnx",)),
    _network("yolo11l", "YOLO11l, 25.3 M parameters, 43.5 G MACs", _v11, _Scale(1.0, 1.0, 512), formats=("onnx",)),
    _network("yolo11x", "YOLO11x, 56.9 M parameters, 97.6 G MACs", _v11, _Scale(1.0, 1.5, 512), formats=("onnx",)),
    *(
        _network(f"yolox-{size}", f"YOLOX-{size}, {counts}", _x, scale, size=extent, more=(_FOCUS,))
        for size, counts, scale, extent in (
            ("nano", "0.90 M parameters, 0.52 G MACs", _Scale(0.33, 0.25, separable=True), 416),
            ("tiny", "5.05 M parameters, 3.21 G MACs", _Scale(0.33, 0.375), 416),
            ("s", "8.96 M parameters, 13.3 G MACs", _Scale(0.33, 0.5), 640),
            ("m", "25.3 M parameters, 36.8 G MACs", _Scale(0.67, 0.75), 640),
            ("l", "54.2 M parameters, 77.6 G MACs", _Scale(1.0, 1.0), 640),
        )
    ),
)
