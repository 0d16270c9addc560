"""Store: cells and their ops as rows of Parquet files, in a folder or an object store, with any number of writers.

A cell that ends becomes a file of one row, whose name is the row's id: written twice, it is there once. Its ops are
written before it, so that a cell that is there is whole. Compaction puts the files of a partition together; a journal
says which files the new one stands for, so that at every moment each row is read once, whoever is killed when.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ..core.errors import UsageError, printable
from .place import Place
from .schema import SCHEMA, TABLES, VERSION

HEAD = "store.json"
JOURNAL = "journal"
RUNS = "runs"
MERGED = "merged-"
VERSION_KEY = "opscope.store"  # in the metadata of every file
NO_TARGET = "__HIVE_DEFAULT_PARTITION__"  # the word for null that readers of partitions know
_LONGEST_SEGMENT = 180
_EXPECTED = "expected a store of `opscope sweep … -o STORE` or `opscope store add`"

Row = Mapping[str, object]
Columns = Mapping[str, Sequence[object]]


class _Head(msgspec.Struct):
    schema: str = ""


class Step(msgspec.Struct, frozen=True):
    """What a compaction does to one partition."""

    new: tuple[str, ...]
    old: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that hold the rows of a store at one moment."""

    files: Mapping[str, tuple[str, ...]]  # by table

    @property
    def count(self) -> int:
        return sum(map(len, self.files.values()))

    def partitions(self, table: str) -> dict[str, list[str]]:
        """Files by the folder that they are in."""
        found: dict[str, list[str]] = {}
        for name in self.files[table]:
            found.setdefault(name.rpartition("/")[0], []).append(name)
        return found


class Store:
    """A store that is there, or that is made."""

    def __init__(self, address: str | Path, *, create: bool = False) -> None:
        self.place = Place(address)
        self.version = VERSION
        head = self.place.get(HEAD)
        if head is None:
            if not create:
                raise UsageError(f"{printable(self.place.address)}: is no store; {_EXPECTED}")
            if self.place.is_local and Path(self.place.root).is_dir() and any(Path(self.place.root).iterdir()):
                raise UsageError(f"{printable(self.place.address)}: is a folder of other things; {_EXPECTED}, or none")
            self.mark()
        else:
            self.version = _version(head, self.place.address)
        if self.version > VERSION:
            problem = f"is a store of version {self.version}, made by a newer opscope"
            raise UsageError(f"{printable(self.place.address)}: {problem}; expected version {VERSION} at the most")

    def mark(self) -> None:
        """As one of the version that this code writes."""
        self.place.put(HEAD, msgspec.json.encode(_Head(f"{SCHEMA}{VERSION}")) + b"\n")
        self.version = VERSION

    def check_current(self) -> None:
        """Whoever reads and writes rows knows one version of them."""
        if self.version != VERSION:
            problem = f"is a store of version {self.version}; this opscope reads and writes {VERSION}"
            upgrade = f"`opscope store compact --store {self.place.address}`, which brings it up to date"
            raise UsageError(f"{printable(self.place.address)}: {problem}; expected {upgrade}")

    def add(self, cell: Row, ops: Columns | None = None) -> None:
        """Write a cell and its ops; a row of the same id takes its place."""
        self.check_current()
        where = partition(str(cell["created"]), _text(cell["target"]))
        name = f"{where}/{file_stem(str(cell['id']))}.parquet"
        if ops is not None and len(ops["id"]):
            self.place.put(f"ops/{name}", _bytes_of(pa.table(ops, TABLES["ops"])))
        self.place.put(f"cells/{name}", _bytes_of(pa.Table.from_pylist([cell], TABLES["cells"])))

    def listing(self) -> Listing:
        """What to read now.

        Files are listed before the journal is read: a new file that is among them was announced before it came, and
        its announcement stays until the files that it stands for are gone.
        """
        found = {table: self.place.names(table) for table in TABLES}
        gone: set[str] = set()
        for _, step in self.journal():
            if all(name in found[name.partition("/")[0]] for name in step.new):
                gone.update(step.old)
        return Listing({table: tuple(name for name in names if name not in gone) for table, names in found.items()})

    def journal(self) -> list[tuple[str, Step]]:
        """Compactions under way, or left behind by somebody who was killed."""
        found = []
        for name in self.place.names(JOURNAL):
            data = self.place.get(name)
            try:
                found.append((name, msgspec.json.decode(data or b"", type=Step)))
            except msgspec.MsgspecError:  # not written to its end
                found.append((name, Step((), ())))
        return found

    def run_folder(self, row_id: str) -> Path | None:
        """Where the run of a row is kept; None: a store that is no folder keeps none."""
        return Path(self.place.root) / RUNS / file_stem(row_id) if self.place.is_local else None


def partition(created: str, target: str | None) -> str:
    """Folder of a row: by month, and by target, in the form that readers of partitions know."""
    month = created[:7]
    if not re.fullmatch(r"\d{4}-\d\d", month):
        raise UsageError(f"created {printable(created)!r}: is no date; expected one such as 2026-11-16T08:00:00Z")
    return f"month={month}/target={NO_TARGET if target is None else quote(target, safe='')}"


def stored_name(text: str) -> str | None:
    """A target's name as a store has it: long ones are cut and marked, so that they make names of folders."""
    if not text or text == NO_TARGET:
        return None
    if len(quote(text, safe="")) <= _LONGEST_SEGMENT:
        return text
    mark = sha256(text.encode(errors="replace")).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '-', text)[:100]}~{mark}"


def file_stem(row_id: str) -> str:
    """Ids are hexadecimal; whatever else an id may be, it stays in its folder."""
    return row_id if re.fullmatch(r"[0-9a-f-]{1,80}", row_id) else sha256(row_id.encode()).hexdigest()[:32]


def is_loose(name: str) -> bool:
    """One row that has not been put together with others yet."""
    return not name.rpartition("/")[2].startswith(MERGED)


def ids_of(names: Iterable[str]) -> set[str]:
    """Of loose files."""
    return {name.rpartition("/")[2].removesuffix(".parquet") for name in names if is_loose(name)}


def _bytes_of(table: pa.Table) -> bytes:
    """A small file, quickly: it is read a few times, then put together with others."""
    out = BytesIO()
    marked = table.replace_schema_metadata({VERSION_KEY: str(VERSION)})
    pq.write_table(marked, out, compression="snappy", use_dictionary=False, write_statistics=False, store_schema=False)
    return out.getvalue()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _version(head: bytes, address: str) -> int:
    try:
        schema = msgspec.json.decode(head, type=_Head).schema
    except (msgspec.MsgspecError, UnicodeDecodeError):
        schema = ""
    number = schema.removeprefix(SCHEMA)
    if not schema.startswith(SCHEMA) or not number.isdecimal() or len(number) > 6:
        raise UsageError(f"{printable(address)}: {HEAD} says {printable(schema)!r}; {_EXPECTED}")
    return int(number)
