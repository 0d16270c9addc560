"""How do times of HTP parts compare with measured ones? Nothing is fitted.

    bench/fits/htp_measured.py LATENCIES.csv FOLDER NETWORK…

The table has columns model, soc_id, precision and latency_ms (the median of several rows counts); FOLDER has
NETWORK.onnx with weights, whose values do not matter. Only rows in float are used.
"""

from __future__ import annotations

import csv
import sys
from itertools import combinations
from pathlib import Path
from statistics import median

from opscope.core.errors import ProfilerError
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.profile import profile_model
from opscope.plugins.qnn.socs import SOCS
from opscope.recording.summary import Latency

CLEAR = 1.3  # measured times that differ by less may be one and the same: runtimes differ by as much


def measured(table: Path) -> dict[tuple[str, int], float]:
    """Network and part → milliseconds."""
    found: dict[tuple[str, int], list[float]] = {}
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["precision"] == "float":
                found.setdefault((row["model"], int(row["soc_id"])), []).append(float(row["latency_ms"]))
    return {key: median(times) for key, times in found.items()}


def main() -> None:
    table, folder, *networks = sys.argv[1:]
    times = measured(Path(table))
    heads = ("network", "part", "times by", "measured ms", "ours ms", "measured ÷ ours", "inside")
    print("|", " | ".join(heads), "|\n" + "|---" * len(heads) + "|")
    right, pairs, inside, scaled = 0, 0, 0, 0
    for network in networks:
        ours: dict[int, Latency] = {}
        for soc in SOCS:
            if (network, soc.id) not in times:
                continue
            try:
                recording = profile_model(Path(folder) / f"{network}.onnx", HtpOptions(soc), shapes={})
            except ProfilerError as error:
                print(f"{network} on {soc.label}: {error}", file=sys.stderr)
                continue
            if (latency := recording.latency) is None:
                continue
            ours[soc.id] = latency
            real, own = times[network, soc.id], latency.known_ns / 1e6
            holds = (latency.low_ns or 0) / 1e6 <= real <= (latency.high_ns or 0) / 1e6
            scaled, inside = scaled + bool(recording.basis), inside + (holds and bool(recording.basis))
            words = recording.basis or recording.provenance
            print(
                f"| {network} | {soc.label} | {words} | {real:.3f} | {own:.3f} | {real / own:.2f} | {holds} |",
                flush=True,
            )
        for one, other in combinations(ours, 2):
            real = times[network, one], times[network, other]
            if max(real) > CLEAR * min(real):
                pairs += 1
                right += (real[0] < real[1]) == (ours[one].known_ns < ours[other].known_ns)
    print(f"\n{inside} of {scaled} scaled times have the measured one in their range")
    print(f"{right} of {pairs} pairs of parts that differ by more than {CLEAR} come out in the measured order")


if __name__ == "__main__":
    main()
