"""Results in order, while threads work ahead: for work that is done outside the interpreter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def ahead(make: Callable[[Given], Made], given: Iterable[Given], *, threads: int = 2) -> Iterator[Made]:
    """`make` of everything given, in order; no more is held than the threads work on, and one that is ready."""
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for one in given:
                waiting.append(pool.submit(make, one))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
