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
from ..core.meaning import Carries, Direction, LaneRole
from ..core.provenance import Provenance
from ..program.program import COMMAND, NO_MEMORY, NO_ROUTE, MemoryInfo, OpCycles, Operand, OpInfo
from .arrow_numbers import chunk_numbers, flags_or_floats, whole_numbers
from .classify import classified_summary, classify, old_operands
from .resources import FILE as RESOURCES_FILE
from .resources import SCHEMA as RESOURCES_SCHEMA
from .resources import Resources
from .run import GRAPH_EDGE, GRAPH_FILE, MEANING_TABLES, SCHEMA, TABLES, CommandTable, Run, RunInfo, RunRoute
from .schema import DOES_WORDS
from .summary_json import read_summary
from .trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Noun = TypeVar("Noun", RunInfo, Resources)
# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
INFO, RESOURCES = msgspec.json.Decoder(RunInfo), msgspec.json.Decoder(Resources)
MOST = 1 << 50  # nanoseconds: thirteen days, no trace is longer; bytes and MACs of a command
MOST_PLACES = 4096  # devices, and cores of a device
BLOCK = 1 << 14  # rows
OP_CYCLES = "op_cycles"  # a further table, of runs of compilers that tell cycles by resource
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

    info = read_info(path)
    summary = read_summary(path / "summary.json")
    further = (name for name in (*MEANING_TABLES, OP_CYCLES) if (path / f"{name}.parquet").exists())
    tables = {name: _table(path / f"{name}.parquet") for name in (*TABLES, *further)}
    try:
        columns = (tables["ops"][key].to_pylist() for key in ("name", "type", "kind", "location"))
        ops = tuple(OpInfo(*row) for row in zip(*columns, strict=True))
        commands = _commands(tables, _Bounds(path / "commands.parquet", len(ops), 0))
        limits = _Bounds(path / "spans.parquet", len(ops), len(commands.rows) + len(tables["spans"]))
        trace = _trace(tables, limits, info.provenance)
        found = classify(trace, ops, commands)
        info = replace(info, classified=tuple(dict.fromkeys((*info.classified, *found.told))))
        summary = classified_summary(summary, ops)
        graph, resources = read_graph(path, len(ops)), read_resources(path, len(ops))
        return Run(info, ops, found.commands, found.trace, summary, graph, resources)
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


def read_resources(path: Path, ops: int) -> Resources | None:
    """What the run takes of its target; None where nobody made a resource report of it."""
    file = path / RESOURCES_FILE
    if not file.exists():
        return None
    found = _json(file, RESOURCES, RESOURCES_SCHEMA)
    layers = [layer.op for layer in found.layers]
    advised = [advice.layer for advice in (*found.heavy_memory, *found.heavy_macs)]
    peak = [] if found.memory.peak_layer is None else [found.memory.peak_layer]
    for numbers, most in ((layers, ops), ((*advised, *peak), len(layers))):
        wrong = next((number for number in numbers if not 0 <= number < most), None)
        if wrong is not None:
            raise UsageError(f"{file}: layer {wrong}; expected 0 to {most - 1}")
    return found


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
    columns["does"] = _does(table)
    columns["route"] = _numbers(table, "route") if "route" in table.column_names else np.full(len(table), NONE)
    if len(table) and int(columns["route"].max()) >= (len(tables["routes"]) if "routes" in tables else 0):
        raise ValueError(f"a span takes route {int(columns['route'].max())}; expected one of routes.parquet")
    ends = {key: _numbers(tables["edges"], key) for key in ("source", "target")}
    replace(bounds, path=bounds.path.with_name("edges.parquet")).check(ends)
    edges = _rows({**ends, "data": flags_or_floats(tables["edges"]["data"])}, len(tables["edges"]), EDGE)
    counters, samples = _counters(tables["counters"])
    rows = [Lane(d, c, lane_names[n], t, _foreign(origins[o], provenance)) for d, c, t, n, o in lanes]
    if "lanes" in tables:
        rows = _with_roles(rows, tables["lanes"])
    return Trace(tuple(rows), tuple(names), _rows(columns, len(table), SPAN), edges, counters, samples, provenance)


def _does(table: pa.Table) -> Numbers:
    """What every row does; of tables of old, unknown."""
    if "does" not in table.column_names:
        return np.zeros(len(table), np.int64)
    index, words = _words(table, "does")
    return np.array([*(DOES_WORDS.index(word) for word in words), 0])[index]


def _with_roles(lanes: list[Lane], table: pa.Table) -> list[Lane]:
    """Lanes that spans name, with role and owner; owners that hold no span are left out."""
    names, roles, origins = (table[key].to_pylist() for key in ("name", "role", PROVENANCE))
    places = zip(*(_numbers(table, key).tolist() for key in ("device", "core", "thread")), strict=True)
    keys = [(*place, name, origin) for place, name, origin in zip(places, names, origins, strict=True)]
    number = {key: place for place, key in enumerate(keys)}
    own = {(lane.device, lane.core, lane.thread, lane.name, lane.provenance): n for n, lane in enumerate(lanes)}
    owners = _numbers(table, "owner").tolist()
    found = []
    for key, lane in zip(own, lanes, strict=True):
        place = number.get(key)
        owner = NONE if place is None or owners[place] == NONE else own.get(keys[owners[place]], NONE)
        role = LaneRole.UNKNOWN if place is None else LaneRole(roles[place])
        found.append(replace(lane, role=role, owner=owner))
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


