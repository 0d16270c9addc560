"""The cells of a comparison, as every form of it shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...core.units import UNKNOWN, format_percent
from ...gate.comparison import (
    ADDED,
    FUSED,
    LOCATION,
    REMOVED,
    SPLIT,
    STRUCTURE,
    Comparison,
    Difference,
    OpDifference,
    Part,
    show_change,
    show_interval,
    show_value,
)
from ...gate.families import Family
from ...gate.figures import NS, Figures, choices_of

MOST_PARTS = 8  # of one metric, such as the engines of `busy`
_HOW = {
    ADDED: "added",
    REMOVED: "removed",
    FUSED: "fused",
    SPLIT: "split",
    LOCATION: "by location",
    STRUCTURE: "by structure",
}


def run_lines(runs: Sequence[Figures]) -> list[str]:
    """`net on chip, 2 × 4 cores, batch 8, precision w8a8 – simulated`, with what was chosen otherwise in another."""
    return [_run_line(run, chosen) for run, chosen in zip(runs, choices_of(runs), strict=True)]


def _run_line(figures: Figures, chosen: Mapping[str, str]) -> str:
    cores = f"{figures.cores} core{'s' if figures.cores > 1 else ''}"
    cores = f"{figures.devices} × {cores}" if figures.devices > 1 else cores
    batch = UNKNOWN if figures.batch is None else figures.batch
    words = "".join(f", {name.replace('_', ' ')} {value}" for name, value in chosen.items())
    return f"{figures.model} on {figures.target}, {cores}, batch {batch}{words} – {figures.provenance}"


def shown_metrics(metrics: Sequence[Difference]) -> list[Difference]:
    """Those that are known; parts of one, such as its engines, where there are several and they changed."""
    known = [metric for metric in metrics if metric.base is not None or metric.new is not None]
    parts: dict[str, list[Difference]] = {}
    for metric in known:
        if ":" in metric.name:
            parts.setdefault(metric.name.partition(":")[0], []).append(metric)
    kept = {
        part.name
        for found in parts.values()
        if len(found) > 1
        for part in sorted(found, key=lambda part: -abs(part.change or 0))[:MOST_PARTS]
        if part.change != 0
    }
    return [metric for metric in known if ":" not in metric.name or metric.name in kept]


def metric_cells(metric: Difference) -> tuple[str, str, str, str, str]:
    """Name, base, new, change, what samples say."""
    base, new = show_value(metric.base, metric.unit), show_value(metric.new, metric.unit)
    return metric.name, base, new, show_change(metric), noise(metric)


def noise(found: Difference) -> str:
    if found.interval is None:
        return "noise not known" if found.note else ""
    words = "inside noise; " if found.interval.is_noise else ""
    return words + show_interval(found)


def part_cells(part: Part, change_ns: float) -> tuple[str, str, str, str, str, str]:
    """What it adds, of how much, name, time in the base and in the new run, how it was matched and why it changed."""
    share = _share(part.ns / change_ns) if change_ns else UNKNOWN
    row = part.row
    if row is None:
        return signed_ns(part.ns), share, part.name, "", "", ""
    base = show_value(row.time.base, "ns") if row.base_names else ""
    new = show_value(row.time.new, "ns") if row.new_names else ""
    return signed_ns(part.ns), share, part.name, base, new, "; ".join(filter(None, (how_words(row), row.cause)))


def _share(share: float) -> str:
    shown = format_percent(abs(share))
    return f"−{shown}" if share < 0 and shown != "0.0%" else shown


def left_cells(parts: Sequence[Part]) -> list[tuple[str, str, str, str, str, str]]:
    """One row for those that are not shown."""
    return [(signed_ns(sum(part.ns for part in parts)), "", f"({len(parts)} more)", "", "", "")] if parts else []


def signed_ns(ns: float) -> str:
    sign = "+" if ns > 0 else "−" if ns < 0 else ""
    return sign + show_value(abs(ns), "ns")


def how_words(row: OpDifference) -> str:
    if row.how in (FUSED, SPLIT):
        return f"{row.how}: {len(row.base_names)} → {len(row.new_names)}"
    if row.how in (LOCATION, STRUCTURE) and row.base_names != row.new_names:
        return f"{_HOW[row.how]}: was {row.base_names[0]}"
    return _HOW.get(row.how, "")


def counts(comparison: Comparison) -> str:
    """`40 ops in both, 24 added, 2 removed`"""
    if not comparison.base.ops or not comparison.new.ops:
        return "no ops in either run" if comparison.base.ops == comparison.new.ops else "ops in one of the runs only"
    found = Counter(row.how for row in comparison.ops)
    both = sum(count for how, count in found.items() if how not in (ADDED, REMOVED))
    words = [f"{both} {'op' if both == 1 else 'ops'} in both"]
    words += [f"{found[how]} {_HOW[how]}" for how in (FUSED, SPLIT, LOCATION, STRUCTURE) if found[how]]
    words += [f"{found[how]} {how}" for how in (ADDED, REMOVED) if found[how]]
    return ", ".join(words)


FAMILY_HEADER = ("type", "ops", "predicted", "measured", "measured ÷ predicted", "off by")


def family_cells(family: Family) -> tuple[str, ...]:
    return (
        family.name or UNKNOWN,
        f"{family.ops:,}",
        show_value(family.predicted_ns, NS),
        show_value(family.measured_ns, NS),
        f"×{family.ratio:.2f}",
        signed_ns(family.change_ns),
    )
