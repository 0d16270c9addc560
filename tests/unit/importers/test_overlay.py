from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.importers.combine import combine
from opscope.recording.recording import Recording
from support.plugins.importer_samples import sample
from support.plugins.torq_samples import FUSED, imported, spans

COMPILE = "DI0,0,160,{a},DMA_IN\nS0,160,480,{b},conv\nDO1,480,640,{c},DMA_OUT\n"
RUNTIME = "id;time_since_open;time_since_start;location\n"
A, B, C = (f'loc("m.mlir":{line}:1)' for line in (1, 2, 3))


def both(folder: Path, compile_text: str, runtime_text: str, *, swap: bool = False) -> Recording:
    parts = [imported(folder, compile_text), imported(folder, runtime_text)]
    return combine(parts[::-1] if swap else parts)


@pytest.mark.parametrize("swap", [False, True])
def test_every_estimate_begins_where_its_op_was_measured(swap: bool, tmp_path: Path) -> None:
    runtime = RUNTIME + f"0;100;40;{A}\n1;300;100;{B}\n"
    found = both(tmp_path, COMPILE.format(a=A, b=B, c=C), runtime, swap=swap)
    assert found.provenance == "measured"
    assert spans(found) == [
        ("NSS Programs", '"m.mlir":1:1', 0, 40_000),
        ("NSS Programs", '"m.mlir":2:1', 140_000, 240_000),
        ("DMA In (vendor-model)", "DMA_IN", 0, 200),
        ("Slice (vendor-model)", "conv", 140_000, 140_400),
        ("DMA Out (vendor-model)", "DMA_OUT", 140_400, 140_600),  # no measured op: stays behind the one before it
    ]


def test_ops_have_measured_and_estimated_times_and_their_ratio(tmp_path: Path) -> None:
    found = both(tmp_path, COMPILE.format(a=A, b=B, c=C), RUNTIME + f"0;100;40;{A}\n1;300;100;{B}\n")
    assert [(op.name, op.time_ns, op.estimated_ns, op.ratio) for op in found.ops] == [
        ('"m.mlir":1:1', 40_000, 200, 200.0),
        ('"m.mlir":2:1', 100_000, 400, 250.0),
        ('"m.mlir":3:1', None, 200, None),
    ]
    assert found.value("measured ÷ estimated") == 240_000 / 800
    assert found.value("latency") == 240_000
    assert found.value("latency (vendor-model)") == 800


def test_ops_that_have_names_are_joined_by_their_locations(tmp_path: Path) -> None:
    header = "taskId, elapsed_time(us), timestamp(us), event, location, bytes\n"
    named = 'loc(callsite("conv"("m.mlir":2:1) at "main"("m.mlir":9:9)))'
    text = f"{header}0,216,0,DMA In,{A},1024\n1,400,216,Slice 0,{named},\n"
    found = both(tmp_path, text, RUNTIME + f"0;100;40;{A}\n1;300;100;{B}\n")
    assert [(op.name, op.estimated_ns) for op in found.ops] == [('"m.mlir":1:1', 270), ('"m.mlir":2:1', 500)]


def test_a_job_too_short_for_its_clock_has_no_ratio(tmp_path: Path) -> None:
    found = both(tmp_path, COMPILE.format(a=A, b=B, c=C), RUNTIME + f"0;100;40;{A}\n1;300;0;{B}\n")
    assert [op.ratio for op in found.ops] == [200.0, None, None]


def test_a_fused_job_takes_the_estimates_of_all_its_parts_once(tmp_path: Path) -> None:
    fused = 'loc(fused["m.mlir":1:1, "m.mlir":2:1])'
    found = both(tmp_path, f"DI0,0,160,{A},DMA_IN\nS0,80,480,{B},conv\n", RUNTIME + f"0;100;40;{fused}\n")
    assert [(op.name, op.estimated_ns) for op in found.ops] == [(fused[4:-1], 600)]  # 480 cycles: they overlap by 80


def test_an_estimate_without_any_common_location_is_laid_from_the_first_job_on() -> None:
    found = combine([sample("torq_compile_c.csv"), sample("torq_host_h3.csv")])
    assert ("DMA In (vendor-model)", "DMA In", 10_000, 10_270) in spans(found)  # 216 cycles of 1.25 ns
    assert found.latency_ns == 150_000  # of the dispatch: an estimate never stands for what was measured
    assert any("laid from the first measured job on" in note for note in found.notes)


def test_what_has_no_partner_is_told(tmp_path: Path) -> None:
    found = both(tmp_path, COMPILE.format(a=A, b=B, c=C), RUNTIME + f"0;100;40;{A}\n1;300;100;\n")
    assert "2 of 3 estimated spans have no measured op: laid behind those before" in found.notes
    assert "1 of 2 measured ops have no estimate, first job 1" in found.notes


def test_estimates_that_would_overlap_on_a_lane_are_all_kept(tmp_path: Path) -> None:
    text = f"S0_0,0,800,{A},a\nS1_0,800,1600,{B},b\n"  # 1 us each
    found = both(tmp_path, text, RUNTIME.replace("open;", "open;") + f"0;1;1;{A}\n1;1;1;{B}\n")
    lanes = [lane for lane, _, _, _ in spans(found)]
    assert lanes[2:] == ["Slice 0 (vendor-model)", "Slice 0 (vendor-model) 2"]


def test_two_measured_timelines_still_do_not_make_one_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two timelines"):
        both(tmp_path, RUNTIME + f"0;100;40;{FUSED}\n", RUNTIME + f"0;100;40;{FUSED}\n")
