"""Op trace of the runtime (`qnn_op_trace.json`) → which ONNX nodes became which ops, and which did not and why."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ....core.errors import ImportFileError
from .events import plain_name

_DUPLICATED = "/duplicated"


class _Source(msgspec.Struct):
    name: str = ""
    type: str = ""


class _Mapping(msgspec.Struct):
    dst_name: str = ""
    dst_qnn_op_type: str = ""
    sources: list[_Source] = []


class _Subgraph(msgspec.Struct):
    graph_name: str = ""
    op_mappings: list[_Mapping] = []


class _Target(msgspec.Struct):
    soc_model: int = 0


class _Soc(msgspec.Struct):
    compilation_target: _Target = msgspec.field(default_factory=_Target)


class _Unsupported(msgspec.Struct):
    node_name: str = ""
    op_type: str = ""
    reason: str = ""


class _File(msgspec.Struct):
    subgraph_traces: list[_Subgraph]
    soc_traces: list[_Soc] = []
    unsupported_nodes: list[_Unsupported] = []
    model_name: str = ""


@dataclass(frozen=True, slots=True)
class MappedOp:
    """An op given to the compiler, and the ONNX nodes it stands for."""

    name: str  # as the compiler knows it
    type: str
    nodes: tuple[str, ...]  # ONNX names, without marks of layout changes


@dataclass(frozen=True, slots=True)
class Refused:
    """A node that the accelerator does not take."""

    name: str
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpTrace:
    """How a model was divided."""

    soc_model: int | None  # what was really compiled for; None: the file does not say
    graphs: dict[str, tuple[MappedOp, ...]]
    refused: tuple[Refused, ...]
    model: str = ""  # name of its file


def read_op_trace(raw: bytes, *, source: str) -> OpTrace:
    """One op trace file."""
    try:
        file = msgspec.json.decode(raw, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFileError(source, "", f"not an op trace of the runtime: {error}") from error
    return OpTrace(
        soc_model=file.soc_traces[0].compilation_target.soc_model if file.soc_traces else None,
        graphs={graph.graph_name: tuple(_mapped(op) for op in graph.op_mappings) for graph in file.subgraph_traces},
        refused=tuple(Refused(n.node_name, n.op_type, _sentences(n.reason)) for n in file.unsupported_nodes),
        model=file.model_name,
    )


def _mapped(op: _Mapping) -> MappedOp:
    names = (plain_name(source.name).removesuffix(_DUPLICATED) for source in op.sources if source.type == "OP")
    return MappedOp(op.dst_name, op.dst_qnn_op_type, tuple(dict.fromkeys(names)))


def _sentences(reason: str) -> str:
    """The runtime glues sentences together."""
    return ". ".join(part.strip() for part in reason.split(".") if part.strip())
