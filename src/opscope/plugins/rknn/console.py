"""A console full of RKNN output → its tables, totals, clocks, versions and sizes, whatever loggers put before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...importers.reading import Unread, number_in, whole_in
from .layer_table import LONGEST_LINE, Heading, Layer, OldHeading, heading_in, old_heading_in, row_in

_IS_HEADING = re.compile(r"OpType|Layer ID")
_TELLS = re.compile(  # what one of the expressions below begins with: a build prints a million other lines
    r"Total |FPS|Avg |Elapse|Frequency|ersion|arget|Memory|model size|Predict|start:|end:|imulator|^\s*-\s+\d"
)
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PREFIX = re.compile(r"^.{0,120}?[DIWEV] RKNN(?:API)?\s*: ?(?:\[[\d:.]+\] ?)?|^\s*(?:\[\*\]|\|)\s")
_RULE = re.compile(r"[-=+ ]{8,}$")
_LEFT_OUT = re.compile(r"\.{3,}$")
_PASS = re.compile(r">>>>>> start: |<<<<<<<< end: ")
_SIMULATOR = re.compile(r"use simulator", re.IGNORECASE)
_TOTAL_TIME = re.compile(r"Total Operator Elapsed (?:Per Frame )?Time\(us\):\s*(\d[\d.]*)")
_TOTAL_BYTES = re.compile(r"Total Memory (?:Read/Write Per Frame Size|RW Amount)\(([KM])B\):\s*(\d[\d.]*)")
_WHOLE_TIME = re.compile(r"Total Time\(us\):\s*(\d[\d.]*)")
_RATE = re.compile(r"FPS(?:\((\d+)MHz\))?:\s*(\d[\d.]*)")
_MEAN = re.compile(r"Avg (?:elapse )?Time =? ?([\d.]+) ?ms")
_MEAN_RATE = re.compile(r"Avg FPS = ([\d.]+)")
_SAMPLE = re.compile(r"Elapse Time = ([\d.]+) ?ms, FPS = ")
_RANKING = re.compile(r"\bOpType\s+Call ?Number\s+CPU ?Time\(us\)\s+(GPU ?Time\(us\)\s+)?NPU ?Time\(us\)")
_RANKED = re.compile(r"([A-Za-z_]\w*)\s+(\d+)\s+(\d+)\s+(?:(\d+)\s+)?(\d+)\s+(\d+)\s+([\d.]+)%?\s*$")
_CLOCKS = re.compile(r"\b(CPU|NPU|DDR) Current Frequency List:")
_CLOCK = re.compile(r"\s*-\s+(\d+)\s*$")
_TARGETS = (  # the model's own word before what was asked for
    re.compile(r"target platform: (\w+)"),
    re.compile(r"target set by user is: (\w+)"),
    re.compile(r"\btarget is (R[KV]\d\w+)", re.IGNORECASE),
)
_VERSIONS = {
    "rknn-toolkit2": re.compile(r"rknn-toolkit2 version: ?(\d[\w.+]*)"),
    "rknn-toolkit-lite2": re.compile(r"rknn-toolkit-lite2 version: ?(\d[\w.+]*)"),
    "rknn-toolkit": re.compile(r"rknn-toolkit version: ?(\d[\w.+]*)"),
    "librknnrt": re.compile(r"(?:librknnrt version|\brknnrt|rknn_api/rknnrt version): ?(\d[\w.]*)"),
    "rknpu driver": re.compile(r"(?:Driver Information, version|driver version): ?(\d[\w.]*)"),
    "rknn compiler": re.compile(r"compiler version: ?(\d[\w.]*)"),
}
_MOST = 1 << 40  # of any unit that is believed
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_BYTES = r"\s*(\d[\d.]*)\s*([KMG]?)i?B?\s*$"
_SIZES = (  # what a line with a size is called here
    (re.compile(r"(?:Total )?(Weight|Internal|Internal Tensor|Other) Memory(?: Size)?:" + _BYTES), "{} memory"),
    (re.compile(r"^\s*(Total) Memory:" + _BYTES), "{} memory"),
    (re.compile(r"current model size is:" + _BYTES), "model file"),
    (re.compile(r"Predict (Internal|Weight|SRAM)(?: Memory| Hit) RW Amount:" + _BYTES), "{} traffic"),
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """All layers of one type, as the table behind the table of layers adds them up."""

    type: str
    count: int
    cpu_us: int
    gpu_us: int
    npu_us: int
    total_us: int


@dataclass(slots=True)
class Table:
    """One table of layers, with the totals below it."""

    line: int
    heading: Heading | OldHeading
    is_theory: bool  # printed by the compiler, or by a simulator
    layers: list[Layer] = field(default_factory=list)
    unread: Unread = field(default_factory=lambda: Unread("rows"))
    rows_left_out: bool = False  # by whoever pasted it: `...`
    total_us: float | None = None
    total_bytes: int | None = None
    ranking: list[Ranked] = field(default_factory=list)

    @property
    def is_measured(self) -> bool:
        return not self.is_theory and any(layer.time_us for layer in self.layers)

    @property
    def has_cycles(self) -> bool:
        return any(layer.total_cycles for layer in self.layers)


@dataclass(slots=True)
class Console:
    """What the lines told."""

    tables: list[Table] = field(default_factory=list)
    ranking: list[Ranked] = field(default_factory=list)  # one that stands before any table of layers
    clocks_hz: dict[str, float] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)  # name → how good the source is, 0 best
    versions: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # bytes
    whole_us: float | None = None  # of an inference that no profiler watched
    rates: dict[int, float] = field(default_factory=dict)  # MHz (0: as it ran) → inferences a second
    mean_ms: float | None = None  # of the benchmark
    mean_rate: float | None = None
    samples_ms: list[float] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        told = (self.ranking, self.sizes, self.samples_ms, *(table.layers for table in self.tables))
        return not any(told) and self.whole_us is None and self.mean_ms is None


class Walk:
    """Goes through the lines once; remembers which table it is in and what a row still lacks."""

    def __init__(self) -> None:
        self.found = Console()
        self._table: Table | None = None  # whose rows come
        self._ranks: list[Ranked] | None = None
        self._pending: tuple[int, str] | None = None  # a row that is broken into lines
        self._clock = ""  # whose list of clocks comes
        self._theory = False
        self._simulator = False

    def through(self, lines: Iterable[tuple[int, str]]) -> Console:
        for number, raw in lines:
            if len(raw) > LONGEST_LINE:
                if self._table is not None:
                    self._table.unread.add(f"line {number}", raw)
                continue
            plain = _COLOUR.sub("", raw).replace("\r", "")
            self._line(number, _PREFIX.sub("", plain, count=1).rstrip())
        self._give_up()
        samples = self.found.samples_ms
        if samples and self.found.mean_ms is None:
            self.found.mean_ms = sum(samples) / len(samples)
        return self.found

    def _line(self, number: int, text: str) -> None:
        heading = (heading_in(text) or old_heading_in(text)) if _IS_HEADING.search(text) else None
        if heading is not None:
            self._give_up()
            self._table = Table(number, heading, self._theory or self._simulator)
            self._ranks, self._clock = None, ""
            self.found.tables.append(self._table)
        elif "OpType" in text and _RANKING.search(text):
            self._give_up()
            self._ranks = self.found.tables[-1].ranking if self.found.tables else self.found.ranking
        elif not self._row(number, text) and not self._ranked(text):
            self._told(text)

    def _row(self, number: int, text: str) -> bool:
        """Whether the line belongs to the table of layers."""
        table = self._table
        if table is None:
            return False
        if isinstance(table.heading, OldHeading):
            return self._old_row(table, text)
        start = row_in(text)
        if start is None:
            return self._rest_of_row(table, text)
        self._drop_pending(table)
        layer = table.heading.layer(start)
        if layer is None:
            self._pending = (number, start)
        else:
            table.layers.append(layer)
        return True

    def _rest_of_row(self, table: Table, text: str) -> bool:
        """A row may be broken by a terminal; else the line is something that was printed meanwhile."""
        if not text.strip() or _RULE.match(text):
            return True
        if _LEFT_OUT.match(text.strip()):
            table.rows_left_out = True
            return True
        if self._pending is not None and isinstance(table.heading, Heading):
            layer = table.heading.layer(f"{self._pending[1]} {text.strip()}")
            if layer is not None:
                table.layers.append(layer)
                self._pending = None
                return True
        return False

    def _old_row(self, table: Table, text: str) -> bool:
        layer = table.heading.layer(text)
        if layer is not None:
            table.layers.append(layer)
            return True
        is_rest = text[:1].isspace() and len(text.split()) == 1 and not _RULE.match(text)
        if is_rest and table.layers:  # the second line of a name
            table.layers[-1] = replace(table.layers[-1], name=table.layers[-1].name + text.strip())
        return is_rest

    def _ranked(self, text: str) -> bool:
        if self._ranks is None:
            return False
        found = _RANKED.match(text.strip())
        if found is None:
            if text.strip() and not _RULE.match(text):
                self._ranks = None
            return False
        numbers = [whole_in(found[n] or "0") or 0 for n in (2, 3, 4, 5, 6)]
        self._ranks.append(Ranked(found[1], *numbers))
        return True

    def _told(self, text: str) -> None:
        """Totals end a table; whatever else a line tells is noted."""
        if not _TELLS.search(text):
            return
        last = self.found.tables[-1] if self.found.tables else None
        total, moved = _TOTAL_TIME.search(text), _TOTAL_BYTES.search(text)
        if last is not None and (total is not None or moved is not None):
            self._give_up()
            if total is not None:
                last.total_us = number_in(total[1])
            if moved is not None:
                last.total_bytes = _bytes(moved[2], moved[1])
            return
        if _PASS.search(text):
            self._give_up()
            self._theory = "start" in text
        self._simulator = self._simulator or _SIMULATOR.search(text) is not None
        self._times(text, last)
        self._machine(text)
        self._sizes(text)

    def _times(self, text: str, last: Table | None) -> None:
        found = self.found
        whole, sample = _WHOLE_TIME.search(text), _SAMPLE.search(text)
        mean, mean_rate = _MEAN.search(text), _MEAN_RATE.search(text)
        if whole is not None:
            if last is not None and isinstance(last.heading, OldHeading):
                self._give_up()
                last.total_us = number_in(whole[1])
            else:
                found.whole_us = number_in(whole[1])
        for rate in _RATE.finditer(text):
            value, clock = number_in(rate[2]), whole_in(rate[1] or "0")
            if value and clock is not None:
                found.rates[clock] = value
            if rate[1] and last is not None:  # told for a clock: worked out, not measured
                last.is_theory = True
        if mean is not None:
            found.mean_ms = number_in(mean[1])
        if mean_rate is not None:
            found.mean_rate = number_in(mean_rate[1])
        if sample is not None and (value := number_in(sample[1])) is not None:
            found.samples_ms.append(value)

    def _machine(self, text: str) -> None:
        found = self.found
        clock = _CLOCK.match(text) if self._clock else None
        if clock is not None:
            self._add_clock(int(clock[1][:18]))
        named = _CLOCKS.search(text)
        self._clock = named[1] if named is not None else self._clock
        for place, pattern in enumerate(_TARGETS):
            target = pattern.search(text)
            if target is not None:
                found.targets.setdefault(target[1].lower(), place)
        for name, pattern in _VERSIONS.items():
            version = pattern.search(text)
            if version is not None:
                found.versions.setdefault(name, version[1])

    def _add_clock(self, value: int) -> None:
        """Those of the CPU are in kHz, one per cluster; those of NPU and DDR in Hz (User Guide 2.3.2, 3.2.3)."""
        if self._clock != "CPU":
            self.found.clocks_hz[self._clock] = value
            return
        clusters = sum(name.startswith("CPU") for name in self.found.clocks_hz)
        self.found.clocks_hz[f"CPU {clusters}"] = value * 1000

    def _sizes(self, text: str) -> None:
        for pattern, form in _SIZES:
            found = pattern.search(text)
            if found is None:
                continue
            *words, number, unit = found.groups()
            size = _bytes(number, unit)
            if size is not None:
                self.found.sizes[form.format(*(word.lower().removesuffix(" tensor") for word in words))] = size

    def _drop_pending(self, table: Table) -> None:
        if self._pending is not None:
            table.unread.add(f"line {self._pending[0]}", self._pending[1])
            self._pending = None

    def _give_up(self) -> None:
        """The table ends here; a row that waits for its rest never came to one."""
        if self._table is not None:
            self._drop_pending(self._table)
        self._table = None


def _bytes(number: str, unit: str) -> int | None:
    """All its units are powers of 1024: 3610.81 KB of the build are 3.53 MiB of eval_memory. 0: it did not count."""
    value = number_in(number)
    return round(value * _UNITS[unit]) or None if value is not None and value < _MOST else None
