"""Energy of an inference, how often it runs, a battery → how long it lasts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import UsageError, printable
from ..machine.target import Target
from ..recording.resources import Range, Totals

_PERIODS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WATTS = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "nW": 1e-9}
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_DUTY = re.compile(rf"{_NUMBER}/{_NUMBER}?(s|min|h|d)")
_BATTERY = re.compile(rf"{_NUMBER}(m?)Ah@{_NUMBER}V|{_NUMBER}(m?)Wh")
_POWER = re.compile(rf"{_NUMBER}(W|mW|uW|nW)")


@dataclass(frozen=True, slots=True)
class BatteryLife:
    """How long a battery lasts; without the power between inferences, at the most."""

    battery: str  # as given
    duty: str
    seconds: Range | None  # None: the energy of an inference is not known
    busy_share: float | None  # of the time
    watts: float | None  # on average
    sleep_watts: float | None  # between inferences; None: not known, and not counted


def battery_life(totals: Totals, target: Target, *, battery: str, duty: str, sleep: str | None) -> BatteryLife:
    """Raises UsageError where words are not understood, or an inference takes longer than the time between two."""
    rate, joules = _rate(duty), _joules(battery)
    given = None if sleep is None else _watts(sleep)
    idle = None if target.idle_watts is None else target.idle_watts.value
    still = given if given is not None else idle
    if totals.energy_j is None or totals.latency_s is None:
        return BatteryLife(battery, duty, None, None, None, still)
    busy = totals.latency_s.value * rate
    if busy > 1:
        most = f"at most {1 / totals.latency_s.value:.3g}/s"
        raise UsageError(f"--duty {duty}: an inference takes {totals.latency_s.value:.3g} s; expected {most}")
    # Idle power is in the energy of an inference already; what is given by hand is of the time between them.
    between = (still or 0.0) * (1 - busy)
    average = [energy * rate + between for energy in (totals.energy_j.value, totals.energy_j.high, totals.energy_j.low)]
    seconds = Range(*(joules / watts for watts in average))
    return BatteryLife(battery, duty, seconds, busy, average[0], still)


def _rate(text: str) -> float:
    """`1/s`, `4/min`, `1/10s` → inferences a second."""
    match = _DUTY.fullmatch(text.replace(" ", ""))
    period = 0.0 if match is None else float(match[2] or 1) * _PERIODS[match[3]]
    if match is None or not period or not float(match[1]):
        raise UsageError(f"--duty {printable(text)}: not understood; expected how often it runs, such as 1/s or 4/min")
    return float(match[1]) / period


def _joules(text: str) -> float:
    """`220mAh@3V`, `1.2Wh` → energy."""
    match = _BATTERY.fullmatch(text.replace(" ", ""))
    hours = 0.0
    if match is not None:
        charge, milli, volts, work, milli_work = match.groups()
        whole = float(charge) * float(volts) if charge else float(work)
        hours = whole * (1e-3 if milli or milli_work else 1.0)
    if not hours:
        raise UsageError(f"--battery {printable(text)}: not understood; expected such as 220mAh@3V or 1.2Wh")
    return hours * 3600.0


def _watts(text: str) -> float:
    match = _POWER.fullmatch(text.replace(" ", "").replace("µ", "u"))
    if match is None:
        raise UsageError(f"--sleep {printable(text)}: not understood; expected a power such as 5uW or 0.2mW")
    return float(match[1]) * _WATTS[match[2]]
