"""Scratch of ESP-NN: each figure is what the library's own esp_nn_get_*_scratch_size returns, compiled at d45b843."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.machine.target import Runtime
from opscope.plugins.tflm.espnn import Chip, scratch
from opscope.plugins.tflm.interpreter import INTERPRETER, build_of
from opscope.plugins.tflm.nodes import ModelFile, Node
from opscope.plugins.tflm.tail import Build
from opscope.readers import graph_of
from opscope.zoo.catalogue import Recipe, make
from support.models.tflite_build import Operator, Type, options
from support.models.tflm_models import conv, one_op


def only(file: ModelFile) -> Node:
    (node,) = file.nodes(file.subgraphs[0])
    return node


def square(extent: int, channels: int) -> tuple[int, ...]:
    return (1, extent, extent, channels)


def depthwise(extent: int, channels: int, kernel: int, made: int) -> ModelFile:
    chosen = options("DepthwiseConv2DOptions", strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)
    shapes = [square(extent, channels), (1, kernel, kernel, made)]
    return one_op(Operator.DEPTHWISE_CONV_2D, shapes, square(extent, made), chosen)


@pytest.mark.parametrize(
    ("file", "size"),
    [
        (conv(square(8, 8), (4, 1, 1, 8), square(8, 4)), 224),
        (conv(square(8, 3), (4, 1, 1, 3), square(8, 4)), 736),  # channels filled up to eight
        (conv(square(8, 3), (4, 3, 3, 3), square(8, 4)), 272),  # windows gathered
        (conv(square(8, 16), (4, 3, 3, 16), square(8, 4)), 4432),
        (depthwise(8, 16, 3, 16), 1760),
        (depthwise(60, 16, 3, 16), 3136),  # a strip at a time
        (depthwise(8, 24, 3, 24), 7008),
        (depthwise(8, 8, 3, 8), 1200),
        (depthwise(8, 16, 5, 16), 2880),
        (depthwise(48, 24, 5, 24), 12752),
        (depthwise(8, 5, 3, 5), 1792),
        (depthwise(8, 2, 3, 8), 432),
        (depthwise(8, 2, 3, 4), 32),
    ],
)
def test_scratch_of_a_convolution_on_the_chip_with_vectors(file: ModelFile, size: int) -> None:
    assert tuple(scratch(only(file), Chip.S3)) == (size,)
    assert tuple(scratch(only(file), Chip.PLAIN)) == ()


def test_softmax_takes_four_bytes_for_each_of_its_second_axis() -> None:
    node = only(one_op(Operator.SOFTMAX, [(1, 12)], (1, 12)))
    assert [tuple(scratch(node, chip)) for chip in Chip] == [(48,), (48,)]


def test_other_types_run_the_reference_kernels() -> None:
    node = only(conv(square(8, 3), (4, 3, 3, 3), square(8, 4), made=Type.FLOAT32))
    assert [tuple(scratch(node, chip)) for chip in Chip] == [(), ()]


def test_kernels_keep_the_number_of_their_scratch_buffer() -> None:
    node = only(conv(square(8, 3), (4, 3, 3, 3), square(8, 4)))
    kept = [build.at_init(node) for build in (Build(), Build(chip=Chip.S3))]
    assert [size.bytes(4) for size in kept if size is not None] == [56, 60]


def test_a_target_names_the_chip_and_gets_a_whole_arena(tmp_path: Path) -> None:
    make(Recipe("kws-cnn", precision="int8", format="tflite"), tmp_path / "kws.tflite")
    graph = graph_of(tmp_path / "kws.tflite")
    found = {
        chip: INTERPRETER.examine(graph, Runtime(interpreter="tflm", kernels="esp-nn", instructions=chip))
        for chip in ("plain", "esp32s3")
    }
    sizes = {chip: (one.arena, one.scratch, one.is_whole) for chip, one in found.items() if one is not None}
    assert sizes == {"plain": (16000, 0, True), "esp32s3": (16000, sizes["esp32s3"][1], True)}
    assert sizes["esp32s3"][1] > 10_000


def test_an_unknown_chip_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(TargetError, match=r"runtime.instructions: 'dsp' is not known; expected one of plain, esp32s3$"):
        build_of(Runtime(interpreter="tflm", kernels="esp-nn", instructions="dsp"))
