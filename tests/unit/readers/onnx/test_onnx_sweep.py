"""Every model and operator case that ships with `onnx`, judged by its own inference and by the results it states."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, shape_inference
from onnx.backend.test.case.test_case import TestCase as Case

from opscope.core.errors import ModelError
from opscope.graph.graph import DType
from opscope.readers.onnx import read_onnx
from opscope.readers.onnx.model import dtype_of
from opscope.readers.onnx.order import lift_constants
from opscope.readers.onnx.parse import parse_model
from opscope.readers.onnx.shapes.call import Open
from opscope.readers.onnx.shapes.frame import Frame
from opscope.readers.onnx.shapes.interpret import Interpreter
from opscope.readers.onnx.wire import Wire
from support.models.onnx_models import suggested

SHIPPED = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").glob("**/*.onnx"))
# Their data decide how much comes out, and no shape arithmetic uses them.
DECIDED_BY_DATA = {"ImageDecoder", "NonMaxSuppression", "StringNormalizer", "StringSplit", "Unique"}
WITHOUT_VALUES = DECIDED_BY_DATA - {"Unique"}


@cache
def cases() -> tuple[Case, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute with NumPy on purpose at the edges of types
        from onnx.backend.test.case.node import collect_testcases

        return tuple(case for case in collect_testcases(None) if case.model is not None)


def open_outputs(content: ModelProto) -> ModelProto:
    """The model, with the shapes of its outputs left out."""
    copy = ModelProto()
    copy.CopyFrom(content)
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return copy


def stated_types(content: ModelProto) -> dict[str, tuple[DType, tuple[int, ...]]]:
    """The types and shapes that `onnx` infers whole."""
    body = shape_inference.infer_shapes(content, data_prop=True).graph
    found = {}
    for value in (*body.output, *body.value_info):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            found[value.name] = (dtype_of(tensor.elem_type), tuple(dim.dim_value for dim in tensor.shape.dim))
    return found


@pytest.mark.skipif(not SHIPPED, reason="this onnx ships no models")
def test_shipped_models_read_with_the_shapes_onnx_infers() -> None:
    for path in SHIPPED:
        content = onnx.load(path)
        try:
            read = {tensor.name: (tensor.dtype, tensor.shape) for tensor in read_onnx(path).tensors}
        except ModelError as error:
            read_onnx(path, shapes=suggested(str(error)))  # any other error suggests nothing, and is raised again
            continue
        expected = stated_types(content)
        outputs = {value.name for value in content.graph.output} & set(expected)
        assert outputs <= set(read)  # what is folded into constants may be gone, outputs may not
        both = set(expected) & set(read)
        assert {name: read[name] for name in both} == {name: expected[name] for name in both}, path


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_operator_cases_have_the_shapes_of_their_results(tmp_path: Path, every: int) -> None:
    """With the shapes of the inputs alone, a shape is right, or it hangs on the value of an input."""
    assert len(cases()) > 1000
    path = tmp_path / "case.onnx"
    known = 0
    for case in cases()[::every]:
        content = open_outputs(case.model)
        inputs, outputs = case.data_sets[0]
        path.write_bytes(content.SerializeToString())
        given = {
            value.name: data.shape
            for value, data in zip(content.graph.input, inputs, strict=False)
            if isinstance(data, np.ndarray) and value.type.HasField("tensor_type")
        }
        read = {tensor.name: tensor for tensor in read_onnx(path, shapes=given).tensors}
        for value, data in zip(content.graph.output, outputs, strict=False):
            if not isinstance(data, np.ndarray):
                continue
            found = read[value.name]
            assert found.dtype is dtype_of(value.type.tensor_type.elem_type), case.name
            if found.shape is not None:
                known += 1
                assert found.shape == data.shape, case.name
            else:
                reasons = ("decided at run time by", "depends on the values of input", "the file does not give it")
                assert any(reason in found.unknown_because for reason in reasons), case.name
    assert known > 1600 / every * 0.9


def evaluated(content: ModelProto) -> Frame:
    """What is known of a model all of whose inputs are constants."""
    wire = Wire(content.SerializeToString(), "case")
    model = parse_model(wire, 0, len(wire.buffer))
    interpreter = Interpreter(model.opsets, wire, observed={})
    body = lift_constants(model.body)
    frame = Frame(wire, interpreter.limits, body.constants)
    interpreter.run_body(body, frame)
    return frame


def with_constants(case: Case) -> tuple[ModelProto, list[np.ndarray]] | None:
    """The case with its inputs as initializers, and its results; None where one is no tensor of numbers."""
    content = open_outputs(case.model)
    inputs, outputs = case.data_sets[0]
    arrays = [*inputs, *outputs]
    if not all(isinstance(data, np.ndarray) and data.dtype != object for data in arrays):
        return None
    names = [value.name for value in content.graph.input]
    del content.graph.input[:]
    for name, data in zip(names, inputs, strict=False):
        content.graph.initializer.append(numpy_helper.from_array(data, name))
    return content, list(outputs)


def results() -> Iterator[tuple[Case, Frame, str, np.ndarray]]:
    for case in cases():
        prepared = with_constants(case)
        if prepared is None or {node.op_type for node in case.model.graph.node} & WITHOUT_VALUES:
            continue
        content, outputs = prepared
        frame = evaluated(content)
        for value, data in zip(content.graph.output, outputs, strict=False):
            yield case, frame, value.name, data


def test_operator_cases_are_evaluated_to_their_results() -> None:
    """With the values of the inputs, every shape is known; and every value that is computed is the stated one."""
    equal = 0
    for case, frame, name, data in results():
        if "bfloat16" not in case.name:  # NumPy has no such type: a Range of it is not evaluated
            assert frame.operands[name].shape == data.shape, case.name
        try:
            found = frame.array(name)
        except Open:
            continue
        equal += 1
        assert (found.dtype, found.shape) == (data.dtype, data.shape), case.name
        np.testing.assert_allclose(
            found.astype(np.float64), data.astype(np.float64), rtol=1e-3, atol=1e-6, err_msg=case.name
        )
    assert equal > 700
