"""Findings of a profile with the rewrites that `opscope optimize` would try on their ops; none is tried.

What a search beside the model tried before has its proven time; what it found to gain nothing is not named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..core.files import write_bytes
from ..core.manifest import RewriteEntry
from ..core.units import format_seconds
from ..options import Shapes
from ..readers import read_model, unpacked
from ..recording.finding import Finding
from ..workflows.analysing import write_findings
from ..workflows.record import Recorded, page_of
from . import catalogue
from .earlier import times_of
from .editors import ADVISING, editor_of
from .rewrite import Site

MOST_NAMED = 3  # rewrites of one finding
_FEW_OPS = 4  # of a model that one pattern may fill


def with_rewrites_named(model: Path, recorded: Recorded, shapes: Shapes | None = None) -> Recorded:
    """A profile whose findings name rewrites, in its folder too."""
    now_ns = recorded.run.summary.latency.value_ns
    tried = times_of(model, now_ns)
    places = [
        (entry, sites)
        for entry, sites in fitting_places(model, shapes)
        if now_ns is None or tried.get(entry.name, 0) < now_ns
    ]
    findings = replace(
        recorded.findings, findings=tuple(_named(finding, places, tried) for finding in recorded.findings.findings)
    )
    if recorded.folder is not None and findings != recorded.findings:
        write_findings(recorded.folder, findings)
        for name, data in page_of(recorded.run, findings).items():
            write_bytes(recorded.folder / name, data)
    return replace(recorded, findings=findings)


def fitting_places(model: Path, shapes: Shapes | None) -> list[tuple[RewriteEntry, tuple[Site, ...]]]:
    """Every rewrite of single places that fits somewhere; one of most ops says nothing of those of a finding."""
    with unpacked(model) as file:
        editor = editor_of(ADVISING)
        graph = read_model(file, shapes=shapes)
        known = {tensor.name: tensor.shape for tensor in (graph.tensors[number] for number in graph.inputs)}
        fixed = {name: shape for name, shape in known.items() if shape is not None}
        opened = editor.open_model(file, fixed)
        found = []
        for entry in catalogue.known(ADVISING):
            with suppress(Exception):  # a rule that fails has no advice to give
                sites = () if editor.takes_whole(entry) else editor.sites(opened, entry)
                single = tuple(site for site in sites if 2 * len(site.removed) <= max(len(graph.ops), _FEW_OPS))
                if single:
                    found.append((entry, single))
    return found


def _named(
    finding: Finding, places: Sequence[tuple[RewriteEntry, tuple[Site, ...]]], tried: Mapping[str, int]
) -> Finding:
    """With the rewrites that touch its ops: those that were proven to help first, then those at most places."""
    ops = set(finding.ops)
    counts = [(sum(not ops.isdisjoint(site.removed) for site in sites), entry) for entry, sites in places]
    touching = sorted(
        (pair for pair in counts if pair[0]),
        key=lambda pair: (pair[1].name not in tried, tried.get(pair[1].name, 0), -pair[0]),
    )
    if not touching:
        return finding
    words = ", ".join(_told(entry, count, tried.get(entry.name)) for count, entry in touching[:MOST_NAMED])
    parts = (finding.action.rstrip("."), f"opscope optimize tries: {words}")
    return replace(finding, action=". ".join(filter(None, parts)))


def _told(entry: RewriteEntry, count: int, after_ns: int | None) -> str:
    words = [f"{count} {'place' if count == 1 else 'places'}", f"--allow {entry.needs}" * bool(entry.needs)]
    words.append("" if after_ns is None else f"when tried, {format_seconds(after_ns * 1e-9)} for all")
    return f"{entry.name} ({', '.join(filter(None, words))})"
