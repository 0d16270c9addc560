"""The arithmetic that every summary of one inference obeys, whoever wrote it."""

from __future__ import annotations

import re

import pytest

from opscope.recording.summary import DeviceSummary

FLUSH = "aicendcyclestats"


def check_identities(summary: DeviceSummary, text: str, *, stats_hz: float = 19.2e6) -> None:
    """Numbers follow the published list of identities of the vendor's summary."""
    start, end = summary.window
    assert f"total batch ucycles:{end - start:17d} [{start}, {end}]" in text
    printed = dict(re.findall(r"Device instance (batch|inf)/s: \(\d+/[\d.e+-]+\): ([\d.e+-]+)", text))
    assert float(printed["batch"]) == pytest.approx(stats_hz / (end - start), rel=1e-5)  # 1
    assert float(printed["inf"]) == pytest.approx(summary.batch_size * stats_hz / (end - start), rel=1e-5)  # 10
    for number, core in enumerate(summary.cores):
        _check_core(summary, text, core, number, stats_hz)
    for word, inputs in (("input", True), ("output", False)):
        if summary.ports:
            wait = max(row.wait for row in summary.ports if row.is_input is inputs)
            assert re.search(rf"max {word} wait ucycles: +{wait}\n", text)


def _check_core(summary: DeviceSummary, text: str, core: int, number: int, stats_hz: float) -> None:
    rows = [row for row in summary.kinds if row.core == core]
    threads = summary.threads_of(core)
    ucycles, pcycles = max(t.ucycles for t in threads), max(t.pcycles for t in threads)
    frequency = float(re.findall(rf"^c{core}: Effective frequency is ([\d.]+)MHz$", text, re.M)[0])
    assert frequency == pytest.approx(pcycles / ucycles * stats_hz / 1e6, abs=0.005)  # 2
    lines = re.findall(rf"^c{core} +(\d+) +([\d.]+)% +(\d+|N/A) +([\d.]+%|N/A) .*$", text, re.M)
    assert len(lines) == len(rows)
    for row, (ticks, share, cycles, cycle_share) in zip(rows, lines, strict=True):
        assert int(ticks) == row.ucycles
        assert float(share) == pytest.approx(100 * row.ucycles / ucycles, abs=0.005001)  # 3
        if row.pcycles is not None:
            assert float(cycle_share.rstrip("%")) == pytest.approx(100 * row.pcycles / pcycles, abs=0.005001)
            assert int(cycles) == row.pcycles
    assert [row.ucycles for row in rows] == sorted((row.ucycles for row in rows), reverse=True)
    _check_threads(summary, core)
    counts = {(row.kind, row.group): row.count for row in rows if row.is_wait}
    for group in {thread.group for thread in threads}:
        ops = sum(row.count for row in rows if row.group == group and not row.is_wait)
        assert counts.get(("sync", group), 0) <= ops  # 7
    if len([t for t in threads if t.group == "HVX"]) > 1 and rows:
        assert counts["barrier", "HVX"] == sum(r.count for r in rows if r.group == "HVX" and not r.is_wait)  # 7
    assert summary.inference_pcycles[number] >= pcycles


def _check_threads(summary: DeviceSummary, core: int) -> None:
    """Utilisation is Σ pcycles of ops over pcycles of the thread; of a group, rows count the slowest thread."""
    rows = [row for row in summary.kinds if row.core == core and not row.is_wait]
    for group in dict.fromkeys(thread.group for thread in summary.threads_of(core)):
        worked = sum(row.pcycles or 0 for row in rows if row.group == group)
        own = [thread for thread in summary.threads_of(core) if thread.group == group]
        shares = [thread.utilization for thread in own]
        if not rows or None in shares:
            continue
        most = max(share or 0.0 for share in shares)
        if len(own) == 1:
            assert worked / own[0].pcycles == pytest.approx(most, abs=0.00006)  # 4
        else:
            assert worked / own[0].pcycles >= most - 0.0001  # 6
