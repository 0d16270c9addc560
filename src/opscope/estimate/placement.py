"""Chooses the engine that runs an op, and gives the reason if it is not the first choice."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.graph import ABSENT, DType, Graph, Op
from ..graph.kinds import Family
from ..graph.work_families import WorkFamily, work_family
from ..machine.target import CHANNELS, Engine, Limit, Target
from .work import Work, number, numbers

_BY_OUTPUT = frozenset(("gather", "dequantize", "dequantize_mxint8", "select", "cast"))


@dataclass(frozen=True, slots=True)
class Placement:
    """The engine that runs an op; None if the target cannot run it, for the reason given."""

    engine: Engine | None
    dtype: DType
    reason: str = ""  # why the op is not on the first engine that lists its kind


def place_op(op: Op, work: Work, graph: Graph, target: Target) -> Placement:
    """Return the first engine of the target that takes the op's kind and has a rate for its data type."""
    dtype = compute_dtype(op, graph)
    if not target.supports(op):
        return Placement(None, dtype, f"{target.name} does not support {op.type}")
    if target.support.dtypes and dtype.label not in target.support.dtypes:
        return Placement(None, dtype, f"{target.name} does not support {dtype.label}")
    takes = [engine for engine in target.engines if engine.takes(op)]
    family = work_family(op, graph)
    refused = {engine.name: reason for engine in takes if (reason := _refusal(engine, op, graph))}
    able = [e for e in takes if e.name not in refused and can_price(e, op, work, dtype, family)]
    unable = next((refused.get(e.name, f"{e.name} has no rate for {dtype.label}") for e in takes if e not in able), "")
    if not able:
        return Placement(None, dtype, unable or f"no engine of {target.name} takes {op.kind}")
    return Placement(able[0], dtype, unable if takes[0] is not able[0] else "")


def _refusal(engine: Engine, op: Op, graph: Graph) -> str:
    """Which limit of an engine an op passes, and what would be taken; empty: none."""
    for limit in engine.limits:
        found = _attribute(limit.attribute, op, graph) if op.kind == limit.kind else ()
        told = "x".join(map(str, found))
        if found and limit.allowed and not _is_allowed(found, told, limit, op, graph):
            return f"{engine.name} takes {limit.attribute} {' or '.join(limit.allowed)}; this is {told}"
        if found and limit.most is not None and max(found) > limit.most:
            return f"{engine.name} takes {limit.attribute} up to {limit.most:,}; this is {told}"
    return ""


def _is_allowed(found: tuple[int, ...], told: str, limit: Limit, op: Op, graph: Graph) -> bool:
    """Whether it is one of the values; the word `channels` stands for as many as the input has."""
    each = CHANNELS in limit.allowed and found == _attribute("input_channels", op, graph)
    return each or told in limit.allowed


def _attribute(name: str, op: Op, graph: Graph) -> tuple[int, ...]:
    """Numbers of an attribute; none where the op or its shapes do not tell."""
    if name in {"input_channels", "output_channels"}:
        operands = op.inputs if name == "input_channels" else op.outputs
        shape = graph.tensors[operands[0]].shape if operands and operands[0] != ABSENT else None
        axis = number(op, "channel_axis", 1)
        return () if shape is None or axis >= len(shape) else (shape[axis],)
    value = op.attributes.get(name)
    return (value,) if isinstance(value, int) else numbers(op, name)


def compute_dtype(op: Op, graph: Graph) -> DType:
    """Return the type that arithmetic is done in: that of the first operand, or of the output for lookups and casts.

    What is stored in blocks is moved as the bytes that it is made of.
    """
    dtype = _operand_dtype(op, graph)
    return DType.I8 if dtype.has_blocks else dtype


def _operand_dtype(op: Op, graph: Graph) -> DType:
    operands = [graph.tensors[t].dtype for t in op.inputs if t != ABSENT]
    if op.kind in _BY_OUTPUT and op.outputs:
        return graph.tensors[op.outputs[0]].dtype
    return operands[0] if operands else (graph.tensors[op.outputs[0]].dtype if op.outputs else DType.UNKNOWN)


def can_price(engine: Engine, op: Op, work: Work, dtype: DType, family: WorkFamily | None) -> bool:
    """Whether the target has a rate for this work on this engine; an opaque op has none anywhere."""
    if op.family is Family.OPAQUE:
        return False
    if engine.command_cycles is not None or any(word in engine.kernels for word in op.called):
        return True
    if engine.rate_of(family, dtype, op.kind) is not None:
        return True
    if work.macs and engine.rate(engine.macs_per_cycle, dtype) is None:
        return False
    needs_elements = work.element_ops and not work.macs
    return not needs_elements or engine.rate(engine.element_ops_per_cycle, dtype) is not None
