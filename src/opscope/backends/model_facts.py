"""What the graph of a model tells beside what a backend finds out: inputs at once, and the code behind its ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..graph.graph import Graph, Op
from ..recording.recording import OpRecord, Recording


def with_model(result: Recording, graph: Graph) -> Recording:
    """The recording with what its model tells; its batch is known then.

    A backend that reads the model itself ends with this; of the others it is read for this alone.
    """
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    known = {op.name: op for op in graph.ops if op.module or op.line}
    ops = tuple(_with_code(op, known) for op in result.ops) if known else result.ops
    random = tuple(note.text for note in graph.notes if note.code == "random-weights")
    return replace(result, batch=shape[0] if shape else 1, ops=ops, caveats=(*result.caveats, *random))


def _with_code(record: OpRecord, known: Mapping[str, Op]) -> OpRecord:
    """One that does the work of several is of the module of the first."""
    found = next((known[name] for name in (record.name, *record.covers) if name in known), None)
    return record if found is None else replace(record, module=found.module, line=found.line)
