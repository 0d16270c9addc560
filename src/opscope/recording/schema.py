"""The tables of a Run's folder: their files, and name, kind and range of every column (docs/formats/run.md).

The writer and the reader both go by COLUMNS, so that neither has a list of columns of its own. A table is stored as its
columns in the order given here:

    routes.parquet    route  name   carries  memory  bytes_per_s
                      0      "in"   "read"   "DDR"   6.4e10
                      1      "out"  "write"  "DDR"   null
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ..core.meaning import Does

RUN_SCHEMA = "opscope.run/1"  # of the head and the tables together
HEAD_FILE = "run.json"

TABLES = ("ops", "commands", "spans", "edges", "counters")
MEANING_TABLES = ("lanes", "routes", "operands")  # what things do, where they lie: folders of old do not have these
OP_CYCLES = "op_cycles"  # of runs of compilers that tell cycles by resource
GRAPH = "graph"  # of runs whose graph is known

PROVENANCE = "provenance"  # a further column of spans (a word), of runs that hold lanes of several provenances
LATER_COLUMNS = frozenset(  # folders of old may not have these
    ("does", "route", "route_number", "detail", "unknown", "module", "line")
)

SHAPE_SEPARATOR = " x "  # of the shape of an operand: `8 x 128`
DOES_WORDS = [does.label for does in Does]


class ColumnKind(Enum):
    """How a column is stored, and what stands for an unknown value in memory."""

    ROW = "row"  # the number of the row itself; written for other tools, not read back
    NUMBER = "number"  # a whole number, as wide as it is in memory
    OPTIONAL = "optional"  # a whole number; NONE is null
    NULLABLE = "nullable"  # a whole number; None is null
    REAL = "real"  # None is null
    FLAG = "flag"
    WORD = "word"  # text, each word stored once in a dictionary
    TEXT = "text"

    @property
    def is_column_of_numbers(self) -> bool:
        """Read as an array in which null is NONE."""
        return self in (ColumnKind.NUMBER, ColumnKind.OPTIONAL)


class Range(Enum):
    """What the numbers of a column may be; the reader refuses others."""

    ANY = "any"
    OP = "op"  # a row of ops
    COMMAND = "command"  # a command of the program
    TIME = "time"
    PLACE = "place"  # number of a device or core
    AMOUNT = "amount"  # bytes, MACs


class Column(NamedTuple):
    """One column of a table."""

    kind: ColumnKind
    range: Range = Range.ANY


_ROW, _NUMBER, _OPTIONAL, _NULLABLE, _REAL, _FLAG, _WORD, _TEXT = (Column(kind) for kind in ColumnKind)
_MAYBE_OP, _MAYBE_COMMAND = Column(ColumnKind.OPTIONAL, Range.OP), Column(ColumnKind.OPTIONAL, Range.COMMAND)
_OP, _COMMAND, _TIME = (Column(ColumnKind.NUMBER, limit) for limit in (Range.OP, Range.COMMAND, Range.TIME))
_PLACE, _MAYBE_PLACE = (Column(kind, Range.PLACE) for kind in (ColumnKind.NUMBER, ColumnKind.OPTIONAL))
_AMOUNT = Column(ColumnKind.NUMBER, Range.AMOUNT)

COLUMNS: dict[str, dict[str, Column]] = {
    "ops": {
        "op": _ROW,
        "name": _TEXT,
        "type": _TEXT,
        "kind": _TEXT,
        "location": _TEXT,
        "unknown": _TEXT,
        "module": _TEXT,
        "line": _TEXT,
    },
    "spans": {
        "device": _MAYBE_PLACE,
        "core": _MAYBE_PLACE,
        "lane": _WORD,
        "thread": _OPTIONAL,
        "kind": _WORD,
        "name": _WORD,
        "op": _MAYBE_OP,
        "command": _MAYBE_COMMAND,
        "inference": _NUMBER,
        "start_ns": _TIME,
        "end_ns": _TIME,
        "ucycles": _OPTIONAL,
        "pcycles": _OPTIONAL,
        "waits_on": _MAYBE_COMMAND,
        "does": _WORD,
        "route": _OPTIONAL,
    },
    "commands": {
        "command": _ROW,
        "device": _PLACE,
        "core": _PLACE,
        "ordinal": _NUMBER,
        "group": _WORD,
        "kind": _WORD,
        "route": _WORD,
        "op": _MAYBE_OP,
        "cycles": _NUMBER,
        "out_bytes": _AMOUNT,
        "moved_bytes": _AMOUNT,
        "macs": _AMOUNT,
        "local_address": _NUMBER,
        "local_bytes": _NUMBER,
        "name": _WORD,
        "memory": _WORD,
        "types": _WORD,
        "shape": _WORD,
        "attributes": _WORD,
        "operands": _WORD,  # as text for people; the table `operands` is what is read
        "does": _WORD,
        "detail": _NUMBER,
        "route_number": _OPTIONAL,  # row of routes, which is what is read; `route` is its name, for people
    },
    "edges": {"source": _COMMAND, "target": _COMMAND, "data": _FLAG},
    "counters": {
        "device": _OPTIONAL,
        "core": _OPTIONAL,
        "name": _WORD,
        "unit": _WORD,
        "time_ns": _TIME,
        "value": _REAL,
    },
    "lanes": {
        "lane": _ROW,
        "device": _OPTIONAL,
        "core": _OPTIONAL,
        "name": _TEXT,
        "thread": _OPTIONAL,
        PROVENANCE: _TEXT,
        "role": _TEXT,
        "owner": _OPTIONAL,
    },
    "routes": {"route": _ROW, "name": _TEXT, "carries": _TEXT, "memory": _TEXT, "bytes_per_s": _REAL},
    "operands": {
        "detail": _NUMBER,
        "direction": _TEXT,
        "role": _TEXT,
        "tensor": _TEXT,
        "memory": _TEXT,
        "is_outer": _FLAG,
        "dtype": _TEXT,
        "shape": _TEXT,
        "bytes": _NULLABLE,
    },
    OP_CYCLES: {"op": _NUMBER, "resource": _TEXT, "is_memory": _FLAG, "cycles": _NUMBER, "command": _OPTIONAL},
    GRAPH: {"source": _OP, "target": _OP},
}


def table_file(table: str) -> str:
    """Name of the file in the folder."""
    return f"{table}.parquet"


def columns_of(table: str, *kinds: ColumnKind) -> list[str]:
    """Names of the columns of these kinds, in the order of the table."""
    return [name for name, column in COLUMNS[table].items() if column.kind in kinds]


GRAPH_FILE = table_file(GRAPH)
TABLE_FILES = tuple(table_file(table) for table in TABLES)  # that every run has
