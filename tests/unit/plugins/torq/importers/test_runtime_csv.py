from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.plugins.torq.importers.runtime_csv import read_jobs
from support.plugins.torq_samples import FUSED, imported, spans, written

HEADER = "id;time_since_open;time_since_start;location\n"
JOBS = HEADER + f'0;900;250;loc("fc.mlir":5:10)\n1;1400;320;{FUSED}\n2;2000;180;\n'
SHORT = "id;time_since_open;time_since_start\n"


def test_time_since_open_is_the_end_of_a_job_and_not_its_start(tmp_path: Path) -> None:
    """The mistake: the vendor's script for Perfetto took it for the start, and added the duration."""
    found = imported(tmp_path, JOBS)
    assert [(start, end) for _, _, start, end in spans(found)] == [
        (0, 250_000),  # the first job began at 900 - 250 = 650 us
        (430_000, 750_000),
        (1_170_000, 1_350_000),
    ]
    assert found.latency_ns == 1_350_000
    assert found.provenance == "measured"


def test_jobs_are_named_by_location_and_else_by_number(tmp_path: Path) -> None:
    found = imported(tmp_path, JOBS)
    assert [(op.name, op.time_ns) for op in found.ops] == [
        ('"fc.mlir":5:10', 250_000),
        ('fused["fc.mlir":7:10, "fc.mlir":9:10]', 320_000),
        ("job 2", 180_000),
    ]


def test_the_form_without_locations_is_read(tmp_path: Path) -> None:
    found = imported(tmp_path, SHORT + "0;10;4\n1;20;5\n")
    assert [op.name for op in found.ops] == ["job 0", "job 1"]


def test_numbers_that_start_again_begin_another_inference(tmp_path: Path) -> None:
    found = imported(tmp_path, SHORT + "0;10;4\n1;20;5\n0;30;4\n1;44;6\n")
    assert found.inferences == 2
    assert found.trace.spans["inference"].tolist() == [0, 0, 1, 1]
    assert found.latency_ns == (14_000 + 18_000) // 2
    assert [(op.calls, op.time_ns, op.low_ns, op.high_ns) for op in found.ops] == [
        (1.0, 4_000, 4_000, 4_000),
        (1.0, 5_500, 5_000, 6_000),
    ]


def test_rows_that_are_cut_short_are_counted_and_named_by_line(tmp_path: Path) -> None:
    found = imported(tmp_path, HEADER + f"0;10;4;{FUSED}\n1;20\n2;30;x;{FUSED}\n3;40;-1;\n4;50;2;\n5;6")
    assert len(found.trace.spans) == 2
    note = next(note for note in found.notes if "could not be read" in note)
    assert note.startswith("4 rows could not be read: line 3: 1;20; line 4: 2;30;x;loc(fused")
    assert note.endswith("line 5: 3;40;-1;; line 7: 5;6")


def test_a_separator_in_a_location_is_part_of_it(tmp_path: Path) -> None:
    found = imported(tmp_path, HEADER + '0;10;4;loc("a;b.mlir":1:2)\n')
    assert [op.name for op in found.ops] == ['"a;b.mlir":1:2']


def test_a_header_alone_is_a_run_of_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path, HEADER)
    assert not len(found.trace.spans)
    assert found.latency_ns is None
    assert any("nothing was run" in note for note in found.notes)


@pytest.mark.parametrize(("text", "words"), [("", "line 1: empty"), ("a;b\n", "line 1: no header")])
def test_what_is_no_such_file_is_an_error(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=words):
        imported(tmp_path, text, form="torq-runtime")


def test_a_file_of_unreadable_rows_is_an_error_with_lines(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="1 rows could not be read: line 2: 1;2"):
        imported(tmp_path, HEADER + "1;2\n")


def test_a_clock_that_wrapped_at_32_bits_is_put_right(tmp_path: Path) -> None:
    top, wrap = 2**31, 2**32
    jobs = read_jobs(written(tmp_path, SHORT + f"0;{top - 100};5\n1;{top + 50 - wrap};5\n2;{top + 90 - wrap};5\n"))
    assert (jobs.end_ns // 1000).tolist() == [top - 100, top + 50, top + 90]
    assert "time_since_open wrapped at 32 bits 1 times: put right" in jobs.notes


def test_a_clock_that_starts_again_lays_rows_behind(tmp_path: Path) -> None:
    jobs = read_jobs(written(tmp_path, SHORT + "0;1000;5\n1;2000;5\n0;300;7\n"))
    assert jobs.start_ns.tolist()[-1] == jobs.end_ns.tolist()[1] == 2_000_000
    assert any("the clock starts again 1 times" in note for note in jobs.notes)


def test_times_past_2_to_the_31_microseconds_are_kept(tmp_path: Path) -> None:
    jobs = read_jobs(written(tmp_path, SHORT + f"0;{2**31 - 1};1\n1;{2**31 + 9};2\n"))
    assert jobs.end_ns.tolist() == [(2**31 - 1) * 1000, (2**31 + 9) * 1000]


def test_locations_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + f"0;10;4;{FUSED}\n")
    assert read_jobs(path, locations=False).location.tolist() == [-1]


def test_blanks_around_a_number_are_nothing_however_many(tmp_path: Path) -> None:
    rows = ["", " 0 ;  9;4  ", f"1;{' ' * 100_000}20;5", f"2;30{' ' * 1000};{' ' * 7}6 ", f"3;{' ' * 100};6", "odd"]
    found = imported(tmp_path, "id;time_since_open;time_since_start" + "\n".join(rows) + "\n")
    assert [(start, end) for _, _, start, end in spans(found)] == [(0, 4_000), (10_000, 15_000), (19_000, 25_000)]
    assert found.notes[0].startswith("2 rows could not be read: line 5: 3;")
