"""Trials: candidates written, judged side by side, and remembered, so that a search that was ended goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

import msgspec

from ..core.files import sha256_of, write_bytes
from ..core.keys import digest_of
from .judge import Judged, helps, joined

LONGEST_S = 3600.0  # of one trial
_KEPT = msgspec.json.Decoder(Judged)


class Asked(Protocol):
    """What a search needs of a judge."""

    @property
    def key(self) -> str: ...

    def ask(self, model: Path, *, longest_s: float) -> Judged: ...


@dataclass(slots=True)
class Trials:
    """Asks a judge about files, `jobs` at a time.

    Args:
        folder: of the search; answers are kept there, candidates lie there as long as they are needed.
        name: of the files, which judges call a network by.
        seconds: until no further trial is begun.
    """

    judge: Asked
    folder: Path
    name: str
    jobs: int | None = None  # None: as many as there are cores
    seconds: float = float("inf")
    clock: Callable[[], float] = monotonic
    stopped: bool = False  # for want of time
    _begun: float = field(init=False)
    _number: int = 0
    _asked: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def asked(self) -> int:
        """Trials that had to run."""
        return len(self._asked)

    @property
    def left_s(self) -> float:
        return self.seconds - (self.clock() - self._begun)

    def place(self) -> Path:
        """Where the next candidate is written; `discard` takes it away."""
        self._number += 1
        folder = self.folder / "work" / str(self._number)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / self.name

    def discard(self, file: Path) -> None:
        """Take a candidate away; any other file stays."""
        if file.parent.parent == self.folder / "work":
            shutil.rmtree(file.parent, ignore_errors=True)
            with suppress(OSError):
                file.parent.parent.rmdir()

    def judged(self, file: Path, *, again: int = 0) -> Judged | None:
        """What the judge says of a file; what it said before is not asked again. None: the time was up.

        Args:
            again: a number for what is to be measured once more.
        """
        kept = self.folder / "trials" / f"{digest_of(content_of(file), self.judge.key, str(again))}.json"
        if kept.is_file():
            with suppress(msgspec.DecodeError, OSError):
                return _KEPT.decode(kept.read_bytes())
        left = self.left_s
        if left <= 0:
            self.stopped = True
            return None
        self._asked.append(file)
        found = self.judge.ask(file, longest_s=min(LONGEST_S, left))
        if found.problem and self.left_s <= 0:  # it was ended, which says nothing of it
            self.stopped = True
            return None
        write_bytes(kept, msgspec.json.encode(found))
        return found

    def side_by_side(self, writers: Iterable[Callable[[Path], bool]]) -> Iterator[Judged | None]:
        """Each candidate, in the order given; None: it was not written, or there was no time for it.

        Files are made one at a time, by who calls, and no more of them than are being judged and one: a model may
        be large. Beside a single one that is being judged, nothing is done: it may be measured.
        """
        jobs = self.jobs or _cores()
        ahead = jobs if jobs > 1 else 0
        with ThreadPoolExecutor(jobs) as threads:
            waiting: list[Future[Judged | None]] = []
            for write in writers:
                while len(waiting) > ahead:
                    yield waiting.pop(0).result()
                file = self.place()
                waiting.append(threads.submit(self._one, file, written=not self.stopped and write(file)))
            for future in waiting:
                yield future.result()

    def _one(self, file: Path, *, written: bool) -> Judged | None:
        try:
            return self.judged(file) if written else None
        finally:
            self.discard(file)

    def confirmed(self, base: tuple[Path, Judged], file: Path, found: Judged) -> tuple[Judged, Judged] | None:
        """Both once more, where times are measured: a machine may have been busy; None: it does not hold."""
        if found.is_repeatable:
            return base[1], found
        before, after = self.judged(base[0], again=self._number), self.judged(file, again=self._number)
        if before is None or after is None or not helps(before, after):
            return None
        both = joined(base[1], before), joined(found, after)
        return both if helps(*both) else None


def content_of(file: Path) -> str:
    """A hash of a model, with the weights beside it."""
    data = file.with_name(f"{file.name}.data")
    return sha256_of(file) + (sha256_of(data) if data.is_file() else "")


def _cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
