"""Networks of one kind of layer: VGG, RepVGG, SqueezeNet, MobileNetV1, ShuffleNetV2, DenseNet, YOLOv3, U-Net.

Each is a table of layers; the order of a table is the order of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..blueprint import Blueprint, Value
from ..image_layers import add, classify, conv, dense, flat_mean, join, normalise, pool, resize, split
from ..network import Network, Option, Settings, image_input, image_options
from ..tensor_layers import reshape, transpose
from .inverted_residual import WIDTH

_TWO = (2, 2)


def _vgg(blocks: tuple[int, ...], plan: Blueprint, settings: Settings) -> None:
    """Stacks of 3×3 convolutions with a pool after each, and three dense layers."""
    x = image_input(plan, settings)
    for stage, (channels, count) in enumerate(zip((64, 128, 256, 512, 512), blocks, strict=True)):
        for layer in range(count):
            x = conv(plan, f"features/stage{stage}.{layer}", x, channels, (3, 3), padding=1, activation="relu")
        x = pool(plan, f"features/pool{stage}", x, _TWO, stride=_TWO)
    x = plan.step("Flatten", "", [x], (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]), rms=x.rms, span=x.span)
    for number in (0, 3):
        x = dense(plan, f"classifier/classifier.{number}", x, 4096, activation="relu")
    plan.output("output", dense(plan, "classifier/classifier.6", x, settings.number("classes")))


def _repvgg(blocks: tuple[int, ...], widths: tuple[float, float], plan: Blueprint, settings: Settings) -> None:
    """3×3 convolutions alone: what is left of the branches of training. Widths of the stages, and of the last one."""
    wide, last = widths
    channels = [min(64, int(64 * wide)), *(int(n * wide) for n in (64, 128, 256)), int(512 * last)]
    x = image_input(plan, settings)
    for stage, (width, count) in enumerate(zip(channels, (1, *blocks), strict=True)):
        for layer in range(count):
            stride = (1, 1) if layer else _TWO
            x = conv(plan, f"stage{stage}.{layer}", x, width, (3, 3), stride=stride, padding=1, activation="relu")
    classify(plan, x, settings.number("classes"))


def _shufflenetv2(channels: tuple[int, ...], plan: Blueprint, settings: Settings) -> None:
    """Half of the channels pass a block, then both halves are interleaved."""
    x = conv(plan, "conv1", image_input(plan, settings), 24, (3, 3), stride=_TWO, padding=1, activation="relu")
    x = pool(plan, "maxpool", x, (3, 3), stride=_TWO, padding=1)
    for stage, (width, count) in enumerate(zip(channels, (4, 8, 4), strict=False)):
        for block in range(count):
            x = _shuffled(plan, f"stage{stage + 2}/stage{stage + 2}.{block}", x, width // 2, halved=not block)
    x = conv(plan, "conv5", x, channels[-1], (1, 1), activation="relu")
    classify(plan, x, settings.number("classes"))


def _shuffled(plan: Blueprint, at: str, x: Value, width: int, *, halved: bool) -> Value:
    stride = _TWO if halved else (1, 1)
    side, y = (x, x) if halved else split(plan, at, x, (width, width))
    if halved:
        side = conv(plan, f"{at}/branch1.0", x, x.shape[1], (3, 3), stride=stride, padding=1, groups=x.shape[1])
        side = conv(plan, f"{at}/branch1.2", side, width, (1, 1), activation="relu")
    y = conv(plan, f"{at}/branch2.0", y, width, (1, 1), activation="relu")
    y = conv(plan, f"{at}/branch2.3", y, width, (3, 3), stride=stride, padding=1, groups=width)
    y = conv(plan, f"{at}/branch2.5", y, width, (1, 1), activation="relu")
    joined = join(plan, at, [side, y])
    batch, channels, height, columns = joined.shape
    halves = reshape(plan, at, joined, (batch, 2, channels // 2, height, columns))
    return reshape(plan, at, transpose(plan, at, halves, (0, 2, 1, 3, 4)), joined.shape)


def _squeezenet(first: tuple[int, int], pools: tuple[int, ...], plan: Blueprint, settings: Settings) -> None:
    """Fire modules: squeeze to few channels, then 1×1 and 3×3 beside each other."""
    channels, kernel = first
    x = conv(
        plan,
        "features/conv1",
        image_input(plan, settings),
        channels,
        (kernel, kernel),
        stride=_TWO,
        padding=0,
        activation="relu",
    )
    for number, squeezed in enumerate((0, 16, 16, 32, 32, 48, 48, 64, 64)):
        if squeezed:
            at = f"features/fire{number + 1}"
            x = conv(plan, f"{at}/squeeze", x, squeezed, (1, 1), padding=0, activation="relu")
            wide = [
                conv(plan, f"{at}/expand{size}", x, 4 * squeezed, (size, size), activation="relu") for size in (1, 3)
            ]
            x = join(plan, at, wide)
        if number in pools:
            x = pool(plan, f"features/pool{number}", x, (3, 3), stride=_TWO, partial_windows=True)
    x = conv(plan, "classifier/classifier.1", x, settings.number("classes"), (1, 1), padding=0, activation="relu")
    plan.output("output", flat_mean(plan, "classifier/classifier.3", x))


_SEPARABLE = (64, -128, 128, -256, 256, -512, 512, 512, 512, 512, 512, -1024, 1024)  # channels, negative at stride 2


def mobilenetv1_features(plan: Blueprint, x: Value, width: int) -> list[Value]:
    """Add the separable convolutions; return the result of each."""
    x = conv(plan, "conv0", x, _scaled(32, width), (3, 3), stride=_TWO, activation="relu6")
    results = []
    for number, channels in enumerate(_SEPARABLE):
        stride = _TWO if channels < 0 else (1, 1)
        at, inside = f"conv{number + 1}", x.shape[1]
        x = conv(plan, f"{at}/depthwise", x, inside, (3, 3), stride=stride, groups=inside, activation="relu6")
        x = conv(plan, f"{at}/pointwise", x, _scaled(abs(channels), width), (1, 1), activation="relu6")
        results.append(x)
    return results


def _mobilenetv1(plan: Blueprint, settings: Settings) -> None:
    x = mobilenetv1_features(plan, image_input(plan, settings), settings.number("width"))[-1]
    classify(plan, x, settings.number("classes"))


def _scaled(channels: int, width: int) -> int:
    return max(1, channels * width // 100)


def _densenet(blocks: tuple[int, ...], growth: int, first: int, plan: Blueprint, settings: Settings) -> None:
    """Every layer reads all layers before it; halving transitions between blocks."""
    x = image_input(plan, settings)
    x = conv(plan, "features/conv0", x, first, (7, 7), stride=_TWO, padding=3, activation="relu")
    x = pool(plan, "features/pool0", x, (3, 3), stride=_TWO, padding=1)
    for block, layers in enumerate(blocks):
        for layer in range(layers):
            at = f"features/denseblock{block + 1}/denselayer{layer + 1}"
            y = conv(plan, f"{at}/conv1", normalise(plan, f"{at}/norm1", x), 4 * growth, (1, 1), activation="relu")
            x = join(plan, at, [x, conv(plan, f"{at}/conv2", y, growth, (3, 3))])
        if block < len(blocks) - 1:
            at = f"features/transition{block + 1}"
            x = conv(plan, f"{at}/conv", normalise(plan, f"{at}/norm", x), x.shape[1] // 2, (1, 1))
            x = pool(plan, f"{at}/pool", x, _TWO, stride=_TWO, mean=True)
    classify(plan, normalise(plan, "features/norm5", x), settings.number("classes"), at="classifier")


class _Darknet:
    """Adds convolutions with the leaky activation of Darknet, numbered in order."""

    def __init__(self, plan: Blueprint, settings: Settings) -> None:
        size = settings.number("size")
        settings.require(size % 32 == 0, f"size is {size}", "a multiple of 32")
        self.plan, self.anchors = plan, 3 * (5 + settings.number("classes"))
        self.count = 0

    def conv(self, x: Value, channels: int, kernel: int, stride: int = 1) -> Value:
        self.count += 1
        strides = (stride, stride)
        return conv(
            self.plan,
            f"conv{self.count}",
            x,
            channels,
            (kernel, kernel),
            stride=strides,
            padding=kernel // 2,
            activation="leaky_relu",
        )

    def head(self, x: Value, channels: int) -> None:
        """Add one scale's output."""
        plan = self.plan
        y = conv(plan, f"yolo{len(plan.outputs)}", self.conv(x, channels, 3), self.anchors, (1, 1))
        plan.output(f"output{len(plan.outputs)}", y)

    def route(self, x: Value, channels: int, other: Value) -> Value:
        """Narrow, double the image, and put an earlier layer's channels after it."""
        height, width = other.shape[2:]
        at = f"route{len(self.plan.outputs)}"
        return join(self.plan, at, [resize(self.plan, at, self.conv(x, channels, 1), (height, width)), other])


