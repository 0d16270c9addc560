"""Chooses the engine that runs an op, and gives the reason if it is not the first choice."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.graph import ABSENT, DType, Graph, Op
from ..graph.kinds import Family
from ..graph.work_families import WorkFamily, work_family
from ..machine.target import Engine, Target
from .work import Work

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
    able = [engine for engine in takes if can_price(engine, op, work, dtype, family)]
    unable = next((f"{engine.name} has no rate for {dtype.label}" for engine in takes if engine not in able), "")
    if not able:
        return Placement(None, dtype, unable or f"no engine of {target.name} takes {op.kind}")
    return Placement(able[0], dtype, unable if takes[0] is not able[0] else "")


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
    if engine.command_cycles is not None or op.kind in engine.kernels or op.family.value in engine.kernels:
        return True
    if engine.rate_of(family, dtype) is not None:
        return True
    if work.macs and engine.rate(engine.macs_per_cycle, dtype) is None:
        return False
    needs_elements = work.element_ops and not work.macs
    return not needs_elements or engine.rate(engine.element_ops_per_cycle, dtype) is not None
