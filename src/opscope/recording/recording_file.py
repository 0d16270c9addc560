"""`recording.json` of a Run: everything that its source told but what is in the Run's tables. None is null.

In rows of ops, unknown values are left out: most sources tell few of the many fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path

import msgspec

from ..core.files import read_whole
from ..core.json_files import decode_json, json_bytes
from ..core.provenance import Provenance
from .finding import Finding
from .recording import Check, KernelTotal, Metric, OpRecord, Recording, StageTime, Value
from .run import Run
from .summary import HostStage, LaneTotal, Latency, MemoryTotal, Share

SCHEMA = "opscope.recording/1"
RECORDING_FILE = "recording.json"
OLD_FILES = ("imported.json", "profile.json")  # what importers, and backends, left in runs of earlier versions
_OLD_RULES = {"slow-node": "slow-op", "conversions": "layout"}  # ids of findings in those


class _File(msgspec.Struct, kw_only=True):
    """The file, field by field."""

    schema: str = SCHEMA
    maker: str
    provenance: Provenance
    basis: str = ""
    model: str | None
    target: str | None
    network: str
    tool: str
    producer: dict[str, str]
    source: str
    options: dict[str, Value]
    machine: dict[str, Value]
    limits: dict[str, float]
    clocks_hz: dict[str, float]
    devices: int | None
    cores: int | None
    batch: int | None
    inferences: int | None
    numbers: tuple[int, ...] | None
    latency: Latency | None
    samples_ns: tuple[int, ...]
    metrics: tuple[Metric, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    caveats: tuple[str, ...]
    causes: tuple[Finding, ...]
    ops: tuple[OpRecord, ...]
    kernels: tuple[KernelTotal, ...]
    lanes: tuple[LaneTotal, ...]
    path_shares: tuple[Share, ...]
    path_shares_of: str
    memory: tuple[MemoryTotal, ...]
    host: tuple[HostStage, ...]
    stages: tuple[StageTime, ...]
    details: dict[str, object]


class _OldFile(msgspec.Struct):
    """What is still used of the files of earlier versions."""

    format: str = ""
    backend: str = ""
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    causes: tuple[Finding, ...] = ()


# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
_FILE, _OLD_FILE = msgspec.json.Decoder(_File), msgspec.json.Decoder(_OldFile)
_NAMES = tuple(name for name in _File.__struct_fields__ if name != "schema")
_OP_NAMES = tuple(field.name for field in fields(OpRecord) if field.name != "does")


def recording_fields(recording: Recording) -> dict[str, object]:
    """Everything but timeline, commands and graph, with unknown values of ops."""
    told = {name: getattr(recording, name) for name in _NAMES}
    ops = [op_fields(op) for op in recording.ops]
    lanes = [asdict(lane) | {"utilization": lane.utilization} for lane in recording.lanes]
    return {"schema": SCHEMA, **told, "ops": ops, "lanes": lanes}


def encode_recording(recording: Recording) -> bytes:
    told = recording_fields(recording)
    told["ops"] = [{"name": op.name, **_known(op_fields(op))} for op in recording.ops]
    return json_bytes(told)


def op_fields(op: OpRecord) -> dict[str, object]:
    """Without what the tables and totals of the Run say of it."""
    return {name: getattr(op, name) for name in _OP_NAMES}


def _known(told: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in told.items() if value not in (None, "", (), {})}


def decode_recording(raw: bytes, run: Run, *, source: str) -> Recording:
    """What `encode_recording` wrote, with the tables of its Run."""
    file = decode_json(raw, _FILE, source=source)
    fields = {name: getattr(file, name) for name in _NAMES}
    return Recording(trace=run.trace, commands=run.commands, graph=run.graph, totals=run.summary, **fields)


def read_recording(folder: Path, run: Run) -> Recording | None:
    """What the source of a Run told beside its tables; None: nothing was kept, as in runs of earlier versions."""
    raw = _raw(folder / RECORDING_FILE)
    if raw is not None:
        return decode_recording(raw, run, source=str(folder / RECORDING_FILE))
    for name in OLD_FILES:
        raw = _raw(folder / name)
        if raw is not None:
            return _old(decode_json(raw, _OLD_FILE, source=str(folder / name)), run)
    return None


def _old(file: _OldFile, run: Run) -> Recording:
    return Recording(
        maker=file.format or file.backend,
        provenance=run.info.provenance,
        trace=run.trace,
        totals=run.summary,
        causes=tuple(_renamed(cause) for cause in file.causes),
        checks=file.checks,
        notes=file.notes if file.format else (),
    )


def _renamed(cause: Finding) -> Finding:
    rule = "spill" if cause.id.endswith("-spill") else _OLD_RULES.get(cause.id, cause.id)
    return replace(cause, id=rule)


def _raw(path: Path) -> bytes | None:
    return read_whole(path, "a file of the run") if path.exists() else None
