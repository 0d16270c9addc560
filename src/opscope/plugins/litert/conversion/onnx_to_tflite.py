"""Float ONNX → float TFLite by onnx2tf, with the names of the model's nodes.

The tool moves channels last in every input of three to five dimensions, unless it is told not to. It is told so but for
what convolutions and pools read: there the change costs nothing, elsewhere it adds transpositions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ....backends.process import Ended, run_worker
from ....backends.worker import RefusedError
from ....conversion.check import plain_name
from ....conversion.steps import FileToConvert, Made, MovedInput
from ....core.errors import ModelError, UsageError, printable
from ....core.random_arrays import Port
from ....quantization.copies import load_fixed
from .onnx_products import flatten_products

if TYPE_CHECKING:
    import onnx

LONGEST_S = 3600
_WORKER = Path(__file__).with_name("onnx2tf_worker.py")
_SPATIAL = {
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "BatchNormalization",
}
_CARRYING = {"Add", "Sub", "Mul", "Div", "Pad", "Clip", "Relu", "Cast", "Identity", "Slice"}  # keep the axes
_MOST_HOPS = 8
_REFUSED = re.compile(r"op=(\S+) node=(\S*) reason_code=\S+ message=(.*)")


def convert(work: FileToConvert) -> Made:
    """Write a copy that the tool takes, run it in its environment, and say what became of inputs."""
    import onnx

    if work.toolchain is None:
        raise UsageError("onnx2tf: no environment; expected `opscope setup convert`")
    try:
        proto = load_fixed(work.model, {name: shape for name, _, shape in work.inputs})
    except RefusedError as error:
        raise ModelError(str(work.model), "", str(error)) from error
    moved = {port[0]: axes for port in work.inputs if (axes := _channels_last(proto.graph, port))}
    notes = flatten_products(proto)
    source = work.folder / "model.onnx"  # the tool writes over the file that it is given
    onnx.save(proto, str(source))
    request: dict[str, object] = {"model": str(source), "folder": str(work.folder / "made")}
    kept = [name for name, _, _ in work.inputs if name not in moved]
    request |= {"keep": [*kept, *(name.replace(":", "__") for name in kept)]}  # as the tool spells them
    request |= {"nodes": [[node.name, list(node.output)] for node in proto.graph.node]}
    answer, ended = run_worker(_WORKER, request, work.folder, longest_s=LONGEST_S, python=work.toolchain.python)
    if answer is None or not answer["ok"]:
        raise ModelError(str(work.model), "", _why(answer, ended))
    inputs = _inputs(work, moved, answer["inputs"])
    layouts = [
        f"input {name} is {_extents(shape, moved[name])} there (channels last)"
        for name, _, shape in work.inputs
        if name in moved
    ]
    return Made(Path(str(answer["file"])), str(answer["version"]), inputs, (*layouts, *notes))


def _channels_last(graph: onnx.GraphProto, port: Port) -> tuple[int, ...] | None:
    """The order of axes after the conversion; None: as they are."""
    name, label, shape = port
    if not label.startswith("f") or not 3 <= len(shape) <= 5:
        return None
    left = [name]
    for _ in range(_MOST_HOPS):
        readers = [node for node in graph.node for tensor in left if node.input and node.input[0] == tensor]
        if any(node.op_type in _SPATIAL for node in readers):
            return (0, *range(2, len(shape)), 1)
        left = [node.output[0] for node in readers if node.op_type in _CARRYING]
    return None


def _inputs(work: FileToConvert, moved: Mapping[str, tuple[int, ...]], found: object) -> dict[str, MovedInput]:
    """Every input by its name in the model; one that has another shape than it should is a mistake of the tool."""
    ports = {str(name): tuple(shape) for name, shape in found}  # type: ignore[attr-defined]
    plain = {plain_name(name): name for name in ports}
    inputs: dict[str, MovedInput] = {}
    for name, _, shape in work.inputs:
        there = plain.get(plain_name(name))
        if there is None:  # the tool leaves out inputs that no op reads
            raise ModelError(
                str(work.model), "", f"onnx2tf leaves out input {printable(name)}; expected one that is read"
            )
        axes = moved.get(name)
        wanted = shape if axes is None else tuple(shape[axis] for axis in axes)
        if ports[there] != wanted:
            raise ModelError(
                str(work.model),
                "",
                f"onnx2tf makes input {printable(name)} {list(ports[there])}; expected {list(wanted)}",
            )
        inputs[name] = MovedInput(there, axes)
    return inputs


def _extents(shape: Sequence[int], axes: Sequence[int]) -> str:
    return "x".join(str(shape[axis]) for axis in axes)


def _why(answer: Mapping[str, object] | None, ended: Ended) -> str:
    """What the tool cannot convert, by op and node where it says so."""
    if answer is None:
        return f"onnx2tf {ended.how}; it says: {ended.last_words}"
    problem = str(answer["problem"])
    refused = list(_refused(problem))
    if refused:
        return f"onnx2tf cannot convert {'; '.join(refused)}; expected ops that it converts"
    return f"onnx2tf cannot convert it: {printable(problem, 400)}; expected a model that it converts"


def _refused(problem: str) -> Iterator[str]:
    for op, node, message in _REFUSED.findall(problem)[:3]:
        name = node[2:] if node.startswith("wa/") else node
        yield printable(f"{op} ({name}): {message.strip().rstrip('.')}", 300)
