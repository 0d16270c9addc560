"""Findings of a profile with the rewrites that `opscope optimize` would try on their ops; none is tried."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..core.errors import ProfilerError
from ..core.files import write_bytes
from ..core.manifest import RewriteEntry
from ..options import Shapes
from ..readers import model_format, read_model, unpacked
from ..recording.finding import Finding
from ..workflows.analysing import write_findings
from ..workflows.record import Recorded, page_of
from . import catalogue
from .editors import editor_of, lacking
from .rewrite import Site

_FORM = "onnx"
MOST_NAMED = 3  # rewrites of one finding


def can_advise(model: Path) -> bool:
    """Whether a profile of it can name rewrites: those of ONNX, with what they need here."""
    try:
        with unpacked(model) as file:
            form = model_format(file).name.lower()
    except ProfilerError:
        return False
    return form == _FORM and not lacking(form)


def with_rewrites_named(model: Path, recorded: Recorded, shapes: Shapes | None = None) -> Recorded:
    """A profile whose findings name rewrites, in its folder too."""
    places = fitting_places(model, shapes)
    findings = replace(
        recorded.findings, findings=tuple(_named(finding, places) for finding in recorded.findings.findings)
    )
    if recorded.folder is not None and findings != recorded.findings:
        write_findings(recorded.folder, findings)
        for name, data in page_of(recorded.run, findings).items():
            write_bytes(recorded.folder / name, data)
    return replace(recorded, findings=findings)


def fitting_places(model: Path, shapes: Shapes | None) -> list[tuple[RewriteEntry, tuple[Site, ...]]]:
    """Every rewrite that fits somewhere."""
    with unpacked(model) as file:
        editor = editor_of(_FORM)
        graph = read_model(file, shapes=shapes)
        known = {tensor.name: tensor.shape for tensor in (graph.tensors[number] for number in graph.inputs)}
        fixed = {name: shape for name, shape in known.items() if shape is not None}
        opened = editor.open_model(file, fixed)
        found = []
        for entry in catalogue.known(_FORM):
            with suppress(Exception):  # a rule that fails has no advice to give
                sites = editor.sites(opened, entry)
                if sites:
                    found.append((entry, sites))
    return found


def _named(finding: Finding, places: Sequence[tuple[RewriteEntry, tuple[Site, ...]]]) -> Finding:
    """With the rewrites that touch its ops, those at most places first."""
    ops = set(finding.ops)
    counts = [(sum(not ops.isdisjoint(site.removed) for site in sites), entry) for entry, sites in places]
    touching = sorted((pair for pair in counts if pair[0]), key=lambda pair: -pair[0])[:MOST_NAMED]
    if not touching:
        return finding
    words = ", ".join(
        f"{entry.name} ({count} {'place' if count == 1 else 'places'}{f', --allow {entry.needs}' * bool(entry.needs)})"
        for count, entry in touching
    )
    parts = (finding.action.rstrip("."), f"opscope optimize tries: {words}")
    return replace(finding, action=". ".join(filter(None, parts)))
