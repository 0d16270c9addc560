"""A verb for an agent: a command line run in a process of its own, confined to a folder, bounded in time and answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, printable

MOST_CHARACTERS = 24_000  # of an answer: some thousand words of a context window
MOST_BYTES = 64 << 20  # of what a verb prints
_LISTS = (40, 20, 10, 5, 2)  # entries of every list that are kept, tried until the answer is short enough
_LONGEST_TEXT = 400  # characters of one text


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where an agent may read and write, and how long a verb may take."""

    root: Path
    longest_s: float

    def path(self, given: str) -> Path:
        """A path of the agent's, below the root; links that lead out of it are refused."""
        place = (self.root / given).resolve()
        if not place.is_relative_to(self.root):
            raise UsageError(f"{printable(given)}: is outside of the folder that is served; expected a path below it")
        return place

    def file(self, given: str) -> str:
        """The path of something that is there."""
        place = self.path(given)
        if not place.exists():
            raise UsageError(f"{printable(given)}: is not there; expected a file or folder below the one served")
        return str(place)

    def run(self, verb: str, arguments: Sequence[str]) -> dict[str, object]:
        """What a verb answers with --json, cut to what an agent can read.

        A gate that fails is an answer; wrong usage and unreadable input are an error with the verb's own line.
        """
        command = [sys.executable, "-m", "opscope", verb, *_with_json(arguments)]
        try:
            done = subprocess.run(  # noqa: S603 - our own program, words as a list
                command, cwd=self.root, capture_output=True, timeout=self.longest_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"{verb}: took longer than {self.longest_s:g} s; expected a smaller model, or --timeout"
            ) from None
        notes = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        if done.returncode not in (0, 1) or len(done.stdout) > MOST_BYTES:
            raise UsageError(printable(notes[-1] if notes else f"{verb}: no answer", 2000).removeprefix("opscope: "))
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise UsageError(f"{verb}: {printable(notes[-1] if notes else 'no JSON', 2000)}") from None
        found = short(answer if isinstance(answer, dict) else {"rows": answer})
        return {**found, "passed": done.returncode == 0} if verb in ("compare", "report") else found


def _with_json(arguments: Sequence[str]) -> list[str]:
    """With the option, before words that are no options whatever they look like."""
    place = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place], "--json", *arguments[place:]]


def short(answer: dict[str, object]) -> dict[str, object]:
    """An answer that fits into a context window: of long lists the first entries, and how many were left out."""
    for most in _LISTS:
        cut = _cut(answer, most)
        if len(json.dumps(cut, ensure_ascii=False)) <= MOST_CHARACTERS:
            break
    else:
        cut = {key: value for key, value in _cut(answer, 1).items() if not isinstance(value, (dict, list))}
        cut["left_out"] = "all lists and tables: the answer is too long"
    return cut


def _cut(value: object, most: int) -> dict[str, object]:
    found = _cut_value(value, most)
    return found if isinstance(found, dict) else {"value": found}


def _cut_value(value: object, most: int) -> object:
    if isinstance(value, dict):
        return {key: _cut_value(item, most) for key, item in value.items()}
    if isinstance(value, list):
        kept = [_cut_value(item, most) for item in value[:most]]
        return kept if len(value) <= most else [*kept, f"… {len(value) - most} more"]
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}…"
    return value
