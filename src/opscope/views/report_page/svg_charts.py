"""Charts as SVG text: numbers in, markup out. Colours are CSS classes, so that a page can theme them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log, log10

WIDTH = 900
MOST_COLUMNS = 360  # more would be thinner than a pointer can hit
GROUPED_COLUMNS = 240  # where neighbours share a column, each holds several colours: fewer keep the page small


@dataclass(frozen=True, slots=True)
class Caption:
    """What a chart is called and what it shows, for readers who do not see it."""

    key: str  # unique in the page
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a stacked bar."""

    label: str
    value: float
    css: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One column of a bar chart, its parts stacked from the ground up."""

    tip: str
    parts: tuple[tuple[str, float], ...]  # CSS class, value

    @property
    def height(self) -> float:
        return sum(value for _, value in self.parts)


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line across a chart."""

    label: str
    value: float
    css: str


@dataclass(frozen=True, slots=True)
class Area:
    """A value that holds for a number of steps."""

    tip: str
    value: float


@dataclass(frozen=True, slots=True)
class Frame:
    """The plotting area inside a chart."""

    height: int
    left: int = 74
    right: int = 14
    top: int = 16
    bottom: int = 42

    @property
    def inner_width(self) -> int:
        return WIDTH - self.left - self.right

    @property
    def inner_height(self) -> int:
        return self.height - self.top - self.bottom

    @property
    def ground(self) -> int:
        return self.height - self.bottom


def svg(caption: Caption, height: float, body: Iterable[str], *, css: str = "chart", stretched: bool = False) -> str:
    """An image with a name and a description; a stretched one fills its box whatever that does to its shape."""
    key = escape(caption.key)
    box = f'viewBox="0 0 {WIDTH} {number(height)}"' + (' preserveAspectRatio="none"' if stretched else "")
    return (
        f'<svg class="{css}" {box} role="img" aria-labelledby="{key}-t {key}-d">'
        f'<title id="{key}-t">{escape(caption.title)}</title><desc id="{key}-d">{escape(caption.description)}</desc>'
        f"{''.join(body)}</svg>"
    )


