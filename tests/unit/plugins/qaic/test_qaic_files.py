from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError, UsageError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from support.plugins.importer_samples import SAMPLES, all_hold, op, sample
from support.plugins.qaic_published import PERCENTILES, STDOUT, SUMMARY, summary_text, written

LATENCY_HEADER = (  # as of SDK 1.20
    "Profiling Data\nProgramId:1\nProgramName: Program:BenchmarkSet\nNumSamples collected: 50 Num Requested: 100\n"
    "Sample        ,devInfPerSec  ,devExecUs     ,devInWaitTimeUs  ,devOutWaitTimeUs  ,hostRoundTripUs\n"
)


def test_the_published_summary_obeys_its_identities(tmp_path: Path) -> None:
    imported = read_profile(written(tmp_path, SUMMARY))
    assert all_hold(imported)
    assert len(imported.checks) == 7
    assert imported.latency_ns == round(444677 / 19.2e6 * 1e9)
    assert imported.value("throughput") == pytest.approx(345.419, abs=1e-3)
    assert imported.value("c0 effective frequency") == pytest.approx(1233.12e6, abs=1e4)
    conv = op(imported, "c0 aicconvolutiond32 HMX TCM (float16, i8, index32)")
    assert (conv.calls, conv.cycles, conv.engines) == (1081, 15_612_581, ("HMX",))
    assert len(imported.trace.spans) == 12
    assert imported.tables[0].network == "QAicGraph"


def test_a_figure_that_was_changed_is_a_violation(tmp_path: Path) -> None:
    text = summary_text().replace("Effective frequency is 1233.12MHz", "Effective frequency is 1333.12MHz")
    (tmp_path / "s.txt").write_text(text)
    assert [c.detail for c in read_profile(tmp_path / "s.txt").checks if not c.holds] == ["1 of 2 cores"]


def test_the_published_stdout_obeys_its_identity(tmp_path: Path) -> None:
    imported = read_profile(written(tmp_path, STDOUT))
    assert all_hold(imported)
    assert imported.value("throughput") == 1924.281
    assert imported.value("InputWaitTimeUs, most") == pytest.approx(3_290_982_552)
    assert imported.latency_ns == 22_861_091
    assert imported.provenance == "measured"


def test_stdout_of_the_simulated_device_is_not_taken_for_measured(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        "InferenceCnt 10 TotalDuration 1000us BatchSize 1 Inf/Sec 10000.000\nMetric, Avg, Min, Max, Std\n"
        "ExecTimeUs,      95.0,  90.0, 99.0, N/A\n\nAll figures are simulated on aic100-std.\n"
    )
    imported = read_profile(path)
    assert (imported.provenance, imported.target, imported.latency_ns) == ("simulated", "aic100-std", 95_000)


