"""The server's own pages: the list of runs, and the question before a trace is opened in the public Perfetto UI."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..core.units import format_latency
from ..recording.summary import Latency
from ..views.page.html_text import full_name, prose, short_name
from .catalogue import ListedRun, RunListing
from .perfetto import PUBLIC_UI

STYLE, SCRIPT = "view.css", "perfetto.js"
ASSETS = {STYLE: "text/css; charset=utf-8", SCRIPT: "text/javascript; charset=utf-8"}


def _text_key(entry: ListedRun, field: str) -> tuple[int, str]:
    return (1, "") if entry.head is None else (0, str(getattr(entry.head.info, field)))


def _latency_key(entry: ListedRun) -> tuple[int, float]:
    """Sort key of the latency; unknown is last."""
    known = None if entry.head is None else entry.head.latency.value_ns
    return (1, 0.0) if known is None else (0, float(known))


_SORTS: dict[str, tuple[str, Callable[[ListedRun], tuple[int, float | str]]]] = {  # column → heading, key
    "name": ("Run", lambda entry: (0, entry.name)),
    "model": ("Model", lambda entry: _text_key(entry, "model")),
    "target": ("Target", lambda entry: _text_key(entry, "target")),
    "provenance": ("How obtained", lambda entry: _text_key(entry, "provenance")),
    "latency": ("Latency", _latency_key),
    "created": ("Made", lambda entry: _text_key(entry, "created")),
}


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("opscope.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"short": short_name, "full": full_name, "prose": prose, "latency": latency_text, "when": when}
    return found


@cache
def asset(name: str) -> bytes:
    return (files("opscope.server") / "templates" / name).read_bytes()


def list_page(listing: RunListing, *, root: str, sort: str | None) -> bytes:
    """Render all runs; `sort` names a column, with a `-` in front for descending order."""
    column, descending = (sort or "").removeprefix("-"), (sort or "").startswith("-")
    entries = list(listing.entries)
    if column in _SORTS:
        entries.sort(key=_SORTS[column][1], reverse=descending)
    headings = [(name, words, _aria_sort(name, column, descending=descending)) for name, (words, _) in _SORTS.items()]
    page = _environment().get_template("list.html.j2")
    return page.render(entries=entries, headings=headings, root=root, whole=listing.is_whole).encode()


def _aria_sort(name: str, column: str, *, descending: bool) -> str:
    """Return the `aria-sort` value of a heading."""
    if name != column:
        return "none"
    return "descending" if descending else "ascending"


def consent_page(entry: ListedRun, *, trace: str) -> bytes:
    """Render the question asked before a trace leaves the machine."""
    page = _environment().get_template("perfetto.html.j2")
    return page.render(entry=entry, trace=trace, ui=PUBLIC_UI, host=urlsplit(PUBLIC_UI).hostname).encode()


def problem_page(title: str, text: str) -> bytes:
    return _environment().get_template("problem.html.j2").render(title=title, text=text).encode()


def latency_text(latency: Latency) -> str:
    """Format a latency with its range: `2.18 ms (2.05 ms – 2.31 ms)`."""
    return format_latency(latency.value_ns, latency.low_ns, latency.high_ns)


def when(created: str) -> str:
    """Format an ISO time as `2026-11-15 16:14 UTC`; any other text is shortened only."""
    is_utc = created.endswith(("+00:00", "Z")) and len(created) >= 20 and created[10] == "T"
    return f"{created[:10]} {created[11:16]} UTC" if is_utc else short_name(created)
