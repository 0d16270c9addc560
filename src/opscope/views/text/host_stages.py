"""The host's side of one inference, as the head of a text."""

from __future__ import annotations

from typing import TextIO

from ...recording.host_times import STAGES, HostTimes, Rows, between


class HostStages:
    """Every stage with its time and its share of what the application saw."""

    suffix = ".txt"

    def render(self, times: HostTimes, row: Rows, out: TextIO) -> None:
        """`row` is the one inference, out of `times`."""
        inference, activation = int(row["inference"][0]), int(row["activation"][0])
        out.write(f"Host stages of inference {inference}, activation {activation} (simulated)\n")
        total = int(between(row, "enqueued_ns", "dequeued_ns")[0])
        for stage, (start, end) in STAGES.items():
            ns = int(between(row, start, end)[0])
            out.write(f"  {stage:<16}{ns / 1e3:>14.3f} us {100 * ns / max(total, 1):>6.2f}%\n")
        out.write(f"  {'total':<16}{total / 1e3:>14.3f} us\n")
        out.write(f"  queue depth at submit: {int(row['queue_depth'][0])}; activations at once: {times.slots}\n")
