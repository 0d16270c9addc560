"""What cannot be made is said so, with what can."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.zoo import Recipe, make, names

NOWHERE = Path("/nonexistent/folder/model")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            Recipe("resnet5"),
            r"^zoo: no network is called 'resnet5'; did you mean resnet50\? expected a name that `opscope zoo` lists$",
        ),
        (Recipe("bert-base", format="tflite"), r"^bert-base: cannot be made as 'tflite'; expected one of onnx$"),
        (Recipe("kws-cnn", format="pt"), r"^kws-cnn: cannot be made as 'pt'; expected one of onnx, tflite$"),
        (Recipe("kws-cnn", precision="f8"), r"^kws-cnn: precision 'f8' does not exist in onnx; .* f32, f16, int8$"),
        (Recipe("kws-cnn", format="tflite", precision="f16"), r"'f16' does not exist in tflite; .* f32, int8$"),
        (Recipe("kws-cnn", format="tflite", weights=False), r"^kws-cnn: a tflite file always holds its weights; "),
        (Recipe("kws-cnn", batch=0), r"^kws-cnn: batch is 0; expected a whole number from 1 to 1048576$"),
        (Recipe("kws-cnn", sequence=4), r"^kws-cnn: sequence is 4; expected none, it reads no tokens$"),
        (Recipe("kws-cnn", options={"deep": 1}), r"^kws-cnn: no option is called 'deep'; .* channels, classes"),
        (Recipe("kws-cnn", options={"classes": "many"}), r"^kws-cnn: classes is 'many'; expected a whole number"),
        (Recipe("kws-cnn", options={"classes": "9" * 5000}), r"^kws-cnn: classes is '9+'; expected a whole number"),
        (Recipe("kws-cnn", options={"classes": -1}), r"^kws-cnn: classes is -1; expected a whole number"),
        (Recipe("resnet50", options={"size": 8}), r"^resnet50: size is 8; expected a whole number from 32 to 8192$"),
        (Recipe("bert-base", sequence=600), r"^bert-base: sequence is 600; expected at most positions, 512$"),
        (Recipe("bert-base", options={"heads": 7}), r"^bert-base: hidden 768 over 7 heads; expected a multiple"),
        (Recipe("yolov8n", options={"size": 100}), r"^yolov8n: size is 100; expected a multiple of 32$"),
        (Recipe("yolov3", options={"size": 100}), r"^yolov3: size is 100; expected a multiple of 32$"),
        (Recipe("swin-tiny", options={"size": 256}), r"^swin-tiny: size is 256; expected a multiple of 224$"),
        (Recipe("unet", options={"size": 100}), r"^unet: size is 100; expected a multiple of 16$"),
        (
            Recipe("resnet50", options={"strides": "v3"}),
            r"^resnet50: strides is 'v3'; expected one of v1, v1\.5, slim$",
        ),
        (Recipe("vit-b16", options={"patch": 15}), r"^vit-b16: size 224 over patches of 15; expected a multiple"),
        (Recipe("llm-decoder", options={"step": "jump"}), r"^llm-decoder: step is 'jump'; .* decode, prefill$"),
        (Recipe("llm-decoder", sequence=7), r"^llm-decoder: sequence is 7 in a decode step; expected 1, or step=pre"),
        (Recipe("llm-decoder", options={"kv_heads": 5}), r"^llm-decoder: 32 heads over 5 kv_heads; expected heads a"),
        (
            Recipe("llm-decoder", options={"heads": 4096}),
            r"^llm-decoder: hidden 4096 over 4096 heads; expected an even",
        ),
    ],
)
def test_a_recipe_that_cannot_be_made_says_what_can(recipe: Recipe, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(recipe, NOWHERE)


def test_a_folder_that_does_not_exist_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"^/nonexistent/folder/model: cannot be written \(No such file or directory\); "
    ):
        make(Recipe("kws-cnn"), NOWHERE)


def test_a_tflite_file_beyond_two_gigabytes_is_refused_before_it_is_made() -> None:
    recipe = Recipe("resnet50", format="tflite", options={"classes": 1 << 20})
    with pytest.raises(UsageError, match=r"bytes of weights do not fit; expected at most 2147483647 in TFLite$"):
        make(recipe, NOWHERE)


def test_the_listing_tells_what_each_network_takes() -> None:
    entries = {entry.name: entry for entry in names()}
    assert len(entries) == len(names())
    tasks = [task for task, _ in groupby(entry.task for entry in entries.values())]
    assert tasks == ["image classification", "object detection", "segmentation", "text", "audio", "small parts"]
    defaults = {option.name: option.default for option in entries["llm-decoder"].options}
    assert (defaults["layers"], defaults["hidden"], defaults["step"]) == (32, 4096, "decode")
    assert entries["kws-cnn"].precisions == {"onnx": ("f32", "f16", "int8"), "tflite": ("f32", "int8")}
    assert all(entry.description and "\n" not in entry.description for entry in entries.values())
