"""RetinaNet on ResNeXt-50 with a feature pyramid, as MLPerf Inference runs it on accelerators.

The device finds the best scores of every level and the boxes that they belong to; the host decodes these and removes
those that overlap.
"""

from __future__ import annotations

from ..blueprint import Blueprint, Value
from ..image_layers import add, conv, resize
from ..network import Network, Option, Settings, image_input, image_options
from ..tensor_layers import binary, expand, reshape, transpose, unary, unsqueeze
from .resnet import resnext50_stages

_PYRAMID = 256  # channels of every level
_TOWER = 4  # convolutions before classes and before boxes
_BOXES = 9  # for every place: three sizes of three forms
_CORNERS = 4  # numbers of a box


def _build(plan: Blueprint, settings: Settings) -> None:
    classes, top = (settings.number(name) for name in ("classes", "top"))
    image = image_input(plan, settings)
    for number, level in enumerate(_pyramid(plan, resnext50_stages(plan, image)[1:])):
        boxes = _head(plan, "head/boxes", level, _CORNERS)
        every = reshape(
            plan, "scores", _head(plan, "head/classes", level, classes), (settings.batch, boxes.shape[1] * classes)
        )
        found, places = plan.top("scores", unary(plan, "Sigmoid", "scores", every), min(top, every.shape[1]))
        box = binary(plan, "Div", "boxes", places, plan.literal("boxes", classes))
        place = expand(plan, "boxes", unsqueeze(plan, "boxes", box, 2), (*box.shape, _CORNERS))
        found_boxes = plan.step("GatherElements", "boxes", (boxes, place), place.shape, attributes={"axis": 1})
        for name, value in (("scores", found), ("places", places), ("boxes", found_boxes)):
            plan.output(f"{name}{number}", value)


def _pyramid(plan: Blueprint, stages: list[Value]) -> list[Value]:
    """Return the levels, finest first: each stage with what coarser ones have found, and two that are coarser still."""
    merged: list[Value] = []
    for number, stage in reversed(list(enumerate(stages))):
        level = conv(plan, f"fpn/inner{number}", stage, _PYRAMID, (1, 1), padding=0)
        if merged:
            height, width = stage.shape[2:]
            level = add(plan, f"fpn/merge{number}", level, resize(plan, "fpn", merged[0], (height, width)))
        merged.insert(0, level)
    levels = [conv(plan, f"fpn/layer{number}", x, _PYRAMID, (3, 3), padding=1) for number, x in enumerate(merged)]
    coarser = conv(plan, "fpn/p6", levels[-1], _PYRAMID, (3, 3), stride=(2, 2), padding=1)
    active = plan.step("Relu", "fpn", [coarser], coarser.shape, span=(0.0, coarser.span[1]))
    return [*levels, coarser, conv(plan, "fpn/p7", active, _PYRAMID, (3, 3), stride=(2, 2), padding=1)]


def _head(plan: Blueprint, at: str, x: Value, numbers: int) -> Value:
    """Convolutions whose weights all levels share; return so many numbers of every box at every place."""
    for number in range(_TOWER):
        x = conv(plan, f"{at}/{number}", x, _PYRAMID, (3, 3), padding=1, activation="relu")
    x = conv(plan, f"{at}/predict", x, _BOXES * numbers, (3, 3), padding=1)
    batch, _, height, width = x.shape
    x = transpose(plan, at, reshape(plan, at, x, (batch, _BOXES, numbers, height, width)), (0, 3, 4, 1, 2))
    return reshape(plan, at, x, (batch, height * width * _BOXES, numbers))


NETWORK = Network(
    "retinanet",
    "RetinaNet, ResNeXt-50 32x4d, 37.1 M parameters, 201 G MACs at 800×800",
    _build,
    (*image_options(800, classes=264, smallest=128), Option("top", 1000, "scores kept of every level")),
    task="object detection",
)
