"""The folder of a Run → Run: what `analyze`, `compare` and `view` start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.errors import UsageError
from ..core.meaning import Carries, Direction, LaneRole
from ..core.provenance import Provenance
from ..program.program import COMMAND, NO_MEMORY, NO_ROUTE, MemoryInfo, OpCycles, Operand, OpInfo
from .arrow_columns import chunk_numbers, distinct_rows, flags_or_floats, whole_numbers, word_numbers
from .bounds_file import read_bounds
from .classify import classified_summary, classify, old_operands
from .head_file import read_info
from .resources_file import read_resources
from .run import GRAPH_EDGE, CommandTable, Run, RunInfo, RunRoute
from .schema import (
    COLUMNS,
    DOES_WORDS,
    GRAPH,
    LATER_COLUMNS,
    MEANING_TABLES,
    OP_CYCLES,
    PROVENANCE,
    SHAPE_SEPARATOR,
    TABLES,
    ColumnKind,
    Range,
    columns_of,
    table_file,
)
from .summary import Summary
from .summary_file import SUMMARY_FILE, read_summary
from .trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, OpSpans, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

WordColumn = tuple[Numbers, list[str]]  # number of the word in every row, and the words
MOST = 1 << 50  # nanoseconds: thirteen days, no trace is longer; bytes and MACs of a command
MOST_PLACES = 4096  # devices, and cores of a device
BLOCK = 1 << 14  # rows


def read_run(path: Path) -> Run:
    """Everything in the folder. What is missing or of another schema is named."""
    import pyarrow as pa

    info = read_info(path)
    summary = read_summary(path)
    further = (name for name in (*MEANING_TABLES, OP_CYCLES) if (path / table_file(name)).exists())
    tables = {name: read_table(path / table_file(name)) for name in (*TABLES, *further)}
    try:
        ops = _ops(tables["ops"])
        commands = _commands(tables, _Bounds(path, len(ops), 0))
        bounds = _Bounds(path, len(ops), len(commands.rows) + len(tables["spans"]))
        trace = _trace(tables, bounds, info.provenance)
        found = classify(trace, ops, commands)
        info = info.with_classified(found.rows)
        summary = classified_summary(_of_these_ops(summary, path, len(ops)), ops)
        graph, resources = read_graph(path, len(ops)), read_resources(path, len(ops))
        return Run(info, ops, found.commands, found.trace, summary, graph, resources, read_bounds(path))
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{path}: a table does not have the columns of a run ({str(error)[:200]})") from error


def read_columns(path: Path) -> tuple[RunInfo, tuple[OpInfo, ...], Summary, OpSpans]:
    """What a comparison needs: head, ops, totals, and when ops were at work – of the spans five columns of sixteen."""
    info, summary = read_info(path), read_summary(path)
    wanted = [name for name in columns_of("ops", ColumnKind.TEXT) if name not in LATER_COLUMNS]
    ops = _ops(read_table(path / table_file("ops"), wanted, further=tuple(LATER_COLUMNS)))
    spans = _op_spans(path / table_file("spans"), len(ops), info.provenance)
    return info, ops, classified_summary(_of_these_ops(summary, path, len(ops)), ops), spans


def _of_these_ops(summary: Summary, path: Path, ops: int) -> Summary:
    """The summary, if every total in it is of an op that is there."""
    wrong = next((total.op for total in summary.ops if total.op is not None and not 0 <= total.op < ops), None)
    if wrong is not None:
        raise UsageError(f"{path / SUMMARY_FILE}: a total is of op {wrong}; expected one of the {ops} in ops.parquet")
    return summary


def read_op_cycles(path: Path, ops: int) -> tuple[OpCycles, ...]:
    """What ops take by resource; none where the run does not say."""
    file = path / table_file(OP_CYCLES)
    return _op_cycles(read_table(file), ops) if file.exists() else ()


def read_graph(path: Path, ops: int) -> npt.NDArray[np.void] | None:
    """Data that flows from op to op; None where the run does not say."""
    file = path / table_file(GRAPH)
    if not file.exists():
        return None
    table = read_table(file)
    return _rows(_numbers_of(GRAPH, table, _Bounds(path, ops, 0)), len(table), GRAPH_EDGE)


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    further: Sequence[str] = (),
    words: Sequence[str] = (),
    file: BinaryIO | None = None,
) -> pa.Table:
    """A table as it is stored.

    Args:
        columns: that have to be there, and are read; None: all.
        further: columns that are read too, where there are any.
        words: columns whose dictionaries are kept.
        file: the same file, open already.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # not pq.read_table: it imports all of pandas where that is installed
        with pq.ParquetFile(file or path, read_dictionary=list(words), memory_map=columns is not None) as parquet:
            present = parquet.schema_arrow.names
            missing = sorted(set(columns or ()) - set(present))
            if missing:
                raise UsageError(f"{path}: column {missing[0]} is missing; expected the table of a run")
            wanted = None if columns is None else [*columns, *(name for name in further if name in present)]
            return parquet.read(columns=wanted)
    except (OSError, pa.ArrowException) as error:
        problem = str(error)[:200] if path.exists() else "No such file or directory"
        raise UsageError(f"{path}: cannot be read as Parquet ({problem}); expected the table of a run") from error


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the numbers of the tables in a folder may be."""

    folder: Path
    ops: int
    commands: int  # a span may be of one that the table of commands does not tell of

    def check(self, table: str, name: str, values: Numbers) -> None:
        """Of one column; a number outside of its range is named."""
        column = COLUMNS[table][name]
        none = NONE if column.kind is ColumnKind.OPTIONAL else 0
        ranges = {
            Range.OP: (none, self.ops),
            Range.COMMAND: (none, self.commands),
            Range.TIME: (-MOST, MOST),
            Range.PLACE: (NONE, MOST_PLACES),
            Range.AMOUNT: (0, MOST),
        }
        if column.range is Range.ANY or not len(values):
            return
        (low, high), least, greatest = ranges[column.range], int(values.min()), int(values.max())
        if least < low or greatest >= high:
            wrong = least if least < low else greatest
            raise UsageError(f"{self.folder / table_file(table)}: {name} {wrong}; expected {low} to {high - 1}")


def _numbers_of(name: str, table: pa.Table, bounds: _Bounds) -> dict[str, Numbers]:
    """All columns of whole numbers that the schema has for a table, in their range; null is NONE."""
    found = {}
    for column in columns_of(name, ColumnKind.NUMBER, ColumnKind.OPTIONAL):
        if column in table.column_names or column not in LATER_COLUMNS:
            found[column] = whole_numbers(table[column])
            bounds.check(name, column, found[column])
    return found


def _words_of(name: str, table: pa.Table) -> dict[str, WordColumn]:
    """All columns of words that the schema has for a table; null is NONE."""
    wanted = columns_of(name, ColumnKind.WORD)
    return {key: word_numbers(table[key]) for key in wanted if key in table.column_names or key not in LATER_COLUMNS}


def _tuples_of(name: str, table: pa.Table) -> list[tuple[Any, ...]]:
    """A small table row by row, without the number of the row; values are those that its writer was given."""
    columns = [
        whole_numbers(table[key]).tolist() if column.kind.is_column_of_numbers else table[key].to_pylist()
        for key, column in COLUMNS[name].items()
        if column.kind is not ColumnKind.ROW
    ]
    return list(zip(*columns, strict=True))


def _ops(table: pa.Table) -> tuple[OpInfo, ...]:
    names = [
        name for name in columns_of("ops", ColumnKind.TEXT) if name in table.column_names or name not in LATER_COLUMNS
    ]
    columns = [[word or "" for word in table[name].to_pylist()] for name in names]
    return tuple(OpInfo(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))


def _op_spans(path: Path, ops: int, provenance: Provenance) -> OpSpans:
    """Of the lanes that are of the run's own provenance."""
    import pyarrow as pa

    kind, *names = OpSpans._fields
    table = read_table(path, OpSpans._fields, further=(PROVENANCE,), words=(kind,))
    if PROVENANCE in table.column_names:
        own = [word is None or word == provenance for word in table[PROVENANCE].to_pylist()]
        table = table.filter(own)
    try:
        kinds, numbers = _kinds(table[kind]), [whole_numbers(table[name]) for name in names]
    except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise UsageError(f"{path}: a column is not as in a run ({str(error)[:200]})") from error
    op, _, start, end = numbers
    if len(op) and (int(op.max()) >= ops or int(op.min()) < NONE):
        raise UsageError(f"{path}: a span is of op {int(op.max())}; expected one of the {ops} in ops.parquet")
    if bool((end < start).any()):
        raise UsageError(f"{path}: a span ends before it starts")
    return OpSpans(kinds, *numbers)


