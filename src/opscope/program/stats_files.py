"""Stats buffers in a folder, found by their names; and names of what is made from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.target_words import TargetWords
from .file_names import RUN_FILES, STATS_END

_NAME = re.compile(
    rf"(?P<stem>{RUN_FILES}(?P<program>\d{{1,9}})-activation-(?P<activation>\d{{1,9}})-inf-(?P<inference>\d{{1,9}})"
    rf"-(?P<network>.+?)(?:_slice(?P<slice>\d{{1,5}}))?){STATS_END}(?:_[^/]*)?\.bin"
)
_TRACE = re.compile(rf"{RUN_FILES}(\d{{1,9}})-trace\.json")
EXPECTED = f"{RUN_FILES}<P>-activation-<A>-inf-<I>-<Network>{STATS_END}.bin"


@dataclass(frozen=True, slots=True)
class StatsFile:
    """A stats buffer on disk, as its name describes it. Nothing of this is believed before the buffer says the same."""

    path: Path
    stem: str  # of what is made from it
    program: int
    activation: int
    inference: int
    network: str  # without _slice
    slice: int | None  # device; None: the name has none


@dataclass(frozen=True, slots=True)
class Sample:
    """The buffers that one inference left on its devices."""

    files: tuple[StatsFile, ...]

    @property
    def merged_stem(self) -> str:
        """Stem of the names of what is made from all of them together."""
        first = self.files[0]
        if first.slice is None:
            return first.stem
        return f"{first.stem.removesuffix(f'_slice{first.slice:02d}')}-merged"


def program_of_trace(path: Path) -> int | None:
    """The number of the program that a run wrote a timeline of, as its name says; None: it says nothing."""
    match = _TRACE.fullmatch(path.name)
    return None if match is None else int(match[1])


def find_samples(folder: Path) -> list[Sample]:
    """Every stats buffer of a folder, in order of program, activation and inference."""
    found: dict[tuple[int, int, int, str], list[StatsFile]] = {}
    for path in sorted(folder.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match is not None and path.is_file():
            key = (int(match["program"]), int(match["activation"]), int(match["inference"]), match["network"])
            part = None if match["slice"] is None else int(match["slice"])
            found.setdefault(key, []).append(StatsFile(path, match["stem"], *key, part))
    return [Sample(_in_order(files)) for _, files in sorted(found.items())]


def _in_order(files: Sequence[StatsFile]) -> tuple[StatsFile, ...]:
    return tuple(sorted(files, key=lambda file: (-1 if file.slice is None else file.slice, file.path.name)))


def output_name(stem: str, words: TargetWords, suffix: str) -> str:
    """Name of a file made from stats of a target: `<stem>.opstats.summary.txt`, or with the target's own tag."""
    return f"{stem}.{words.opstats_tag}{suffix}"
