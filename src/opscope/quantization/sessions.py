"""Models in the reference runtime: their outputs, and the tensors within, a group that fits into memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.worker import RefusedError
from ..core.errors import printable

if TYPE_CHECKING:
    import onnx

    from .samples import Feed, Samples

_GROUP_BYTES = 1 << 28
_UNKNOWN_BYTES = 1 << 22  # taken for a tensor whose shape is not known


def open_session(model: Path | bytes) -> Any:
    """The reference that copies are held against: every node as it stands in the file, no kernel of integers."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4  # what matters comes as an exception
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    file = model if isinstance(model, bytes) else str(model)
    try:
        return ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's errors share no base
        raise RefusedError(f"ONNX Runtime cannot load it ({_words(error)}); expected a model that it runs") from error


def not_finite(model: Path, samples: Samples, most: int | None) -> set[str]:
    """Tensors that the first samples make infinite or undefined, and such constants: they have no range."""
    import onnx
    from onnx import numpy_helper

    proto = onnx.load(str(model))
    bad = {
        tensor.name
        for tensor in proto.graph.initializer
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        and not np.isfinite(numpy_helper.to_array(tensor)).all()
    }
    names = [name for node in proto.graph.node for name in node.output if name]
    for group in groups_of(proto, names):
        session = open_session(with_outputs(proto, group))
        for feed in samples.feeds(most):
            for name, value in zip(group, fetch(session, group, feed), strict=True):
                if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
                    bad.add(name)
    return bad


def fetch(session: Any, names: Sequence[str], feed: Feed) -> list[Any]:
    """Run a model; inputs that it does not take are refused in words for the user."""
    try:
        found: list[Any] = session.run(names, feed)
    except Exception as error:  # the runtime's errors share no base
        raise RefusedError(
            f"ONNX Runtime cannot run it on these inputs ({_words(error)}); expected --data with inputs that it takes"
        ) from error
    return found


def _words(error: Exception) -> str:
    return printable(" ".join(str(error).split()), 300)


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> bytes:
    """The model with inner tensors among its outputs; the runtime infers what they are."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    have = {port.name for port in copy.graph.output}
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in have)
    data: bytes = copy.SerializeToString()
    return data


def groups_of(model: onnx.ModelProto, names: Sequence[str]) -> Iterator[list[str]]:
    """Tensors that may be in memory at once."""
    sizes = _sizes(model)
    group: list[str] = []
    total = 0
    for name in names:
        size = sizes.get(name, _UNKNOWN_BYTES)
        if group and total + size > _GROUP_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group


def _sizes(model: onnx.ModelProto) -> Mapping[str, int]:
    found = {}
    for value in (*model.graph.value_info, *model.graph.output):
        tensor = value.type.tensor_type
        extents = [dim.dim_value for dim in tensor.shape.dim]
        if tensor.HasField("shape") and all(extents):
            found[value.name] = 4 * prod(extents)
    return found
