"""Profiled × an earlier profile → differences and Verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ..errors import UsageError
from ..profiled import Profiled
from ..units import format_percent
from ..verdict import Check, Verdict

TIME = "htp_execution_time"
_SMALLER_IS_BETTER = (TIME, "ddr_read", "ddr_write", "vtcm_peak", "intermediate_spill", "intermediate_fill")
_LARGEST_BYTES = 1 << 28


class _Metric(msgspec.Struct):
    name: str
    value: float | None = None
    unit: str = ""
    provenance: str = ""


class Baseline(msgspec.Struct):
    """What a comparison needs of an earlier profile."""

    metrics: list[_Metric]
    model: str = ""
    target: dict[str, str | int | float | None] = {}
    runtime: dict[str, str] = {}
    schema: str = ""


def read_baseline(path: Path) -> Baseline:
    """From a run's folder, or from the JSON that `profile --json` prints."""
    file = path / "profile.json" if path.is_dir() else path
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise UsageError(f"{file}: larger than {_LARGEST_BYTES >> 20} MB; expected the JSON of a profile")
        found = msgspec.json.decode(file.read_bytes(), type=Baseline)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); expected an earlier run or its JSON") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{file}: not a profile ({error}); expected the JSON that `profile --json` prints") from error
    if found.schema != "opscope.profile/1":
        raise UsageError(f"{file}: schema is {found.schema!r}; expected opscope.profile/1")
    return found


def compare_profiles(base: Baseline, new: Profiled, *, limit: float | None) -> tuple[list[str], Verdict]:
    """Lines for the user, and whether every limit holds. Only figures of one provenance are compared."""
    old = {metric.name: metric for metric in base.metrics}
    return list(_lines(base, old, new)), Verdict(tuple(_checks(old, new, limit)))


def _lines(base: Baseline, old: Mapping[str, _Metric], new: Profiled) -> Iterator[str]:
    if base.target.get("name") != new.target.get("name"):
        yield f"note: the baseline is of {base.target.get('name')}, this is of {new.target.get('name')}"
    if base.runtime != dict(new.producer):
        was = ", ".join(f"{name} {version}" for name, version in base.runtime.items())
        yield f"note: the baseline was made by {was or 'another version'}; differences may come from that"
    for name in _SMALLER_IS_BETTER:
        before, after = old.get(name), new.metric(name)
        if before is None or after is None or before.value is None or after.value is None:
            continue
        change = _change(before.value, after.value)
        words = "unchanged" if change == 0 else format_percent(change) if change is not None else "from nothing"
        yield f"{name}: {before.value:,.10g} → {after.value:,.10g} {after.unit} ({words}) [{after.provenance}]"


def _change(before: float, after: float) -> float | None:
    if before:
        return after / before - 1
    return 0.0 if not after else None


def _checks(old: Mapping[str, _Metric], new: Profiled, limit: float | None) -> Iterator[Check]:
    if limit is None:
        return
    before, after = old.get(TIME), new.metric(TIME)
    if before is None or after is None or before.value is None or after.value is None or not before.value:
        yield Check(TIME, False, f"{TIME}: unknown in one of the two; expected a part that the vendor's model knows")
        return
    if before.provenance != after.provenance:
        yield Check(TIME, False, f"{TIME}: {before.provenance} and {after.provenance} are not to be compared")
        return
    change = after.value / before.value - 1
    words = f"{TIME}: {format_percent(change)} against a limit of {format_percent(limit)}"
    yield Check(TIME, change <= limit, words)
