"""The folder of a Run → Run: what `analyze`, `compare` and `view` start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..program.program import COMMAND, NO_ROUTE, OpInfo
from .arrow_numbers import chunk_numbers, flags_or_floats, whole_numbers
from .run import GRAPH_EDGE, GRAPH_FILE, SCHEMA, TABLES, CommandTable, Run, RunInfo
from .summary import Summary
from .trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Noun = TypeVar("Noun", RunInfo, Summary)
# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
INFO, SUMMARY = msgspec.json.Decoder(RunInfo), msgspec.json.Decoder(Summary)
SUMMARY_SCHEMA = "opscope.summary/1"
MOST = 1 << 50  # nanoseconds: thirteen days, no trace is longer; bytes and MACs of a command
MOST_PLACES = 4096  # devices, and cores of a device
BLOCK = 1 << 14  # rows
PROVENANCE = "provenance"  # a further column of spans, of runs that hold lanes of several
_PLAIN = ("op", "command", "inference", "start_ns", "end_ns", "ucycles", "pcycles", "waits_on")
_COMMAND_NUMBERS = (
    "device",
    "core",
    "op",
    "ordinal",
    "cycles",
    "out_bytes",
    "moved_bytes",
    "macs",
    "local_address",
    "local_bytes",
)


def read_run(path: Path) -> Run:
    """Everything in the folder. What is missing or of another schema is named."""
    import pyarrow as pa

    info = _json(path / "run.json", INFO, SCHEMA)
    summary = _json(path / "summary.json", SUMMARY, SUMMARY_SCHEMA)
    tables = {name: _table(path / f"{name}.parquet") for name in TABLES}
    try:
        columns = (tables["ops"][key].to_pylist() for key in ("name", "type", "kind", "location"))
        ops = tuple(OpInfo(*row) for row in zip(*columns, strict=True))
        commands = _commands(tables["commands"], _Bounds(path / "commands.parquet", len(ops), 0))
        limits = _Bounds(path / "spans.parquet", len(ops), len(commands.rows) + len(tables["spans"]))
        trace = _trace(tables, limits, info.provenance)
        return Run(info, ops, commands, trace, summary, read_graph(path, len(ops)))
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{path}: a table does not have the columns of a run ({str(error)[:200]})") from error


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the numbers of a table may be: they point to ops and commands, or are amounts that a run can have."""

    path: Path
    ops: int
    commands: int  # a span may be of one that the table of commands does not tell of

    def check(self, columns: Mapping[str, Numbers]) -> None:
        ranges = {
            "op": (NONE, self.ops),
            "command": (NONE, self.commands),
            "waits_on": (NONE, self.commands),
            "source": (0, self.commands),
            "target": (0, self.commands),
            "start_ns": (-MOST, MOST),
            "end_ns": (-MOST, MOST),
            "device": (NONE, MOST_PLACES),
            "core": (NONE, MOST_PLACES),
        }
        ranges |= dict.fromkeys(("macs", "moved_bytes", "out_bytes"), (0, MOST))
        for key, column in columns.items():
            low, high = ranges.get(key, (0, 0))
            if key not in ranges or not len(column):
                continue
            least, greatest = int(column.min()), int(column.max())
            if least < low or greatest >= high:
                wrong = least if least < low else greatest
                raise UsageError(f"{self.path}: {key} {wrong}; expected {low} to {high - 1}")


def read_graph(path: Path, ops: int) -> npt.NDArray[np.void] | None:
    """Data that flows from op to op; None where the run does not say."""
    file = path / GRAPH_FILE
    if not file.exists():
        return None
    table = _table(file)
    ends = {key: _numbers(table, key) for key in ("source", "target")}
    _Bounds(file, ops, ops).check(ends)
    return _rows(ends, len(table), GRAPH_EDGE)


def read_info(path: Path) -> RunInfo:
    """The head of the run in a folder."""
    return _json(path / "run.json", INFO, SCHEMA)


