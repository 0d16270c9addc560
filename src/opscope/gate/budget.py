"""`ram=512KB,latency=20ms` against a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.units import (
    format_bytes,
    format_joules,
    format_percent,
    format_seconds,
    parse_joules,
    parse_seconds,
    parse_share,
    parse_size,
)
from ..estimate.report import Report
from .verdict import Check, Verdict


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Something a budget can limit."""

    parse: Callable[[str], float]
    show: Callable[[float], str]
    measure: Callable[[Report], float | None]
    least: Callable[[Report], float | None] = lambda _: None  # where it is not known: a bound below it


def _cpu_share(report: Report) -> float | None:
    """Share of the time that runs on the processor instead of an accelerator."""
    if report.totals.cycles is None:
        return None
    on_cpu = sum(layer.cycles or 0.0 for layer in report.layers if not layer.accelerated)
    return on_cpu / report.totals.cycles if report.totals.cycles else 0.0


def _ram(report: Report) -> float | None:
    return None if report.memory.is_lower_bound else report.memory.peak_bytes


QUANTITIES = {
    "ram": _Quantity(parse_size, format_bytes, _ram, lambda report: report.memory.peak_bytes),
    "flash": _Quantity(parse_size, format_bytes, lambda report: report.totals.parameter_bytes),
    "latency": _Quantity(
        parse_seconds,
        format_seconds,
        lambda report: report.totals.latency_s.value if report.totals.latency_s else None,
        lambda report: report.totals.known_latency_s,
    ),
    "energy": _Quantity(
        parse_joules, format_joules, lambda report: report.totals.energy_j.value if report.totals.energy_j else None
    ),
    "cpu-share": _Quantity(parse_share, format_percent, _cpu_share),
}


def parse_budget(text: str) -> dict[str, float]:
    """`ram=512KB,latency=20ms` → limits in base units."""
    return parse_limits(text, {name: quantity.parse for name, quantity in QUANTITIES.items()})


def parse_limits(text: str, parsers: Mapping[str, Callable[[str], float]]) -> dict[str, float]:
    """Limits in base units, of quantities by name."""
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in parsers:
            raise UsageError(f"--budget {part!r}: not understood; expected NAME=LIMIT with {', '.join(parsers)}")
        try:
            limits[name] = parsers[name](value)
        except UsageError as error:
            raise UsageError(f"--budget {name}: {error}") from error
    return limits


def judge(report: Report, limits: dict[str, float]) -> Verdict:
    """Each limit against the report; a number that is not known cannot pass."""
    return Verdict(tuple(_check(report, name, limit) for name, limit in limits.items()))


def _check(report: Report, name: str, limit: float) -> Check:
    quantity = QUANTITIES[name]
    found = quantity.measure(report)
    if found is None:
        return _unknown(report, name, limit)
    shown = f"{quantity.show(found)} of {quantity.show(limit)}"
    if found <= limit:
        return Check(name, passed=True, reason=f"budget {name}: {shown}")
    over = f" ({format_percent(found / limit - 1)} over)" if limit else ""
    return Check(name, passed=False, reason=f"budget {name}: {shown}{over}")


def _unknown(report: Report, name: str, limit: float) -> Check:
    """What is not known does not pass; where the least that it can be is too much, that is the reason."""
    quantity = QUANTITIES[name]
    least = quantity.least(report)
    if least is not None and least > limit:
        shown = f"at least {quantity.show(least)} of {quantity.show(limit)}"
        return Check(name, passed=False, reason=f"budget {name}: {shown}")
    count = report.memory.unknown_tensors
    sizes = f"{count} {'tensor has' if count == 1 else 'tensors have'} no size in the model"
    why = sizes if name == "ram" else report.totals.withheld or report.totals.energy_note
    bound = "" if least is None else f", at least {quantity.show(least)}"
    return Check(name, passed=False, reason=f"budget {name}: not known{bound}; {why}", known=False)
