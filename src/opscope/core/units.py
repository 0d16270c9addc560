"""Units as types, and the one way each is printed and parsed."""

from __future__ import annotations

import re
from typing import NewType

from .errors import UsageError

Bytes = NewType("Bytes", int)
Cycles = NewType("Cycles", float)

UNKNOWN = "—"
LARGEST = 1 << 62  # ns, bytes or samples; nothing that runs has more

_SIZE_UNITS = {"": 1, "B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}
_TIME_UNITS = {"S": 1.0, "MS": 1e-3, "US": 1e-6, "NS": 1e-9}
_ENERGY_UNITS = {"J": 1.0, "MJ": 1e-3, "UJ": 1e-6, "NJ": 1e-9}


def format_bytes(size: float | None) -> str:
    """1 KB is 1024 bytes, as in every vendor's report."""
    if size is None:
        return UNKNOWN
    for unit, step in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if abs(size) >= step:
            return f"{size / step:,.2f} {unit}"
    return f"{size:,.0f} B"


def format_seconds(seconds: float | None) -> str:
    return _with_prefix(seconds, "s", 3)


def format_ns(ns: float | None) -> str:
    return format_seconds(None if ns is None else ns / 1e9)


def format_latency(value_ns: float | None, low_ns: float | None, high_ns: float | None) -> str:
    """`2.18 ms (2.05 ms – 2.31 ms)`; without a value but with a low end, `at least 2.05 ms`."""
    low, high = format_ns(low_ns), format_ns(high_ns)
    if value_ns is None:
        return UNKNOWN if low_ns is None else f"at least {low}"
    text = format_ns(value_ns)
    return text if UNKNOWN in (low, high) or low == high else f"{text} ({low} – {high})"


def format_joules(joules: float | None) -> str:
    return _with_prefix(joules, "J", 4)


def _with_prefix(value: float | None, unit: str, digits: int) -> str:
    """In units of one, a thousandth, a millionth or a thousand-millionth."""
    if value is None:
        return UNKNOWN
    for prefix, step in (("", 1.0), ("m", 1e-3), ("u", 1e-6)):
        if abs(value) >= step:
            return f"{format_digits(value / step, digits)} {prefix}{unit}"
    return f"{format_digits(value * 1e9, digits)} n{unit}"


def format_digits(value: float, digits: int = 3) -> str:
    """So many significant digits, but never an exponent: 1,234 rather than 1.23e+03."""
    whole = abs(value) >= 10 ** (digits - 1)
    return f"{value:,.0f}" if whole else f"{value:,.{digits}g}"


def format_count(count: float | None) -> str:
    return UNKNOWN if count is None else f"{count:,.0f}"


def format_counted(count: int, word: str) -> str:
    """`1 op`, `2,000 ops`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def format_percent(share: float | None, digits: int = 1) -> str:
    return UNKNOWN if share is None else f"{100 * share:.{digits}f}%"


def parse_size(text: str) -> int:
    return round(_parse(text, _SIZE_UNITS, "a size such as 512KB or 1.5MB"))


def parse_seconds(text: str) -> float:
    return _parse(text, _TIME_UNITS, "a time such as 20ms or 1.5s")


def parse_joules(text: str) -> float:
    return _parse(text, _ENERGY_UNITS, "an energy such as 1mJ or 250uJ")


def parse_hertz(text: str) -> float:
    return _parse(text, {"HZ": 1.0, "KHZ": 1e3, "MHZ": 1e6, "GHZ": 1e9}, "a clock such as 120MHz")


def parse_share(text: str) -> float:
    return _parse(text, {"%": 0.01}, "a share such as 10%")


def _parse(text: str, units: dict[str, float] | dict[str, int], expected: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ%]*)\s*", text)
    if match is None or match[2].upper().replace("µ", "U").replace("Μ", "U") not in units:
        raise UsageError(f"{text!r}: not understood; expected {expected}")
    return float(match[1]) * units[match[2].upper().replace("µ", "U").replace("Μ", "U")]
