"""Text for terminals: aligned columns, cut to fit and safe against whatever names a file holds; bars; colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from ...core.errors import printable
from ...core.units import UNKNOWN, format_percent
from ...recording.unknown import UnknownOp, how_many, named

if TYPE_CHECKING:
    from ...estimate.battery import BatteryLife
    from ...recording.resources import MemoryStack, Totals

_BAR = "█"
_MARKS = "/:;|"  # between the words of a name
_PARTS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_COLOURS = {  # meaning of a word → its colour, as a code of ANSI terminals
    "strong": "1",
    "faint": "2",
    "good": "32",
    "bad": "1;31",
    "compute": "34",
    "memory": "35",
    "link": "36",
    "host-link": "96",
    "wait": "33",
    "layout": "32",
    "launch": "31",
    "host": "91",
    "unknown": "2",
}


@dataclass(frozen=True, slots=True)
class Style:
    """Writes words in the colour of their meaning; without colour it leaves them as they are."""

    colour: bool = False

    def __call__(self, text: str, meaning: str) -> str:
        return f"\x1b[{_COLOURS[meaning]}m{text}\x1b[0m" if self.colour and text and meaning in _COLOURS else text


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str, limits: dict[int, int]) -> list[str]:
    """Lines of a table. `align` has < or > per column; `limits` caps the width of columns that hold names."""
    table = (header, *rows)
    fitted = [fit_names([row[i] for row in table], limits.get(i)) for i in range(len(header))]
    cells = list(zip(*fitted, strict=True))
    widths = [max(_width(row[i]) for row in cells) for i in range(len(header))]
    lines = ["  ".join(_pad(cell, widths[i], align[i]) for i, cell in enumerate(row)).rstrip() for row in cells]
    return [lines[0], "  ".join("─" * width for width in widths), *lines[1:]]


def pairs(rows: Sequence[tuple[str, str]], *, indent: str = "  ") -> list[str]:
    """Lines of `name  value`, values aligned."""
    width = max(len(name) for name, _ in rows)
    return [f"{indent}{name:<{width}}  {value}" for name, value in rows]


def bar(share: float, width: int) -> str:
    """A horizontal bar of that share of the width, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return _BAR * (eighths // 8) + _PARTS[eighths % 8]


def fit_names(texts: Sequence[str], limit: int | None) -> list[str]:
    """Texts of one column, none wider than `limit`; texts that differ look different."""
    clean = [printable(text, 4096) for text in texts]
    if limit is None:
        return clean
    fitted = _distinct({text: _cut(text, limit) for text in dict.fromkeys(clean)}, limit)
    return [fitted[text] for text in clean]


def _cut(text: str, limit: int) -> str:
    """Long names lose their middle: both ends of a path tell more than one."""
    return text if _width(text) <= limit else _ends(text, limit // 3, limit)


def _ends(text: str, head: int, limit: int) -> str:
    return _start(text, head) + "…" + _start(text[::-1], limit - head - 1)[::-1]


def _distinct(shown: dict[str, str], limit: int) -> dict[str, str]:
    """Cut those that look alike in another place, then number those that still do."""
    for alike in _alike(shown):
        shown |= _around_difference(alike, limit)
    return shown | _numbered([text for alike in _alike(shown) for text in alike], limit)


def _alike(shown: dict[str, str]) -> list[list[str]]:
    """Groups of texts that look the same when cut."""
    groups: dict[str, list[str]] = {}
    for text, cut in shown.items():
        groups.setdefault(cut, []).append(text)
    return [texts for texts in groups.values() if len(texts) > 1]


def _around_difference(texts: Sequence[str], limit: int) -> dict[str, str]:
    """Keep what tells them apart, from the word that it stands in, and as much of the end as there is room for.

    `/layers/layers.2/conv/relu` and `/layers/layers.3/conv/relu` become `…layers.2/…/relu` and `…layers.3/…/relu`.
    """
    same, behind = _common(texts), _common([text[::-1] for text in texts])
    same = max(0, *(texts[0].rfind(mark, 0, same) + 1 for mark in _MARKS)) if same <= limit // 2 else same - limit // 4
    found = {}
    for text in texts:
        differs = max(1, len(text) - behind - same)
        left = text[same:]
        inner = limit - 1 if same else limit
        head = min(differs, inner - 2)
        found[text] = ("…" if same else "") + (left if _width(left) <= inner else _ends(left, head, inner))
    return found


def _common(texts: Sequence[str]) -> int:
    """Characters with which all begin: those of the first and the last in alphabetical order."""
    first, last = min(texts), max(texts)
    return next((n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))


def _numbered(texts: Sequence[str], limit: int) -> dict[str, str]:
    """Those that differ in too many places to show all of them are counted."""
    width = len(str(len(texts))) + 1
    return {text: f"{_cut(text, limit - width)}#{number}" for number, text in enumerate(texts, start=1)}


def _start(text: str, width: int) -> str:
    """As much of a text as fits; a wide character takes two columns."""
    while _width(text[:width]) > width:
        text = text[: min(len(text), width) - 1]
    return text[:width]


def _width(text: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text) if not text.isascii() else len(text)


def _pad(text: str, width: int, side: str) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if side == ">" else text + blanks


def battery_line(life: BatteryLife) -> str:
    """How long it lasts, how much of the time is work, and what is not counted."""
    what = f"{life.battery} at {life.duty}"
    if life.seconds is None or life.watts is None:
        return f"{UNKNOWN}  {what}: the energy of an inference is not known"
    low, value, high = (
        f"{seconds / 86400:,.3g}" for seconds in (life.seconds.low, life.seconds.value, life.seconds.high)
    )
    still = "; power between inferences is not known and not counted" if life.sleep_watts is None else ""
    least = "at most " if life.sleep_watts is None else ""
    use = f"busy {format_percent(life.busy_share)} of the time, {life.watts * 1e3:.3g} mW"
    return f"{least}{value} days  (range {low} – {high})  {what}, {use}{still}"


def at_least(of: Totals | MemoryStack) -> str:
    """Before a number that is only the known part of what there is."""
    return "at least " if of.is_lower_bound else ""


def unknown_lines(unknown: Sequence[UnknownOp], of: int) -> list[str]:
    """The one block in which ops without a known cost are named; nothing where every cost is known."""
    if not unknown:
        return []
    head = f"{how_many(unknown, of)}; times, MACs and bytes are of the others:"
    return [head, *(f"  {printable(line, 300)}" for line in named(unknown))]


def with_origin(name: str, module: str, line: str) -> str:
    """An op with the user's code that it comes from: `node_linear in layers.0.attention (net.py:12)`."""
    place = f" ({line.rpartition('/')[2]})" if line else ""
    return f"{name}{f' in {module}' if module else ''}{place}"
