"""The folder of a Run: `run.json`, Parquet tables and `summary.json`, written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError
from ..program.program import OpInfo
from .arrow_columns import number_column, optional_column, text_column, word_column
from .bounds_file import BOUNDS_FILE, encode_bounds
from .head_file import encode_head, is_run
from .resources_file import RESOURCES_FILE, encode_resources
from .run import CommandTable, Run, RunRoute
from .schema import (
    COLUMNS,
    DOES_WORDS,
    GRAPH,
    GRAPH_FILE,
    HEAD_FILE,
    OP_CYCLES,
    PROVENANCE,
    SHAPE_SEPARATOR,
    ColumnKind,
    Range,
    columns_of,
    table_file,
)
from .summary_file import SUMMARY_FILE, encode_summary
from .trace import NONE, Lane, LaneNumbers, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

_LANES = msgspec.json.Decoder(tuple[Lane, ...])


class RunFolder:
    """A folder in the making; it takes its final name when everything in it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not is_run(path):
            raise UsageError(f"{path}: exists and is not a run; expected a new folder or an earlier run")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            raise UsageError(f"{path}: cannot be made ({error.strerror}); expected a place for a folder") from error

    def part(self, number: int) -> Path:
        """Where the spans of one inference may be written by anyone, before `finish` puts them together."""
        return self.folder / f"part-{number:06d}"

    def keep(self, name: str, data: bytes) -> None:
        """A further file of the run."""
        (self.folder / name).write_bytes(data)

    def fill(self, run: Run, parts: Sequence[tuple[Path, int]]) -> None:
        """Put parts and tables together; spans and counters are those of the parts.

        Args:
            parts: the path that `write_part` took, and ns to add to its times.
        """
        write_head(self.folder, run)
        if run.graph is not None:
            _write_graph(run.graph, self.folder / GRAPH_FILE)
        if run.resources is not None:
            self.keep(RESOURCES_FILE, encode_resources(run.resources))
        if run.bounds is not None:
            self.keep(BOUNDS_FILE, encode_bounds(run.bounds))
        _join(self.folder, "spans", [(_spans_of(path), shift) for path, shift in parts])
        _join(self.folder, "counters", [(_counters_of(path), shift) for path, shift in parts])
        lanes = LaneNumbers()
        for path, _ in parts:
            lanes.numbers(_LANES.decode(_lanes_of(path).read_bytes()))
            _spans_of(path).unlink(missing_ok=True)
            _lanes_of(path).unlink(missing_ok=True)
            _counters_of(path).unlink(missing_ok=True)
        _write(self.folder, "lanes", _lanes_table(lanes.lanes))

    def appear(self) -> None:
        """The folder takes its final name, in place of an earlier run."""
        self.folder.chmod(0o755)
        if self.path.exists():
            old = Path(mkdtemp(prefix=f".{self.path.name}.old.", dir=self.path.parent))
            self.path.replace(old / "run")
            self.folder.replace(self.path)
            shutil.rmtree(old)
        else:
            self.folder.replace(self.path)

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def write_part(trace: Trace, path: Path) -> None:
    """Spans and counters of one inference."""
    import pyarrow.parquet as pq

    for table, place in ((_spans_table(trace), _spans_of(path)), (_counters_table(trace), _counters_of(path))):
        pq.write_table(table, place, **_encoding(table.schema))
    _lanes_of(path).write_bytes(msgspec.json.encode(trace.lanes))


def write_head(folder: Path, run: Run) -> None:
    """Everything but spans, counters and lanes, which parts bring."""
    (folder / HEAD_FILE).write_bytes(encode_head(run.info))
    (folder / SUMMARY_FILE).write_bytes(encode_summary(run.summary))
    _write(folder, "ops", _ops_table(run.ops))
    _write(folder, "commands", _commands_table(run.commands))
    _write(folder, "edges", _of_array("edges", run.trace.edges))
    _write(folder, "routes", _routes_table(run.routes))
    _write(folder, "operands", _operands_table(run.commands))
    if run.commands.op_cycles:
        _write(folder, OP_CYCLES, _op_cycles_table(run.commands))


