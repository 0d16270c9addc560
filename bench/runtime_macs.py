"""MACs of every model in a folder, counted from the shapes that a runtime had after running it, against ours.

    python bench/runtime_macs.py FOLDER [--shapes FILE.json] [--json OUT.json]

FILE.json has the shapes of open inputs: {"file name": {"input name": [1, 16000]}}. The count here shares nothing with
opscope's: it takes shapes and operator names from the runtime alone. LiteRT does not tell of ops in bodies of control
flow: they are left out on both sides; ONNX Runtime tells of every kernel that ran. Exit code 1: some counts differ.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import prod
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from opscope.core.errors import ProfilerError
from opscope.estimate.work import work_of
from opscope.readers import read_model

Shapes = Mapping[str, Sequence[int]]
Operands = Sequence[tuple[int, ...]]  # shapes; () for an absent one


@dataclass(frozen=True, slots=True)
class Counted:
    """One model: MACs as opscope and as the runtime have them, or why there is no number."""

    file: str
    ours: int | None
    runtime: int | None
    problem: str = ""

    @property
    def is_equal(self) -> bool | None:
        return None if self.ours is None or self.runtime is None else self.ours == self.runtime


# TensorFlow Lite


def litert_macs(path: Path, shapes: Shapes) -> int:
    """Run a model in LiteRT, without delegates, and count by the shapes its tensors then have."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    for detail in interpreter.get_input_details():
        if detail["name"] in shapes:
            interpreter.resize_tensor_input(detail["index"], shapes[detail["name"]])
    interpreter.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        values = random.standard_normal(detail["shape"]) if detail["dtype"] == np.float32 else np.zeros(detail["shape"])
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
    interpreter.invoke()
    found = {detail["index"]: tuple(map(int, detail["shape"])) for detail in interpreter.get_tensor_details()}
    total = 0
    for op in interpreter._get_ops_details():  # no public function tells the operators
        count = _LITERT.get(op["op_name"])
        if count is not None:
            operands = [found.get(index, ()) for index in op["inputs"]]
            total += count(operands, [found.get(index, ()) for index in op["outputs"]])
    return total


def _conv(inputs: Operands, outputs: Operands) -> int:
    return prod(outputs[0]) * prod(inputs[1][1:])  # weights: out, height, width, in / groups


def _depthwise(inputs: Operands, outputs: Operands) -> int:
    return prod(outputs[0]) * inputs[1][1] * inputs[1][2]


def _conv_3d(inputs: Operands, outputs: Operands) -> int:
    return prod(outputs[0]) * prod(inputs[1][:4])


def _transpose_conv(inputs: Operands, outputs: Operands) -> int:
    return prod(inputs[2]) * inputs[1][1] * inputs[1][2] * outputs[0][-1]


def _fully_connected(inputs: Operands, outputs: Operands) -> int:
    return prod(inputs[0]) * inputs[1][0]


def _batch_matmul(inputs: Operands, outputs: Operands) -> int:
    """The reduced extent is what the rows of the result leave of a matrix of the first operand."""
    depth: int = prod(inputs[0][-2:]) // outputs[0][-2]
    return prod(outputs[0]) * depth


def _cells(data: tuple[int, ...]) -> int:
    return prod(data[:-1])  # steps × batch


def _lstm(inputs: Operands, outputs: Operands) -> int:
    """Every weight is used once per step: those that exist say which variant it is."""
    if len(inputs) == 5:  # the basic kernel: data, activations, weights, bias, state
        return _cells(inputs[0]) * prod(inputs[2])
    weights = [prod(inputs[i]) for i in (1, 2, 3, 4, 5, 6, 7, 8, 16) if i < len(inputs) and inputs[i]]
    return _cells(inputs[0]) * sum(weights)


def _both_lstms(inputs: Operands, outputs: Operands) -> int:
    places: list[int] = [*range(1, 9), 16, *range(18, 26), 33]
    weights = [prod(inputs[i]) for i in places if i < len(inputs) and inputs[i]]
    return _cells(inputs[0]) * sum(weights)


def _rnn(inputs: Operands, outputs: Operands) -> int:
    return _cells(inputs[0]) * (prod(inputs[1]) + prod(inputs[2]))


def _svdf(inputs: Operands, outputs: Operands) -> int:
    return inputs[0][0] * (prod(inputs[1]) + prod(inputs[2]))


_LITERT: Mapping[str, Callable[[Operands, Operands], int]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "CONV_3D": _conv_3d,
    "TRANSPOSE_CONV": _transpose_conv,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "LSTM": _lstm,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _both_lstms,
    "RNN": _rnn,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn,
    "SVDF": _svdf,
}

# ONNX