def _counters(table: pa.Table) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    name, names = _words(table, "name")
    unit, units = _words(table, "unit")
    track, tracks = _distinct(_numbers(table, "device"), _numbers(table, "core"), name, unit)
    columns = {"counter": track, "time_ns": _numbers(table, "time_ns"), "value": flags_or_floats(table["value"])}
    return tuple(CounterTrack(d, c, names[n], units[u]) for d, c, n, u in tracks), _rows(columns, len(table), COUNTER)


def _commands(tables: Mapping[str, pa.Table], bounds: _Bounds) -> CommandTable:
    table = tables["commands"]
    words = {key: _words(table, key) for key in ("group", "route", "kind")}
    columns = {key: _numbers(table, key) for key in _COMMAND_NUMBERS}
    bounds.check(columns)
    for key, (index, found) in words.items():
        lowest = NO_ROUTE if key == "route" else 0
        if len(found) > np.iinfo(COMMAND[key]).max or (len(index) and int(index.min()) < lowest):
            raise ValueError(f"{key} of commands: {len(found)} words, or none where there has to be one")
        columns[key] = index
    columns["does"] = _does(table)
    own = [_numbers(table, "detail")] if "detail" in table.column_names else []
    texts = [_words(table, key) for key in ("name", "memory", "types", "shape", "attributes", "operands")]
    columns["detail"], details = _distinct(*(index for index, _ in texts), *own)
    names, memories, types, shapes, attributes, operands = (
        tuple(words[detail[number]] for detail in details) for number, (_, words) in enumerate(texts)
    )
    groups, route_names, kinds = (tuple(found) for _, found in words.values())
    routes, place = _routes(tables, route_names)
    columns["route"] = place[columns["route"]]
    rows = _rows(columns, len(table), COMMAND)
    plain = CommandTable(rows, groups, routes, kinds, names, memories, types, shapes, ((),) * len(names), attributes)
    if "operands" not in tables:
        return old_operands(plain, operands)
    numbers = {detail[-1]: number for number, detail in enumerate(details)}
    operand_rows, places = _operands(tables["operands"], numbers)
    cycles = _op_cycles(tables[OP_CYCLES], bounds.ops) if OP_CYCLES in tables else ()
    return replace(plain, operands=operand_rows, places=places, op_cycles=cycles)


def _routes(tables: Mapping[str, pa.Table], names: tuple[str, ...]) -> tuple[tuple[RunRoute, ...], Numbers]:
    """All routes, and the place among them of those that commands name; the last entry is for none."""
    if "routes" not in tables:
        return tuple(RunRoute(name) for name in names), np.array([*range(len(names)), NO_ROUTE])
    table = tables["routes"]
    columns = (table[key].to_pylist() for key in ("name", "carries", "memory", "bytes_per_s"))
    routes = tuple(RunRoute(name, Carries(way), memory, rate) for name, way, memory, rate in zip(*columns, strict=True))
    place = {route.name: number for number, route in reversed(list(enumerate(routes)))}
    return routes, np.array([*(place[name] for name in names), NO_ROUTE])


def _operands(
    table: pa.Table, numbers: Mapping[int, int]
) -> tuple[tuple[tuple[Operand, ...], ...], tuple[MemoryInfo, ...]]:
    """Operands of every detail that commands have, and the memories they lie in."""
    keys = ("detail", "direction", "role", "tensor", "memory", "is_outer", "dtype", "shape", "bytes")
    found: list[list[Operand]] = [[] for _ in numbers]
    places: dict[MemoryInfo, int] = {}
    for detail, way, role, tensor, memory, outer, dtype, shape, size in zip(
        *(table[key].to_pylist() for key in keys), strict=True
    ):
        if detail not in numbers:
            continue
        place = places.setdefault(MemoryInfo(memory, outer), len(places)) if memory else NO_MEMORY
        extents = tuple(int(extent) for extent in shape.split(" x ") if extent)
        found[numbers[detail]].append(Operand(Direction(way), role, tensor, place, dtype, extents, size))
    return tuple(map(tuple, found)), tuple(places)


def _op_cycles(table: pa.Table, ops: int) -> tuple[OpCycles, ...]:
    columns = (table[key].to_pylist() for key in ("op", "resource", "is_memory", "cycles"))
    commands = _numbers(table, "command").tolist()
    rows = tuple(OpCycles(*row) for row in zip(*columns, commands, strict=True))
    if any(not 0 <= row.op < ops for row in rows):
        raise ValueError(f"op_cycles.parquet is of an op that is not there; expected one of {ops}")
    return rows
