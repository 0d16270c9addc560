"""How long does comparing two large runs take, from the command line to the verdict?

The other side reads the same two tables of spans whole, and does nothing with them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import CHILDREN, OPSCOPE, PYTHON, Row, alternate, main, middle_seconds, peak_bytes, progress, run_child

TITLE = "Compare two runs"
SPANS = 1_000_000
GOAL_SECONDS = 3
READ = "import sys, pyarrow.parquet as pq; [pq.read_table(path) for path in sys.argv[1:]]"


def measure(options: Namespace) -> Iterator[Row]:
    with TemporaryDirectory() as scratch:
        base, new = (Path(scratch, name) for name in ("base.run", "new.run"))
        for seed, folder in enumerate((base, new)):
            progress(f"making a run of {SPANS:,} spans")
            run_child([PYTHON, str(CHILDREN / "make_run.py"), str(SPANS), str(seed), str(folder)], timeout=120)
        sides = {
            "ours": [OPSCOPE, "compare", str(base), str(new), "--fail-on", "latency>5%"],
            "read": [PYTHON, "-c", READ, *(str(folder / "spans.parquet") for folder in (base, new))],
        }
        samples = alternate(sides, rounds=options.rounds)
    ours, read = (middle_seconds(samples[name]) for name in ("ours", "read"))
    values = {"seconds": ours, "read only": read, "spans/s": 2 * SPANS / ours, "MB": peak_bytes(samples["ours"]) / 1e6}
    yield Row(f"compare 2 × {SPANS:,} spans", values, f"< {GOAL_SECONDS} s", ours < GOAL_SECONDS)


if __name__ == "__main__":
    main(TITLE, measure)
