"""The resource report as one self-contained page: no network, no clock, no library; opens from disk."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, TextIO

from ...core.units import format_bytes, format_percent, format_seconds
from ...estimate.report import PROVENANCE, Report
from ..page.html_text import full_name, prose, short_name
from .charts import Drawing, bound_chart, legend, memory_chart, roofline, timeline_chart
from .figures import figure_rows
from .layers import layer_table
from .page import (
    MOST_NOTES,
    cards,
    hardware_facts,
    heavy_rows,
    memory_facts,
    model_facts,
    reasons,
    suggestion_rows,
    verdict,
)

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = "views/report_page/templates"


class ReportHtml:
    """The whole report for a browser, with charts and a table of layers to sort and search."""

    suffix = ".html"

    def render(self, report: Report, out: TextIO) -> None:
        templates = _environment()
        script = templates.get_template("report.js.j2").render()
        page = _page(report)
        out.writelines(
            templates.get_template("report.html.j2").generate(
                **page,
                security=_security_policy(script),
                style=_markup(templates.get_template("report.css.j2").render()),
                script=_markup(script),
            )
        )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("opscope", _TEMPLATES),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        size=format_bytes, seconds=format_seconds, percent=format_percent, short=short_name, full=full_name
    )
    return environment


def _harmless(value: object) -> object:
    """Whatever a template prints goes through here, so that no string of a model can be forgotten."""
    from markupsafe import Markup

    return prose(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markup(text: str) -> str:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  (made by this package, with every outside string escaped)


def _security_policy(script: str) -> str:
    """Nothing is fetched and nothing runs but the one script of this page, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _page(report: Report) -> dict[str, object]:
    bound = legend(report)
    table = layer_table(report)
    return {
        "report": report,
        "provenance": PROVENANCE,
        "model_name": short_name(report.model.name, 80),
        "model_title": full_name(report.model.name),
        "verdict": verdict(report, bound),
        "cards": cards(report),
        "model_facts": model_facts(report),
        "memory_facts": memory_facts(report),
        "hardware_facts": hardware_facts(report),
        "legend": bound,
        "charts": {
            "memory": _drawn(memory_chart(report)),
            "bound": _drawn(bound_chart(report)),
            "timeline": _drawn(timeline_chart(report)),
            "roofline": _drawn(roofline(report)),
        },
        "reasons": reasons(report),
        "table": table,
        "layer_data": _markup(table.data),
        "suggestions": suggestion_rows(report),
        "heavy_memory": heavy_rows(report, report.heavy_memory),
        "heavy_macs": heavy_rows(report, report.heavy_macs),
        "notes": report.notes[:MOST_NOTES],
        "more_notes": max(0, len(report.notes) - MOST_NOTES),
        "figures": figure_rows(report.target),
    }


def _drawn(drawing: Drawing) -> Drawing:
    return Drawing(_markup(drawing.svg), drawing.skipped, drawing.note)