def _write(folder: Path, name: str, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / table_file(name), compression="zstd")


def _write_graph(graph: npt.NDArray[np.void], path: Path) -> None:
    import pyarrow.parquet as pq

    table = _of_array(GRAPH, graph)
    pq.write_table(table, path, **_encoding(table.schema))


def _encoding(schema: pa.Schema) -> dict[str, object]:
    """Words as numbers of a dictionary, whole numbers as differences: half the size of the default, and quicker."""
    import pyarrow as pa

    numbers = {field.name: "DELTA_BINARY_PACKED" for field in schema if pa.types.is_integer(field.type)}
    words = [field.name for field in schema if field.name not in numbers]
    return {"compression": "zstd", "use_dictionary": words, "column_encoding": numbers}


def _spans_of(path: Path) -> Path:
    return path.with_name(path.name + ".spans.parquet")


def _lanes_of(path: Path) -> Path:
    return path.with_name(path.name + ".lanes.json")


def _counters_of(path: Path) -> Path:
    return path.with_name(path.name + ".counters.parquet")


def _join(folder: Path, name: str, parts: Sequence[tuple[Path, int]]) -> None:
    """Parts of a table one behind the other, one row group each, so that no more than one is in memory.

    Args:
        parts: the file of each, and ns to add to its times.
    """
    path, times = (
        folder / table_file(name),
        [key for key, column in COLUMNS[name].items() if column.range is Range.TIME],
    )
    if len(parts) == 1 and not parts[0][1]:
        parts[0][0].replace(path)
        return
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    writer = None
    for part, shift in parts:
        with pq.ParquetFile(part) as file:
            table = file.read()
        for key in times if shift else ():
            place = table.schema.get_field_index(key)
            table = table.set_column(place, key, pc.add(table[key], pa.scalar(shift, pa.int64())))
        writer = writer or pq.ParquetWriter(path, table.schema, **_encoding(table.schema))
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _of_array(table: str, rows: npt.NDArray[np.void], given: Mapping[str, pa.Array] | None = None) -> pa.Table:
    """Columns in the order of the schema: those that are given, the others from the field of rows of the same name."""
    import pyarrow as pa

    columns = dict(given or {})
    for name, column in COLUMNS[table].items():
        if name not in columns:
            of_kind = optional_column if column.kind is ColumnKind.OPTIONAL else number_column
            columns[name] = of_kind(rows[name])
    further = [name for name in columns if name not in COLUMNS[table]]
    return pa.table({name: columns[name] for name in (*COLUMNS[table], *further)})


def _of_rows(table: str, rows: Sequence[Sequence[object]]) -> pa.Table:
    """A small table from tuples with a value for every column; columns with the number of the row are added."""
    import pyarrow as pa

    numbers: Sequence[object] = range(len(rows))
    names = [name for name, column in COLUMNS[table].items() if column.kind is not ColumnKind.ROW]
    values = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    return pa.table(
        {name: _of_values(column.kind, values.get(name, numbers)) for name, column in COLUMNS[table].items()}
    )


def _of_values(kind: ColumnKind, values: Sequence[object]) -> pa.Array:
    if kind is ColumnKind.TEXT:
        return text_column([str(value) for value in values])
    known = np.array([value is not None for value in values], np.bool_)
    plain = [0 if value is None else value for value in values]
    dtype = {ColumnKind.FLAG: np.bool_, ColumnKind.REAL: np.float64}.get(kind, np.int64)
    numbers: npt.NDArray[np.generic] = np.array(plain, dtype)
    return optional_column(numbers) if kind is ColumnKind.OPTIONAL else number_column(numbers, known)


