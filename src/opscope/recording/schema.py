"""Columns of the tables of a Run's folder: names and kinds, for the writer and the reader (docs/formats/run.md)."""

from __future__ import annotations

from enum import Enum

from ..core.meaning import Does


class Kind(Enum):
    """How a column is stored."""

    NUMBER = "number"  # as wide as it is in memory
    OPTIONAL = "optional"  # a number; NONE is null
    WORD = "word"  # of a dictionary
    TEXT = "text"
    FLAG = "flag"
    REAL = "real"


_NUMBER, _OPTIONAL, _WORD, _TEXT, _FLAG, _REAL = Kind

DOES_WORDS = [does.label for does in Does]

COLUMNS: dict[str, dict[str, Kind]] = {
    "ops": {"op": _NUMBER, "name": _TEXT, "type": _TEXT, "kind": _TEXT, "location": _TEXT},
    "spans": {
        "device": _OPTIONAL,
        "core": _OPTIONAL,
        "lane": _WORD,
        "thread": _OPTIONAL,
        "kind": _WORD,
        "name": _WORD,
        "op": _OPTIONAL,
        "command": _OPTIONAL,
        "inference": _NUMBER,
        "start_ns": _NUMBER,
        "end_ns": _NUMBER,
        "ucycles": _OPTIONAL,
        "pcycles": _OPTIONAL,
        "waits_on": _OPTIONAL,
        "does": _WORD,
        "route": _OPTIONAL,
    },
    "commands": {
        "command": _NUMBER,
        "device": _NUMBER,
        "core": _NUMBER,
        "ordinal": _NUMBER,
        "group": _WORD,
        "kind": _WORD,
        "route": _WORD,
        "op": _OPTIONAL,
        "cycles": _NUMBER,
        "out_bytes": _NUMBER,
        "moved_bytes": _NUMBER,
        "macs": _NUMBER,
        "local_address": _NUMBER,
        "local_bytes": _NUMBER,
        "name": _WORD,
        "memory": _WORD,
        "types": _WORD,
        "shape": _WORD,
        "attributes": _WORD,
        "operands": _WORD,
        "does": _WORD,
        "detail": _NUMBER,
    },
    "edges": {"source": _NUMBER, "target": _NUMBER, "data": _FLAG},
    "counters": {
        "device": _OPTIONAL,
        "core": _OPTIONAL,
        "name": _WORD,
        "unit": _WORD,
        "time_ns": _NUMBER,
        "value": _REAL,
    },
    "lanes": {
        "lane": _NUMBER,
        "device": _OPTIONAL,
        "core": _OPTIONAL,
        "name": _TEXT,
        "thread": _OPTIONAL,
        "provenance": _TEXT,
        "role": _TEXT,
        "owner": _OPTIONAL,
    },
    "routes": {"route": _NUMBER, "name": _TEXT, "carries": _TEXT, "memory": _TEXT, "bytes_per_s": _REAL},
    "operands": {
        "detail": _NUMBER,
        "direction": _TEXT,
        "role": _TEXT,
        "tensor": _TEXT,
        "memory": _TEXT,
        "is_outer": _FLAG,
        "dtype": _TEXT,
        "shape": _TEXT,
        "bytes": _OPTIONAL,
    },
    "op_cycles": {"op": _NUMBER, "resource": _TEXT, "is_memory": _FLAG, "cycles": _NUMBER, "command": _OPTIONAL},
}
