"""Finds the runs in a folder, anew for every listing, within limits on depth and number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..core.errors import ProfilerError, UsageError
from ..workflows.viewing import RunHead, looks_like_run, read_head

MAX_DEPTH = 4  # levels of subfolders
MOST_RUNS = 500
MOST_FOLDERS = 20_000  # folders searched
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run found in the folder."""

    id: str
    name: str  # path relative to the given folder
    path: Path
    head: RunHead | None
    problem: str = ""  # why there is no head


@dataclass(frozen=True, slots=True)
class RunListing:
    """All runs, newest first; unreadable ones last."""

    entries: tuple[ListedRun, ...]
    is_whole: bool  # no limit was reached


class Catalogue:
    """The runs of one folder, or a single run."""

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
        self._folders_by_id: dict[str, Path] = {}  # id → folder of every run ever listed

    @property
    def is_single(self) -> bool:
        return looks_like_run(self.root)

    def listing(self) -> RunListing:
        """Search the folder and return its runs."""
        found: list[Path] = []
        is_whole = True
        for folder in self._run_folders():
            if folder is None or len(found) == self.most_runs:
                is_whole = False
                break
            found.append(folder)
        entries = sorted((self._entry(folder) for folder in found), key=lambda entry: entry.name)
        entries.sort(key=lambda entry: entry.head.info.created if entry.head else "", reverse=True)
        self._folders_by_id |= {entry.id: entry.path for entry in entries}
        return RunListing(tuple(entries), is_whole)

    def find(self, run_id: str) -> ListedRun | None:
        """Return the run with this id; search again if it was not listed before."""
        if run_id not in self._folders_by_id:
            self.listing()
        path = self._folders_by_id.get(run_id)
        if path is None or path.resolve() != path or not looks_like_run(path):  # removed, or replaced by a link
            return None
        return self._entry(path)

    def _run_folders(self) -> Iterator[Path | None]:
        """Yield folders of runs, breadth first, without following links; None if there are too many folders."""
        level, seen = [self.root], 0
        for _ in range(MAX_DEPTH + 1):
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

    def _entry(self, folder: Path) -> ListedRun:
        name = folder.relative_to(self.root).as_posix() if folder != self.root else folder.name
        return entry_of(folder, sha256(os.fsencode(name)).hexdigest()[:_ID_DIGITS], name)


def entry_of(folder: Path, run_id: str, name: str) -> ListedRun:
    """A run with its head, or with what is wrong with it."""
    try:
        return ListedRun(run_id, name, folder, read_head(folder))
    except ProfilerError as error:
        return ListedRun(run_id, name, folder, None, str(error))


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as items:
            return sorted(Path(item.path) for item in items if item.is_dir(follow_symlinks=False))
    except OSError:  # not readable: skip it
        return []
