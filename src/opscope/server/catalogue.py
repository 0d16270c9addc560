"""Folder → runs: what can be shown, found again at every look, within bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..core.errors import ProfilerError, UsageError
from ..workflows.viewing import RunHead, looks_like_run, read_head

DEEPEST = 4  # folders below the one that was given
MOST_RUNS = 500
MOST_FOLDERS = 20_000  # that are looked into
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that was found."""

    id: str
    name: str  # its place below the folder
    path: Path
    head: RunHead | None
    problem: str = ""  # why there is no head


@dataclass(frozen=True, slots=True)
class Listing:
    """All runs, newest first; those that cannot be read last."""

    entries: tuple[Entry, ...]
    is_whole: bool  # no bound was met


class Catalogue:
    """The runs of one folder, or one run."""

    def __init__(self, root: Path, *, most_runs: int = MOST_RUNS, most_folders: int = MOST_FOLDERS) -> None:
        try:
            self.root = root.resolve(strict=True)
        except OSError as error:
            raise UsageError(
                f"{root}: cannot be opened ({error.strerror}); expected a run or a folder of runs"
            ) from error
        if not self.root.is_dir():
            raise UsageError(f"{root}: is no folder; expected a run or a folder of runs")
        self.most_runs, self.most_folders = most_runs, most_folders
        self._places: dict[str, Path] = {}  # id → folder, of everything that was ever listed

    @property
    def is_single(self) -> bool:
        return looks_like_run(self.root)

    def listing(self) -> Listing:
        found: list[Path] = []
        is_whole = True
        for folder in self._folders():
            if folder is None or len(found) == self.most_runs:
                is_whole = False
                break
            found.append(folder)
        entries = sorted((self._entry(folder) for folder in found), key=lambda entry: entry.name)
        entries.sort(key=lambda entry: entry.head.info.created if entry.head else "", reverse=True)
        self._places |= {entry.id: entry.path for entry in entries}
        return Listing(tuple(entries), is_whole)

    def find(self, run_id: str) -> Entry | None:
        """The run of an id, looked up anew where it was not listed before."""
        if run_id not in self._places:
            self.listing()
        path = self._places.get(run_id)
        if path is None or path.resolve() != path or not looks_like_run(path):  # gone, or a link by now
            return None
        return self._entry(path)

    def _folders(self) -> Iterator[Path | None]:
        """Folders of runs, shallow ones first; links are not followed. None: there were too many folders to look at."""
        level, seen = [self.root], 0
        for _ in range(DEEPEST + 1):
            below: list[Path] = []
            for folder in level:
                seen += 1
                if seen > self.most_folders:
                    yield None
                    return
                if looks_like_run(folder):
                    yield folder
                else:
                    below += _subfolders(folder)
            level = below

    def _entry(self, folder: Path) -> Entry:
        name = folder.relative_to(self.root).as_posix() if folder != self.root else folder.name
        run_id = sha256(os.fsencode(name)).hexdigest()[:_ID_DIGITS]
        try:
            return Entry(run_id, name, folder, read_head(folder))
        except ProfilerError as error:
            return Entry(run_id, name, folder, None, str(error))


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            return sorted(Path(item.path) for item in items if item.is_dir(follow_symlinks=False))
    except OSError:  # not ours to read: nothing to show in there
        return []
