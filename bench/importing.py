"""How fast are timelines imported? Ratios to `orjson.loads`, which builds the dictionaries and no more.

Ratios come from one run on one machine, over the same file; absolute figures are for orientation.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from opscope.importers.formats import read_profile
from opscope.plugins.traces.kineto import Kineto
from opscope.plugins.traces.trace_json import TraceJson
from support.plugins.kineto_build import launch_bound

EVENTS = 1_000_000


def plain(count: int) -> bytes:
    """Complete events, eight threads, no arguments."""
    return orjson.dumps(
        {
            "traceEvents": [
                {"name": f"op{i % 500}", "ph": "X", "ts": i * 1.5, "dur": 1.25, "pid": 1, "tid": i % 8, "cat": "c"}
                for i in range(count)
            ]
        }
    )


def with_arguments(count: int) -> bytes:
    """The same with arguments, as most tools write them."""
    return orjson.dumps(
        {
            "traceEvents": [
                {
                    "name": f"op{i % 500}",
                    "ph": "X",
                    "ts": i * 1.5,
                    "dur": 1.25,
                    "pid": 1,
                    "tid": i % 8,
                    "args": {"opKind": "conv", "oc": str(i), "size": i},
                }
                for i in range(count)
            ]
        }
    )


def nested(count: int) -> bytes:
    """Calls four deep, as a host profiler writes them."""
    return orjson.dumps(
        [
            {"name": f"f{i % 4}", "ph": "X", "ts": (i // 4) * 10 + i % 4, "dur": 8 - 2 * (i % 4), "pid": 1, "tid": 1}
            for i in range(count)
        ]
    )


def pairs(count: int) -> bytes:
    """Begin and end events."""
    return orjson.dumps(
        [{"name": f"f{i % 9}", "ph": "BE"[i % 2], "ts": i, "pid": 1, "tid": i // 2 % 8} for i in range(count)]
    )


def overlapping(count: int) -> bytes:
    """The worst case: every span overlaps the next, and none nests."""
    return orjson.dumps([{"name": "a", "ph": "X", "ts": i, "dur": 5.5, "pid": 1, "tid": 1} for i in range(count)])


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The best of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeat):
        gc.collect()
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        for make in (plain, with_arguments, nested, pairs, overlapping):
            raw = make(EVENTS)
            path.write_bytes(raw)
            base, ours = seconds(lambda raw=raw: orjson.loads(raw)), seconds(lambda: TraceJson().read(path))
            print(
                f"{make.__name__:<15} {EVENTS} events, {len(raw) / 1e6:.0f} MB: {EVENTS / ours / 1e6:.2f} M events/s, "
                f"{base / ours:.2f} of the speed of orjson.loads"
            )
    with tempfile.TemporaryDirectory() as folder:
        path = launch_bound(Path(folder) / "trace.json.gz", layers=100)
        count = len(read_profile(path).trace.spans)
        took = seconds(lambda: Kineto().read(path))
        print(f"kineto          {count} spans, gzip, joined: {took * 1e3:.0f} ms, {count / took / 1e6:.2f} M spans/s")


if __name__ == "__main__":
    main()
