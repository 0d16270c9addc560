"""Model file → copy in another precision, by ONNX Runtime's own tools. Runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..backends.worker import RefusedError
from ..core.errors import UsageError, printable
from .precisions import Precision
from .samples import Feed, Samples
from .sessions import not_finite, open_session

if TYPE_CHECKING:
    import onnx

LARGEST_BYTES = 2_000_000_000  # of one ONNX file
PRECISION = "opscope.precision"  # key of the metadata of a copy; readers/onnx reads what it was calibrated with
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
INTEGER_OPS = {  # of models that come quantised
    QUANTIZE,
    DEQUANTIZE,
    "DynamicQuantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "ConvInteger",
    "MatMulInteger",
    "MatMulNBits",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
}
_FREE = {"Constant", "Identity", "Shape", "Cast"}  # never quantised, and nobody expects it
_LEAST_OPSET = 13  # the first with a scale per channel
_LEAST_IR = 8  # of opset 13 and later, with weights that are no inputs


class Recipe(Protocol):
    """How a backend wants its copies; without one, as ONNX Runtime's own kernels take them."""

    fixes_shapes: bool  # whether a copy has the shapes that it was calibrated with, where the model leaves them open

    def prepared(self, model: Path, folder: Path) -> Path:
        """The float model, simplified; the file itself where there is nothing to do."""

    def config(self, model: Path, reader: object, precision: Precision, *, excluded: list[str]) -> Any:
        """A StaticQuantConfig of onnxruntime.quantization that leaves some nodes alone."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, and the float model that it was made of: simplified, tensor names are the same in both."""

    file: Path
    simplified: Path
    float_ops: Mapping[str, Sequence[str]]  # type → names of the nodes that stayed float
    integer_ops: int
    notes: tuple[str, ...] = ()


