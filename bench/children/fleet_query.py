"""A store of many op rows: argv is rows; prints the seconds that a grouped question takes, and DuckDB alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import duckdb

from opscope.fleet.query import ask
from opscope.fleet.schema import OPS
from opscope.fleet.store import VERSION_KEY, Store

QUESTION = "SELECT type, target, count(*), median(wall_ns) FROM {} GROUP BY ALL ORDER BY ALL"
TARGETS = 20


def fill(store: Store, rows: int) -> None:
    """As compaction leaves it: one file per target."""
    known = {
        "id": "md5((i // 300)::VARCHAR)",
        "model": "'model' || (i // 300) % 100",
        "name": "'/layer.' || i % 300 || '/op'",
        "type": "['MatMul', 'Conv', 'Add', 'Softmax', 'Relu'][i % 5 + 1]",
        "position": "i % 300",
        "wall_ns": "(hash(i) % 1000000)::BIGINT",
        "own_ns": "(hash(i) % 900000)::BIGINT",
    }
    for number in range(TARGETS):
        columns = known | {"target": f"'chip{number}'"}
        empty = duckdb.arrow(OPS.empty_table())
        shown = ", ".join(
            f"({columns.get(name, 'NULL')})::{kind} AS {name}"
            for name, kind in zip(empty.columns, empty.types, strict=True)
        )
        path = Path(store.place.root) / f"ops/month=2026-11/target=chip{number}/part-0.parquet"
        path.parent.mkdir(parents=True)
        marks = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{'{VERSION_KEY}': '1'}}"
        duckdb.execute(f"COPY (FROM range({rows // TARGETS}) t(i) SELECT {shown}) TO '{path}' ({marks})")


def main() -> None:
    with TemporaryDirectory() as folder:
        store = Store(f"{folder}/s", create=True)
        fill(store, int(sys.argv[1]))
        seconds: dict[str, list[float]] = {"store": [], "duckdb": []}
        files = f"read_parquet('{folder}/s/ops/**/*.parquet')"
        for _ in range(5):
            start = perf_counter()
            ask(store, QUESTION.format("ops"))
            middle = perf_counter()
            duckdb.execute(QUESTION.format(files)).fetchall()
            seconds["store"].append(middle - start)
            seconds["duckdb"].append(perf_counter() - middle)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    print(json.dumps(seconds | {"bytes": size}))


if __name__ == "__main__":
    main()
