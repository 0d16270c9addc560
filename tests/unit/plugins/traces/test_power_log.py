"""Logs of power laid over a timeline, through the files that a user has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opscope
from opscope.core.errors import ImportFileError, ProfilerError, UsageError
from opscope.importers.formats import read_profile
from opscope.recording.folder_reader import read_run

MS = 1000.0  # µs, as timelines count


def timeline(folder: Path) -> Path:
    """Four kernels of 10 ms with 10 ms between them, from 1 s on."""
    kernels = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "k",
            "pid": 0,
            "tid": 7,
            "ts": 1e6 + n * 20 * MS,
            "dur": 10 * MS,
            "args": {"device": 0, "stream": 7, "correlation": n, "External id": n},
        }
        for n in range(4)
    ]
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"name": "G"}], "traceEvents": kernels}))
    return path


def rows(*, off_ms: float = 0, clock: str = "", marker: bool = False) -> list[tuple[float, float, str, int]]:
    found = []
    for n in range(200):
        at = n + 0.5
        work = at - 60
        busy = 0 <= work < 70 and work % 20 < 10
        found.append((at + off_ms, 300.0 if busy else 100.0, clock, int(marker and 0 <= work < 70)))
    return found


def log(folder: Path, samples: list[tuple[float, float, str, int]]) -> Path:
    path = folder / "power.csv"
    path.write_text("time_ms,watts,throttle,marker\n" + "".join(f"{t},{w},{c},{m}\n" for t, w, c, m in samples))
    return path


@pytest.mark.parametrize(("align", "marker"), [("activity", False), ("marker", True), (None, True), (None, False)])
def test_power_of_another_clock_is_joined_and_energy_follows(tmp_path: Path, align: str | None, marker: bool) -> None:
    files = [timeline(tmp_path), log(tmp_path, rows(off_ms=5e6, marker=marker))]
    found = opscope.import_profile(files, tmp_path / "run", align=align)
    metrics = {metric.name: metric for metric in found.recording.metrics}
    energy = metrics["energy"]
    assert energy.low is not None
    assert energy.high is not None
    assert energy.low <= 0.040 * 300 + 0.030 * 100 <= energy.high  # J
    assert metrics["idle power"].value == 100
    assert metrics["peak power"].value == 300
    kept = read_run(tmp_path / "run")
    assert kept.summary.energy is not None
    assert kept.summary.energy.value_j == pytest.approx(0.040 * 200, rel=0.05)  # above idle
    assert "above idle" in kept.summary.energy.note
    assert [track.unit for track in kept.trace.counters] == ["W", "1"]


def test_a_log_is_laid_over_a_run_that_is_there_already(tmp_path: Path) -> None:
    opscope.import_profile([timeline(tmp_path)], tmp_path / "first")
    both = opscope.import_profile([tmp_path / "first", log(tmp_path, rows())], tmp_path / "second", align="activity")
    assert both.run.summary.energy is not None
    assert len(both.run.trace.spans) == 4
    assert read_run(tmp_path / "second").summary.energy == both.run.summary.energy


def test_clocks_that_moved_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "power.csv"
    lines = [f"{t},{w},{1900 if n < 90 else 1500}" for n, (t, w, _, _) in enumerate(rows())]
    path.write_text("time_ms,watts,clock_mhz\n" + "\n".join(lines) + "\n")
    found = opscope.import_profile([timeline(tmp_path), path], align="activity")
    assert "clocks were not steady: 1,500 to 1,900 MHz while work ran" in found.recording.notes


def test_json_and_volts_times_amperes_say_the_same_as_watts(tmp_path: Path) -> None:
    path = tmp_path / "power.json"
    path.write_text(json.dumps([{"time_s": n / 10, "volts": 12.0, "amperes": n} for n in range(5)]))
    assert read_profile(path).trace.samples["value"].tolist() == [0, 12, 24, 36, 48]


def test_the_form_of_the_vendors_own_sampler_is_read(tmp_path: Path) -> None:
    path = tmp_path / "smi.csv"
    path.write_text(
        "timestamp, power.draw [W], clocks.current.sm [MHz]\n"
        "2026/11/18 02:00:00.100, 71.55 W, 1980 MHz\n2026/11/18 02:00:00.200, 80.10 W, 1965 MHz\n"
    )
    samples = read_profile(path).trace.samples
    assert samples["value"].tolist() == [71.55, 80.10, 1980e6, 1965e6]
    assert samples["time_ns"][1] - samples["time_ns"][0] == pytest.approx(1e8, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time_s,watts\n0,1\n1,x\n", r"sample 2: watts is 'x'; expected a number"),
        ("time_s,watts\n0,1\n0,2\n", r"sample 2: is not later than the one before"),
        ("time_s,watts\n0,1\n", r"1 samples; expected 2 to"),
        ("time_s,power\n0,1\n1,2\n", r"columns are time_s, power; expected a time .* and a power"),
        ("time_s,watts\n0,1\n1,1e400\n", r"expected a number"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "power.csv"
    path.write_text(text)
    with pytest.raises(ImportFileError, match=words):
        read_profile(path, form="power-log")


def test_what_cannot_be_aligned_is_refused(tmp_path: Path) -> None:
    trace, power = timeline(tmp_path), log(tmp_path, rows())
    with pytest.raises(UsageError, match=r"no sample is marked; expected a column `marker`"):
        opscope.import_profile([trace, power], align="marker")
    with pytest.raises(UsageError, match=r"do not cover the 70 ms of the work, by clock; expected .* --align activity"):
        opscope.import_profile([trace, power], align="clock")
    flat = tmp_path / "flat.csv"
    flat.write_text("time_ms,watts\n" + "".join(f"{n},{100 + n % 7}\n" for n in range(300)))
    with pytest.raises(UsageError, match=r"power does not follow the work \(correlation 0\.\d\d\)"):
        opscope.import_profile([trace, flat], align="activity")
    with pytest.raises(ProfilerError, match=r"--align: no log of power beside a timeline"):
        opscope.import_profile([trace], align="activity")
