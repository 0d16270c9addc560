"""The other end of `process`: a request in a file, some work, an answer in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any


class RefusedError(Exception):
    """The work cannot be done as asked; the words are for the user."""


def answer(work: Callable[[Mapping[str, Any]], Mapping[str, object]], request_file: str, answer_file: str) -> None:
    """Do the work; whatever a runtime raises becomes the problem that the answer names."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    found: dict[str, object]
    try:
        found = {"ok": True, **work(request)}
    except RefusedError as refusal:
        found = {"ok": False, "problem": str(refusal)}
    except Exception as error:  # of a runtime: their classes share no base below Exception
        found = {"ok": False, "problem": f"{type(error).__name__}: {error}"}
    Path(answer_file).write_text(json.dumps(found), encoding="utf-8")


def timed(run: Callable[[], object], repeats: int) -> list[int]:
    """Run it `repeats` times; the nanoseconds of each."""
    samples = []
    for _ in range(repeats):
        start = perf_counter_ns()
        run()
        samples.append(perf_counter_ns() - start)
    return samples
