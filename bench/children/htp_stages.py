"""Seconds of the vendor's process and of everything of ours: python htp_stages.py MODEL → two numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from opscope.backends.registry import load
from opscope.plugins.qnn import compilation as htp_run

spent: list[float] = []
spawn = htp_run._spawn


def timed(folder: Path, ask: Path, answer: Path) -> tuple[int, str]:
    begin = perf_counter()
    result = spawn(folder, ask, answer)
    spent.append(perf_counter() - begin)
    return result


if __name__ == "__main__":
    htp_run._spawn = timed
    backend = load("htp")
    begin = perf_counter()
    backend.profile(Path(sys.argv[1]), {})
    print(spent[0], perf_counter() - begin - spent[0])