def number(value: float) -> str:
    """A coordinate: one digit after the point, no trailing zero."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, css: str, *, anchor: str = "start") -> str:
    return f'<text x="{number(x)}" y="{number(y)}" class="{css}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" class="{css}"/>'


def tooltip(words: str) -> str:
    return f"<title>{escape(words, quote=False)}</title>"


def ticks(top: float, *, base: int = 1000, wanted: int = 4) -> list[float]:
    """Round values from 0 to `top`, about `wanted` of them; base 1024 for bytes."""
    if top <= 0:
        return [0.0]
    unit = float(base) ** floor(log(top, base))
    rough = top / unit / wanted
    decade = 10.0 ** floor(log10(rough))
    step = unit * next(m * decade for m in (1, 2, 5, 10) if m * decade >= rough * 0.999)
    if base == 1024:
        step = unit * 2.0 ** round(log(rough, 2))
    return [i * step for i in range(floor(top / step + 1e-9) + 1)]


def buckets(count: int) -> list[range]:
    """Neighbours that share a column, so that there are never too many columns."""
    size = 1 if count <= MOST_COLUMNS else ceil(count / GROUPED_COLUMNS)
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def stacked_bar(caption: Caption, segments: Sequence[Segment], *, height: int = 34) -> str:
    """Parts of a whole on one line."""
    total = sum(segment.value for segment in segments)
    body, x = [], 0.0
    for segment in segments:
        width = WIDTH * segment.value / total if total else 0.0
        body.append(
            f'<rect x="{x:.2f}" y="0" width="{max(width, 0.0):.2f}" height="{height}" class="{segment.css}">'
            f"{tooltip(segment.label)}</rect>"
        )
        x += width
    return svg(caption, height, body, css="chart bar", stretched=True)


def bar_chart(
    caption: Caption, bars: Sequence[Bar], indices: Sequence[int], *, label: Callable[[float], str], axis: str
) -> str:
    """One column per bar; `indices` are the numbers written under them."""
    frame = Frame(260)
    top = max((bar.height for bar in bars), default=0.0) * 1.04
    slot = frame.inner_width / max(1, len(bars))
    gap = min(2.0, slot * 0.18)
    body = [*_horizontal_grid(frame, top, 1000, label), *_index_axis(frame, indices, axis)]
    for position, bar in enumerate(bars):
        x = frame.left + position * slot
        rects, y = [], float(frame.ground)
        for css, value in bar.parts:
            size = frame.inner_height * value / top if top else 0.0
            y -= size
            rects.append(
                f'<rect x="{x + gap / 2:.2f}" y="{y:.2f}" width="{slot - gap:.2f}" height="{size:.2f}" class="{css}"/>'
            )
        rects.append(_hit(x, slot, frame))
        body.append(f"<g>{tooltip(bar.tip)}{''.join(rects)}</g>")
    return svg(caption, frame.height, body)


def area_chart(
    caption: Caption,
    steps: Sequence[Area],
    indices: Sequence[int],
    *,
    levels: Sequence[Level],
    peak: tuple[int, str] | None,
    label: Callable[[float], str],
    axis: str,
) -> str:
    """Values that hold step by step, with lines to compare them with and the highest one marked."""
    frame = Frame(280)
    top = max([step.value for step in steps] + [level.value for level in levels], default=0.0) * 1.1
    slot = frame.inner_width / max(1, len(steps))

    def y(value: float) -> float:
        return frame.ground - (frame.inner_height * value / top if top else 0.0)

    path = "".join(f"V{number(y(step.value))}h{slot:.3f}" for step in steps)
    body = [*_horizontal_grid(frame, top, 1024, label), *_index_axis(frame, indices, axis)]
    body.append(f'<path class="area" d="M{frame.left} {frame.ground}{path}V{frame.ground}Z"/>')
    peak_right = peak is not None and peak[0] > 0.6 * len(steps)
    body += [part for level in levels for part in _level(frame, level, y(level.value), names_left=peak_right)]
    for position, step in enumerate(steps):
        body.append(f"<g>{tooltip(step.tip)}{_hit(frame.left + position * slot, slot, frame)}</g>")
    if peak is not None:
        position, words = peak
        x, top_y = frame.left + (position + 0.5) * slot, y(steps[position].value)
        body += _peak_mark(x, top_y, words, to_left=peak_right, avoid=[y(level.value) for level in levels])
    return svg(caption, frame.height, body)


def _hit(x: float, width: float, frame: Frame) -> str:
    """An invisible column that shows the tooltip wherever the pointer is above or below the drawn part."""
    return f'<rect x="{x:.2f}" y="{frame.top}" width="{width:.2f}" height="{frame.inner_height}" class="hit"/>'


def _horizontal_grid(frame: Frame, top: float, base: int, label: Callable[[float], str]) -> Iterable[str]:
    for value in ticks(top, base=base):
        y = frame.ground - (frame.inner_height * value / top if top else 0.0)
        yield line(frame.left, y, WIDTH - frame.right, y, "grid" if value else "axis")
        yield text(frame.left - 8, y + 4, label(value) if value else "0", "tick", anchor="end")


def _index_axis(frame: Frame, indices: Sequence[int], axis: str) -> Iterable[str]:
    every = max(1, ceil(len(indices) / 12))
    slot = frame.inner_width / max(1, len(indices))
    for position in range(0, len(indices), every):
        x = frame.left + (position + 0.5) * slot
        yield text(x, frame.ground + 16, str(indices[position]), "tick", anchor="middle")
    yield text(frame.left + frame.inner_width / 2, frame.height - 6, axis, "axis-name", anchor="middle")


def _level(frame: Frame, level: Level, y: float, *, names_left: bool) -> Iterable[str]:
    yield line(frame.left, y, WIDTH - frame.right, y, f"level {level.css}")
    x, anchor = (frame.left + 4, "start") if names_left else (WIDTH - frame.right - 4, "end")
    yield text(x, y - 5, level.label, "note", anchor=anchor)


def _peak_mark(x: float, y: float, words: str, *, to_left: bool, avoid: Sequence[float]) -> Iterable[str]:
    """A dot and its name, above any line that would run through the name."""
    name_y = y - 8
    for level in sorted(avoid, reverse=True):
        if name_y - 14 < level < name_y + 4:
            name_y = level - 5
    yield f'<circle cx="{number(x)}" cy="{number(y)}" r="4.5" class="peak"/>'
    yield text(
        x + (-10 if to_left else 10), max(name_y, 12), words, "note strong", anchor="end" if to_left else "start"
    )