def test_the_newer_stdout_names_functions(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(
        "InferenceCnt 10 TotalDuration 1000us BatchSize 1 Inf/Sec 9000.000\nAggregated Device Metrics Report\n"
        "Metric, Avg, Min, Max, Std\nExecTimeUs_Func_0, 95.0, 90.0, 99.0, 1.0\n"
        "DDRBandwidthGBPerSec_Dev_0_Func_0, 50.5, 1, 99, 1\nbroken, 1\n"
    )
    imported = read_profile(path)
    assert imported.latency_ns == 95_000
    assert imported.value("DDRBandwidthGBPerSec_Dev_0_Func_0, average") == pytest.approx(50.5e9)
    assert [c.holds for c in imported.checks] == [False]  # 9000 is not 10 in 1000 µs
    assert imported.notes[-1] == "1 rows could not be read: line 6: broken, 1"


def test_the_published_percentiles_obey_their_identity(tmp_path: Path) -> None:
    imported = read_profile(written(tmp_path, PERCENTILES))
    assert all_hold(imported)
    assert imported.value("hostRoundTrip, mean") == pytest.approx(23_372_801)
    assert imported.latency_ns == 23_453_992
    assert imported.notes == ()


def test_a_latency_file_is_summed_up_and_checked_line_by_line() -> None:
    imported = sample("latency.txt")
    assert all_hold(imported)
    assert (imported.latency_ns, imported.inferences, imported.model) == (23_453_900, 3, "Program:BenchmarkSet")
    assert imported.value("devExec, mean") is None
    assert imported.value("hostRoundTrip, max") == 23_505_000


def test_a_latency_line_that_does_not_add_up_is_a_violation(tmp_path: Path) -> None:
    text = (SAMPLES / "latency.txt").read_text().replace(",22652 ", ",29652 ")
    (tmp_path / "l.txt").write_text(text + "3, rest cut")
    imported = read_profile(tmp_path / "l.txt")
    assert [c.detail for c in imported.checks if not c.holds] == ["2 of 3 samples"]
    assert imported.notes == ("1 samples could not be read: line 9: 3, rest cut",)


def test_a_latency_header_alone_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latency.txt").write_text(LATENCY_HEADER)
    with pytest.raises(ImportFileError, match="no samples below the header"):
        read_profile(tmp_path / "latency.txt")


def test_summary_stdout_and_percentiles_of_one_run_make_one(tmp_path: Path) -> None:
    whole = combine([read_profile(written(tmp_path, name)) for name in (SUMMARY, STDOUT, PERCENTILES)])
    assert all_hold(whole)
    assert whole.maker == "qaic-summary + qaic-runner-stdout + qaic-latency-percentiles"
    assert whole.value("latency (qaic-runner-stdout)") == 22_861_091


def test_two_timelines_do_not_make_one_run(tmp_path: Path) -> None:
    summary = read_profile(written(tmp_path, SUMMARY))
    with pytest.raises(UsageError, match="two timelines; expected one per run"):
        combine([summary, summary])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[9803252406782, 9803252851384]", "[9803252406782, 1]", "1 rows could not be read: c0 t0"),
        ("[9803252406782, 9803252851384]", "[9803252406782, " + "9" * 400 + "]", "1 rows could not be read: c0 t0"),
        ("c0     424682 ", "c0     " + "9" * 400 + " ", "1 rows could not be read: sync"),
    ],
)
def test_rows_of_a_summary_that_cannot_be_true_are_counted(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = summary_text()
    assert old in text
    (tmp_path / "s.txt").write_text(text.replace(old, new, 1))
    assert any(note.startswith(words) for note in read_profile(tmp_path / "s.txt").notes)


def test_a_number_of_a_summary_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text(summary_text().replace("525124.00", "525.124.00", 1))
    with pytest.raises(ImportFileError, match=r"s\.txt: .*525\.124\.00.*; expected the rows of a summary"):
        read_profile(tmp_path / "s.txt")


def test_what_the_application_sees_is_taken_apart(tmp_path: Path) -> None:
    imported = read_profile(written(tmp_path, PERCENTILES))
    stages = {stage.name: stage.ns for stage in imported.host}
    assert stages["enqueue"] == 6_761  # 0.006761 ms
    assert stages["device"] == 23_051_370
    assert stages["driver"] == 23_372_801 - 23_051_370
    assert sum(stages.values()) == pytest.approx(imported.value("totalRoundtripTime, mean"), abs=3)


def test_a_damaged_row_of_a_summary_is_named_and_the_others_stay(tmp_path: Path) -> None:
    text = summary_text()
    lines = text.split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith("c0") and "HMX" in line and "%" in line)
    lines[place] = lines[place].replace("%", "?")
    (tmp_path / "s.txt").write_text("\n".join(lines))
    whole, damaged = (
        read_profile(written(tmp_path, SUMMARY)),
        read_profile(tmp_path / "s.txt"),
    )
    assert not any("could not be read" in note for note in whole.notes)
    assert len(damaged.ops) + len(damaged.trace.spans) == len(whole.ops) + len(whole.trace.spans) - 1
    assert damaged.notes[-1].startswith(f"1 rows could not be read: line {place + 1}: c0")
