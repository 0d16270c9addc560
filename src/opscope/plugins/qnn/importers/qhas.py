"""Analysis summary of a device (QHAS JSON, made by the SDK) → its tables."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ....core.errors import ImportFileError
from .events import MOST

Number = Annotated[float, msgspec.Meta(ge=0, lt=MOST)]


class Resource(msgspec.Struct):
    """One unit of the accelerator."""

    unit: str | None = None
    utilization: Number | None = None


class Resources(msgspec.Struct):
    data: list[Resource] = []


class Overall(msgspec.Struct):
    """The row of totals; a field that is not there is unknown."""

    time_us: Number | None = None
    graph_execute_us: Number | None = None
    timeline_cycles: Number | None = None
    total_dram_read: Number | None = None
    total_dram_write: Number | None = None
    total_vtcm_read: Number | None = None
    total_vtcm_write: Number | None = None
    peak_vtcm_alloc: Number | None = None
    htp_resources: Resources = msgspec.field(default_factory=Resources)


class NodeRow(msgspec.Struct):
    """One node; a field that is not there, or null, is unknown."""

    qnn_op: str | None = None
    qnn_op_type: str | None = None
    placed: str = ""  # ours alone
    cycles: Number | None = None
    wall_ns: Number | None = None  # ours alone
    num_htp_ops: Number | None = None
    dram_read: Number | None = None
    dram_write: Number | None = None
    vtcm_read: Number | None = None
    vtcm_write: Number | None = None
    path: Number | None = msgspec.field(default=None, name="percent_dominant_path_cycles_htp_0")


class _OverallTable(msgspec.Struct):
    data: list[Overall] = []


class _NodeTable(msgspec.Struct):
    data: list[NodeRow] = []


class _Data(msgspec.Struct):
    overall: _OverallTable = msgspec.field(name="htp_overall_summary")
    nodes: _NodeTable = msgspec.field(name="qnn_op_instances_nodes", default_factory=_NodeTable)


class _Header(msgspec.Struct):
    provenance: str = ""


class Qhas(msgspec.Struct):
    """The file."""

    data: _Data
    header: _Header = msgspec.field(default_factory=_Header)
    model_id: str | int | None = None


def read_qhas(raw: bytes, *, source: str) -> Qhas:
    """The tables that have a meaning here."""
    try:
        file = msgspec.json.decode(raw, type=Qhas, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFileError(source, "", f"not an analysis summary, or cut short: {error}") from error
    if not file.data.overall.data:
        raise ImportFileError(source, "", "htp_overall_summary is empty; expected its one row")
    return file
