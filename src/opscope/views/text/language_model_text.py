"""A language model at every point that was asked for: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TextIO

from ...core.errors import printable
from ...core.units import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_counted,
    format_digits,
    format_joules,
    format_latency,
    format_percent,
)
from ...recording.language_model import LanguageModel, Ranged, TokenPoint, scaled
from ..markdown import safe
from ..table import LEFT, Column, known_columns, markdown_table, text_table

_Column = Column[TokenPoint]


def time_text(found: Ranged | None) -> str:
    """`12.4 ms (10.1 ms – 15.0 ms)`"""
    if found is None:
        return UNKNOWN
    low, high = (None if end is None else end * 1e6 for end in (found.low, found.high))
    return format_latency(found.value * 1e6, low, high)


def rate_text(found: Ranged | None) -> str:
    """`41.2 (35 – 48.1)`"""
    if found is None:
        return UNKNOWN
    value, *ends = (None if part is None else format_digits(part) for part in _parts(found))
    return f"{value} ({ends[0]} – {ends[1]})" if None not in ends and ends[0] != ends[1] else str(value)


def energy_text(found: Ranged | None) -> str:
    if found is None:
        return UNKNOWN
    value, low, high = (format_joules(None if part is None else part * 1e-3) for part in _parts(found))
    return value if UNKNOWN in (low, high) or low == high else f"{value} ({low} – {high})"


def fits_text(point: TokenPoint) -> str:
    """`yes, 41%`, `no, 1.7 × 32.00 GB`; weights and cache alone may fit, and a step need more."""
    need, capacity = point.needed_bytes, point.capacity_bytes
    if point.fits is None:
        return UNKNOWN
    if need is None or not capacity:
        return "yes" if point.fits else "no"
    share = need / capacity
    if point.fits:
        return f"yes, {format_percent(share, 0)}"
    return (
        f"no, {share:.3g} × {format_bytes(capacity)}" if share > 1 else f"no, {format_percent(share, 0)} before a step"
    )


def head_line(found: LanguageModel) -> str:
    """`llama-3.1-8b on aic100-ultra, 4 devices (1 card), weights mxfp6, cache mxint8, tensor parallel – estimated`"""
    kinds = ", ".join(dict.fromkeys(point.provenance for point in found.points))
    devices = "" if found.devices is None else f", {format_counted(found.devices, 'device')}"
    cards = f" ({format_counted(found.cards, 'card')})" if found.cards is not None else ""
    words = [f"weights {found.weights}"] * bool(found.weights) + [f"cache {found.kv}"] * bool(found.kv)
    words += [f"{found.parallel} parallel"] * bool(found.parallel not in ("", "auto") and (found.devices or 1) > 1)
    return f"{found.model} on {found.target}{devices}{cards}{''.join(f', {word}' for word in words)} – {kinds}"


def tables(found: LanguageModel) -> Iterator[tuple[str, list[_Column], list[TokenPoint]]]:
    """Heading, columns in which anything is known, and rows: each batch, prompt and context once in a table."""
    points = list(found.points)
    for heading, heads, key in (
        ("TIMES", _times(found), lambda point: (point.batch, point.prompt, point.context)),
        ("MEMORY AND ENERGY", _memory(), lambda point: (point.batch, point.context)),
    ):
        rows = list({key(point): point for point in reversed(points)}.values())[::-1]
        kept = known_columns(heads, rows)
        if any(column.head not in (*_WHERE, "fits") for column in kept):
            yield heading, kept, rows


_WHERE = ("batch", "prompt", "context")


def _where(*names: str) -> list[_Column]:
    return [_Column(name, partial(_tokens, name)) for name in names]


def _tokens(name: str, point: TokenPoint) -> str:
    return format_count(getattr(point, name))


def _times(found: LanguageModel) -> list[_Column]:
    parts = {1: "tokens/s"}
    for count, head in ((found.devices, "tokens/s/device"), (found.cards, "tokens/s/card")):
        parts.setdefault(count or 1, head)  # of one device, the rate is that of the card and of all
    several = [_Column(head, partial(_rate_of, parts=count)) for count, head in parts.items()]
    return [
        *_where(*_WHERE),
        _Column("first token (TTFT)", lambda point: time_text(point.ttft_ms)),
        _Column("prompt bound", lambda point: point.bound_prefill or UNKNOWN, LEFT),
        _Column("next token (TPOT)", lambda point: time_text(point.tpot_ms)),
        _Column("decode bound", lambda point: point.bound_decode or UNKNOWN, LEFT),
        _Column("tokens/s/user", lambda point: rate_text(point.decode_tokens_per_s_per_user)),
        *several,
    ]


def _rate_of(point: TokenPoint, *, parts: int) -> str:
    return rate_text(scaled(point.decode_tokens_per_s, 1 / parts))


def _memory() -> list[_Column]:
    return [
        *_where("batch", "context"),
        _Column("weights", lambda point: format_bytes(point.weight_bytes)),
        _Column("KV cache", lambda point: format_bytes(point.kv_bytes)),
        _Column("of", lambda point: format_bytes(point.capacity_bytes)),
        _Column("fits", fits_text, LEFT),
        _Column("energy/token", lambda point: energy_text(point.energy_per_token_mj)),
        _Column("decode, by block", lambda point: shares_text(point.shares_decode), LEFT),
    ]


def shares_text(shares: Mapping[str, float]) -> str:
    """`feed-forward 61%, attention 30%`, largest first."""
    found = sorted(shares.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{block} {format_percent(share, 0)}" for block, share in found if share >= 0.005) or UNKNOWN


def words_below(found: LanguageModel) -> Iterator[str]:
    """What fits at the most, and what was taken for granted."""
    if found.largest:
        words = "; ".join(f"batch {each.batch:,} × context {each.context:,}" for each in found.largest)
        yield f"largest that fits: {words}"
    elif any(point.fits is False for point in found.points):
        yield "nothing fits: the weights alone are larger than the memory"
    outside = sum(point.fits is False for point in found.points)
    if outside:
        points = format_counted(len(found.points), "point")
        yield f"{outside} of {points} do not fit: their times are those of a larger memory"
    yield from found.notes


class LanguageModelText:
    """For a terminal."""

    def render(self, found: LanguageModel, out: TextIO) -> None:
        words = [printable(line, 1000) for line in words_below(found)]
        print("\n".join([printable(head_line(found), 300), "", *table_lines(found), *words]), file=out)


def table_lines(found: LanguageModel) -> list[str]:
    """Every table, with a heading before it and a blank line behind it."""
    lines = []
    for heading, kept, points in tables(found):
        lines += [heading, *text_table(kept, points), ""]
    return lines


class LanguageModelMarkdown:
    """For a page or a comment."""

    def render(self, found: LanguageModel, out: TextIO) -> None:
        print(f"## {safe(head_line(found))}", file=out)
        for heading, kept, points in tables(found):
            print("", f"### {heading.capitalize()}", "", *markdown_table(kept, points), sep="\n", file=out)
        for words in words_below(found):
            print(f"\n{safe(words)}", file=out)


def _parts(found: Ranged) -> Sequence[float | None]:
    return found.value, found.low, found.high
