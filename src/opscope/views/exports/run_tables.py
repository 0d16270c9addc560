"""Every table of a run, by name: its Parquet files, and the lists in its JSON files and in a comparison's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ...core.errors import ImportFileError, UsageError, printable
from .table_files import Sheet

DEFAULT = "summary-ops"
_ORIGIN = ("module", "line")  # columns of the ops of a run
_DOCUMENTS = ("summary", "findings", "recording")


class RunTables:
    """Of one folder. Tables are read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
        self._lists = {
            (key if key == name else f"{name}-{key}"): rows
            for name in _DOCUMENTS
            for key, rows in lists_of(_document(folder / f"{name}.json")).items()
        }

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._files, *self._lists)

    def sheet(self, name: str) -> Sheet:
        if name in self._files:
            return _of_parquet(name, self._files[name])
        if name in self._lists:
            rows = self._lists[name]
            return sheet_of(name, self._with_origins(rows) if name == DEFAULT else rows)
        raise unknown_table(name, self.names)

    def _with_origins(self, rows: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
        """Ops with the module and the line that they come from, where the run knows of any."""
        ops = self._files.get("ops")
        if ops is None or not set(_ORIGIN) <= set(pq.read_schema(ops).names):
            return rows
        origins = pq.read_table(ops, columns=list(_ORIGIN)).to_pylist()
        if not any(any(origin.values()) for origin in origins):
            return rows
        by_place: dict[object, Mapping[str, object]] = dict(enumerate(origins))
        return [{**row, **by_place.get(row.get("op"), {})} for row in rows]


def unknown_table(name: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"--table {printable(name)}: not known; expected one of {', '.join(known)}")


def lists_of(document: Mapping[str, object]) -> dict[str, list[Mapping[str, object]]]:
    """The lists of objects in a document, by key; those without a row are left out."""
    found: dict[str, list[Mapping[str, object]]] = {}
    for key, value in document.items():
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if rows:
            found[key] = list(rows)
    return found


def sheet_of(name: str, rows: Sequence[Mapping[str, object]]) -> Sheet:
    """Columns in the order in which keys first come up; a row without one does not know it."""
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    return Sheet(name, columns, ([row.get(column) for column in columns] for row in rows), len(rows))


def _document(path: Path) -> Mapping[str, object]:
    """What is not there tells nothing."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    except (msgspec.MsgspecError, OSError, UnicodeDecodeError, RecursionError) as error:
        raise ImportFileError(str(path), "", f"{printable(str(error))}; expected a file of a run") from error


def _of_parquet(name: str, path: Path) -> Sheet:
    try:
        file = pq.ParquetFile(path)
        return Sheet(name, tuple(file.schema_arrow.names), _rows(file), file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise ImportFileError(str(path), "", f"{printable(str(error))}; expected a table of a run") from error


def _rows(file: pq.ParquetFile) -> Iterator[Sequence[object]]:
    """A part at a time, so that a long table need not be held."""
    for batch in file.iter_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
