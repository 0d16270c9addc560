"""The options that every runtime has which measures on this machine, as data: manifests list them."""

from __future__ import annotations

from .manifest import Option

WARMUP, REPEATS, THREADS, SEED = 5, 30, 1, 1
MEASURING = (
    Option(
        "warmup", f"inferences before those that count (default {WARMUP})", default=WARMUP, is_number=True, metavar="N"
    ),
    Option("repeats", f"inferences that count (default {REPEATS})", default=REPEATS, is_number=True, metavar="N"),
    Option(
        "threads", f"threads, kept on as many CPUs (default {THREADS})", default=THREADS, is_number=True, metavar="N"
    ),
    Option(
        "op-times",
        "off: the latency alone, without the runtime's profiler, as an application sees it (default on)",
        ("on", "off"),
        "on",
    ),
    Option("seed", f"of the random inputs (default {SEED})", default=SEED, is_number=True, metavar="N"),
)
CPU = ("cpu", "The CPU of this machine")  # name and title of what every runtime here measures
