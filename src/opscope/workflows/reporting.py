"""`opscope report` behind the api: a model and a target → Report, by our estimate or by the rules of a plug-in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, TextIO, cast

from ..core.errors import UsageError
from ..core.files import sha256_of
from ..core.plugins import load_place, manifests
from ..estimate.machines import use_machine
from ..estimate.price import Machine
from ..estimate.report import Report
from ..graph.graph import Graph
from ..machine.target import Target
from ..options import ReportOptions
from ..readers import graph_of


class Style(Protocol):
    """Another way to count and print a report."""

    def report(self, graph: Graph, machine: Machine, *, sha256: str | None) -> Report: ...

    def render(self, report: Report, out: TextIO) -> None: ...


def style_names() -> tuple[str, ...]:
    """Names of the styles that plug-ins offer."""
    return tuple(style.name for manifest in manifests() for style in manifest.report_styles)


def load_style(name: str) -> Style:
    """The style called `name`."""
    for manifest in manifests():
        for style in manifest.report_styles:
            if style.name == name:
                found = load_place(manifest, style.place)
                return cast("Style", found() if isinstance(found, type) else found)
    raise UsageError(f"--compat {name}: not known; expected one of {', '.join(style_names()) or 'none'}")


def styled_report(model: Graph | Path, target: str | Path | Target, style: str, options: ReportOptions) -> Report:
    """The report by the rules of a style."""
    machine = use_machine(target, cores=options.cores, devices=options.devices)
    graph = graph_of(model, shapes=options.shapes, batch=options.batch, shapes_from_run=options.shapes_from_run)
    sha256 = sha256_of(model) if options.fingerprint and isinstance(model, Path) else None
    found = load_style(style).report(graph, machine, sha256=sha256)
    return found if options.advise else replace(found, suggestions=(), heavy_memory=(), heavy_macs=())
