"""`imported.json` of a Run: everything about an imported profile but its timeline, which is in the Run's tables."""

from __future__ import annotations

from dataclasses import fields

import msgspec

from ..core.json_files import decode_json
from .imported import Check, Imported, ImportedOp, Metric
from .summary import HostStage
from .trace import Trace

SCHEMA = "opscope.imported/1"
FILE = "imported.json"


class _File(msgspec.Struct, kw_only=True):
    """The file, field by field; unknown is null."""

    schema: str = SCHEMA
    format: str
    source: str
    tool: str
    provenance: str
    target: str | None
    model: str | None
    inferences: int | None
    metrics: tuple[Metric, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...]
    ops: tuple[ImportedOp, ...]
    host: tuple[HostStage, ...] = ()
    caveats: tuple[str, ...] = ()


_FILE = msgspec.json.Decoder(_File)


def encode_imported(imported: Imported) -> bytes:
    body = _File(**{name: getattr(imported, name) for name in _File.__struct_fields__ if name != "schema"})
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def decode_imported(raw: bytes, trace: Trace, *, source: str) -> Imported:
    """What `encode_imported` wrote, with the timeline of its Run. The vendor's tables are not in it."""
    file = decode_json(raw, _FILE, source=source)
    known = {field.name for field in fields(Imported)}
    return Imported(trace=trace, **{name: getattr(file, name) for name in _File.__struct_fields__ if name in known})
