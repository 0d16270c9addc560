"""Do bytes move faster than memories, routes and links can move them?

Transfers that overlap, or follow each other without a pause, make a stretch. All bytes of a stretch pass in it, so
they are no more than its length at the peak. What is too fast in some window is so in a stretch: 60 bytes read and 60
written in the same 1 ns, then nothing for 9 ns, are 12 bytes/ns of the window, but 120 bytes/ns of the stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...program.bounds import Rate
from ...recording.finding import LawCheck
from ...recording.run import Run
from ...recording.trace import SpanKind
from ..run_analysis import RunAnalysis
from ..timeline.intervals import union
from ..totals.bandwidths import track_name
from .conservation import NEAR
from .window import NO_PEAKS, Window

_UNTOLD = "the run does not tell when bytes were on their way"


@dataclass(frozen=True, slots=True)
class _Shared:
    """Routes that share one peak: those of a memory, or one by itself."""

    name: str
    rate: Rate
    routes: Sequence[int]
    is_memory: bool
    per_core: bool = False  # every core has it to itself; else every device


@dataclass(frozen=True, slots=True)
class _Transfers:
    """Bytes in flight in one inference, in columns."""

    route: Numbers
    owner: Numbers  # device × cores + core, or of what cores share the device
    start: Numbers
    end: Numbers
    bytes: npt.NDArray[np.float64]

    def of(self, shared: _Shared, cores: int) -> _Transfers:
        chosen = np.isin(self.route, shared.routes)
        owner = self.owner[chosen] if shared.per_core else self.owner[chosen] // cores
        return _Transfers(self.route[chosen], owner, self.start[chosen], self.end[chosen], self.bytes[chosen])

    def fastest(self, tick_ns: float) -> tuple[float, int]:
        """Bytes per second of the fastest stretch of one owner, and whose it is."""
        intervals = union(self.owner, self.start, self.end)
        low, width = int(self.start.min()), int(self.end.max()) - int(self.start.min()) + 1
        begins = intervals.key * width + intervals.start - low  # owners lie one behind the other on one axis
        place = np.searchsorted(begins, self.owner * width + self.start - low, side="right") - 1
        moved = np.bincount(place, self.bytes, minlength=len(begins))
        rates = moved / (intervals.end - intervals.start + tick_ns) * 1e9
        worst = int(rates.argmax())
        return float(rates[worst]), int(intervals.key[worst])

    def most_bytes(self) -> float:
        """Of the owner that moves most."""
        return float(np.bincount(self.owner, self.bytes).max())


def bytes_within_peak(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """No memory, route or link is faster than its peak; and the latency no less than the bytes of a memory take."""
    run, window = analysis.run, Window.of(analysis)
    peaks, transfers = _peaks(run), _transfers(analysis)
    if window is None or not peaks or not len(transfers.route):
        yield LawCheck("bytes per second ≤ peak", None, _UNTOLD if peaks else NO_PEAKS)
        in_all = tuple(_total_laws(run))
        yield from in_all or (LawCheck("latency ≥ bytes ÷ peak", None, _UNTOLD if peaks else NO_PEAKS),)
        return
    for shared in peaks:
        own = transfers.of(shared, max(run.info.cores, 1))
        if len(own.route):
            peak = shared.rate.per_second(window.clock_hz)
            yield _rate_law(run, shared, own.fastest(window.tick_ns), peak)
            if shared.is_memory:
                yield _latency_law(run, shared, own.most_bytes() / peak * 1e9, window)


def counters_within_peak(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """No memory is faster at any time than its peak, as all its counters of bytes per second tell it together."""
    run, window = analysis.run, Window.of(analysis)
    for shared in _peaks(run) if window is not None else ():
        names = {track_name(run.routes[route].name) for route in shared.routes}
        most = _most_at_once(run, names) if shared.is_memory and not shared.per_core else None
        if window is not None and most is not None:
            peak = shared.rate.per_second(window.clock_hz) / 1e9
            words = f"{most:,.1f} and {peak:,.1f} GB/s"
            yield LawCheck(f"{shared.name} bandwidth over time ≤ peak", most <= peak * (1 + NEAR), words)


def _most_at_once(run: Run, names: set[str]) -> float | None:
    """The largest sum of the counters of these names on one device; None: there are none."""
    found: list[float] = []
    samples, devices = run.trace.samples, {track.device for track in run.trace.counters}
    for device in sorted(devices):
        chosen = [n for n, t in enumerate(run.trace.counters) if t.device == device and t.name in names]
        own = samples[np.isin(samples["counter"], chosen)]
        moments = np.unique(own["time_ns"])
        total = np.zeros(len(moments))
        for number in chosen:
            steps = own[own["counter"] == number]
            steps = steps[np.argsort(steps["time_ns"], kind="stable")]
            place = np.searchsorted(steps["time_ns"], moments, side="right")
            total += np.append(0.0, steps["value"])[place]
        found += [float(total.max())] if len(moments) else []
    return max(found, default=None)


def _peaks(run: Run) -> list[_Shared]:
    """Memories, then routes."""
    if run.bounds is None:
        return []
    names = [route.name for route in run.routes]
    found = [
        _Shared(peak.name, peak.rate, routes, is_memory=True, per_core=peak.per_core)
        for peak in run.bounds.memories
        if peak.rate is not None
        and (routes := [number for number, route in enumerate(run.routes) if route.memory == peak.name])
    ]
    alone = [peak for peak in run.bounds.routes if peak.name in names]
    return found + [_Shared(peak.name, peak.rate, [names.index(peak.name)], is_memory=False) for peak in alone]


def _transfers(analysis: RunAnalysis) -> _Transfers:
    """Of commands of a program: others do not say how many bytes they move."""
    run, spans, rows = analysis.run, analysis.run.trace.spans[analysis.work.row], analysis.run.commands.rows
    command = spans["command"]
    chosen = (spans["kind"] == SpanKind.TRANSFER) & (spans["route"] >= 0) & (command >= 0) & (command < len(rows))
    spans, moved = spans[chosen], rows[command[chosen]]
    owner = moved["device"].astype(np.int64) * max(run.info.cores, 1) + moved["core"]
    route, start, end = (spans[key].astype(np.int64) for key in ("route", "start_ns", "end_ns"))
    return _Transfers(route, owner, start, end, moved["moved_bytes"].astype(np.float64))


def _total_laws(run: Run) -> Iterator[LawCheck]:
    """Of memories that no route is known to serve: what was read and written in all takes its time at the peak."""
    served, latency = {route.memory for route in run.routes}, run.summary.latency.value_ns
    for peak in run.bounds.memories if run.bounds is not None else ():
        clock = run.info.clocks_hz.get("core")
        if peak.rate is None or peak.name in served or (peak.rate.per_cycle and not clock):
            continue
        moved = [
            row.read_bytes + row.write_bytes
            for row in run.summary.memory
            if row.name == peak.name and row.read_bytes is not None and row.write_bytes is not None
        ]
        if moved and latency is not None:
            rate = peak.rate.per_second(clock or 0)
            least_ns = max(moved) / rate * 1e9
            words = f"{latency:,} and {least_ns:,.0f} ns, for {max(moved):,} bytes at {rate / 1e9:,.1f} GB/s"
            yield LawCheck(f"latency ≥ bytes of {peak.name} ÷ peak", latency + 1 >= least_ns, words)


def _rate_law(run: Run, shared: _Shared, found: tuple[float, int], peak: float) -> LawCheck:
    rate, owner = found
    device, core = divmod(owner, max(run.info.cores, 1)) if shared.per_core else (owner, None)
    where = (f" on device {device}" if run.info.devices > 1 else "") + (f" on core {core}" if shared.per_core else "")
    words = f"{rate / 1e9:,.1f} and {peak / 1e9:,.1f} GB/s{where}"
    return LawCheck(f"{shared.name} bytes per second ≤ peak", rate <= peak, words)


def _latency_law(run: Run, shared: _Shared, least_ns: float, window: Window) -> LawCheck:
    name, latency = f"latency ≥ bytes of {shared.name} ÷ peak", run.summary.latency.value_ns
    if latency is None:
        return LawCheck(name, None, "the latency is not known")
    return LawCheck(name, latency + window.tick_ns >= least_ns, f"{latency:,} and {least_ns:,.0f} ns")