def _spans_table(trace: Trace) -> pa.Table:
    spans, lane = trace.spans, trace.spans["lane"]
    lanes = [(item.device, item.core, item.thread) for item in trace.lanes] or [(NONE, NONE, NONE)]
    device, core, thread = (np.array(column, np.int32) for column in zip(*lanes, strict=True))
    given = {
        "device": optional_column(device[lane]),
        "core": optional_column(core[lane]),
        "thread": optional_column(thread[lane]),
        "lane": word_column(lane, [item.name for item in trace.lanes]),
        "kind": word_column(spans["kind"].astype(np.int64) - 1, [kind.name.lower() for kind in SpanKind]),
        "name": word_column(spans["name"], trace.names),
        "does": word_column(spans["does"].astype(np.int64), DOES_WORDS),
    }
    if not trace.own_lanes.all():
        given[PROVENANCE] = word_column(lane, [item.provenance or trace.provenance for item in trace.lanes])
    return _of_array("spans", spans, given)


def _counters_table(trace: Trace) -> pa.Table:
    samples, track = trace.samples, trace.samples["counter"]
    tracks = [(item.device, item.core) for item in trace.counters] or [(NONE, NONE)]
    device, core = (np.array(column, np.int32) for column in zip(*tracks, strict=True))
    given = {
        "device": optional_column(device[track]),
        "core": optional_column(core[track]),
        "name": word_column(track, [item.name for item in trace.counters]),
        "unit": word_column(track, [item.unit for item in trace.counters]),
    }
    return _of_array("counters", samples, given)


def _ops_table(ops: Sequence[OpInfo]) -> pa.Table:
    import pyarrow as pa

    texts = {name: text_column([getattr(op, name) for op in ops]) for name in columns_of("ops", ColumnKind.TEXT)}
    numbers = {name: number_column(np.arange(len(ops), dtype=np.int32)) for name in columns_of("ops", ColumnKind.ROW)}
    return pa.table(numbers | texts)


def _commands_table(table: CommandTable) -> pa.Table:
    """One row per command, with words and not positions: any tool that reads Parquet can read it.

    Operands stand here as text, for people; the table of operands has them as columns.
    """
    import pyarrow as pa

    commands, detail = table.rows, table.rows["detail"].astype(np.int64)
    route = commands["route"].astype(np.int64)
    operands = ["\n".join(o.text(table.place(o)) for o in row) for row in table.operands]
    given = {
        "command": number_column(np.arange(len(commands), dtype=np.int64)),
        "group": word_column(commands["group"].astype(np.int64), table.groups),
        "kind": word_column(commands["kind"].astype(np.int64), table.kinds),
        "route": pa.DictionaryArray.from_arrays(
            number_column(route.astype(np.int32), route >= 0), text_column([route.name for route in table.routes])
        ),
        "name": word_column(detail, table.names),
        "memory": word_column(detail, table.memories),
        "types": word_column(detail, table.types),
        "shape": word_column(detail, table.shapes),
        "attributes": word_column(detail, table.attributes),
        "operands": word_column(detail, operands),
        "does": word_column(commands["does"].astype(np.int64), DOES_WORDS),
        "route_number": number_column(route.astype(np.int32), route >= 0),
    }
    return _of_array("commands", commands, given)


def _lanes_table(lanes: Sequence[Lane]) -> pa.Table:
    rows = [
        (lane.device, lane.core, lane.name, lane.thread, lane.provenance or "", lane.role.value, lane.owner)
        for lane in lanes
    ]
    return _of_rows("lanes", rows)


def _routes_table(routes: Sequence[RunRoute]) -> pa.Table:
    return _of_rows("routes", [(route.name, route.carries.value, route.memory, route.bytes_per_s) for route in routes])


def _operands_table(table: CommandTable) -> pa.Table:
    outer = [memory.is_outer for memory in table.places]
    rows = [
        (
            number,
            operand.direction.value,
            operand.role,
            operand.tensor,
            table.place(operand),
            operand.memory >= 0 and outer[operand.memory],
            operand.dtype,
            SHAPE_SEPARATOR.join(map(str, operand.shape)),
            operand.bytes,
        )
        for number, operands in enumerate(table.operands)
        for operand in operands
    ]
    return _of_rows("operands", rows)


def _op_cycles_table(table: CommandTable) -> pa.Table:
    rows = [(row.op, row.resource, row.is_memory, row.cycles, row.command) for row in table.op_cycles]
    return _of_rows(OP_CYCLES, rows)
