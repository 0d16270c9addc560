"""The networks of the zoo have the parameters and MACs that their publications state, read back by opscope."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opscope import api
from opscope.estimate.work import work_of
from opscope.graph.graph import Graph, Role
from opscope.zoo import ListedNetwork, Recipe, make, names

Row = tuple[str, dict[str, int | str], float, float | None]

# Parameters and 10⁹ MACs as torchvision states them for its weights (`num_params`, `_ops`).
TORCHVISION: list[Row] = [
    ("resnet18", {}, 11_689_512, 1.814),
    ("resnet34", {}, 21_797_672, 3.664),
    ("resnet50", {}, 25_557_032, 4.089),
    ("resnet101", {}, 44_549_160, 7.801),
    ("resnet152", {}, 60_192_808, 11.514),
    ("resnext50", {}, 25_028_904, 4.23),
    ("resnext101", {}, 88_791_336, 16.414),
    ("wide-resnet50", {}, 68_883_240, 11.398),
    ("regnetx-400mf", {}, 5_495_976, 0.414),
    ("regnetx-800mf", {}, 7_259_656, 0.8),
    ("regnetx-1.6gf", {}, 9_190_136, 1.603),
    ("regnetx-3.2gf", {}, 15_296_552, 3.177),
    ("regnety-3.2gf", {}, 19_436_338, 3.176),
    ("shufflenetv2-x0.5", {}, 1_366_792, None),
    ("shufflenetv2-x1.0", {}, 2_278_604, 0.145),
    ("shufflenetv2-x1.5", {}, 3_503_624, 0.296),
    ("shufflenetv2-x2.0", {}, 7_393_996, 0.583),
    ("regnety-400mf", {}, 4_344_144, 0.402),
    ("regnety-800mf", {}, 6_432_512, 0.834),
    ("regnety-1.6gf", {}, 11_202_430, 1.612),
    ("mobilenetv2", {}, 3_504_872, 0.301),
    ("mobilenetv3-large", {}, 5_483_032, 0.217),
    ("mobilenetv3-small", {}, 2_542_856, 0.057),
    ("mnasnet", {}, 4_383_312, 0.314),
    ("mnasnet", {"width": 50}, 2_218_512, 0.104),
    ("efficientnet-b0", {}, 5_288_548, 0.386),
    ("efficientnet-b1", {}, 7_794_184, 0.687),
    ("efficientnet-b2", {"size": 288}, 9_109_994, 1.088),
    ("efficientnet-b3", {}, 12_233_232, 1.827),
    ("efficientnet-b4", {}, 19_341_616, 4.394),
    ("efficientnetv2-s", {}, 21_458_488, 8.366),
    ("inception-v1", {}, 6_624_904, 1.498),
    ("inception-v3", {}, 23_834_568, 5.713),  # without the auxiliary classifier, which is for training
]
# Parameters with batch normalisation of timm (EfficientNet-Lite, -EdgeTPU, Inception v4) and Keras (trainable:
# EfficientNetV2-B0, MobileNetV1); 10⁹ MACs of their authors, or half the operations that Hailo's model zoo states.
OTHERS_NORMALISED: list[Row] = [
    ("efficientnet-lite0", {}, 4_652_008, None),
    ("efficientnet-lite1", {}, 5_416_680, None),
    ("efficientnet-lite2", {}, 6_092_072, None),
    ("efficientnet-lite3", {}, 8_197_096, None),
    ("efficientnet-lite4", {}, 13_006_568, 5.1 / 2),
    ("efficientnet-edgetpu-s", {}, 5_438_392, 4.72 / 2),
    ("efficientnet-edgetpu-m", {}, 6_899_496, 7.32 / 2),
    ("efficientnet-edgetpu-l", {}, 10_589_712, 19.4 / 2),
    ("efficientnetv2-b0", {}, 7_139_704, 0.72),
    ("inception-v4", {}, 42_679_816, 12.27),
    ("mobilenetv1", {}, 4_231_976, 0.569),
]
# No normalisation, or published after folding it: torchvision; Ultralytics (fused; YOLOv8 and YOLO11 without the 16
# numbers that decode boxes); Darknet; timm.
AS_THEY_ARE: list[Row] = [
    ("vgg16", {}, 138_357_544, 15.47),
    ("vgg19", {}, 143_667_240, 19.632),
    ("squeezenet1.0", {}, 1_248_424, 0.819),
    ("squeezenet1.1", {}, 1_235_496, 0.349),
    ("vit-tiny", {}, 5_717_416, 1.26),
    ("vit-small", {}, 22_050_664, 4.61),
    ("vit-b16", {}, 86_567_656, 17.564),
    ("vit-b16", {"qkv": "split"}, 86_567_656, 17.564),
    ("vit-b16", {"qkv": "packed"}, 86_567_656, 17.564),
    # torchvision; each of the 138 and 282 heads has its table of 13×13 relative positions looked up for 49×49 pairs
    ("swin-tiny", {}, 28_288_354 + 138 * (49**2 - 13**2), 4.491),
    ("swin-tiny", {"qkv": "split", "merge": "slices"}, 28_288_354 + 138 * (49**2 - 13**2), 4.491),
    ("swin-small", {}, 49_606_258 + 282 * (49**2 - 13**2), 8.741),
    ("yolov5n", {}, 1_867_405, 4.5 / 2),
    ("yolov5s", {}, 7_225_885, 16.4 / 2),
    ("yolov5m", {}, 21_172_173, 48.9 / 2),
    ("yolov5l", {}, 46_533_693, 109.0 / 2),
    ("yolov5x", {}, 86_705_005, 205.5 / 2),
    ("yolov8n", {}, 3_151_904 - 16, 8.7 / 2),
    ("yolov8s", {}, 11_156_544 - 16, 28.6 / 2),
    ("yolov8m", {}, 25_886_080 - 16, 78.9 / 2),
    ("yolov8l", {}, 43_668_288 - 16, 165.2 / 2),
    ("yolov8x", {}, 68_200_608 - 16, 257.8 / 2),
    ("yolo11n", {}, 2_616_248 - 16, 6.5 / 2),
    ("yolo11s", {}, 9_443_760 - 16, 21.5 / 2),
    ("yolo11m", {}, 20_091_712 - 16, 68.0 / 2),
    ("yolov7-tiny", {}, 6_219_709, 13.7 / 2),
    ("yolov7", {}, 36_905_341, 104.7 / 2),
    ("yolov3", {}, 61_922_845, 65.86 / 2),
]
# Published as rounded figures: YOLOX, Darknet, the object detection zoo of TensorFlow by way of others' tables;
# torchvision counts the factors of normalisations that are not folded here and no biases; MLPerf Tiny.
ROUNDED: list[Row] = [
    ("densenet121", {}, 7_978_856, 2.834),
    ("regnetx-200mf", {}, 2.68e6, 0.2),
    ("repvgg-a0", {}, 8.31e6, 1.36),
    ("repvgg-a1", {}, 12.79e6, 2.36),
    ("repvgg-a2", {}, 25.5e6, 5.12),
    ("repvgg-b0", {}, 14.34e6, 3.06),
    ("repvgg-b1", {}, 51.83e6, 11.8),
    ("repvgg-b2", {}, 80.3e6, 18.4),
    ("repvgg-b3", {}, 110.96e6, 26.2),
    ("densenet169", {}, 14_149_480, 3.36),
    ("densenet201", {}, 20_013_928, 4.291),
    ("densenet161", {}, 28_681_000, 7.728),
    ("resnet50v2", {}, 25.55e6, 4.1),
    ("resnet50v2", {"strides": "slim"}, 25.57e6, 3.49),
    ("resnet101v2", {}, 44_577_896, None),  # Keras, trainable, as the next
    ("resnet152v2", {}, 60_236_904, None),
    ("resnet50", {"strides": "slim"}, 25.53e6, 3.49),
    ("resnet50", {"strides": "v1"}, 25.53e6, 3.86),
    ("mobilenetv2", {"width": 140}, 6.09e6, 0.582),
    ("efficientnetv2-b1", {}, 8.1e6, 1.2),
    ("efficientnetv2-b2", {}, 10.1e6, 1.7),
    ("efficientnetv2-b3", {}, 14.4e6, None),
    ("yolov3-tiny", {}, 8.86e6, 5.56 / 2),
    ("yolov10n", {}, 2.3e6, 6.7 / 2),
    ("yolov10s", {}, 7.25e6, 21.6 / 2),
    ("yolov10m", {}, 15.4e6, 59.1 / 2),
    ("yolov10b", {}, 19.1e6, 92.0 / 2),
    ("yolov10l", {}, 24.4e6, 120.3 / 2),
    ("yolov10x", {}, 29.5e6, 160.4 / 2),
    ("yolo11l", {}, 25.3e6, 86.9 / 2),
    ("yolo11x", {}, 56.9e6, 194.9 / 2),
    # Its table counts two MACs for each of 8.38 million normalised elements as well; they weigh in this one alone.
    ("yolox-nano", {}, 0.91e6, 1.08 / 2 - 2 * 0.00838),
    ("yolox-nano", {"focus": "slices"}, 0.91e6, 1.08 / 2 - 2 * 0.00838),
    ("yolox-tiny", {}, 5.06e6, 6.45 / 2),
    ("yolox-s", {}, 8.97e6, 26.8 / 2),
    ("yolox-m", {}, 25.33e6, 73.8 / 2),
    ("yolox-l", {}, 54.2e6, 155.6 / 2),
    ("ssd-mobilenetv1", {}, 6.8e6, 1.24),
    ("deeplabv3-mobilenetv2", {}, 2.1e6, 17.65 / 2),
    ("deeplabv3-mobilenetv2", {"output_stride": "16"}, 2.1e6, 2.75),
    ("deeplabv3-mobilenetv2", {"output_stride": "32"}, 2.1e6, 3.21 / 2),
    ("autoencoder", {}, 0.267e6, 264_192 / 1e9),
    ("vww-mobilenetv1", {}, 0.2121e6, 0.0075),
    ("unet", {}, 31.03e6, None),
]


def read(name: str, options: dict[str, int | str], folder: Path) -> Graph:
    path = folder / "model.onnx"
    make(Recipe(name, weights=False, options=options), path)
    return api.read(path)


def parameters(graph: Graph) -> int:
    """Elements of trained tensors, told from an exporter's constants by their names."""
    constants = (tensor for tensor in graph.tensors if tensor.role is Role.CONSTANT and tensor.shape)
    return sum(tensor.elements or 0 for tensor in constants if "Constant" not in tensor.name)


