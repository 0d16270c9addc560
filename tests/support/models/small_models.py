"""Small networks with every habit of an exporter: no shapes inside, layers of several kinds; and quantised copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 9


def _save(path: Path, nodes: list[NodeProto], shape: list[int], weights: dict[str, tuple[int, ...]]) -> Path:
    """Weights are random and the same every time; the output's shape is left to the reader."""
    random = np.random.default_rng(7)
    constants = [
        numpy_helper.from_array(0.1 * random.standard_normal(extents).astype(np.float32), name)
        for name, extents in weights.items()
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    body = helper.make_graph(nodes, "g", inputs, outputs, constants)
    imports = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(body, opset_imports=imports, ir_version=IR_VERSION), str(path))
    return path


def convnet(path: Path) -> Path:
    """Convolutions (one depthwise, one pointwise), a residual, a gate, pooling, a classifier."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "b0"], ["c0"], "conv0", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c0"], ["r0"], "relu0"),
        node("Conv", ["r0", "w1", "b0"], ["c1"], "dwconv1", pads=[1, 1, 1, 1], group=16),
        node("Relu", ["c1"], ["r1"], "relu1"),
        node("Conv", ["r1", "w2", "b0"], ["c2"], "pwconv2"),
        node("Add", ["c2", "r0"], ["a2"], "add2"),
        node("MaxPool", ["a2"], ["p2"], "pool2", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p2", "w3", "b0"], ["c3"], "conv3", pads=[1, 1, 1, 1]),
        node("Sigmoid", ["c3"], ["s3"], "sig3"),
        node("Mul", ["c3", "s3"], ["m3"], "mul3"),
        node("GlobalAveragePool", ["m3"], ["g"], "gap"),
        node("Flatten", ["g"], ["f"], "flat"),
        node("Gemm", ["f", "w4", "b4"], ["l"], "fc", transB=1),
        node("Softmax", ["l"], ["y"], "softmax", axis=1),
    ]
    weights = {
        "w0": (16, 3, 3, 3),
        "b0": (16,),
        "w1": (16, 1, 3, 3),
        "w2": (16, 16, 1, 1),
        "w3": (16, 16, 3, 3),
        "w4": (10, 16),
        "b4": (10,),
    }
    return _save(path, nodes, [1, 3, 32, 32], weights)


def cut_in_two(path: Path) -> Path:
    """A node in the middle that accelerators refuse."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Acosh", ["a"], ["b"], "acosh_mid"),
        helper.make_node("Conv", ["b", "w1"], ["c"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], "relu1"),
    ]
    return _save(path, nodes, [1, 8, 32, 32], {"w0": (16, 8, 3, 3), "w1": (16, 16, 3, 3)})


def quantised(source: Path, path: Path) -> Path:
    """The model with pairs of QuantizeLinear and DequantizeLinear, as ONNX Runtime's own quantiser puts them."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Noise(CalibrationDataReader):
        def __init__(self) -> None:
            shape = [d.dim_value for d in onnx.load(str(source)).graph.input[0].type.tensor_type.shape.dim]
            random = np.random.default_rng(3)
            self.inputs = iter([{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(2)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.inputs, None)

    kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8}
    quantize_static(str(source), str(path), Noise(), quant_format=QuantFormat.QDQ, **kinds)
    return path