def _json(path: Path, decoder: msgspec.json.Decoder[Noun], schema: str) -> Noun:
    try:
        data = path.read_bytes()
        fields = msgspec.json.decode(data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected the folder of a run") from error
    except ValueError as error:
        raise UsageError(f"{path}: is no JSON ({error}); expected schema {schema}") from error
    if not isinstance(fields, dict) or fields.get("schema") != schema:
        raise UsageError(f"{path}: has another schema; expected {schema}")
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; expected schema {schema}") from error


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:  # read_table imports all of pandas where that is installed
            return file.read()
    except (OSError, pa.ArrowException) as error:
        problem = str(error)[:200] if path.exists() else "No such file or directory"
        raise UsageError(f"{path}: cannot be read as Parquet ({problem}); expected the table of a run") from error


def _numbers(table: pa.Table, name: str) -> Numbers:
    """A column of whole numbers; null is NONE."""
    import pyarrow as pa

    column, is_kind = table[name], pa.types.is_signed_integer if table[name].null_count else pa.types.is_integer
    return whole_numbers(column if is_kind(column.type) else column.cast("int64"))


def _words(table: pa.Table, name: str) -> tuple[Numbers, list[str]]:
    """Numbers of the words of a column, and the words; null is NONE."""
    import pyarrow as pa

    if not len(table):
        return np.zeros(0, np.int64), []
    words = table[name]
    column = (words if pa.types.is_dictionary(words.type) else words.dictionary_encode()).combine_chunks()
    return chunk_numbers(column.indices), column.dictionary.to_pylist()


def _numbered(values: Numbers) -> tuple[Numbers, Numbers]:
    """Every value of at least 0 as its place among the distinct ones, and where each of these comes first."""
    most, count = int(values.max()), len(values)
    if most > 4 * count + 1024:
        _, first, code = np.unique(values, return_index=True, return_inverse=True)
        return code, first
    first = np.full(most + 1, NONE)
    first[values[::-1]] = np.arange(count)[::-1]  # of several, the last that is written stays
    present = first != NONE
    return (np.cumsum(present) - 1)[values], first[present]


def _distinct(*columns: Numbers) -> tuple[Numbers, list[tuple[int, ...]]]:
    """Number of the combination that every row has, in order of first appearance; and the combinations."""
    count = len(columns[0])
    code, first = np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
    for column in columns if count else ():
        low, width = int(column.min()), int(column.max()) - int(column.min()) + 1
        if width > 1:
            code, first = _numbered(code * width + (column - low))
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    place, first = rank[code], np.sort(first)
    return place, list(zip(*(column[first].tolist() for column in columns), strict=True))


def _trace(tables: dict[str, pa.Table], bounds: _Bounds, provenance: Provenance) -> Trace:
    table = tables["spans"]
    name, lane_names = _words(table, "lane")
    places = {key: _numbers(table, key) for key in ("device", "core", "thread")}
    bounds.check(places)
    origin, origins = _words(table, PROVENANCE) if PROVENANCE in table.column_names else (np.zeros_like(name), [""])
    lane, lanes = _distinct(*places.values(), name, origin)
    kind, kinds = _words(table, "kind")
    place, names = _words(table, "name")
    columns = {key: _numbers(table, key) for key in _PLAIN}
    bounds.check(columns)
    columns |= {
        "lane": lane,
        "name": place,
        "kind": np.array([*(SpanKind[word.upper()].value for word in kinds), 0])[kind],
    }
    ends = {key: _numbers(tables["edges"], key) for key in ("source", "target")}
    replace(bounds, path=bounds.path.with_name("edges.parquet")).check(ends)
    edges = _rows({**ends, "data": flags_or_floats(tables["edges"]["data"])}, len(tables["edges"]), EDGE)
    counters, samples = _counters(tables["counters"])
    rows = tuple(Lane(d, c, lane_names[n], t, _foreign(origins[o], provenance)) for d, c, t, n, o in lanes)
    return Trace(rows, tuple(names), _rows(columns, len(table), SPAN), edges, counters, samples, provenance)


def _foreign(origin: str | None, provenance: Provenance) -> Provenance | None:
    """How a lane was obtained, where that is not how the run was."""
    return None if not origin or origin == provenance else Provenance(origin)


def _rows(
    columns: Mapping[str, npt.NDArray[np.generic]], count: int, layout: np.dtype[np.void]
) -> npt.NDArray[np.void]:
    """Columns side by side; a block at a time, so that the rows of a block stay in the cache."""
    rows = np.empty(count, layout)
    for low in range(0, count, BLOCK):
        block = rows[low : low + BLOCK]
        for key, column in columns.items():
            block[key] = column[low : low + BLOCK]
    return rows


def _counters(table: pa.Table) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    name, names = _words(table, "name")
    unit, units = _words(table, "unit")
    track, tracks = _distinct(_numbers(table, "device"), _numbers(table, "core"), name, unit)
    columns = {"counter": track, "time_ns": _numbers(table, "time_ns"), "value": flags_or_floats(table["value"])}
    return tuple(CounterTrack(d, c, names[n], units[u]) for d, c, n, u in tracks), _rows(columns, len(table), COUNTER)


def _commands(table: pa.Table, bounds: _Bounds) -> CommandTable:
    words = {key: _words(table, key) for key in ("group", "route", "kind")}
    columns = {key: _numbers(table, key) for key in _COMMAND_NUMBERS}
    bounds.check(columns)
    for key, (index, found) in words.items():
        lowest = NO_ROUTE if key == "route" else 0
        if len(found) > np.iinfo(COMMAND[key]).max or (len(index) and int(index.min()) < lowest):
            raise ValueError(f"{key} of commands: {len(found)} words, or none where there has to be one")
        columns[key] = index
    texts = [_words(table, key) for key in ("name", "memory", "types", "shape", "attributes", "operands")]
    columns["detail"], details = _distinct(*(index for index, _ in texts))
    names, memories, types, shapes, attributes, operands = (
        tuple(words[detail[number]] for detail in details) for number, (_, words) in enumerate(texts)
    )
    groups, routes, kinds = (tuple(found) for _, found in words.values())
    split = tuple(tuple(text.split("\n")) if text else () for text in operands)
    rows = _rows(columns, len(table), COMMAND)
    return CommandTable(rows, groups, routes, kinds, names, memories, types, shapes, split, attributes)
