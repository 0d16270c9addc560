"""The folder of a Run: `run.json`, Parquet tables and `summary.json`, written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from .. import __version__
from ..core.errors import UsageError
from ..program.program import OpInfo
from .resources import FILE as RESOURCES_FILE
from .resources import resources_bytes
from .run import GRAPH_FILE, SCHEMA, CommandTable, Run, RunRoute
from .schema import COLUMNS, DOES_WORDS, Kind
from .summary_json import summary_fields
from .trace import NONE, Lane, LaneNumbers, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD, _SUMMARY = "run.json", "summary.json"
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

    def finish(self, run: Run, parts: Sequence[tuple[Path, int]]) -> None:
        """Fill the folder and let it appear."""
        self.fill(run, parts)
        self.appear()

    def fill(self, run: Run, parts: Sequence[tuple[Path, int]]) -> None:
        """Put parts and tables together; spans and counters are those of the parts.

        Args:
            parts: the path that `write_part` took, and ns to add to its times.
        """
        write_head(self.folder, run)
        if run.graph is not None:
            _write_graph(run.graph, self.folder / GRAPH_FILE)
        if run.resources is not None:
            self.keep(RESOURCES_FILE, resources_bytes(run.resources))
        _join(
            self.folder / "spans.parquet", [(_spans_of(path), shift) for path, shift in parts], ("start_ns", "end_ns")
        )
        _join(self.folder / "counters.parquet", [(_counters_of(path), shift) for path, shift in parts], ("time_ns",))
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


def is_run(path: Path) -> bool:
    try:
        head = msgspec.json.decode((path / _HEAD).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and str(head.get("schema", "")).startswith("opscope.run/")


def write_run(run: Run, path: Path) -> None:
    """A Run that is in memory, at once."""
    folder = RunFolder(path)
    try:
        write_part(run.trace, folder.part(0))
        folder.finish(run, [(folder.part(0), 0)])
    finally:
        folder.discard()


def write_part(trace: Trace, path: Path) -> None:
    """Spans and counters of one inference."""
    import pyarrow.parquet as pq

    for table, place in ((_spans_table(trace), _spans_of(path)), (_counters_table(trace), _counters_of(path))):
        pq.write_table(table, place, **_encoding(table.schema))
    _lanes_of(path).write_bytes(msgspec.json.encode(trace.lanes))


def write_head(folder: Path, run: Run) -> None:
    head = {"schema": SCHEMA, "producer": {"name": "opscope", "version": __version__}, **asdict(run.info)}
    (folder / _HEAD).write_bytes(msgspec.json.format(msgspec.json.encode(head), indent=2) + b"\n")
    body = msgspec.json.format(msgspec.json.encode(summary_fields(run.summary)), indent=2)
    (folder / _SUMMARY).write_bytes(body + b"\n")
    _write(folder, "ops", _ops_table(run.ops))
    _write(folder, "commands", _commands_table(run.commands))
    _write(folder, "edges", _edges_table(run.trace.edges))
    _write(folder, "routes", _routes_table(run.routes))
    _write(folder, "operands", _operands_table(run.commands))
    if run.commands.op_cycles:
        _write(folder, "op_cycles", _op_cycles_table(run.commands))


def _write(folder: Path, name: str, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def _write_graph(graph: npt.NDArray[np.void], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: _column(graph[name]) for name in ("source", "target")})
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


def _join(path: Path, parts: Sequence[tuple[Path, int]], times: tuple[str, ...]) -> None:
    """Tables one behind the other, one row group each, so that no more than one is in memory."""
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
        for name in times if shift else ():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pc.add(table[name], pa.scalar(shift, pa.int64())))
        writer = writer or pq.ParquetWriter(path, table.schema, **_encoding(table.schema))
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _known(values: npt.NDArray[np.generic]) -> pa.Array:
    """A column of numbers in which NONE is null."""
    return _column(values, values != NONE)


def _column(values: npt.NDArray[np.generic], present: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A column of numbers, null where none is present; `pyarrow.array` imports all of pandas where it is installed."""
    import pyarrow as pa

    bits = None if present is None or present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    flags = values.dtype == np.bool_
    plain = np.packbits(values.astype(np.bool_), bitorder="little") if flags else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(plain)])


def _texts(words: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    parts = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))


def _words(index: np.ndarray[tuple[int], np.dtype[np.int64]], words: Sequence[str]) -> pa.Array:
    """A column of words, each stored once."""
    import pyarrow as pa

    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    place = np.array([known[word] for word in words] or [0], np.int32)
    return pa.DictionaryArray.from_arrays(_column(place[index]), _texts(list(known)))


