"""The options that every runtime has which measures on this machine, as data: manifests list them."""

from __future__ import annotations

from .manifest import Option

WARMUP, REPEATS, THREADS, SEED = 5, 30, 1, 1
MEASURING = (
    Option(
        "warmup", f"warm-up inferences, not measured (default {WARMUP})", default=WARMUP, is_number=True, metavar="N"
    ),
    Option("repeats", f"measured inferences (default {REPEATS})", default=REPEATS, is_number=True, metavar="N"),
    Option(
        "threads",
        f"threads of the runtime, pinned to as many CPUs (default {THREADS})",
        default=THREADS,
        is_number=True,
        metavar="N",
    ),
    Option(
        "op-times",
        "on: times of every op; off: only the latency, without the runtime's profiler (default on)",
        ("on", "off"),
        "on",
    ),
    Option("seed", f"seed of random inputs (default {SEED})", default=SEED, is_number=True, metavar="N"),
)
CPU = ("cpu", "The CPU of this machine")  # name and title of what every runtime here measures