def ort_macs(path: Path, shapes: Shapes) -> int:
    """Run a model in ONNX Runtime as it is, and count by the shapes in the runtime's profile of every kernel."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling, options.log_severity_level = True, 4
    options.add_session_config_entry("session.disable_prepacking", "1")  # packed weights are missing in the profile
    model = onnx.load(str(path))
    attributes: dict[str, dict[str, object]] = {}
    _number_nodes(model.graph, attributes)
    with TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "run")
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, {port.name: _array(port, shapes) for port in session.get_inputs()})
        events = json.loads(Path(session.end_profiling()).read_text())
    total = 0
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            inputs, outputs = (
                [tuple(extents) for entry in event["args"][key] for extents in entry.values()]
                for key in ("input_type_shape", "output_type_shape")
            )
            node = event["name"].removesuffix("_kernel_time")
            total += _ort_kernel(event["args"]["op_name"], inputs, outputs, attributes.get(node, {}))
    return total


def _number_nodes(body: Any, attributes: dict[str, dict[str, object]]) -> None:
    """Give every node a name of its own, in bodies too, and collect its attributes."""
    from onnx.helper import get_attribute_value

    for node in body.node:
        node.name = f"n{len(attributes)}"
        attributes[node.name] = {a.name: get_attribute_value(a) for a in node.attribute if not a.HasField("g")}
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _number_nodes(attribute.g, attributes)


def _array(port: Any, shapes: Shapes) -> Any:
    """Ones, which are valid as mask, length and index; random numbers where the type has a fraction."""
    shape = shapes.get(port.name) or [extent if isinstance(extent, int) else 1 for extent in port.shape]
    if "float" in port.type or "double" in port.type:
        kind = {"tensor(float16)": "float16", "tensor(double)": "float64"}.get(port.type, "float32")
        return np.random.default_rng(0).random(shape).astype(kind)
    return np.ones(shape, port.type.removeprefix("tensor(").removesuffix(")"))


def _ort_kernel(kind: str, inputs: Operands, outputs: Operands, attributes: Mapping[str, Any]) -> int:
    if kind in ("Conv", "ConvInteger", "FusedConv"):
        return prod(outputs[0]) * prod(inputs[1][1:])
    if kind == "QLinearConv":
        return prod(outputs[0]) * prod(inputs[3][1:])
    if kind == "ConvTranspose":
        return prod(inputs[0]) * prod(inputs[1][1:])
    if "MatMul" in kind:
        return prod(outputs[0]) * inputs[0][-1]
    if kind == "Gemm":
        return prod(outputs[0]) * inputs[0][0 if attributes.get("transA") else 1]
    if kind in _GATES:
        steps, batch, width = inputs[0]
        hidden = int(attributes["hidden_size"])
        directions = 2 if attributes.get("direction") == b"bidirectional" else 1
        return directions * steps * batch * _GATES[kind] * hidden * (width + hidden)
    return _einsum(inputs, str(attributes["equation"], "utf-8").replace(" ", "")) if kind == "Einsum" else 0


_GATES = {"LSTM": 4, "DynamicQuantizeLSTM": 4, "GRU": 3, "RNN": 1}


def _einsum(inputs: Operands, equation: str) -> int:
    """Of two operands, without an ellipsis; one that sums nothing accumulates nothing."""
    terms, _, result = equation.partition("->")
    if "..." in equation or terms.count(",") != 1:
        raise ValueError(f"Einsum {equation}: not counted here")
    extents = {
        label: extent
        for word, shape in zip(terms.split(","), inputs, strict=True)
        for label, extent in zip(word, shape, strict=True)
    }
    return prod(extents.values()) if set(extents) - set(result) else 0


# All formats

RUNTIMES: Mapping[str, Callable[[Path, Shapes], int]] = {".tflite": litert_macs, ".onnx": ort_macs}


def our_macs(path: Path, shapes: Shapes) -> int:
    """MACs of the ops that the runtime tells of; an op that cannot be counted is an error."""
    graph = read_model(path, shapes={name: tuple(shape) for name, shape in shapes.items()})
    found = [(op, work_of(op, graph)) for op in graph.ops if path.suffix == ".onnx" or not op.scope]
    unknown = [op.name for op, work in found if not work.known or op.trips is None]
    if unknown:
        raise ProfilerError(f"{len(unknown)} ops cannot be counted, the first is {unknown[0]}")
    return sum(work.macs * (op.trips or 0) for op, work in found)


def count(path: Path, shapes: Shapes) -> Counted:
    """Count one model both ways."""
    try:
        ours = our_macs(path, shapes)
    except ProfilerError as error:
        return Counted(path.name, None, None, f"opscope: {error}")
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as child:  # a runtime may crash on a file
            return Counted(path.name, ours, child.submit(RUNTIMES[path.suffix], path, shapes).result())
    except Exception as error:
        return Counted(path.name, ours, None, f"runtime: {str(error).splitlines()[0]}")


def counts(folder: Path, shapes: Mapping[str, Shapes]) -> Iterator[Counted]:
    for path in sorted(folder.iterdir()):
        if path.suffix in RUNTIMES:
            yield count(path, shapes.get(path.name, {}))


def main() -> int:
    """Print a line per model; 1 if counts differ."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shapes", type=Path, help="JSON file of shapes by file and input")
    parser.add_argument("--json", type=Path, help="also write the counts here")
    args = parser.parse_args()
    shapes = json.loads(args.shapes.read_text()) if args.shapes else {}
    rows = []
    for row in counts(args.folder, shapes):
        rows.append(row)
        verdict = {True: "equal", False: "DIFFERENT", None: row.problem}[row.is_equal]
        print(f"{row.file:<60} {row.ours or 0:>15,} {row.runtime or 0:>15,}  {verdict}", flush=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(any(row.is_equal is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