def _spans_table(trace: Trace) -> pa.Table:
    import pyarrow as pa

    spans, lane = trace.spans, trace.spans["lane"]
    lanes = [(item.device, item.core, item.thread) for item in trace.lanes] or [(NONE, NONE, NONE)]
    device, core, thread = (np.array(column, np.int32) for column in zip(*lanes, strict=True))
    kinds = [kind.name.lower() for kind in SpanKind]
    mixed = (
        {}
        if trace.own_lanes.all()
        else {"provenance": _words(lane, [item.provenance or trace.provenance for item in trace.lanes])}
    )
    return pa.table(
        {
            "device": _known(device[lane]),
            "core": _known(core[lane]),
            "lane": _words(lane, [item.name for item in trace.lanes]),
            "thread": _known(thread[lane]),
            "kind": _words(spans["kind"].astype(np.int64) - 1, kinds),
            "name": _words(spans["name"], trace.names),
            "op": _known(spans["op"]),
            "command": _known(spans["command"]),
            "inference": _column(spans["inference"]),
            "start_ns": _column(spans["start_ns"]),
            "end_ns": _column(spans["end_ns"]),
            "ucycles": _known(spans["ucycles"]),
            "pcycles": _known(spans["pcycles"]),
            "waits_on": _known(spans["waits_on"]),
            "does": _words(spans["does"].astype(np.int64), DOES_WORDS),
            "route": _known(spans["route"]),
            **mixed,
        }
    )


def _counters_table(trace: Trace) -> pa.Table:
    import pyarrow as pa

    samples, track = trace.samples, trace.samples["counter"]
    device, core = (
        np.array([getattr(c, key) for c in trace.counters] or [NONE], np.int32) for key in ("device", "core")
    )
    return pa.table(
        {
            "device": _known(device[track]),
            "core": _known(core[track]),
            "name": _words(track, [c.name for c in trace.counters]),
            "unit": _words(track, [c.unit for c in trace.counters]),
            "time_ns": _column(samples["time_ns"]),
            "value": _column(samples["value"]),
        }
    )


def _ops_table(ops: Sequence[OpInfo]) -> pa.Table:
    import pyarrow as pa

    columns = {key: [getattr(op, key) for op in ops] for key in ("name", "type", "kind", "location")}
    words = {key: _texts(values) for key, values in columns.items()}
    return pa.table({"op": _column(np.arange(len(ops), dtype=np.int32)), **words})


def _commands_table(table: CommandTable) -> pa.Table:
    import pyarrow as pa

    commands, detail = table.rows, table.rows["detail"].astype(np.int64)
    route = commands["route"].astype(np.int64)
    columns: dict[str, pa.Array] = {"command": _column(np.arange(len(commands), dtype=np.int64))}
    columns |= {key: _column(commands[key]) for key in ("device", "core", "ordinal")}
    columns["group"] = _words(commands["group"].astype(np.int64), table.groups)
    columns["kind"] = _words(commands["kind"].astype(np.int64), table.kinds)
    columns["route"] = pa.DictionaryArray.from_arrays(
        _column(route.astype(np.int32), route >= 0), _texts([route.name for route in table.routes])
    )
    columns["op"] = _known(commands["op"])
    numbers = ("cycles", "out_bytes", "moved_bytes", "macs", "local_address", "local_bytes")
    columns |= {key: _column(commands[key]) for key in numbers}
    texts = {"name": table.names, "memory": table.memories, "types": table.types, "shape": table.shapes}
    for key, words in (texts | {"attributes": table.attributes}).items():
        columns[key] = _words(detail, words)
    columns["operands"] = _words(detail, ["\n".join(o.text(table.place(o)) for o in row) for row in table.operands])
    columns["does"] = _words(commands["does"].astype(np.int64), DOES_WORDS)
    columns["detail"] = _column(commands["detail"])
    return pa.table(columns)


def _of_rows(table: str, rows: Sequence[Sequence[object]]) -> pa.Table:
    """A small table, row by row."""
    import pyarrow as pa

    values = zip(*rows, strict=True) if rows else [()] * len(COLUMNS[table])
    columns = zip(COLUMNS[table].items(), values, strict=True)
    return pa.table({name: _of_values(kind, column) for (name, kind), column in columns})


def _of_values(kind: Kind, values: Sequence[object]) -> pa.Array:
    if kind is Kind.TEXT:
        return _texts([str(value) for value in values])
    none = np.array([value is None for value in values], np.bool_)
    plain = [0 if value is None else value for value in values]
    dtype = {Kind.FLAG: np.bool_, Kind.REAL: np.float64}.get(kind, np.int64)
    numbers: npt.NDArray[np.generic] = np.array(plain, dtype)
    return _known(numbers) if kind is Kind.OPTIONAL and not none.any() else _column(numbers, ~none)


def _lanes_table(lanes: Sequence[Lane]) -> pa.Table:
    rows = [
        (number, lane.device, lane.core, lane.name, lane.thread, lane.provenance or "", lane.role.value, lane.owner)
        for number, lane in enumerate(lanes)
    ]
    return _of_rows("lanes", rows)


def _routes_table(routes: Sequence[RunRoute]) -> pa.Table:
    rows = [
        (number, route.name, route.carries.value, route.memory, route.bytes_per_s)
        for number, route in enumerate(routes)
    ]
    return _of_rows("routes", rows)


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
            " x ".join(map(str, operand.shape)),
            operand.bytes,
        )
        for number, operands in enumerate(table.operands)
        for operand in operands
    ]
    return _of_rows("operands", rows)


def _op_cycles_table(table: CommandTable) -> pa.Table:
    rows = [(row.op, row.resource, row.is_memory, row.cycles, row.command) for row in table.op_cycles]
    return _of_rows("op_cycles", rows)


def _edges_table(edges: npt.NDArray[np.void]) -> pa.Table:
    import pyarrow as pa

    return pa.table({key: _column(edges[key].copy()) for key in ("source", "target", "data")})