def _yolov3(plan: Blueprint, settings: Settings) -> None:
    net = _Darknet(plan, settings)
    x = net.conv(image_input(plan, settings), 32, 3)
    levels = []
    for channels, count in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        x = net.conv(x, channels, 3, 2)
        for _ in range(count):
            x = add(plan, "shortcut", x, net.conv(net.conv(x, channels // 2, 1), channels, 3))
        levels.append(x)
    for level, channels in zip((4, 3, 2), (512, 256, 128), strict=True):
        if level != 4:
            x = net.route(x, channels, levels[level])
        for _ in range(2):
            x = net.conv(net.conv(x, channels, 1), 2 * channels, 3)
        x = net.conv(x, channels, 1)
        net.head(x, 2 * channels)


def _yolov3_tiny(plan: Blueprint, settings: Settings) -> None:
    net, x = _Darknet(plan, settings), image_input(plan, settings)
    for number, channels in enumerate((16, 32, 64, 128, 256)):
        last = net.conv(x, channels, 3)
        x = pool(plan, f"pool{number}", last, _TWO, stride=_TWO)
    x = pool(plan, "pool5", net.conv(x, 512, 3), _TWO, stride=(1, 1), padding=None)
    x = net.conv(net.conv(x, 1024, 3), 256, 1)
    net.head(x, 512)
    net.head(net.route(x, 128, last), 256)


def _unet(plan: Blueprint, settings: Settings) -> None:
    """Five levels of two convolutions down and up again, padded so that the size is kept; nearest-neighbour up."""
    x, kept = image_input(plan, settings), []
    first, size = settings.number("channels"), settings.number("size")
    settings.require(size % 16 == 0, f"size is {size}", "a multiple of 16")
    for level in range(5):
        x = _double(plan, f"down{level}", x, first << level)
        kept.append(x)
        x = pool(plan, f"down{level}/pool", x, _TWO, stride=_TWO) if level < 4 else x
    for level in (3, 2, 1, 0):
        at, other = f"up{level}", kept[level]
        x = resize(plan, at, x, (other.shape[2], other.shape[3]))
        x = conv(plan, f"{at}/conv0", x, first << level, _TWO, activation="relu")
        x = _double(plan, at, join(plan, at, [other, x]), first << level)
    plan.output("output", conv(plan, "out", x, settings.number("classes"), (1, 1)))


def _double(plan: Blueprint, at: str, x: Value, channels: int) -> Value:
    x = conv(plan, f"{at}/conv1", x, channels, (3, 3), activation="relu")
    return conv(plan, f"{at}/conv2", x, channels, (3, 3), activation="relu")


def _autoencoder(plan: Blueprint, settings: Settings) -> None:
    """Ten dense layers: eight of 128 around one of 8."""
    x = plan.input("input", (settings.batch, 640))
    for number, units in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128)):
        x = dense(plan, f"dense{number}", x, units, activation="relu")
    plan.output("output", dense(plan, "dense9", x, 640))


def _network(
    name: str,
    description: str,
    build: Callable[[Blueprint, Settings], None],
    options: tuple[Option, ...],
    task: str = "",
) -> Network:
    return Network(name, description, build, options, ("onnx", "tflite"), task=task or "image classification")


_DETECTION = "object detection"

CLASSIFIERS = (
    _network(
        "mobilenetv1",
        "MobileNetV1 1.0, 4.22 M parameters, 0.569 G MACs at 224×224",
        _mobilenetv1,
        (*image_options(224), WIDTH),
    ),
    _network(
        "vww-mobilenetv1",
        "MobileNetV1 0.25 of MLPerf Tiny, visual wake words, 0.211 M parameters, 0.0075 G MACs at 96×96",
        _mobilenetv1,
        (*image_options(96, classes=2), replace(WIDTH, default=25)),
    ),
    _network(
        "vgg16", "VGG-16, 138 M parameters, 15.5 G MACs at 224×224", partial(_vgg, (2, 2, 3, 3, 3)), image_options(224)
    ),
    _network(
        "vgg19", "VGG-19, 144 M parameters, 19.6 G MACs at 224×224", partial(_vgg, (2, 2, 4, 4, 4)), image_options(224)
    ),
    _network(
        "squeezenet1.0",
        "SqueezeNet 1.0, 1.25 M parameters, 0.819 G MACs at 224×224",
        partial(_squeezenet, (96, 7), (0, 3, 7)),
        image_options(224),
    ),
    _network(
        "squeezenet1.1",
        "SqueezeNet 1.1, 1.24 M parameters, 0.349 G MACs at 224×224",
        partial(_squeezenet, (64, 3), (0, 2, 4)),
        image_options(224),
    ),
    _network(
        "densenet121",
        "DenseNet-121, 7.97 M parameters, 2.83 G MACs at 224×224",
        partial(_densenet, (6, 12, 24, 16), 32, 64),
        image_options(224),
    ),
    *(
        Network(
            f"shufflenetv2-x{width}",
            f"ShuffleNetV2 {width}x, {counts} at 224×224",
            partial(_shufflenetv2, channels),
            image_options(224),
        )
        for width, channels, counts in (
            ("0.5", (48, 96, 192, 1024), "1.36 M parameters, 0.0406 G MACs"),
            ("1.0", (116, 232, 464, 1024), "2.27 M parameters, 0.145 G MACs"),
            ("1.5", (176, 352, 704, 1024), "3.49 M parameters, 0.296 G MACs"),
            ("2.0", (244, 488, 976, 2048), "7.38 M parameters, 0.583 G MACs"),
        )
    ),
    *(
        _network(
            f"repvgg-{name}",
            f"RepVGG-{name.upper()} as deployed, {counts} at 224×224",
            partial(_repvgg, (2, 4, 14, 1) if name.startswith("a") else (4, 6, 16, 1), widths),
            image_options(224),
        )
        for name, widths, counts in (
            ("a0", (0.75, 2.5), "8.3 M parameters, 1.36 G MACs"),
            ("a1", (1.0, 2.5), "12.8 M parameters, 2.36 G MACs"),
            ("a2", (1.5, 2.75), "25.5 M parameters, 5.12 G MACs"),
            ("b0", (1.0, 2.5), "14.3 M parameters, 3.06 G MACs"),
            ("b1", (2.0, 4.0), "51.8 M parameters, 11.8 G MACs"),
            ("b2", (2.5, 5.0), "80.3 M parameters, 18.4 G MACs"),
            ("b3", (3.0, 5.0), "111 M parameters, 26.2 G MACs"),
        )
    ),
    _network(
        "densenet169",
        "DenseNet-169, 14.1 M parameters, 3.36 G MACs at 224×224",
        partial(_densenet, (6, 12, 32, 32), 32, 64),
        image_options(224),
    ),
    _network(
        "densenet201",
        "DenseNet-201, 20.0 M parameters, 4.29 G MACs at 224×224",
        partial(_densenet, (6, 12, 48, 32), 32, 64),
        image_options(224),
    ),
    _network(
        "densenet161",
        "DenseNet-161, 28.7 M parameters, 7.73 G MACs at 224×224",
        partial(_densenet, (6, 12, 36, 24), 48, 96),
        image_options(224),
    ),
)
DETECTORS = (
    _network(
        "yolov3",
        "YOLOv3, 61.9 M parameters, 32.9 G MACs at 416×416",
        _yolov3,
        image_options(416, classes=80),
        _DETECTION,
    ),
    _network(
        "yolov3-tiny",
        "YOLOv3-tiny, 8.85 M parameters, 2.78 G MACs at 416×416",
        _yolov3_tiny,
        image_options(416, classes=80),
        _DETECTION,
    ),
)
UNET = _network(
    "unet",
    "U-Net with padding and repeated pixels on the way up, 31.0 M parameters, 54.6 G MACs at 256×256",
    _unet,
    (
        *image_options(256, classes=2),
        Option("channels", 64, "channels of the first level; each further one has twice as many", largest=4096),
    ),
    "segmentation",
)
AUTOENCODER = _network(
    "autoencoder",
    "deep autoencoder of MLPerf Tiny, anomaly detection, 0.266 M parameters, 0.000264 G MACs",
    _autoencoder,
    (),
    "audio",
)
