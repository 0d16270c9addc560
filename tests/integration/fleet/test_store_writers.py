"""Many writers, compactions and readers at once, each a process of its own: every row is read once at every moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opscope.fleet.compaction import compact
from opscope.fleet.query import ask
from opscope.fleet.store import Store
from support import fleet_cells

WRITER = """
import sys
from support import fleet_cells
from opscope.fleet.store import Store
place, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = Store(place)
for number in range(count):
    store.add(*fleet_cells.rows(fleet_cells.origin_of(f"{name}{number}", target=f"chip{number % 2}")))
"""
COMPACTOR = """
import sys, time
from opscope.fleet.compaction import compact
from opscope.fleet.store import Store
end = time.time() + float(sys.argv[2])
while time.time() < end:
    compact(Store(sys.argv[1]), now_s=time.time())
"""


def start(code: str, *words: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": fleet_cells.PYTHON_PATH}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], env=environment)


def check_at_once(folder: Path, count: int, seconds: float) -> None:
    """Two write, two compact, and one asks and asks."""
    place = folder / "s"
    store = Store(place, create=True)
    others = [start(WRITER, place, name, count) for name in ("a", "b")]
    others += [start(COMPACTOR, place, seconds) for _ in range(2)]
    seen, deadline = 0, time.monotonic() + 120
    try:
        while time.monotonic() < deadline and any(process.poll() is None for process in others):
            ((rows, ids, ops),) = ask(
                store, "SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM ops) FROM cells"
            ).rows
            assert (rows, ops) == (ids, 2 * int(str(ids)))
            assert int(str(ids)) >= seen  # what was there stays
            seen = int(str(ids))
        assert [process.wait(timeout=60) for process in others] == [0, 0, 0, 0]
    finally:
        for process in others:
            process.kill()
            process.wait()
    compact(store, now_s=time.time() + 1e6)
    assert ask(store, "SELECT count(*), count(DISTINCT id) FROM cells").rows == ((2 * count, 2 * count),)
    assert {name.partition("/")[0] for name in store.place.names("")} == {"cells", "ops", "store.json"}


def test_rows_are_there_once_while_all_work_at_once(tmp_path: Path) -> None:
    check_at_once(tmp_path, count=15, seconds=2)


@pytest.mark.slow
def test_rows_are_there_once_for_long(tmp_path: Path) -> None:
    check_at_once(tmp_path, count=500, seconds=60)
