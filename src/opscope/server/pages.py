"""The server's own pages: the list of runs, and the one that asks before anything leaves the machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..core.units import UNKNOWN, format_seconds
from ..recording.summary import Latency
from ..views.page.html_text import full_name, prose, short_name
from .catalogue import Entry, Listing
from .perfetto import PUBLIC_UI

STYLE, SCRIPT = "view.css", "perfetto.js"
ASSETS = {STYLE: "text/css; charset=utf-8", SCRIPT: "text/javascript; charset=utf-8"}


def _word(entry: Entry, field: str) -> tuple[int, str]:
    return (1, "") if entry.head is None else (0, str(getattr(entry.head.info, field)))


def _latency(entry: Entry) -> tuple[int, float]:
    """Unknown is last."""
    known = None if entry.head is None else entry.head.latency.value_ns
    return (1, 0.0) if known is None else (0, float(known))


_SORTS: dict[str, tuple[str, Callable[[Entry], tuple[int, float | str]]]] = {  # column → heading, key
    "name": ("Run", lambda entry: (0, entry.name)),
    "model": ("Model", lambda entry: _word(entry, "model")),
    "target": ("Target", lambda entry: _word(entry, "target")),
    "provenance": ("How obtained", lambda entry: _word(entry, "provenance")),
    "latency": ("Latency", _latency),
    "created": ("Made", lambda entry: _word(entry, "created")),
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


def list_page(listing: Listing, *, root: str, sort: str | None) -> bytes:
    """All runs; `sort` names a column, and a `-` before it turns the order round."""
    column, backwards = (sort or "").removeprefix("-"), (sort or "").startswith("-")
    entries = list(listing.entries)
    if column in _SORTS:
        entries.sort(key=_SORTS[column][1], reverse=backwards)
    headings = [(name, words, _order(name, column, backwards=backwards)) for name, (words, _) in _SORTS.items()]
    page = _environment().get_template("list.html.j2")
    return page.render(entries=entries, headings=headings, root=root, whole=listing.is_whole).encode()


def _order(name: str, column: str, *, backwards: bool) -> str:
    """`aria-sort` of a heading."""
    if name != column:
        return "none"
    return "descending" if backwards else "ascending"


def consent_page(entry: Entry, *, trace: str) -> bytes:
    """What a click will do, before it is done."""
    page = _environment().get_template("perfetto.html.j2")
    return page.render(entry=entry, trace=trace, ui=PUBLIC_UI, host=urlsplit(PUBLIC_UI).hostname).encode()


def problem_page(title: str, text: str) -> bytes:
    return _environment().get_template("problem.html.j2").render(title=title, text=text).encode()


def latency_text(latency: Latency) -> str:
    """`2.18 ms (2.05 ms – 2.31 ms)`."""
    if latency.value_ns is None:
        return UNKNOWN
    text = format_seconds(latency.value_ns / 1e9)
    if latency.low_ns is None or latency.high_ns is None or latency.low_ns == latency.high_ns:
        return text
    return f"{text} ({format_seconds(latency.low_ns / 1e9)} – {format_seconds(latency.high_ns / 1e9)})"


def when(created: str) -> str:
    """`2026-11-15 16:14 UTC` of an ISO time; anything else as it stands."""
    is_utc = created.endswith(("+00:00", "Z")) and len(created) >= 20 and created[10] == "T"
    return f"{created[:10]} {created[11:16]} UTC" if is_utc else short_name(created)
