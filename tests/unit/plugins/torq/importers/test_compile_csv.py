from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.core.meaning import LaneRole
from opscope.importers.formats import formats
from opscope.plugins.torq.importers.compile_csv import read_rows
from support.plugins.importer_samples import SAMPLES, sample
from support.plugins.torq_samples import FUSED, imported, spans

C_HEADER = "taskId, elapsed_time(us), timestamp(us), event, location, bytes\n"


@pytest.mark.parametrize("form", "abc")
def test_each_form_is_found_by_content_and_by_one_importer_alone(form: str) -> None:
    content = (SAMPLES / f"torq_compile_{form}.csv").read_bytes()
    assert [known.name for known in formats() if known.fits(content, "x")] == [f"torq-compile-{form}"]


def test_form_a_is_read_whole() -> None:
    found = sample("torq_compile_a.csv")
    assert found.provenance == "vendor-model"
    assert spans(found) == [  # cycles of 1.25 ns
        ("DMA In", "DMA_IN", 0, 250),
        ("DMA In", "DMA_IN", 250, 450),
        ("DMA Out", "DMA_OUT", 1125, 1200),
        ("Slice", "conv2d", 450, 1125),
    ]
    assert found.trace.spans["pcycles"].tolist() == [200, 160, 60, 540]
    assert {op.name: (op.type, op.cycles) for op in found.ops} == {
        '"net.mlir":3:5': ("DMA_IN", 200),
        'callsite("net.mlir":4:5 at "net.mlir":1:1)': ("DMA_IN", 160),
        'fused["net.mlir":4:5, "net.mlir":6:5]': ("conv2d", 600),
    }
    assert found.value("clock") == 800e6
    assert found.value("cycles") == 960


def test_form_b_has_bytes_slices_and_css() -> None:
    found = sample("torq_compile_b.csv")
    assert {lane.name for lane in found.trace.lanes} == {"DMA In", "CDMA", "CSS", "Slice 0", "Slice 1"}
    assert found.value("DMA bytes") == 1024 + 128
    assert found.value("latency") == 10_875  # 8700 cycles of 1.25 ns


def test_the_microseconds_of_form_c_are_cycles() -> None:
    found = sample("torq_compile_c.csv")
    assert ("DMA In", "DMA In", 0, 270) in spans(found)  # 216 cycles at 800 MHz, not 216 us
    assert ("Slice 1", "Slice 1", 450, 1125) in spans(found)
    assert found.trace.spans["pcycles"].tolist() == [216, 14, 20, 540]
    assert {lane.name: lane.role for lane in found.trace.lanes} == {
        "DMA In": LaneRole.TRANSFER,
        "DMA Out": LaneRole.TRANSFER,
        "CDMA": LaneRole.TRANSFER,
        "Slice 1": LaneRole.ENGINE,
    }
    assert any("at 800 MHz: the vendor's own conversion for SL2610" in note for note in found.notes)


@pytest.mark.parametrize(
    ("rows", "clock", "words"),
    [
        ([(1024, 216), (64, 14), (832, 175)], 800_000_000, "conversion for SL2610, whose rate the transfers have"),
        ([(1024, 425), (64, 27)], None, "rate of SR200, for which no clock is published"),
        ([(1024, 216), (64, 27)], None, "rate of no part that is known, or of several"),
        ([(1, 1)], None, "rate of no part that is known, or of several"),  # one cycle, whatever the rate
    ],
)
def test_transfers_of_form_c_tell_the_part_and_so_the_clock(
    rows: list[tuple[int, int]], clock: int | None, words: str, tmp_path: Path
) -> None:
    starts = [sum(cycles for _, cycles in rows[:at]) for at in range(len(rows))]
    text = "".join(f"{at},{cycles},{starts[at]},DMA In,{FUSED},{size}\n" for at, (size, cycles) in enumerate(rows))
    found = imported(tmp_path, C_HEADER + text)
    assert found.value("clock") == clock
    assert (found.latency_ns is None, len(found.trace.spans) == 0) == (clock is None, clock is None)
    assert found.value("cycles") == found.ops[0].cycles == sum(cycles for _, cycles in rows)
    assert words in found.notes[0]


def test_more_slices_than_a_part_has_are_not_of_that_part(tmp_path: Path) -> None:
    slices = "".join(f"{n + 1},5,{216 + n * 5},Slice {n},{FUSED},\n" for n in range(3))
    assert imported(tmp_path, f"{C_HEADER}0,216,0,DMA In,{FUSED},1024\n{slices}").value("clock") is None


def test_ops_of_form_c_are_called_as_their_locations_call_them(tmp_path: Path) -> None:
    named = 'loc(callsite("conv;relu"("m.tflite":0:0) at "main"("m.tflite":0:0)))'
    places = (named, FUSED, "loc(unknown)")
    text = C_HEADER + "".join(f"{n},216,{n * 216},DMA In,{place},1024\n" for n, place in enumerate(places))
    found = imported(tmp_path, text)
    assert [op.name for op in found.ops] == ["conv;relu", "7:10 + 9:10", "unknown"]
    assert [op.location for op in found.ops] == [named[4:-1], FUSED[4:-1], "unknown"]


def test_the_earlier_header_of_form_c_is_known(tmp_path: Path) -> None:
    text = C_HEADER.replace("taskId", "actionIndex") + f"0,270,0,DMA In,{FUSED},1280\n"
    assert imported(tmp_path, text).maker == "torq-compile-c"


