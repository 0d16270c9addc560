"""Models run in LiteRT, for the shapes that its tensors then have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from support.models.tflite_build import ModelBuilder, Operator, Type

NUMPY_TYPES = {Type.FLOAT32: np.float32, Type.INT32: np.int32, Type.INT64: np.int64, Type.BOOL: np.bool_}
Array = npt.NDArray[np.generic]
OUR_TYPES = {np.dtype(numpy_type): ours for ours, numpy_type in NUMPY_TYPES.items()}


def _run(content: bytes, shapes: Mapping[str, Sequence[int]], values: Mapping[str, Array]) -> Interpreter:
    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    for detail in interpreter.get_input_details():
        if detail["name"] in shapes:
            interpreter.resize_tensor_input(detail["index"], shapes[detail["name"]])
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        default = np.ones(detail["shape"], detail["dtype"])
        interpreter.set_tensor(detail["index"], values.get(detail["name"], default))
    interpreter.invoke()
    return interpreter


def litert_shapes(
    content: bytes, shapes: Mapping[str, Sequence[int]], values: Mapping[str, Array] = {}
) -> dict[str, tuple[int, ...]]:
    """Run a model with inputs of these shapes; return the shape of each named tensor of subgraph 0."""
    details = _run(content, shapes, values).get_tensor_details()
    return {detail["name"]: tuple(map(int, detail["shape"])) for detail in details if detail["name"]}


def litert_outputs(content: bytes, shapes: Mapping[str, Sequence[int]]) -> list[Array]:
    """Run a model; return its outputs."""
    interpreter = _run(content, shapes, {})
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@dataclass(frozen=True)
class Input:
    """An input of a model of one operator: the file leaves all its extents open."""

    shape: tuple[int, ...]
    dtype: int = Type.FLOAT32


@dataclass(frozen=True)
class State:
    """A variable of the operator."""

    shape: tuple[int, ...]


Operand = Input | State | Array | None


def one_open_operator(
    code: int | str,
    operands: Sequence[Operand],
    results: Sequence[int] = (Type.FLOAT32,),
    options: object = None,
    options_2: object = None,
) -> tuple[ModelBuilder, dict[str, tuple[int, ...]]]:
    """A model of one operator, whose results the file leaves open in every way, and the shapes of its inputs."""
    model = ModelBuilder()
    main = model.main
    numbers, shapes = [], {}
    for place, operand in enumerate(operands):
        name = f"operand{place}"
        if operand is None:
            numbers.append(-1)
        elif isinstance(operand, State):
            numbers.append(main.tensor(name, operand.shape, is_variable=True))
        elif isinstance(operand, Input):
            rank = len(operand.shape)
            numbers.append(main.tensor(name, (1,) * rank, operand.dtype, signature=(-1,) * rank))
            main.inputs.append(numbers[-1])
            shapes[name] = operand.shape
        else:
            numbers.append(main.tensor(name, operand.shape, OUR_TYPES[operand.dtype], data=operand.tobytes()))
    main.outputs = [main.tensor(f"result{i}", None, dtype, has_rank=False) for i, dtype in enumerate(results)]
    main.op(code, numbers, main.outputs, options, options_2)
    if code == Operator.BROADCAST_TO:
        model.table.operatorCodes[0].version = 2  # the first that LiteRT has
    return model, shapes
