"""Small TensorFlow Lite files for the memory rules of TensorFlow Lite Micro, and its interpreter where it is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema

from opscope.plugins.tflm.nodes import ModelFile
from opscope.readers.tflite.flatbuffer import Flatbuffer
from opscope.readers.tflite.model import StoredModel
from support.models.tflite_build import ModelBuilder, Operator, SubgraphBuilder, Type, options

needs_interpreter = pytest.mark.skipif(
    find_spec("tflite_micro") is None, reason="needs the package tflite-micro: pip install 'opscope[tflm]'"
)
_ALLOCATIONS = (
    "import sys; from tflite_micro.python.tflite_micro import runtime;"
    "runtime.Interpreter.from_file(sys.argv[1], arena_size=1 << 26).print_allocations()"
)


def model_file(content: bytes) -> ModelFile:
    return ModelFile(StoredModel(Flatbuffer(content, "model.tflite")))


def recorded(path: Path) -> Mapping[str, int]:
    """What the interpreter itself says of its arena: head, tail, and the parts that its recorder names."""
    ran = subprocess.run(
        [sys.executable, "-c", _ALLOCATIONS, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    said = ran.stdout + ran.stderr
    found = {name: int(number) for name, number in re.findall(r"allocation (head|tail) (\d+) bytes", said)}
    return found | {name: int(number) for name, number in re.findall(r"'([^']+)' used (\d+) bytes", said)}


def quantised(main: SubgraphBuilder, tensor: int, scales: int = 1, zero_point: int = 0) -> int:
    found = schema.QuantizationParametersT()
    found.scale, found.zeroPoint = [0.5] * scales, [zero_point] * scales
    main.tensors[tensor].quantization = found
    return tensor


def one_op(
    code: int | str,
    shapes: Sequence[tuple[int, ...]],
    result: tuple[int, ...],
    chosen: object = None,
    *,
    types: Sequence[int] = (),
    made: int = Type.INT8,
    channels: int = 1,
) -> ModelFile:
    """A file of one operator; the first operand is its input, the others are constants."""
    model = ModelBuilder()
    main = model.main
    kinds = [*types, *[Type.INT8] * (len(shapes) - len(types))]
    data = quantised(main, main.input("x", shapes[0], kinds[0]))
    constants = [
        quantised(main, main.tensor(f"w{number}", shape, kind, data=b"\1"), channels)
        for number, (shape, kind) in enumerate(zip(shapes[1:], kinds[1:], strict=True))
    ]
    main.outputs = [quantised(main, main.tensor("y", result, made))]
    main.op(code, [data, *constants], main.outputs, chosen)
    return model_file(model.build())


def conv(
    data: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...], *, made: int = Type.INT8, **more: int
) -> ModelFile:
    chosen = options("Conv2DOptions", **{"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1} | more)
    return one_op(Operator.CONV_2D, [data, kernel], result, chosen, types=[made], made=made)
