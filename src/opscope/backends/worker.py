"""The other end of `process`: a request in a file, some work, an answer in a file.

`PYTHON worker.py FILE REQUEST ANSWER` does the work of FILE, a module with a function `work(request) → mapping`, in a
Python that knows nothing of opscope: this file needs Python 3.8 and its standard library, no more. FILE may raise
`RefusedError`, which it imports from `opscope_worker`; it imports no file beside it. Modules of ours call `answer`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter_ns
from typing import Any

SCHEMA = "opscope.worker/1"  # of request and answer


class RefusedError(Exception):
    """The work cannot be done as asked; the words are for the user."""


def answer(work: Callable[[Mapping[str, Any]], Mapping[str, object]], request_file: str, answer_file: str) -> None:
    """Do the work; whatever a runtime raises becomes the problem that the answer names."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    found: dict[str, object]
    try:
        if request.get("schema") != SCHEMA:
            raise RefusedError(f"worker: the request is of {request.get('schema')}; expected {SCHEMA}")
        found = {"ok": True, **work(request)}
    except RefusedError as refusal:
        found = {"ok": False, "problem": str(refusal)}
    except Exception as error:  # of a runtime: their classes share no base below Exception
        found = {"ok": False, "problem": f"{type(error).__name__}: {error}"}
    Path(answer_file).write_text(json.dumps({**found, "schema": SCHEMA}), encoding="utf-8")


def timed(run: Callable[[], object], repeats: int) -> list[int]:
    """Run it `repeats` times; the nanoseconds of each."""
    samples = []
    for _ in range(repeats):
        start = perf_counter_ns()
        run()
        samples.append(perf_counter_ns() - start)
    return samples


def _work_of(file: str) -> Callable[[Mapping[str, Any]], Mapping[str, object]]:
    """The function `work` of a file; it is imported with the request at hand, as a missing library is an answer too."""

    def work(request: Mapping[str, Any]) -> Mapping[str, object]:
        sys.modules["opscope_worker"] = sys.modules["__main__"]
        del sys.path[0]  # the folder of this file: its modules are not for others
        spec = spec_from_file_location("work", file)
        if spec is None or spec.loader is None:
            raise RefusedError(f"{file}: is no Python module; expected one with a function `work`")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        found: Mapping[str, object] = module.work(request)
        return found

    return work


if __name__ == "__main__":
    answer(_work_of(sys.argv[1]), *sys.argv[2:4])
