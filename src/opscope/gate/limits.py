"""Limits such as `latency>5%`: parsing, and checking them against a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ..core.errors import UsageError, printable
from .comparison import Difference, show_change, show_interval
from .figures import BYTES, COUNT, JOULES, NS, PER_SECOND
from .metrics import METRICS, OP_METRICS, current_name
from .verdict import Check, Verdict

_FORM = re.compile(
    r"\s*(?P<name>.*\S)\s*(?P<sign>[<>])\s*"
    r"(?P<number>[-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}))\s*(?P<unit>[A-Za-zµ%/]*)\s*",
    re.DOTALL,
)
_UNITS: Mapping[str, Mapping[str, float]] = {
    NS: {"": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    BYTES: {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3},
    COUNT: {"": 1},
    JOULES: {"": 1, "j": 1, "mj": 1e-3, "uj": 1e-6, "µj": 1e-6, "nj": 1e-9},
    PER_SECOND: {"": 1, "/s": 1},
}
_MOST_NAMES, _NEAR_NAMES = 2000, 5  # names searched for a misspelt one, and names shown
_EXAMPLES = 'expected METRIC[:SELECTOR]>VALUE or <VALUE, such as "latency>5%", "peak_memory>0" or "op:NAME>100us"'


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest allowed change of one figure; the change is checked, not the figure itself."""

    text: str
    name: str  # with its selector
    above: bool  # broken by a change above the value, not below it
    value: float  # 0.05 is 5 %; otherwise in the unit of the metric
    relative: bool


def parse_limit(text: str) -> Limit:
    """Parse one `--fail-on` expression."""
    shown = printable(text)
    found = _FORM.fullmatch(text)
    if found is None:
        raise UsageError(f"--fail-on {shown!r}: not understood; {_EXAMPLES}")
    name, unit = found["name"], found["unit"]
    metric, colon, selector = name.partition(":")
    if metric not in METRICS and metric not in OP_METRICS:
        raise UsageError(f"--fail-on {shown!r}: {printable(metric)!r} is not known; expected one of {known_metrics()}")
    if not selector and (metric in OP_METRICS or METRICS[metric].only_parts):
        raise UsageError(f"--fail-on {shown!r}: which {metric}; expected {_usage(metric)}>VALUE")
    if colon and metric in METRICS and not METRICS[metric].selector:
        raise UsageError(f"--fail-on {shown!r}: {metric} has no parts; expected {metric}>VALUE")
    return Limit(shown, current_name(name), found["sign"] == ">", *_value(shown, metric, float(found["number"]), unit))


def _value(text: str, metric: str, number: float, unit: str) -> tuple[float, bool]:
    """Return the number in the metric's unit, and whether it is relative."""
    if unit == "%":
        return number / 100, True
    known = _UNITS[METRICS[metric].unit if metric in METRICS else NS]
    if unit.lower() not in known:
        units = ", ".join(["%", *(name for name in known if name)])
        raise UsageError(f"--fail-on {text!r}: {unit!r} is no unit of {metric}; expected one of {units}")
    return number * known[unit.lower()], False


def parse_value(text: str, metric: str) -> float:
    """`5 ms`, as a limit on the metric itself, in the metric's unit."""
    found = _FORM.fullmatch(f"{metric}>{text}")
    if found is None or found["unit"] == "%":
        raise UsageError(f"limit {printable(text)!r} of {metric}: not understood; expected a number with its unit")
    return _value(f"{metric}>{text}", metric.partition(":")[0], float(found["number"]), found["unit"])[0]


def known_metrics() -> str:
    return ", ".join(map(_usage, (*METRICS, *OP_METRICS)))


def _usage(metric: str) -> str:
    """Return how a metric is written: `busy[:ENGINE]`, `op:NAME`, `latency`."""
    about = METRICS.get(metric)
    if about is None or about.only_parts:
        return f"{metric}:{OP_METRICS[metric] if about is None else about.selector}"
    return f"{metric}[:{about.selector}]" if about.selector else metric


