"""Store: cells and their ops as rows of Parquet files, in a folder or an object store, with any number of writers.

A cell that ends becomes a file of the inbox, with its ops, whose name is the row's id: it is there whole or not at all,
and written twice it is there once. Compaction puts what is in the inbox into Parquet; a journal says which files the
new ones stand for, so that at every moment each row is read once, even if a process is killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import msgspec

from ..core.errors import UsageError, printable
from .place import Place
from .schema import SCHEMA, TABLES, VERSION

HEAD = "store.json"
JOURNAL = "journal"
INBOX = "inbox"
RUNS = "runs"
VERSION_KEY = "opscope.store"  # in the metadata of every file
NO_TARGET = "__HIVE_DEFAULT_PARTITION__"  # the word for null that readers of partitions know
_LONGEST_SEGMENT = 180
_EXPECTED = "expected a store of `opscope sweep … -o STORE` or `opscope store add`"

_ENCODER = msgspec.json.Encoder()

CellRow = Mapping[str, object]
Columns = Mapping[str, Sequence[object]]


class _Head(msgspec.Struct):
    schema: str = ""


class JournalEntry(msgspec.Struct, frozen=True):
    """What a compaction does: new files come to stand for old ones."""

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
        with self.place.reached():
            head = self.place.get(HEAD)
            if head is None:
                self._make(create=create)
            else:
                self.version = _version(head, self.place.address)
        if self.version > VERSION:
            problem = f"is a store of version {self.version}, made by a newer opscope"
            raise UsageError(f"{printable(self.place.address)}: {problem}; expected version {VERSION} at the most")

    def _make(self, *, create: bool) -> None:
        if not create:
            raise UsageError(f"{printable(self.place.address)}: is no store; {_EXPECTED}")
        if self.place.is_local and Path(self.place.root).is_dir() and any(Path(self.place.root).iterdir()):
            raise UsageError(f"{printable(self.place.address)}: is a folder of other things; {_EXPECTED}, or none")
        self.mark()

    def mark(self) -> None:
        """As one of the version that this code writes."""
        self.place.put(HEAD, msgspec.json.encode(_Head(f"{SCHEMA}{VERSION}")) + b"\n")
        self.version = VERSION

    def check_current(self) -> None:
        """Readers and writers know one version of rows."""
        if self.version != VERSION:
            problem = f"is a store of version {self.version}; this opscope reads and writes {VERSION}"
            upgrade = f"`opscope store compact --store {self.place.address}`, which brings it up to date"
            raise UsageError(f"{printable(self.place.address)}: {problem}; expected {upgrade}")

    def add(self, cell: CellRow, ops: Columns | None = None) -> None:
        """Write a cell and its ops; a row of the same id takes its place."""
        self.check_current()
        partition(str(cell["created"]), None)  # which compaction could not do without
        self.place.put(f"{INBOX}/{file_stem(str(cell['id']))}.json", _ENCODER.encode({"cell": cell, "ops": ops or {}}))

    def listing(self) -> Listing:
        """What to read now: new files of a journal's entry once all of them are there, until then the old ones.

        Files are listed before the journal is read. A new file that is among them was announced before it came, and
        its announcement stays until the files that it stands for are gone: who reads too late misses a file, and asks
        again.
        """
        found = {table: self.place.names(table) for table in (INBOX, *TABLES)}
        there = {name for names in found.values() for name in names}
        hidden: set[str] = set()
        for _, step in self.journal():
            hidden.update(step.old if there.issuperset(step.new) else step.new)
        return Listing({table: tuple(name for name in names if name not in hidden) for table, names in found.items()})

    def journal(self) -> list[tuple[str, JournalEntry]]:
        """Compactions under way, or left behind by somebody who was killed."""
        found = []
        for name in self.place.names(JOURNAL):
            data = self.place.get(name)
            try:
                found.append((name, msgspec.json.decode(data or b"", type=JournalEntry)))
            except msgspec.MsgspecError:  # not written to its end
                found.append((name, JournalEntry((), ())))
        return found

    def run_folder(self, row_id: str) -> Path | None:
        """Where the run of a row is kept; None: a store that is no folder keeps none."""
        return Path(self.place.root) / RUNS / file_stem(row_id) if self.place.is_local else None


def is_store(address: str) -> bool:
    """Whether an address is meant as a store: one that fsspec knows, or a folder that is one."""
    return "://" in address or (Path(address) / HEAD).is_file()


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


def ids_of(names: Iterable[str]) -> set[str]:
    """Of files of the inbox."""
    return {name.rpartition("/")[2].removesuffix(".json") for name in names}


def _version(head: bytes, address: str) -> int:
    try:
        schema = msgspec.json.decode(head, type=_Head).schema
    except (msgspec.MsgspecError, UnicodeDecodeError):
        schema = ""
    number = schema.removeprefix(SCHEMA)
    if not schema.startswith(SCHEMA) or not number.isdecimal() or len(number) > 6:
        raise UsageError(f"{printable(address)}: {HEAD} says {printable(schema)!r}; {_EXPECTED}")
    return int(number)
