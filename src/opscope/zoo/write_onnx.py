"""Blueprint → ONNX: one node per step, activations as separate nodes, and the type of every tensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import onnx_stream
from .blueprint import Blueprint, BlueprintStep
from .network import Progress
from .onnx_graph import OnnxGraph, Wiring
from .qdq import QdqWiring

if TYPE_CHECKING:
    import onnx

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # matches the opset; every later runtime reads it
_CLIP_BOUNDS = (("relu6_minimum", 0.0), ("relu6_maximum", 6.0))


def write(
    plan: Blueprint,
    path: Path,
    *,
    precision: str,
    weights: bool,
    external_above: int,
    progress: Progress | None,
) -> None:
    """Write `plan` as an ONNX model."""
    graph = OnnxGraph(plan, np.dtype(np.float16 if precision == "f16" else np.float32))
    wiring = QdqWiring(graph) if precision == "int8" else Wiring(graph)
    for value in plan.inputs:
        wiring.after_write(value)
    for step in plan.steps:
        _write_step(graph, wiring, step)
    onnx_stream.write(
        _model(graph),
        list(graph.stored.values()),
        path,
        weights=weights,
        external_above=external_above,
        progress=progress,
    )


def _write_step(graph: OnnxGraph, wiring: Wiring, step: BlueprintStep) -> None:
    """Add the nodes of one step: the operator, its activation, and the quantise pair in int8."""
    value = step.output
    dtype = graph.dtype(value.kind)
    inputs = [wiring.read(step, operand) for operand in step.inputs]
    result = wiring.write(value)
    attributes = dict(step.attributes)
    if step.op == "Cast":
        attributes["to"] = _type_number(dtype)
    if step.activation is None:
        places = [(wiring.write(step.places), graph.dtype(step.places.kind), step.places.shape)] if step.places else []
        graph.node(step.op, step.name, inputs, attributes, (result, dtype, value.shape), *places)
    else:
        before = f"{step.name}_output_0"
        graph.node(step.op, step.name, inputs, attributes, (before, dtype, value.shape))
        bounds = _clip_bounds(graph) if step.activation.op == "Clip" else []
        graph.node(step.activation.op, step.activation.name, [before, *bounds], {}, (result, dtype, value.shape))
    wiring.after_write(value)


def _clip_bounds(graph: OnnxGraph) -> list[str]:
    return [graph.store(name, np.asarray(bound, graph.float_dtype)) for name, bound in _CLIP_BOUNDS]


def _model(graph: OnnxGraph) -> onnx.ModelProto:
    import onnx

    plan = graph.plan
    outputs = [graph.infos.pop(name) for name, _ in plan.outputs]
    inputs = [graph.info(value.name, graph.dtype(value.kind), value.shape) for value in plan.inputs]
    infos = list(graph.infos.values())
    proto = onnx.helper.make_graph(graph.nodes, plan.name, inputs, outputs, value_info=infos)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    producer = onnx_stream.PRODUCER
    return onnx.helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, producer_name=producer)


def _type_number(dtype: np.dtype[np.generic]) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
