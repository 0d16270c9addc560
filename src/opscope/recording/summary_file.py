"""Summary as JSON: `summary.json` of a Run, both ways."""

from __future__ import annotations

from dataclasses import asdict, replace
from dataclasses import fields as fields_of
from pathlib import Path

import msgspec

from ..core.errors import UsageError
from ..core.files import read_whole
from ..core.json_files import PRODUCER, json_bytes
from .summary import OCCUPANCY, Summary

SCHEMA = "opscope.summary/2"
SUMMARY_FILE = "summary.json"
_NAMES = tuple(field.name for field in fields_of(Summary))
EARLIER_SCHEMA = "opscope.summary/1"  # its `breakdown` was the occupancy, or in the words of a backend


def encode_summary(summary: Summary) -> bytes:
    return json_bytes(summary_fields(summary))


def summary_fields(summary: Summary) -> dict[str, object]:
    """Every field of a Summary, and the ratios that are read off them."""
    fields: dict[str, object] = {"schema": SCHEMA, "producer": PRODUCER}
    fields |= {name: getattr(summary, name) for name in _NAMES}  # what they hold is encoded as it is
    fields["lanes"] = [asdict(lane) | {"utilization": lane.utilization} for lane in summary.lanes]
    fields["routes"] = [asdict(route) | {"gigabytes_per_s": route.gigabytes_per_s} for route in summary.routes]
    return fields


class _Head(msgspec.Struct):
    schema: str = ""


# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
_HEAD, _SUMMARY = msgspec.json.Decoder(_Head), msgspec.json.Decoder(Summary)


def read_summary(folder: Path) -> Summary:
    """The totals of the run in a folder."""
    path = folder / SUMMARY_FILE
    return decode_summary(read_whole(path, "the folder of a run"), source=str(path))


def decode_summary(data: bytes, *, source: str) -> Summary:
    """Of this schema and of the one before."""
    try:
        schema = _HEAD.decode(data).schema
        if schema not in (SCHEMA, EARLIER_SCHEMA):
            raise UsageError(f"{source}: has another schema; expected {SCHEMA}")
        found = _SUMMARY.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{source}: is damaged ({error}); expected schema {SCHEMA}") from error
    return found if schema == SCHEMA else _of_earlier(found)


def _of_earlier(summary: Summary) -> Summary:
    """What holds the end of the run back was in its findings alone."""
    is_occupancy = all(part.cause in OCCUPANCY for part in summary.breakdown)
    return replace(summary, breakdown=(), occupancy=summary.breakdown if is_occupancy else ())
