"""End-of-run statistics, latency lines and host stages, character by character."""

from __future__ import annotations

from io import StringIO

from opscope.recording.host_times import HostMetric, HostTimes, RunStatistics
from opscope.views.text.latency_csv import LatencyCsv
from opscope.views.text.run_stdout import HostStages, RunStdout
from support.recording.run_build import STATS_HZ, program_of, rows_of

# The layouts of a run on hardware, printed in the Profiler tutorial of quic/cloud-ai-sdk.
PUBLISHED = """\
 ---- Stats ----
InferenceCnt 4816 TotalDuration 20022021us BatchSize 8 Inf/Sec 1924.281
Device Performance: 
Metric,          Avg,           Min,           Max,           Std            
ExecTimeUs,      22861.091,     22236.458,     31251.875,     513.795        
InputWaitTimeUs, 6980.003,      617.552,       3290982.552,   134573.376     
OutputWaitTimeUs,0.138,         0.104,         2.083,         0.115          

"""  # noqa: W291
PUBLISHED_COLUMNS = (
    "Sample        ,devInfPerSec  ,devExecUs     ,devInWaitTimeUs  ,devOutWaitTimeUs  ,hostRoundTripUs  ,"
    "enqTimeUs     ,preProcTimeUs  ,submitTimeUs  ,execTotalUs   ,exectoVcUs    ,execToCompleteUs  ,postProcUs    ,"
    "totalRoundtripT"
)


def latency_lines(level: int) -> list[str]:
    out = StringIO()
    rows = rows_of(0, 1_000_000)
    LatencyCsv(program_of(level=level), requested=5).render(HostTimes(rows, STATS_HZ, 1), rows, out)
    return out.getvalue().splitlines()


def test_the_statistics_of_the_published_run_come_out_as_published() -> None:
    metrics = (
        HostMetric("ExecTimeUs", 22861.091, 22236.458, 31251.875, 513.795),
        HostMetric("InputWaitTimeUs", 6980.003, 617.552, 3290982.552, 134573.376),
        HostMetric("OutputWaitTimeUs", 0.138, 0.104, 2.083, 0.115),
    )
    out = StringIO()
    RunStdout().render(RunStatistics("aic100-std", 4816, 20_022_021_000, 8, metrics), out)
    assert out.getvalue() == PUBLISHED + "All figures are simulated on aic100-std.\n"


def test_an_unknown_metric_is_not_a_zero() -> None:
    out = StringIO()
    RunStdout().render(RunStatistics("t", 1, 1000, 1, (HostMetric("ExecTimeUs", None, None, None, None),)), out)
    assert "ExecTimeUs,      N/A,           N/A,           N/A,           N/A            \n" in out.getvalue()


def test_latency_has_four_header_lines_and_the_published_columns() -> None:
    lines = latency_lines(70)
    assert lines[:4] == [
        "Profiling Data",
        "ProgramId:0",
        "ProgramName: Program:net",
        "NumSamples collected: 2 Num Requested: 5",
    ]
    assert lines[4].startswith(PUBLISHED_COLUMNS)
    assert [cell.strip() for cell in lines[4].split(",")][-3:] == [
        "totalRoundtripTimeUs",
        "queueDepth",
        "numInfInQueue",
    ]
    assert len(lines) == 7


def test_latency_columns_line_up_and_hold_microseconds() -> None:
    header, first, second = latency_lines(70)[4:]
    starts = [i for i, c in enumerate(header) if c == ","]
    assert [i for i, c in enumerate(first) if c == ","] == starts
    assert [i for i, c in enumerate(second) if c == ","] == starts
    row = dict(zip((c.strip() for c in header.split(",")), (c.strip() for c in first.split(",")), strict=True))
    assert row["devExecUs"] == "10.000"
    assert row["devInfPerSec"] == "400000.000"  # a batch of 4
    assert row["devInWaitTimeUs"] == "0.990"
    assert (row["exectoVcUs"], row["execToCompleteUs"], row["hostRoundTripUs"]) == ("1.000", "4.000", "5.000")
    assert row["totalRoundtripTimeUs"] == "11.000"
    assert (row["queueDepth"], row["numInfInQueue"]) == ("2", "3")


def test_device_columns_of_an_uninstrumented_program_are_absent() -> None:
    for level, absent in ((0, 4), (40, 2), (50, 0)):
        cells = [cell.strip() for cell in latency_lines(level)[5].split(",")]
        assert cells.count("N/A") == absent
        assert "N/A" not in cells[5:]


def test_host_stages_add_up_to_the_total() -> None:
    out = StringIO()
    HostStages().render(HostTimes(rows_of(0), STATS_HZ, 7), rows_of(0), out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Host stages of inference 0, activation 0 (simulated)"
    assert lines[1] == "  enqueue                  1.000 us   9.09%"
    assert lines[-2] == "  total                   11.000 us"
    assert lines[-1] == "  queue depth at submit: 2; activations at once: 7"