def _kinds(column: pa.ChunkedArray) -> Numbers:
    """SpanKind of every span; chunks may have dictionaries of their own."""
    parts = [
        np.array([int(SpanKind[word.upper()]) for word in chunk.dictionary.to_pylist()] or [0])[
            chunk_numbers(chunk.indices)
        ]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _trace(tables: Mapping[str, pa.Table], bounds: _Bounds, provenance: Provenance) -> Trace:
    spans, lanes, names = _spans(tables, bounds, provenance)
    if "lanes" in tables:
        lanes = _with_roles(lanes, tables["lanes"])
    table = tables["edges"]
    edges: dict[str, npt.NDArray[np.generic]] = {**_numbers_of("edges", table, bounds)}
    edges |= {name: flags_or_floats(table[name]) for name in columns_of("edges", ColumnKind.FLAG)}
    counters, samples = _counters(tables["counters"], bounds)
    return Trace(tuple(lanes), tuple(names), spans, _rows(edges, len(table), EDGE), counters, samples, provenance)


def _spans(
    tables: Mapping[str, pa.Table], bounds: _Bounds, provenance: Provenance
) -> tuple[npt.NDArray[np.void], list[Lane], list[str]]:
    """Rows of SPAN, the lanes that they lie in, and their names."""
    table = tables["spans"]
    words, columns = _words_of("spans", table), _numbers_of("spans", table, bounds)
    columns.setdefault("route", np.full(len(table), NONE))
    columns["counts"] = np.full(len(table), NONE)  # tables have no counters of single commands
    if len(table) and int(columns["route"].max()) >= (len(tables["routes"]) if "routes" in tables else 0):
        raise ValueError(f"a span takes route {int(columns['route'].max())}; expected one of routes.parquet")
    lane_name, lane_names = words["lane"]
    origin, origins = word_numbers(table[PROVENANCE]) if PROVENANCE in table.column_names else (lane_name * 0, [""])
    place = (columns.pop(key) for key in ("device", "core", "thread"))
    columns["lane"], found = distinct_rows(*place, lane_name, origin)
    lanes = [Lane(d, c, lane_names[n], t, _foreign(origins[o], provenance)) for d, c, t, n, o in found]
    kind, kinds = words["kind"]
    columns["kind"] = np.array([*(SpanKind[word.upper()].value for word in kinds), 0])[kind]
    columns["name"], names = words["name"]
    columns["does"] = _does(words, len(table))
    return _rows(columns, len(table), SPAN), lanes, names


def _does(words: Mapping[str, WordColumn], count: int) -> Numbers:
    """What every row does; of tables of old, unknown."""
    if "does" not in words:
        return np.zeros(count, np.int64)
    index, found = words["does"]
    return np.array([*(DOES_WORDS.index(word) for word in found), 0])[index]


def _with_roles(lanes: list[Lane], table: pa.Table) -> list[Lane]:
    """Lanes that spans name, with role and owner; owners that hold no span are left out."""
    rows = _tuples_of("lanes", table)
    keys = [(device, core, thread, name, origin or None) for device, core, name, thread, origin, _, _ in rows]
    number = {key: place for place, key in enumerate(keys)}
    own = {(lane.device, lane.core, lane.thread, lane.name, lane.provenance): n for n, lane in enumerate(lanes)}
    found = []
    for key, lane in zip(own, lanes, strict=True):
        place = number.get(key)
        *_, role, owner = rows[place] if place is not None else (LaneRole.UNKNOWN, NONE)
        owner = NONE if owner == NONE else own.get(keys[owner], NONE)
        found.append(replace(lane, role=LaneRole(role), owner=owner))
    return found


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


def _counters(table: pa.Table, bounds: _Bounds) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    numbers, words = _numbers_of("counters", table, bounds), _words_of("counters", table)
    (name, names), (unit, units) = words["name"], words["unit"]
    numbers["counter"], tracks = distinct_rows(numbers.pop("device"), numbers.pop("core"), name, unit)
    values = {key: flags_or_floats(table[key]) for key in columns_of("counters", ColumnKind.REAL)}
    columns: dict[str, npt.NDArray[np.generic]] = {**numbers, **values}
    return tuple(CounterTrack(d, c, names[n], units[u]) for d, c, n, u in tracks), _rows(columns, len(table), COUNTER)


def _commands(tables: Mapping[str, pa.Table], bounds: _Bounds) -> CommandTable:
    """The commands of a folder, with their words as positions in lists again.

    Commands of one tile share a detail. Folders of earlier versions have no number of it: there a detail is a
    combination of words, and its operands are read from one of them.
    """
    table = tables["commands"]
    words, columns = _words_of("commands", table), _numbers_of("commands", table, bounds)
    for key in ("group", "route", "kind"):
        index, found = words[key]
        lowest = NO_ROUTE if key == "route" else 0
        if len(found) > np.iinfo(COMMAND[key]).max or (len(index) and int(index.min()) < lowest):
            raise ValueError(f"{key} of commands: {len(found)} words, or none where there has to be one")
        columns[key] = index
    columns["does"] = _does(words, len(table))
    own = [columns["detail"]] if "detail" in columns else []  # of old, a detail is a combination of its words
    texts = [words[key] for key in ("name", "memory", "types", "shape", "attributes", "operands")]
    columns["detail"], details = distinct_rows(*(index for index, _ in texts), *own)
    names, memories, types, shapes, attributes, operands = (
        tuple(found[detail[number]] for detail in details) for number, (_, found) in enumerate(texts)
    )
    groups, route_names, kinds = (tuple(words[key][1]) for key in ("group", "route", "kind"))
    routes, columns["route"] = _routes(tables, route_names, columns["route"], columns.pop("route_number", None))
    rows = _rows(columns, len(table), COMMAND)
    plain = CommandTable(rows, groups, routes, kinds, names, memories, types, shapes, ((),) * len(names), attributes)
    if "operands" not in tables:
        return old_operands(plain, operands)
    numbers = {detail[-1]: number for number, detail in enumerate(details)}
    operand_rows, places = _operands(tables["operands"], numbers)
    cycles = _op_cycles(tables[OP_CYCLES], bounds.ops) if OP_CYCLES in tables else ()
    return replace(plain, operands=operand_rows, places=places, op_cycles=cycles)


def _routes(
    tables: Mapping[str, pa.Table], names: tuple[str, ...], named: Numbers, numbered: Numbers | None
) -> tuple[tuple[RunRoute, ...], Numbers]:
    """All routes, and that of every command: by its number, and in folders of earlier versions by its name.

    Args:
        named: of every command, the position in names of that of its route.
    """
    if "routes" not in tables:
        return tuple(RunRoute(name) for name in names), named
    rows = _tuples_of("routes", tables["routes"])
    routes = tuple(RunRoute(name, Carries(way), memory, rate) for name, way, memory, rate in rows)
    if numbered is not None:
        if len(numbered) and not NO_ROUTE <= int(numbered.min()) <= int(numbered.max()) < len(routes):
            raise ValueError(f"commands start routes that are not there; expected one of {len(routes)}")
        return routes, numbered
    place = {route.name: number for number, route in reversed(list(enumerate(routes)))}
    return routes, np.array([*(place[name] for name in names), NO_ROUTE])[named]


def _operands(
    table: pa.Table, numbers: Mapping[int, int]
) -> tuple[tuple[tuple[Operand, ...], ...], tuple[MemoryInfo, ...]]:
    """Operands of every detail that commands have, and the memories they lie in."""
    found: list[list[Operand]] = [[] for _ in numbers]
    places: dict[MemoryInfo, int] = {}
    for detail, way, role, tensor, memory, outer, dtype, shape, size in _tuples_of("operands", table):
        if detail not in numbers:
            continue
        place = places.setdefault(MemoryInfo(memory, outer), len(places)) if memory else NO_MEMORY
        extents = tuple(int(extent) for extent in shape.split(SHAPE_SEPARATOR) if extent)
        found[numbers[detail]].append(Operand(Direction(way), role, tensor, place, dtype, extents, size))
    return tuple(map(tuple, found)), tuple(places)


def _op_cycles(table: pa.Table, ops: int) -> tuple[OpCycles, ...]:
    rows = tuple(OpCycles(*row) for row in _tuples_of(OP_CYCLES, table))
    if any(not 0 <= row.op < ops for row in rows):
        raise ValueError(f"op_cycles.parquet is of an op that is not there; expected one of {ops}")
    return rows
