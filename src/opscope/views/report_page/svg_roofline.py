"""The roofline chart: what each layer reaches, under what the engines and the memories allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import atan2, ceil, cos, degrees, floor, log10, sin, sqrt

from .svg_charts import WIDTH, Caption, Frame, line, number, svg, text, tooltip

MOST_POINTS = 400
_LARGEST_RADIUS = 17.0
_SMALLEST_RADIUS = 2.5
_STRIP = 96  # width kept at the right for layers that move nothing through the outer memory
_FEWEST_DECADES = 1.6
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that an engine can do, in MACs per second."""

    label: str
    macs_per_second: float
    reached: bool = False  # drawn dashed: the share of the peak that is reached in practice


@dataclass(frozen=True, slots=True)
class Slope:
    """The most that a memory can feed, in bytes per second."""

    label: str
    bytes_per_second: float
    reached: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One layer. `macs_per_byte` is None for a layer that moves nothing through the outer memory."""

    tip: str
    macs_per_byte: float | None
    macs_per_second: float
    share: float  # of the time
    css: str
    layers: int = 1


@dataclass(frozen=True, slots=True)
class _Scales:
    """Decades to pixels, both ways logarithmic."""

    frame: Frame
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @property
    def right(self) -> float:
        return WIDTH - self.frame.right - _STRIP

    @property
    def beside(self) -> float:
        """Where points without outer traffic stand."""
        return self.right + _STRIP * 0.6

    def x(self, value: float) -> float:
        return self.frame.left + (self.right - self.frame.left) * (log10(value) - self.x_low) / (
            self.x_high - self.x_low
        )

    def y(self, value: float) -> float:
        return self.frame.ground - self.frame.inner_height * (log10(value) - self.y_low) / (self.y_high - self.y_low)


def roofline_chart(
    caption: Caption, points: Sequence[Point], ceilings: Sequence[Ceiling], slopes: Sequence[Slope], *, axis: str
) -> str:
    """Points under their roofs; the area of a point is its share of the time."""
    scales = _scales(points, ceilings, slopes)
    body = [
        *_grid(scales, axis),
        *(_slope(scales, slope, ceilings) for slope in slopes),
        *(_ceiling(scales, ceiling, slopes) for ceiling in ceilings),
        *_points(scales, points),
        *(_slope_name(scales, slope, ceilings) for slope in slopes if not slope.reached),
        *(_ceiling_name(scales, ceiling) for ceiling in ceilings),
    ]
    return svg(caption, scales.frame.height, body)


def _scales(points: Sequence[Point], ceilings: Sequence[Ceiling], slopes: Sequence[Slope]) -> _Scales:
    xs = [p.macs_per_byte for p in points if p.macs_per_byte]
    ys = [p.macs_per_second for p in points] + [c.macs_per_second for c in ceilings]
    highest = max(c.macs_per_second for c in ceilings)
    xs += [highest / slope.bytes_per_second for slope in slopes]  # where the roofs meet
    x_high, y_high = log10(max(xs)) + 0.35, log10(max(ys)) + 0.3
    x_low = min(log10(min(xs)) - 0.25, x_high - _FEWEST_DECADES)
    y_low = min(log10(min(ys)) - 0.25, y_high - _FEWEST_DECADES)
    return _Scales(Frame(430, bottom=46), x_low, x_high, y_low, y_high)


def _grid(scales: _Scales, axis: str) -> Iterable[str]:
    frame = scales.frame
    yield line(frame.left, frame.ground, WIDTH - frame.right, frame.ground, "axis")
    yield line(scales.right, frame.top, scales.right, frame.ground, "divide")
    for value in _marks(scales.y_low, scales.y_high):
        yield line(frame.left, scales.y(value), WIDTH - frame.right, scales.y(value), "grid")
        yield text(frame.left - 8, scales.y(value) + 4, scaled(value), "tick", anchor="end")
    for value in _marks(scales.x_low, scales.x_high):
        yield line(scales.x(value), frame.top, scales.x(value), frame.ground, "grid")
        yield text(scales.x(value), frame.ground + 16, f"{value:,g}", "tick", anchor="middle")
    middle = (frame.left + scales.right) / 2
    yield text(middle, frame.height - 6, axis, "axis-name", anchor="middle")
    yield text(scales.beside, frame.ground + 16, "no outer", "tick", anchor="middle")
    yield text(scales.beside, frame.ground + 30, "traffic", "tick", anchor="middle")
    up = f'transform="rotate(-90 14 {frame.top + frame.inner_height / 2:.0f})"'
    yield (
        f'<text x="14" y="{frame.top + frame.inner_height / 2:.0f}" class="axis-name" text-anchor="middle" {up}>'
        "MAC/s reached</text>"
    )


def _marks(low: float, high: float) -> list[float]:
    """Powers of ten; with few of them, their doubles and fives too."""
    digits = (1, 2, 5) if high - low < 3 else (1,)
    values = [digit * 10.0**decade for decade in range(floor(low), ceil(high) + 1) for digit in digits]
    return [value for value in values if low <= log10(value) <= high]


def _ends(scales: _Scales, slope: Slope, ceilings: Sequence[Ceiling]) -> tuple[float, float, float, float]:
    """From the left or bottom edge up to the highest roof."""
    rate = slope.bytes_per_second
    roof = max(c.macs_per_second for c in ceilings if not c.reached)
    start = max(10.0**scales.x_low, 10.0**scales.y_low / rate)
    return scales.x(start), scales.y(start * rate), scales.x(roof / rate), scales.y(roof)


def _slope(scales: _Scales, slope: Slope, ceilings: Sequence[Ceiling]) -> str:
    return line(*_ends(scales, slope, ceilings), "roof reached" if slope.reached else "roof")


def _slope_name(scales: _Scales, slope: Slope, ceilings: Sequence[Ceiling]) -> str:
    """Written along the line, above it."""
    x1, y1, x2, y2 = _ends(scales, slope, ceilings)
    angle = atan2(y2 - y1, x2 - x1)
    x, y = x1 + (x2 - x1) * 0.06 + 8 * sin(angle), y1 + (y2 - y1) * 0.06 - 8 * cos(angle)
    turn = f' transform="rotate({degrees(angle):.1f} {number(x)} {number(y)})">'
    return text(x, y, slope.label, "note").replace(">", turn, 1)


def _ceiling(scales: _Scales, ceiling: Ceiling, slopes: Sequence[Slope]) -> str:
    """From where the steepest memory reaches it to the right edge."""
    fastest = max(slope.bytes_per_second for slope in slopes)
    start = max(ceiling.macs_per_second / fastest, 10.0**scales.x_low)
    y = scales.y(ceiling.macs_per_second)
    return line(scales.x(start), y, WIDTH - scales.frame.right, y, "roof reached" if ceiling.reached else "roof")


def _ceiling_name(scales: _Scales, ceiling: Ceiling) -> str:
    y = scales.y(ceiling.macs_per_second) + (14 if ceiling.reached else -6)
    return text(scales.right - 6, y, ceiling.label, "note", anchor="end")


def _points(scales: _Scales, points: Sequence[Point]) -> Iterable[str]:
    placed = [(scales.beside if p.macs_per_byte is None else scales.x(p.macs_per_byte), p) for p in points]
    largest = max((point.share for point in points), default=0.0)
    for x, point in sorted(placed, key=lambda item: -item[1].share):  # small ones on top
        radius = max(_SMALLEST_RADIUS, _LARGEST_RADIUS * sqrt(point.share / largest)) if largest else _SMALLEST_RADIUS
        yield (
            f'<circle cx="{number(x)}" cy="{number(scales.y(point.macs_per_second))}" r="{number(radius)}" '
            f'class="point {point.css}">{tooltip(point.tip)}</circle>'
        )


def scaled(value: float) -> str:
    """A rate with its SI prefix: 4.1 T, 12 G."""
    for step, prefix in _PREFIXES:
        if value >= step:
            return f"{value / step:,.3g} {prefix}".strip()
    return f"{value:.3g}"
