"""A log of power, as a bench meter or a sampler beside a measurement writes it → counters over time.

CSV with a line of names, or JSON: a list of objects with the same names. A time and a power are needed, in one of these
forms; what else is known is kept.

    time_ns, time_us, time_ms, time_s; time, timestamp: seconds, or a date with a time of day
    watts, power_w, power.draw [W], milliwatts, power_mw; or volts and amperes
    clock_mhz, temperature_c, energy_mj (a counter), throttle (reasons, apart by spaces), marker (1 while work runs)
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

import msgspec
import numpy as np

from ...core.columns import Floats
from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.power_join import CLOCK, MARKER, POWER, THROTTLE
from ...importers.reading import LONGEST_NS, read_bytes
from ...recording.recording import Metric, Recording
from ...recording.trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Trace

MOST_SAMPLES = 10_000_000
_Cell = str | int | float | bool | None
_Row = Mapping[str, _Cell]
_TIMES = {"time_ns": 1.0, "time_us": 1e3, "time_ms": 1e6, "time_s": 1e9, "time": 1e9, "timestamp": 1e9}
_POWERS = {"watts": 1.0, "power_w": 1.0, "power.draw [w]": 1.0, "milliwatts": 1e-3, "power_mw": 1e-3}
_TRACKS = {  # of what may stand beside: name of its track, unit, factor
    "clock_mhz": (CLOCK, "Hz", 1e6),
    "clocks.current.sm [mhz]": (CLOCK, "Hz", 1e6),
    "memory_clock_mhz": ("memory clock", "Hz", 1e6),
    "temperature_c": ("temperature", "C", 1.0),
    "temperature.gpu": ("temperature", "C", 1.0),
    "energy_mj": ("energy counter", "J", 1e-3),
}
_EXPECTED = "expected a time (time_ns … time_s, timestamp) and a power (watts, milliwatts, or volts and amperes)"


class PowerLog:
    """Samples of power, in order."""

    name = "power-log"

    def read(self, path: Path) -> Recording:
        """Tracks of counters and nothing else: what ran meanwhile is told by another file or run."""
        rows = _rows(path)
        names = list(rows[0]) if rows else []
        time_of, power_of = _reader(names, _TIMES, path), _power(names, path)
        times = [time_of(row, number) for number, row in enumerate(rows)]
        columns = {(POWER, "W"): [power_of(row, number) for number, row in enumerate(rows)]}
        for name, (track, unit, factor) in _TRACKS.items():
            if name in names:
                columns[track, unit] = [_number(row, number, name, path) * factor for number, row in enumerate(rows)]
        reasons = [_words(row.get("throttle")) for row in rows] if "throttle" in names else []
        if reasons:
            columns[THROTTLE, "1"] = [float(len(words)) for words in reasons]
        marked = [time for time, row in zip(times, rows, strict=True) if _is_set(row.get("marker"))]
        return Recording(
            maker=self.name,
            tool="power log",
            provenance=Provenance.MEASURED,
            trace=_trace(np.array(times, np.float64), columns, path),
            metrics=(Metric(MARKER, marked[0], "ns"),) if marked else (),
            notes=tuple(_throttled(reasons)),
        )


def _rows(path: Path) -> list[_Row]:
    raw = read_bytes(path)
    try:
        if raw.lstrip()[:1] == b"[":
            found: list[_Row] = msgspec.json.decode(raw, type=list[dict[str, _Cell]])
        else:
            text = io.StringIO(raw.decode("utf-8"), newline="")
            found = list(csv.DictReader(text, skipinitialspace=True, restkey="", restval=""))
    except (msgspec.MsgspecError, UnicodeDecodeError, csv.Error) as error:
        raise ImportFileError(str(path), "", f"no table ({printable(str(error))}); {_EXPECTED}") from error
    if not 2 <= len(found) <= MOST_SAMPLES:
        raise ImportFileError(str(path), "", f"{len(found)} samples; expected 2 to {MOST_SAMPLES}")
    return [{name.strip().lower(): cell for name, cell in row.items()} for row in found]


def _reader(names: Sequence[str], known: Mapping[str, float], path: Path) -> Callable[[_Row, int], float]:
    name = next((name for name in known if name in names), None)
    if name is None:
        raise ImportFileError(str(path), "", f"columns are {printable(', '.join(names), 200)}; {_EXPECTED}")
    factor = known[name]
    return lambda row, number: _number(row, number, name, path) * factor


def _power(names: Sequence[str], path: Path) -> Callable[[_Row, int], float]:
    if "volts" in names and "amperes" in names:
        return lambda row, number: _number(row, number, "volts", path) * _number(row, number, "amperes", path)
    return _reader(names, _POWERS, path)


def _number(row: _Row, number: int, name: str, path: Path) -> float:
    cell = row.get(name)
    try:
        value = _date(cell) if isinstance(cell, str) and ":" in cell else float(str(cell).split()[0])
    except (ValueError, IndexError):
        value = float("nan")
    if not isfinite(value) or abs(value) > LONGEST_NS:
        raise ImportFileError(
            str(path), f"sample {number + 1}", f"{name} is {printable(repr(cell), 60)}; expected a number"
        )
    return value


def _date(text: str) -> float:
    """Seconds since 1970 of `2026/11/18 02:00:00.123`; a date without a zone is taken as UTC."""
    found = datetime.fromisoformat(text.strip().replace("/", "-"))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _words(cell: _Cell) -> list[str]:
    return [word for word in str(cell or "").split() if word.lower() not in ("none", "0", "0x0000000000000000")]


def _is_set(cell: _Cell) -> bool:
    return str(cell if cell is not None else "").strip().lower() not in ("", "0", "0.0", "false")


def _trace(times: Floats, columns: Mapping[tuple[str, str], list[float]], path: Path) -> Trace:
    order = np.flatnonzero(np.diff(times) <= 0)
    if len(order):
        place = f"sample {int(order[0]) + 2}"
        raise ImportFileError(str(path), place, "is not later than the one before; expected samples in order")
    tracks = tuple(CounterTrack(NONE, NONE, name, unit) for name, unit in columns)
    samples = np.zeros(len(times) * len(columns), COUNTER)
    samples["counter"] = np.repeat(np.arange(len(columns)), len(times))
    samples["time_ns"] = np.tile(np.round(times).astype(np.int64), len(columns))
    samples["value"] = np.concatenate([np.array(values) for values in columns.values()])
    return Trace((), (), np.zeros(0, SPAN), np.zeros(0, EDGE), tracks, samples, Provenance.MEASURED)


def _throttled(reasons: Sequence[Sequence[str]]) -> Iterable[str]:
    counts = Counter(word for words in reasons for word in set(words))
    if counts:
        said = ", ".join(f"{printable(word, 40)} ({count})" for word, count in counts.most_common(5))
        yield f"clocks were held back in some of {len(reasons)} samples of power: {said}"
