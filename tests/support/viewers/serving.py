"""A server of runs at work, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opscope.server.http import RunServer


@contextmanager
def serving(root: Path, *, ui: Path | None = None) -> Iterator[str]:
    """The address of a server at work; what goes wrong inside it fails the test."""
    problems: list[str] = []
    with RunServer(root, ui=ui, log=problems.append) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server.address
        finally:
            server.stop()
            thread.join()
    assert problems == []
