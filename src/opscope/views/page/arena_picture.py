"""The arena of a report as an SVG picture: steps from left to right, bytes upwards, a rectangle per block."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TextIO

from ...core.errors import printable
from ...core.units import format_bytes
from ...estimate.memory import ArenaBlock, BlockKind
from ...estimate.report import Report

_WIDTH, _HEIGHT = 900, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 16, 44, 56  # around the plot
_LINES = 4  # across it
_MOST_NUMBERS = 40  # of steps below it
_CHARACTER, _LINE = 7.2, 14  # of a label, in pixels
# Colours that are told apart by eyes of all kinds (Okabe and Ito), on light and on dark ground.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_WITH_WHITE = ("#0072b2", "#009e73", "#d55e00")  # of them, those that are dark enough for white letters
_STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1b1f24; }
.quiet { fill: #57606a; }
.line { stroke: #d0d7de; }
.block { stroke: #ffffff; stroke-width: 1; fill-opacity: .85; }
.kept { fill: #8c959f; }
.scratch { fill: url(#hatch); }
.label { fill: #10141a; pointer-events: none; }
.on-dark { fill: #ffffff; }
.ground { fill: #ffffff; }
.hatching { stroke: #57606a; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .label { fill: #10141a; }
  .on-dark { fill: #ffffff; }
  .quiet { fill: #9198a1; }
  .line { stroke: #3d444d; }
  .block { stroke: #0d1117; }
  .ground { fill: #0d1117; }
  .hatching { stroke: #9198a1; }
}
"""


class ArenaPicture:
    """Who lies where in RAM, and when."""

    suffix = ".svg"

    def render(self, report: Report, out: TextIO) -> None:
        out.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" role="img">\n<title>{_text(_title(report))}</title>\n<style>\n{_STYLE}</style>\n'
            '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line class="hatching" y2="6" stroke-width="3"/></pattern></defs>\n'
            f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}"/>\n'
        )
        for element in (*_frame(report), *_blocks(report)):
            out.write(element + "\n")
        out.write("</svg>\n")


def _title(report: Report) -> str:
    peak = format_bytes(report.memory.peak_bytes)
    least = "at least " if report.memory.is_lower_bound else ""
    return f"{report.model.name} on {report.target.name}: {least}{peak} of RAM, {report.memory.planner}"


def _across(step: float, report: Report) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / max(report.arena_steps, 1)


def _up(address: float, report: Report) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * address / max(report.memory.peak_bytes, 1)


def _frame(report: Report) -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="24">{_text(_title(report))}</text>'
    for line in range(_LINES + 1):
        address = report.memory.peak_bytes * line / _LINES
        y = _up(address, report)
        yield f'<line class="line" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        shown = format_bytes(round(address))
        yield f'<text class="quiet" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>'
    every = max(1, -(-report.arena_steps // _MOST_NUMBERS))
    for step in range(0, report.arena_steps, every):
        x = _across(step + 0.5, report)
        yield f'<text class="quiet" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{step}</text>'
    what = "operator of the file" if report.memory.runtime_parts else "layer"
    yield f'<text class="quiet" x="{_LEFT}" y="{_HEIGHT - 14}">{what}; hatched: scratch of kernels; grey: kept</text>'


def _blocks(report: Report) -> Iterator[str]:
    for number, block in enumerate(report.arena):
        x, top = _across(block.first, report), _up(block.address + block.size_bytes, report)
        width = _across(block.last + 1, report) - x
        height = _up(block.address, report) - top
        chosen = _COLOURS[number % len(_COLOURS)] if block.kind is BlockKind.TENSOR else ""
        colour = f' fill="{chosen}"' if chosen else ""
        kind = "" if block.kind is BlockKind.TENSOR else f" {block.kind}"
        yield (
            f'<rect class="block{kind}"{colour} x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{_text(_about(block))}</title></rect>"
        )
        if height >= _LINE and block.kind is not BlockKind.SCRATCH:
            letters = int((width - 8) / _CHARACTER)
            label = _short(f"{block.name} {format_bytes(block.size_bytes)}", letters)
            if label:
                ink = "label on-dark" if chosen in _WITH_WHITE else "label"
                yield f'<text class="{ink}" x="{x + 4:.1f}" y="{top + height / 2 + 4:.1f}">{_text(label)}</text>'


def _about(block: ArenaBlock) -> str:
    when = f"from {block.first} to {block.last}"
    return f"{block.name}: {format_bytes(block.size_bytes)} at {block.address:,}, {when}"


def _short(text: str, letters: int) -> str:
    """The end of a long name, which tells most; nothing where next to none of it has room."""
    if len(text) <= letters:
        return text
    return "…" + text[len(text) - letters + 1 :] if letters >= len("… 7.81 KB") else ""


def _text(text: str) -> str:
    return escape(printable(text, 300))
