"""Copies of a model for the worker: nodes named, shapes fixed, another precision. Runs in the worker's process only."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...backends.worker import RefusedError

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[np.generic]
Nodes = list[tuple[str, str]]  # name, type

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int16)": np.int16,
    "tensor(uint16)": np.uint16,
    "tensor(bool)": np.bool_,
}
LARGEST_BYTES = 2_000_000_000  # of one ONNX file
CALIBRATION = "calibrated with synthetic inputs: for performance questions only, its outputs mean nothing"


def prepared_model(
    model: Path, folder: Path, *, precision: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Path, Nodes, list[str]]:
    """The model to compile – the file itself where nothing has to change –, its nodes, and notes for the user."""
    import onnx

    try:
        proto = onnx.load(str(model), load_external_data=False)
    except Exception as error:  # protobuf's errors share no base
        raise RefusedError(f"not an ONNX model ({error}); expected an ONNX file") from error
    if not proto.graph.node:
        raise RefusedError("the model has no nodes; expected an ONNX model with at least one")
    changed = _name_nodes(proto.graph)
    changed = _fix_shapes(proto.graph, shapes) or changed
    notes: list[str] = []
    nodes = [(node.name, node.op_type) for node in proto.graph.node if node.op_type != "Constant"]
    if not changed and precision == "as-is":
        return model, nodes, notes
    copy = _save(proto, model, folder / "model.onnx")
    if precision != "as-is":
        copy = _of_precision(copy, proto, precision, folder)
        notes.append(
            f"{precision}: a copy of the model was made, {CALIBRATION}"
            if precision != "f16"
            else "f16: a copy of the model with float tensors as f16 was made"
        )
        again = onnx.load(str(copy), load_external_data=False)
        nodes = [(node.name, node.op_type) for node in again.graph.node if node.op_type != "Constant"]
    return copy, nodes, notes


def _name_nodes(graph: onnx.GraphProto) -> bool:
    """Results are joined to nodes by name, so every node gets one of its own."""
    seen: set[str] = set()
    changed = False
    for number, node in enumerate(graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.name or node.op_type}_{number}"
            changed = True
        seen.add(node.name)
    return changed


def _fix_shapes(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Set the shapes of inputs, all of them or none."""
    for port in graph.input:
        if port.name in shapes:
            shape = port.type.tensor_type.shape
            shape.ClearField("dim")
            for extent in shapes[port.name]:
                shape.dim.add().dim_value = extent
    if shapes:
        _forget_shapes(graph)
    return bool(shapes)


def _forget_shapes(graph: onnx.GraphProto) -> None:
    """What the file says of inner tensors and outputs was for open shapes; the runtime infers them anew."""
    del graph.value_info[:]
    for port in graph.output:
        port.type.tensor_type.ClearField("shape")


def _save(proto: onnx.ModelProto, source: Path, file: Path) -> Path:
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    load_external_data_for_model(proto, str(source.parent))
    if proto.ByteSize() > LARGEST_BYTES:
        raise RefusedError(
            "a copy is needed and the model is larger than 2 GB; expected named nodes and fixed shapes in the file"
        )
    onnx.save(proto, str(file))
    return file


def _of_precision(model: Path, proto: onnx.ModelProto, precision: str, folder: Path) -> Path:
    """A copy of a float model in another precision; weights are calibrated with synthetic inputs."""
    import onnx

    if any(node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in proto.graph.node):
        raise RefusedError(f"--precision {precision}: the model is quantised already; expected a float model, or as-is")
    file = folder / f"{precision}.onnx"
    if precision == "f16":
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(onnx.load(str(model))), str(file))
        return file
    from onnxruntime.quantization import QuantType, quantize
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model

    simpler = folder / "simpler.onnx"
    float_model = simpler if qnn_preprocess_model(str(model), str(simpler)) else model
    activations = QuantType.QUInt16 if precision == "w8a16" else QuantType.QUInt8
    config = get_qnn_qdq_config(
        str(float_model), _reader(float_model), activation_type=activations, weight_type=QuantType.QUInt8
    )
    quantize(str(float_model), str(file), config)
    return file


def _reader(model: Path) -> object:
    """Two synthetic inputs, in the form that calibration reads."""
    import onnxruntime as ort
    from onnxruntime.quantization import CalibrationDataReader

    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    ports = [(port.name, port.shape, port.type) for port in session.get_inputs()]

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left: Iterator[dict[str, Array]] = iter(
                [{name: synthetic(f"{name} {turn}", shape, kind) for name, shape, kind in ports} for turn in range(2)]
            )

        def get_next(self) -> dict[str, Array] | None:
            return next(self.left, None)

    return Reader()


def synthetic(name: str, shape: Sequence[int | str], kind: str) -> Array:
    """The same values for the same name, whenever asked."""
    dtype = np.dtype(_TYPES.get(kind, np.float32))
    extents = [extent if isinstance(extent, int) else 1 for extent in shape]
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if dtype.kind == "f":
        return random.standard_normal(extents).astype(dtype)
    return np.zeros(extents, dtype) if dtype.kind != "b" else np.ones(extents, dtype)
