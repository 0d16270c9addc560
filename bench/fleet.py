"""What a sweep costs besides its cells, how it scales, and how fast a store answers."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from statistics import median

import models
from measure import CHILDREN, PYTHON, Row, main, progress, run_child

TITLE = "Sweeps and stores"
CELLS = 600  # of which overhead and pace are measured
SECONDS = 40  # cells of one second
OP_ROWS = 10_000_000
ALL_CELLS, MOST_S = 10_000, 600


def swept(profile: str, cells: int, jobs: int) -> dict[str, dict[str, float]]:
    progress(f"{cells} cells of {profile or 'estimate'}, {jobs} at once")
    child = [
        PYTHON,
        str(CHILDREN / "fleet_sweep.py"),
        str(models.zoo("kws-cnn", "kws-cnn.onnx")),
        profile,
        str(cells),
        str(jobs),
    ]
    sample = run_child(child, timeout=900, environment={"PYTHONPATH": str(CHILDREN)})
    found: dict[str, dict[str, float]] = json.loads(sample.output.splitlines()[-1])
    return found


def more(found: dict[str, dict[str, float]], what: str) -> float:
    """What a cell more takes."""
    few, many = found["few"], found["many"]
    return (many[what] - few[what]) / (many["cells"] - few["cells"])


def measure(options: Namespace) -> Iterator[Row]:
    found = swept("fleet_cells_timed:nothing", CELLS, 1)
    wall, cpu = (1000 * more(found, what) for what in ("wall", "cpu"))
    yield Row("cells that do nothing, 1 at once", {"ms a cell": wall, "ms of processors": cpu}, "≤ 5 ms", cpu <= 5)
    one, two = (swept("fleet_cells_timed:second", SECONDS, jobs) for jobs in (1, 2))
    ratio = one["many"]["wall"] / two["many"]["wall"]  # with what it takes to start
    yield Row("cells of one second, 2 at once ÷ 1", {"times faster": ratio}, "≥ 1.8", ratio >= 1.8)
    found = swept("", CELLS, 2)
    pace = 1 / more(found, "wall")
    values = {"cells/s": pace, "ms of processors": 1000 * more(found, "cpu"), "10,000 cells, s": ALL_CELLS / pace}
    yield Row("estimates of a keyword spotter, 2 at once", values, f"< {MOST_S} s", ALL_CELLS / pace < MOST_S)
    progress(f"a question over {OP_ROWS:,} op rows")
    child = [PYTHON, str(CHILDREN / "fleet_query.py"), str(OP_ROWS)]
    answer = json.loads(run_child(child, timeout=900).output.splitlines()[-1])
    ours, alone = (median(answer[side]) for side in ("store", "duckdb"))
    values = {"s": ours, "÷ DuckDB alone": ours / alone, "bytes a row": answer["bytes"] / OP_ROWS}
    yield Row(f"medians by type and target of {OP_ROWS // 10**6} M op rows", values, "≤ 1.2 ×", ours <= 1.2 * alone)


if __name__ == "__main__":
    main(TITLE, measure)
