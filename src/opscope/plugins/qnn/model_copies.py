"""The model that the worker compiles: the file itself, or a copy with named nodes, fixed shapes, another precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.worker import RefusedError
from ...core.errors import UsageError
from ...quantization.copies import fix_shapes, load_fixed, make_copy, name_nodes, read_proto
from ...quantization.errors import output_differences
from ...quantization.precisions import precision_of
from ...quantization.samples import samples_of
from ...recording.quantized import summary_line
from .recipe import QnnRecipe

if TYPE_CHECKING:
    import onnx

Nodes = list[tuple[str, str]]  # name, type


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is compiled, and what the user is told of it."""

    file: Path
    nodes: Nodes
    notes: list[str] = field(default_factory=list)
    quantized: Mapping[str, object] | None = None  # None: no copy of another precision was made


def prepared_model(request: Mapping[str, Any], folder: Path) -> Prepared:
    """The model to compile – the file itself where nothing has to change."""
    import onnx

    model = Path(request["model"])
    shapes = {name: tuple(shape) for name, shape in request["shapes"].items()}
    if request["precision"] != "as-is":
        return _of_precision(model, folder, request, shapes)
    proto = read_proto(model)
    changed = name_nodes(proto.graph)
    changed = fix_shapes(proto.graph, shapes) or changed
    if not changed:
        return Prepared(model, _nodes(proto))
    copy = folder / "model.onnx"
    onnx.save(load_fixed(model, shapes), str(copy))
    return Prepared(copy, _nodes(proto))


def _nodes(proto: onnx.ModelProto) -> Nodes:
    return [(node.name, node.op_type) for node in proto.graph.node if node.op_type != "Constant"]


def _of_precision(
    model: Path, folder: Path, request: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> Prepared:
    """A copy in another precision, calibrated with data or random ones, and how far its outputs are off."""
    precision = precision_of(request["precision"])
    try:
        samples = samples_of(request)
        proto = load_fixed(model, shapes)
        original = proto.SerializeToString()
        made = make_copy(proto, folder, precision, samples, QnnRecipe())
        outputs, _ = output_differences(original, made.file, samples, step=lambda _: None)
    except UsageError as error:
        raise RefusedError(str(error)) from error
    with_what = samples.calibration
    notes = [f"{precision.word}: compiled was a copy of the model, which the run keeps as {precision.word}.onnx"]
    if precision.is_integer:
        notes.append(f"the copy is calibrated with {with_what.told}")
    inputs = " on random inputs" if with_what.is_random else ""
    notes += [f"{summary_line(outputs)}{inputs}", *made.notes]
    told = {
        "precision": precision.word,
        "calibration": asdict(with_what) if precision.is_integer else None,
        "outputs": [asdict(each) | {"sqnr_db": each.difference and each.difference.sqnr_db} for each in outputs],
        "float_ops": made.float_ops,
    }
    return Prepared(made.file, _nodes(read_proto(made.file)), notes, told)
