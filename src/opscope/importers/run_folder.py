"""The folder of a Run → Run: what `analyze`, `compare` and `view` start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..program import COMMAND, OpInfo
from ..run import SCHEMA, TABLES, CommandTable, Run, RunInfo
from ..summary import Summary
from ..trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Noun = TypeVar("Noun", RunInfo, Summary)
SUMMARY_SCHEMA = "opscope.summary/1"


def read_run(path: Path) -> Run:
    """Everything in the folder. What is missing or of another schema is named."""
    info: RunInfo = _json(path / "run.json", RunInfo, SCHEMA)
    summary: Summary = _json(path / "summary.json", Summary, SUMMARY_SCHEMA)
    tables = {name: _table(path / f"{name}.parquet") for name in TABLES}
    try:
        columns = (tables["ops"][key].to_pylist() for key in ("name", "type", "kind", "location"))
        ops = tuple(OpInfo(*row) for row in zip(*columns, strict=True))
        return Run(info, ops, _commands(tables["commands"]), _trace(tables, info.provenance), summary)
    except (KeyError, ValueError, TypeError) as error:
        raise UsageError(f"{path}: a table does not have the columns of a run ({error})") from error


def _json(path: Path, kind: type[Noun], schema: str) -> Noun:
    try:
        fields = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); expected the folder of a run") from error
    except ValueError as error:
        raise UsageError(f"{path}: is no JSON ({error}); expected schema {schema}") from error
    if not isinstance(fields, dict) or fields.get("schema") != schema:
        raise UsageError(f"{path}: has another schema; expected {schema}")
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; expected schema {schema}") from error


def _table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path}: cannot be read as Parquet ({str(error)[:200]})") from error


def _numbers(table: pa.Table, name: str) -> Numbers:
    """A column of whole numbers; null is NONE."""
    import pyarrow.compute as pc

    values: Numbers = pc.fill_null(table[name].cast("int64"), NONE).to_numpy()
    return values


def _words(table: pa.Table, name: str) -> tuple[Numbers, list[str]]:
    """Numbers of the words of a column, and the words; null is NONE."""
    column = table[name].dictionary_encode().combine_chunks() if len(table) else None
    if column is None:
        return np.zeros(0, np.int64), []
    indices = column.indices.fill_null(NONE) if column.indices.null_count else column.indices
    return indices.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()


def _trace(tables: dict[str, pa.Table], provenance: str) -> Trace:
    table = tables["spans"]
    spans = np.zeros(len(table), SPAN)
    lane, lane_names = _words(table, "lane")
    device, core, thread = (_numbers(table, key) for key in ("device", "core", "thread"))
    spans["lane"], lanes = _lanes(device, core, thread, lane, lane_names)
    kind, kinds = _words(table, "kind")
    spans["kind"] = np.array([int(SpanKind[word.upper()]) for word in kinds] or [0])[kind]
    spans["name"], names = _words(table, "name")
    for key in ("op", "command", "inference", "start_ns", "end_ns", "ucycles", "pcycles", "waits_on"):
        spans[key] = _numbers(table, key)
    edges = np.zeros(len(tables["edges"]), EDGE)
    for key in ("source", "target"):
        edges[key] = _numbers(tables["edges"], key)
    edges["data"] = tables["edges"]["data"].to_numpy()
    counters, samples = _counters(tables["counters"])
    return Trace(lanes, tuple(names), spans, edges, counters, samples, provenance)


def _lanes(
    device: Numbers, core: Numbers, thread: Numbers, name: Numbers, names: list[str]
) -> tuple[Numbers, tuple[Lane, ...]]:
    rows = np.stack((device, core, thread, name), axis=1) if len(name) else np.zeros((0, 4), np.int64)
    found, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # lanes in the order in which they first appear, as they were written
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    lanes = tuple(Lane(d, c, names[n], t) for d, c, t, n in found[order].tolist())
    return rank[place.reshape(-1)], lanes


def _counters(table: pa.Table) -> tuple[tuple[CounterTrack, ...], npt.NDArray[np.void]]:
    samples = np.zeros(len(table), COUNTER)
    name, names = _words(table, "name")
    unit, units = _words(table, "unit")
    known: dict[tuple[int, int, int, int], int] = {}
    keys = zip(
        _numbers(table, "device").tolist(), _numbers(table, "core").tolist(), name.tolist(), unit.tolist(), strict=True
    )
    samples["counter"] = [known.setdefault(key, len(known)) for key in keys]
    samples["time_ns"], samples["value"] = _numbers(table, "time_ns"), table["value"].to_numpy()
    return tuple(CounterTrack(d, c, names[n], units[u]) for d, c, n, u in known), samples


def _commands(table: pa.Table) -> CommandTable:
    rows = np.zeros(len(table), COMMAND)
    words = {key: _words(table, key) for key in ("group", "route", "kind")}
    for key in ("device", "core", "op", "ordinal", "cycles", "out_bytes", "moved_bytes", "macs", "local_address",
                "local_bytes"):  # fmt: skip
        rows[key] = _numbers(table, key)
    for key, (index, _) in words.items():
        rows[key] = index
    columns = [_words(table, key) for key in ("name", "memory", "types", "shape", "attributes", "operands")]
    stacked = np.stack([index for index, _ in columns], axis=1) if len(table) else np.zeros((0, 6), np.int64)
    details, place = np.unique(stacked, axis=0, return_inverse=True)
    rows["detail"] = place.reshape(-1)
    texts = [tuple(column[1][i] for i in details[:, number].tolist()) for number, column in enumerate(columns)]
    operands = tuple(tuple(text.split("\n")) if text else () for text in texts[5])
    groups, routes, kinds = (tuple(found) for _, found in words.values())
    names, memories, types, shapes, attributes, _ = texts
    return CommandTable(rows, groups, routes, kinds, names, memories, types, shapes, operands, attributes)