def normalised_channels(graph: Graph) -> int:
    """Channels of convolutions over images: each had a factor beside its offset before normalisation was folded."""
    convolutions = [op for op in graph.ops if op.kind == "conv"]
    images = [op for op in convolutions if (graph.tensors[op.inputs[0]].shape or ())[2:] != (1, 1)]
    return sum((graph.tensors[op.outputs[0]].shape or (0, 0))[1] for op in images)


def giga_macs(graph: Graph) -> float:
    works = [work_of(op, graph) for op in graph.ops]
    assert all(work.known for work in works)
    return sum(work.macs for work in works) / 1e9


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        pytest.param(row, kind, id=" ".join([row[0], *(f"{key}={value}" for key, value in row[1].items())]))
        for kind, rows in (
            ("normalised", TORCHVISION + OTHERS_NORMALISED),
            ("exact", AS_THEY_ARE),
            ("rounded", ROUNDED),
        )
        for row in rows
    ],
)
def test_parameters_and_macs_are_the_published_ones(row: Row, kind: str, tmp_path: Path) -> None:
    name, options, published, published_macs = row
    graph = read(name, options, tmp_path)
    found = parameters(graph)
    if kind == "normalised":
        assert found + normalised_channels(graph) == published
    elif kind == "exact":
        assert found == published
    else:
        assert found == pytest.approx(published, rel=0.01)
    if published_macs is not None:
        assert giga_macs(graph) == pytest.approx(published_macs, rel=0.01)


@pytest.mark.parametrize("entry", [pytest.param(e, id=e.name) for e in names() if "MACs" in e.description])
def test_the_list_states_what_the_model_has(entry: ListedNetwork, tmp_path: Path) -> None:
    stated = re.search(r"([\d.]+) M parameters, ([\d.]+) G MACs", entry.description)
    assert stated is not None
    graph = read(entry.name, {}, tmp_path)
    assert float(stated[1]) == pytest.approx(parameters(graph) / 1e6, rel=0.01)
    assert float(stated[2]) == pytest.approx(giga_macs(graph), rel=0.012)