def load_fixed(model: Path, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """The model with its weights, every node named, and the shapes of inputs set where they are given."""
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    proto = read_proto(model)
    try:
        load_external_data_for_model(proto, str(model.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise RefusedError(f"its external data cannot be read ({error}); expected the file beside it") from error
    if proto.ByteSize() > LARGEST_BYTES:
        raise RefusedError("a copy is needed and the model is larger than 2 GB; expected a smaller one")
    name_nodes(proto.graph)
    fix_shapes(proto.graph, shapes)
    return proto


def read_proto(model: Path) -> onnx.ModelProto:
    """The model without weights that lie beside it."""
    import onnx

    try:
        proto: onnx.ModelProto = onnx.load(str(model), load_external_data=False)
    except Exception as error:  # protobuf's errors share no base
        raise RefusedError(f"not an ONNX model ({error}); expected an ONNX file") from error
    if not proto.graph.node:
        raise RefusedError("the model has no nodes; expected an ONNX model with at least one")
    return proto


def name_nodes(graph: onnx.GraphProto) -> bool:
    """Give every node a name of its own: results are joined by name, and the quantiser chooses by it."""
    seen: set[str] = set()
    changed = False
    for number, node in enumerate(graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.name or node.op_type}_{number}"
            changed = True
        seen.add(node.name)
    return changed


def fix_shapes(graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Set the shapes of inputs; what the file says of other tensors was for open ones, and is inferred anew."""
    for port in graph.input:
        if port.name in shapes:
            shape = port.type.tensor_type.shape
            shape.ClearField("dim")
            for extent in shapes[port.name]:
                shape.dim.add().dim_value = extent
    if shapes:
        del graph.value_info[:]
        for port in graph.output:
            port.type.tensor_type.ClearField("shape")
    return bool(shapes)


def make_copy(
    proto: onnx.ModelProto, folder: Path, precision: Precision, samples: Samples | None, recipe: Recipe | None = None
) -> Copy:
    """A copy in another precision, calibrated with these samples; it names both in its metadata."""
    import onnx

    check_float(proto, precision)
    metadata = {entry.key: entry.value for entry in proto.metadata_props if not entry.key.startswith("opscope.")}
    ports = [[port.name for port in side] for side in (proto.graph.input, proto.graph.output)]
    source, made = folder / "float.onnx", folder / "copy.onnx"
    onnx.save(_current(proto), str(source))
    chosen: Recipe = recipe or OrtRecipe()
    if samples is not None and precision.is_integer:
        copy = _integers(source, made, precision, samples, chosen)
        told = {PRECISION: precision.word, **samples.metadata}
    else:
        copy = _floats(source, made)
        told = {PRECISION: precision.word}
    result = onnx.load(str(made))
    _keep_order(result.graph.input, ports[0])
    _keep_order(result.graph.output, ports[1])
    onnx.helper.set_model_props(result, {**told, **metadata})
    onnx.save(result, str(made))
    return copy


def _current(proto: onnx.ModelProto) -> onnx.ModelProto:
    """In the form that the tools take: no metadata, no weights among the inputs, an opset with scales per channel."""
    from onnx import version_converter

    del proto.metadata_props[:]  # a tool of the vendors' fails on a model that has any
    proto.ir_version = max(proto.ir_version, _LEAST_IR)
    constants = {tensor.name for tensor in proto.graph.initializer}
    kept = [port for port in proto.graph.input if port.name not in constants]
    if len(kept) < len(proto.graph.input):
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
    if all(entry.version >= _LEAST_OPSET for entry in proto.opset_import if entry.domain in ("", "ai.onnx")):
        return proto
    try:
        newer: onnx.ModelProto = version_converter.convert_version(proto, _LEAST_OPSET)
    except Exception:  # its errors share no base; the tools may take the model as it is
        return proto
    name_nodes(newer.graph)
    return newer


def _floats(source: Path, made: Path) -> Copy:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True), str(made))
    return Copy(made, source, {}, 0)


def _integers(source: Path, made: Path, precision: Precision, samples: Samples, recipe: Recipe) -> Copy:
    """Ranges of every tensor are found with the samples; those without one stay float."""
    import onnx
    from onnxruntime.quantization import quantize

    try:
        simpler = recipe.prepared(source, made.parent)
        onnx.shape_inference.infer_shapes_path(str(simpler), str(simpler))
    except Exception as error:  # the tools' errors share no base
        raise RefusedError(
            f"ONNX Runtime cannot simplify it ({_words(error)}); expected a model that it runs"
        ) from error
    graph = onnx.load(str(simpler), load_external_data=False).graph
    problem = ""
    for looked, per_channel in ((1, None), (None, None), (None, False)):  # what works for most models first
        endless = not_finite(simpler, samples, looked)
        excluded = [node.name for node in graph.node if endless.intersection((*node.input, *node.output))]
        config = recipe.config(simpler, _reader(samples), precision, excluded=excluded)
        config.per_channel = config.per_channel if per_channel is None else per_channel
        _set_ranges(config, endless - {tensor.name for tensor in graph.initializer})
        _check_able(graph, set(excluded), set(config.op_types_to_quantize))
        try:
            quantize(str(simpler), str(made), config)
            open_session(made).run(None, next(samples.feeds(1)))  # a copy that nobody can run is none
            break
        except UsageError:  # of the data
            raise
        except Exception as error:  # the tools' errors share no base
            problem = _words(error)
    else:
        raise RefusedError(f"ONNX Runtime's quantisation fails ({problem}); expected a model that it takes")
    notes = []
    if excluded:
        notes.append(f"ops that read or make values that are not finite stay float: {len(excluded)}")
    if per_channel is False:
        notes.append(f"one scale per tensor: with one per channel the tools fail ({problem})")
    result = onnx.load(str(made), load_external_data=False).graph
    left = _float_ops(graph, result, set(config.op_types_to_quantize))
    if not any(node.op_type == QUANTIZE for node in result.node):
        _check_able(graph, set(), set())
    computing = sum(node.op_type not in (QUANTIZE, DEQUANTIZE, *_FREE) for node in result.node)
    return Copy(made, simpler, left, computing - sum(map(len, left.values())), tuple(notes))


def _words(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {' '.join(str(error).split())}", 200)


def _set_ranges(config: Any, tensors: set[str]) -> None:
    """Any range, for tensors without one: the tools compute a scale for each, also where nothing uses it."""
    import numpy as np

    overrides = config.extra_options.setdefault("TensorQuantOverrides", {})
    for name in sorted(tensors):
        overrides[name] = [{"rmin": np.float32(0), "rmax": np.float32(1)}]


def _check_able(graph: onnx.GraphProto, excluded: set[str], able: set[str]) -> None:
    """Refuse a model of which nothing can be quantised."""
    if not any(node.op_type in able and node.name not in excluded for node in graph.node):
        types = ", ".join(sorted({node.op_type for node in graph.node}))
        raise RefusedError(
            f"ONNX Runtime's tools quantise none of its ops ({printable(types)}); expected ops such as Conv and MatMul "
            "outside of branches and loops"
        )


def check_float(proto: onnx.ModelProto, precision: Precision) -> None:
    found = sorted({node.op_type for node in _all_nodes(proto.graph)} & INTEGER_OPS)
    if found:
        raise RefusedError(
            f"--precision {precision.word}: the model is quantised already ({', '.join(found)}); expected a float model"
        )


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _all_nodes(body)


def _keep_order(ports: Any, names: Sequence[str]) -> None:
    """Inputs and outputs in the order of the model."""
    place = {name: number for number, name in enumerate(names)}
    ordered = sorted(ports, key=lambda port: place.get(port.name, len(place)))
    kept = [type(port).FromString(port.SerializeToString()) for port in ordered]
    del ports[:]
    ports.extend(kept)


def _float_ops(source: onnx.GraphProto, copy: onnx.GraphProto, able: set[str]) -> dict[str, list[str]]:
    """Nodes that make floats and are of no type that the tools take, or have no integers at either side."""
    from onnx import TensorProto

    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.UNDEFINED)
    types = {value.name: value.type.tensor_type.elem_type for value in (*source.value_info, *source.output)}
    dequantised = {name for node in copy.node if node.op_type == DEQUANTIZE for name in node.output}
    quantised = {node.input[0] for node in copy.node if node.op_type == QUANTIZE}
    found: dict[str, list[str]] = {}
    for node in copy.node:
        if node.op_type in (QUANTIZE, DEQUANTIZE) or node.op_type in _FREE:
            continue
        is_float = any(types.get(name, TensorProto.FLOAT) in floats for name in node.output if name)
        is_beside = dequantised.intersection(node.input) or quantised.intersection(node.output)
        if is_float and (node.op_type not in able or not is_beside):
            found.setdefault(node.op_type, []).append(node.name)
    return dict(sorted(found.items(), key=lambda row: (-len(row[1]), row[0])))


def simplified(model: Path, folder: Path) -> Path:
    """The model with constants folded and made weights, and normalisations in the convolutions before them."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    made = folder / "simplified.onnx"
    quant_pre_process(str(model), str(made), skip_symbolic_shape=True)
    return made


class OrtRecipe:
    """As ONNX Runtime's own kernels take them: its list of ops, signed weights, a scale per channel."""

    fixes_shapes = False

    def prepared(self, model: Path, folder: Path) -> Path:
        return simplified(model, folder)

    def config(self, model: Path, reader: object, precision: Precision, *, excluded: list[str]) -> Any:
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.quantize import get_qdq_config
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

        return get_qdq_config(
            str(model),
            reader,
            activation_type=QuantType.QUInt16 if precision.activation_bits == 16 else QuantType.QUInt8,
            weight_type={4: QuantType.QInt4, 8: QuantType.QInt8, 16: QuantType.QInt16}[precision.weight_bits or 8],
            per_channel=True,
            min_real_range=1e-4,
            op_types_to_quantize=sorted({*QDQRegistry, *QLinearOpsRegistry}),
            nodes_to_exclude=excluded,
        )


def _reader(samples: Samples) -> object:
    """Samples in the form that calibration reads."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left: Iterator[Feed] = samples.feeds()

        def get_next(self) -> Feed | None:
            return next(self.left, None)

    return Reader()
