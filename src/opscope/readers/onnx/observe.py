"""Runs an ONNX model once in ONNX Runtime and collects the shapes of everything that ran.

The runtime's own profile lists every kernel that ran with the shapes of its outputs, in the bodies of branches and
loops too. Nodes get their place in the file as their name, so that each row of the profile is known by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...core.errors import ModelError, UsageError, printable
from ..observed import NodeRuns, Observed, Shape

if TYPE_CHECKING:
    from onnx import GraphProto

    from ..observed import Array

_KERNEL = "_kernel_time"  # behind the name of a node, in the profile
_LARGEST_PROTO = 2**31 - 1
_SIGNATURE = re.compile(r"\S*/onnxruntime_src/.*\)\s")  # of the C++ function that raised the error


def observe(model: Path, inputs: Mapping[str, Array]) -> Observed:
    """Run the model on these inputs; return what each node made."""
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise UsageError(f"--shapes-from-run: {error}; expected `pip install onnxruntime`") from error

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised as exceptions
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # every node runs as itself
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_profiling = True
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(model.parent))
    with TemporaryDirectory(prefix="opscope-observe-") as folder:
        options.profile_file_prefix = str(Path(folder) / "run")
        try:
            content = onnx.load(str(model), load_external_data=False)
            if content.ByteSize() > _LARGEST_PROTO:
                raise UsageError(f"--shapes-from-run: {model} is larger than 2 GB; expected weights in files beside it")
            _name_nodes(content.graph, "")
            session = onnxruntime.InferenceSession(
                content.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            session.run(None, dict(inputs))
            profile = Path(session.end_profiling()).read_text(encoding="utf-8")
        except UsageError:
            raise
        except Exception as error:  # its exceptions share no base class
            first = (str(error).splitlines() or [type(error).__name__])[0]
            words = printable(_SIGNATURE.sub("", first), 300)
            hint = "expected a model that it runs, or --shapes-from-run INPUTS.npz with inputs that it takes"
            raise ModelError(str(model), "", f"ONNX Runtime cannot run it: {words}; {hint}") from error
    return _node_runs(json.loads(profile))


def _name_nodes(body: GraphProto, prefix: str) -> None:
    for index, node in enumerate(body.node):
        node.name = f"{prefix}node {index}"
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _name_nodes(attribute.g, f"{node.name} {printable(attribute.name)} ")


def _node_runs(events: list[dict[str, Any]]) -> dict[str, NodeRuns]:
    """The kernels of a profile by the place of their node, in the order in which they ran."""
    found: dict[str, list[tuple[Shape, ...]]] = {}
    types: dict[str, tuple[str, ...]] = {}
    kernels = [event for event in events if event.get("cat") == "Node" and str(event.get("name", "")).endswith(_KERNEL)]
    for event in sorted(kernels, key=lambda event: int(event["ts"])):
        place = event["name"].removesuffix(_KERNEL)
        outputs = list(_tensors(event["args"].get("output_type_shape", ())))
        found.setdefault(place, []).append(tuple(shape for _, shape in outputs))
        types[place] = tuple(name for name, _ in outputs)
    return {place: NodeRuns(tuple(shapes), types[place]) for place, shapes in found.items()}


def _tensors(outputs: list[dict[str, list[int]]]) -> Iterator[tuple[str, Shape]]:
    """The profile writes {"float": [1, 3]} for every output that is a tensor."""
    for entry in outputs:
        for name, extents in entry.items():
            yield name, tuple(int(extent) for extent in extents)