def test_fused_rows_are_not_dropped(tmp_path: Path) -> None:
    """The mistake: rows that do not split into exactly five fields vanished from the vendor's viewer."""
    meta = 'loc(fused<{a = "x, y", b = [1, 2]}>["a,b.mlir":1:2, callsite("c\\"d.mlir":3:4 at unknown)])'
    found = imported(tmp_path, f"DI0,0,10,{FUSED},DMA_IN\nS0,10,20,{meta},conv\n")
    assert [name for _, name, _, _ in spans(found)] == ["DMA_IN", "conv"]
    assert [op.name for op in found.ops] == [FUSED[4:-1], meta[4:-1]]
    assert not any("could not be read" in note for note in found.notes)


def test_locations_quoted_as_csv_wants_them_are_the_same_locations(tmp_path: Path) -> None:
    quoted = '"' + FUSED.replace('"', '""') + '"'
    bare = imported(tmp_path, f"DI0,0,10,{FUSED},DMA_IN\n")
    assert imported(tmp_path, f"DI0,0,10,{quoted},DMA_IN\n").ops == bare.ops
    assert imported(tmp_path, f"ID,Start,End,Location,Op Type\nDI0,0,10,{quoted},DMA_IN\n").ops == bare.ops


def test_rows_that_cannot_be_read_are_counted_and_named_by_line(tmp_path: Path) -> None:
    text = f"DI0,0,160,{FUSED},DMA_IN\nDI1,160\nDI2,abc,9,loc(unknown),DMA_IN\n\nDO3,160,170,{FUSED},DMA_OUT\nS0,20,1"
    found = imported(tmp_path, text)
    assert len(found.trace.spans) == 2
    note = next(note for note in found.notes if "could not be read" in note)
    assert note == "3 rows could not be read: line 2: DI1,160; line 3: DI2,abc,9,loc(unknown),DMA_IN; line 6: S0,20,1"


def test_a_file_of_unreadable_rows_is_an_error_with_lines(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"no row of form A; 2 rows could not be read: line 1: DI0,x,y"):
        imported(tmp_path, "DI0,x,y,loc(unknown),DMA_IN\nDI1,,,,\n")


def test_a_header_alone_is_an_empty_timeline(tmp_path: Path) -> None:
    found = imported(tmp_path, C_HEADER)
    assert not len(found.trace.spans)
    assert found.latency_ns is None
    assert any("has a header and no rows" in note for note in found.notes)


def test_a_row_that_ends_before_it_starts_is_counted(tmp_path: Path) -> None:
    found = imported(tmp_path, f"DI0,100,90,{FUSED},DMA_IN\nDI1,100,110,{FUSED},DMA_IN\n")
    assert len(found.trace.spans) == 1
    assert any("1 rows could not be read: 1 rows: end before start" in note for note in found.notes)


def test_counters_that_wrapped_past_2_to_the_31_are_put_right(tmp_path: Path) -> None:
    top, wrap = 2**31, 2**32
    text = f"S0,{top - 10},{top + 20 - wrap},{FUSED},conv\nS1,{top + 30 - wrap},{top + 50 - wrap},{FUSED},conv\n"
    rows = read_rows((tmp_path / "a.csv") if (tmp_path / "a.csv").write_text(text) else tmp_path, "A")
    assert rows.start.tolist() == [top - 10, top + 30]
    assert rows.end.tolist() == [top + 20, top + 50]


def test_unsigned_counters_that_start_again_are_put_right(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"DI0,{2**32 - 5},3,{FUSED},DMA_IN\nDI1,10,20,{FUSED},DMA_IN\n")
    rows = read_rows(tmp_path / "a.csv", "A")
    assert rows.start.tolist() == [2**32 - 5, 2**32 + 10]
    assert rows.end.tolist() == [2**32 + 3, 2**32 + 20]


def test_a_negative_duration_of_form_c_has_wrapped(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(C_HEADER + f"0,{2**31 + 5 - 2**32},0,CSS,{FUSED},\n")
    assert read_rows(tmp_path / "c.csv", "C").end.tolist() == [2**31 + 5]


def test_times_past_2_to_the_31_are_kept_as_they_are(tmp_path: Path) -> None:
    start = 3 * 2**31
    found = imported(tmp_path, f"DI0,0,8,{FUSED},DMA_IN\nDI1,{start},{start + 800},{FUSED},DMA_IN\n")
    assert spans(found)[1][2:] == (start * 5 // 4, (start + 800) * 5 // 4)


def test_slices_of_any_number_have_lanes_in_order(tmp_path: Path) -> None:
    rows = "".join(f"S{n}_{n},0,10,loc(unknown),conv\n" for n in range(12))
    assert [lane.name for lane in imported(tmp_path, rows).trace.lanes] == [f"Slice {n}" for n in range(12)]


def test_slices_without_a_number_that_overlap_are_all_kept(tmp_path: Path) -> None:
    found = imported(tmp_path, "S0,0,10,loc(unknown),conv\nS1,5,15,loc(unknown),conv\n")
    assert [lane.name for lane in found.trace.lanes] == ["Slice", "Slice 2"]


def test_a_unit_that_does_two_things_at_once_violates_a_check(tmp_path: Path) -> None:
    found = imported(tmp_path, "DI0,0,10,loc(unknown),DMA_IN\nDI1,5,15,loc(unknown),DMA_IN\n")
    assert [(check.name, check.holds) for check in found.checks] == [("DMA In does one thing at a time", False)]


def test_locations_that_are_quoted_properly_are_ours_and_so_estimated(tmp_path: Path) -> None:
    quoted = '"' + FUSED.replace('"', '""') + '"'
    assert imported(tmp_path, f"DI0,0,10,{quoted},DMA_IN\n").provenance == "estimated"
    assert imported(tmp_path, f"DI0,0,10,{FUSED},DMA_IN\n").provenance == "vendor-model"
