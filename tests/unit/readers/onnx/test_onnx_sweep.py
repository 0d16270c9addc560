"""Every model that ships with `onnx`, read; shapes compared with `onnx`'s own inference."""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, shape_inference

from opscope.core.errors import ModelError
from opscope.graph.graph import DType
from opscope.readers.onnx import read_onnx
from opscope.readers.onnx.model import dtype_of

SHIPPED = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").glob("**/*.onnx"))


def stated_types(content: ModelProto) -> dict[str, tuple[DType, tuple[int, ...]]]:
    """The types and shapes that `onnx` infers whole."""
    body = shape_inference.infer_shapes(content, data_prop=True).graph
    found = {}
    for value in (*body.output, *body.value_info):
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            found[value.name] = (dtype_of(tensor.elem_type), tuple(dim.dim_value for dim in tensor.shape.dim))
    return found


def compare(path: Path, content: ModelProto) -> None:
    read = {tensor.name: (tensor.dtype, tensor.shape) for tensor in read_onnx(path).tensors}
    expected = stated_types(content)
    assert {name: read[name] for name in expected} == expected


@pytest.mark.skipif(not SHIPPED, reason="this onnx ships no models")
def test_shipped_models_read_with_the_shapes_onnx_infers() -> None:
    for path in SHIPPED:
        try:
            compare(path, onnx.load(path))
        except ModelError as error:
            assert "give them with --shape" in str(error), path  # noqa: PT017 - any other error fails with its path


def test_operator_test_models_read_with_the_shapes_onnx_infers(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute with NumPy on purpose at the edges of types
        from onnx.backend.test.case.node import collect_testcases

        models = [case.model for case in collect_testcases(None) if case.model is not None]
    assert len(models) > 1000
    path = tmp_path / "case.onnx"
    open_inputs = 0
    for content in models:
        for output in content.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        path.write_bytes(content.SerializeToString())
        try:
            compare(path, content)
        except ModelError as error:
            assert "give them with --shape" in str(error), content.graph.name  # noqa: PT017
            open_inputs += 1
    assert open_inputs < 10
