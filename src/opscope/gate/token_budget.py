"""`ttft=500ms,tpot=50ms` against a language model: every point that was asked for has to keep every limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..core.units import (
    format_bytes,
    format_joules,
    format_percent,
    format_seconds,
    parse_joules,
    parse_seconds,
    parse_size,
)
from ..recording.language_model import LanguageModel, Ranged, TokenPoint
from .budget import parse_limits
from .verdict import Check, Verdict


class _Quantity(NamedTuple):
    parse: Callable[[str], float]
    show: Callable[[float], str]
    measure: Callable[[TokenPoint], float | None]


def _value(found: Ranged | None) -> float | None:
    """Thousandths of a second, or of a joule, in whole ones."""
    return None if found is None else found.value * 1e-3


QUANTITIES = {
    "ttft": _Quantity(parse_seconds, format_seconds, lambda point: _value(point.ttft_ms)),
    "tpot": _Quantity(parse_seconds, format_seconds, lambda point: _value(point.tpot_ms)),
    "memory": _Quantity(parse_size, format_bytes, lambda point: point.needed_bytes),
    "energy": _Quantity(parse_joules, format_joules, lambda point: _value(point.energy_per_token_mj)),
}


def parse_token_budget(text: str) -> dict[str, float]:
    """Limits in base units."""
    return parse_limits(text, {name: quantity.parse for name, quantity in QUANTITIES.items()})


def judge_tokens(found: LanguageModel, limits: Mapping[str, float]) -> Verdict:
    """Each limit at the point that is furthest from it; what is not known, or does not fit, does not pass."""
    checks = [_check(found, name, limit) for name, limit in limits.items()]
    outside = next((point for point in found.points if limits and point.fits is False), None)
    if outside is not None:
        checks.append(Check("fits", passed=False, reason=f"budget: {outside.words} does not fit the memory"))
    return Verdict(tuple(checks))


def _check(found: LanguageModel, name: str, limit: float) -> Check:
    quantity = QUANTITIES[name]
    values = [(quantity.measure(point), point.words) for point in found.points]
    worst, where = max(((value, words) for value, words in values if value is not None), default=(None, ""))
    unknown = [words for value, words in values if value is None]
    if worst is not None and (worst > limit or not unknown):
        over = f" ({format_percent(worst / limit - 1)} over)" if worst > limit > 0 else ""
        reason = f"budget {name}: {quantity.show(worst)} of {quantity.show(limit)}{over} at {where}"
        return Check(name, passed=worst <= limit, reason=reason)
    return Check(name, passed=False, reason=f"budget {name}: not known at {unknown[0]}", known=False)
