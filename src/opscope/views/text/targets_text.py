"""The catalogue as text: entries in groups, one line each; and one entry with every figure and its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from ...machine.calibration import OP
from ...machine.catalogue import figures
from ...machine.entry import CatalogueEntry, Source
from .columns import columns

_HEADER = ("name", "title", "numbers are", "here", "error")
_TITLE = 46  # characters of it that a list has room for


class TargetsText:
    """One line per entry, under the heading of its group; what is missing is said once, below."""

    def __init__(self, *, minor: bool = False) -> None:
        self.minor = minor  # show entries that the short list leaves out

    def render(self, entries: Sequence[CatalogueEntry], out: TextIO) -> None:
        shown = [entry for entry in entries if self.minor or not entry.is_minor]
        lines = columns(_HEADER, [_row(entry) for entry in shown], align="<<<<<", limits={1: _TITLE})
        out.write(f"{lines[0]}\n{lines[1]}\n")
        rows = iter(lines[2:])
        for group, members in groupby(shown, key=lambda entry: entry.group):
            out.write(f"\n[{group}]\n" + "".join(f"{next(rows)}\n" for _ in members))
        out.write("\n" + "".join(f"{line}\n" for line in _below(entries, len(entries) - len(shown))))


def _row(entry: CatalogueEntry) -> tuple[str, ...]:
    tells = dict.fromkeys(str(provenance) for source in entry.sources for provenance in source.tells)
    here = "yes" if entry.working else "no"
    return entry.name, entry.title, ", ".join(tells) or "—", here, error_of(entry)


def _below(entries: Sequence[CatalogueEntry], left_out: int) -> Iterator[str]:
    missing = dict.fromkeys(source for entry in entries for source in entry.sources if source.missing)
    for backend, source in {source.backend: source for source in missing}.items():
        yield f"{backend} is missing: {source.missing}{f'; install it: {source.install}' if source.install else ''}"
    if left_out:
        yield f"{left_out} more are known by number alone: --all lists them"
    yield f"{len(entries)} entries; `opscope targets show NAME` has the figures and who can tell"


def error_of(entry: CatalogueEntry) -> str:
    """The validated error of a target, where its file has one."""
    found = entry.validation
    median, p90 = getattr(found, "median_error", None), getattr(found, "p90_error", None)
    if median is None:
        return "—"
    fitted = None if entry.target is None else entry.target.calibration
    of = " per op" if fitted is not None and fitted.unit == OP else ""
    return f"{median:.0%}{of}" if p90 is None else f"{median:.0%}{of} (p90 {p90:.0%})"


class TargetText:
    """Who can tell about an entry, and each figure with its range and source."""

    def render(self, entry: CatalogueEntry, known: object | None, out: TextIO) -> None:
        out.write(f"{entry.name}: {entry.title}\n")
        if entry.aliases:
            out.write(f"also called {', '.join(entry.aliases)}\n")
        for source in entry.sources:
            out.write(f"{_told(source)}\n")
        if (error := error_of(entry)) != "—":
            out.write(f"validated error {error}{_of_networks(entry)}\n")
        if known is not None:
            _figures(known, out)


def _told(source: Source) -> str:
    how = ", ".join(source.tells) or "numbers of its own"
    choice = f" --{source.option} {source.part}" if source.part else ""
    takes = f" of {' and '.join(source.models)} models" if source.models else ""
    state = f"; missing here: {source.missing}" if source.missing else ""
    return f"--backend {source.backend}{choice}: {how}{takes}{state}{f' ({source.install})' if source.install else ''}"


def _of_networks(entry: CatalogueEntry) -> str:
    networks, source = (getattr(entry.validation, name, None) for name in ("networks", "source"))
    words = source if entry.target is None or source is None else entry.target.sources.get(source, source)
    return "".join((f" of {networks} networks" if networks else "", f": {words}" if words else ""))


def _figures(known: object, out: TextIO) -> None:
    rows = []
    for place, figure in figures(known):
        spread = f"{figure.smallest:,.6g} – {figure.largest:,.6g}" if figure.smallest != figure.largest else ""
        rows.append((place, f"{figure.value:,.6g}", spread, figure.source))
    used = {row[3] for row in rows}
    out.write("\n" + "\n".join(columns(("figure", "value", "range", "source"), rows, align="<>><", limits={})) + "\n\n")
    for key, text in getattr(known, "sources", {}).items():
        if key in used:
            out.write(f"{key}: {text}\n")
