"""A store behind the server: its page, and the runs that its cells kept."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ..core.files import as_text
from ..fleet.page import StorePage
from ..fleet.query import ask
from ..fleet.store import Store
from ..workflows.viewing import looks_like_run
from .catalogue import ListedRun, entry_of


class StoreRuns:
    """The cells of one store; a run is found by the beginning of its cell's id."""

    def __init__(self, address: str, *, given: Sequence[Path] = ()) -> None:
        self.store = Store(address)
        self.given = tuple(given)

    def find(self, run_id: str) -> ListedRun | None:
        """The run of a cell, where it was kept and is still there."""
        place = self.store.place
        rows = ask(self.store, "SELECT run, model FROM cells WHERE id LIKE ? || '%' LIMIT 1", [run_id]).rows
        if not rows or rows[0][0] is None or not place.is_local:
            return None
        folder = (Path(place.root) / str(rows[0][0])).resolve()
        return entry_of(folder, run_id, str(rows[0][1])) if looks_like_run(folder) else None

    def stamp(self) -> object:
        """A value that changes when rows are written."""
        names = (name for files in self.store.listing().files.values() for name in files)
        return sha256("\n".join(names).encode(errors="replace")).digest()

    def write_page(self, where: str, out: BinaryIO) -> None:
        with as_text(out) as text:
            StorePage(where=where, given=self.given).render(self.store, text)