def judge(
    limits: Iterable[Limit],
    differences: Mapping[str, Difference],
    names: Mapping[str, Sequence[str]],
    *,
    unknown: tuple[str, str] = ("", ""),
) -> Verdict:
    """Check every limit against the difference of its name.

    Args:
        limits: what is allowed.
        differences: figure → what it is in both runs.
        names: the known selectors by metric.
        unknown: why totals of the base, and of the new run, are not known; empty: they are.
    """
    return Verdict(tuple(_check_with_parts(limit, differences, names, unknown) for limit in limits))


def _check_with_parts(
    limit: Limit,
    differences: Mapping[str, Difference],
    names: Mapping[str, Sequence[str]],
    unknown: tuple[str, str],
) -> Check:
    """Check a limit; one on the largest part must hold for every part that both runs know.

    The first part that breaks it is reported.
    """
    overall = _check(limit, differences.get(limit.name), names, unknown)
    if not overall.passed or limit.name not in METRICS or not METRICS[limit.name].largest_part:
        return overall
    parts = (replace(limit, name=f"{limit.name}:{part}") for part in names.get(limit.name, ()) if part)
    checks = (_check(part, differences.get(part.name), names, unknown) for part in parts)
    return next((check for check in checks if check.known and not check.passed), overall)


def _check(
    limit: Limit, found: Difference | None, names: Mapping[str, Sequence[str]], unknown: tuple[str, str]
) -> Check:
    """Check one limit. A change beyond it that the samples do not confirm passes, with a warning."""
    if found is None:
        return _unknown(limit, f"{printable(limit.name)} is in neither run; {_suggest_names(limit, names)}")
    if found.change is None or found.ratio is None:
        sides = zip((found.base, found.new), unknown, strict=True)
        why = "; ".join(dict.fromkeys(reason for value, reason in sides if value is None and reason))
        problem = f"{printable(limit.name)} is not known in {_side_without_value(found)}"
        return replace(_unknown(limit, f"{problem}: {why}"), withheld=True) if why else _unknown(limit, problem)
    change = found.ratio if limit.relative else found.change
    summary = f"{printable(limit.name)} {show_change(found)}"
    if not _exceeds(limit, change):
        return Check(limit.text, True, f"{summary}, limit {limit.text}", limit=limit.text, metric=limit.name)
    # The measured change breaks the limit, but the confidence interval still reaches to the allowed side.
    if found.interval is not None and not _exceeds(limit, _least_certain_change(limit, found)):
        inside = (
            f"{summary}, beyond limit {limit.text}, but the samples do not confirm it: {show_interval(found)}; "
            "expected more samples"
        )
        return Check(limit.text, True, inside, limit=limit.text, metric=limit.name, warning=True)
    sure = f" ({show_interval(found)})" if found.interval is not None else f" ({found.note})" if found.note else ""
    return Check(limit.text, False, f"{summary}, limit {limit.text}{sure}", limit=limit.text, metric=limit.name)


def _unknown(limit: Limit, reason: str) -> Check:
    return Check(limit.text, False, reason, known=False, limit=limit.text, metric=limit.name)


def _side_without_value(found: Difference) -> str:
    if found.base is None:
        return "either run" if found.new is None else "the base"
    return "the new run"


def _suggest_names(limit: Limit, names: Mapping[str, Sequence[str]]) -> str:
    """Return known names close to the misspelt selector, for the error text."""
    metric, _, selector = limit.name.partition(":")
    found = list(names.get(metric, ()))[:_MOST_NAMES]
    folded = {name.casefold(): name for name in reversed(found)}
    near = [folded[name] for name in get_close_matches(selector.casefold(), folded, n=_NEAR_NAMES)] or found
    known = [printable(name, 60) for name in near[:_NEAR_NAMES]]
    return f"expected one such as {', '.join(known)}" if known else f"no run says anything about {metric}"


def _exceeds(limit: Limit, change: float) -> bool:
    return change > limit.value if limit.above else change < limit.value


def _least_certain_change(limit: Limit, found: Difference) -> float:
    """Return the end of the confidence interval nearest to no change, in the unit of the limit."""
    assert found.interval is not None and found.base is not None  # noqa: S101, PT018
    end = found.interval.low if limit.above else found.interval.high
    return end if limit.relative else end * found.base
