"""`opscope annotate` and the vendor's script: rows, metrics, workbooks, timelines, and what does not fit together."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from opscope.cli import main
from support.plugins.torq_dumps import CDMA_WAIT, CSS, DMA_IN, DMA_OUT, function, job, module, slice_start, slice_wait

pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")

JOBS = "id;time_since_open;time_since_start;location\n"
HOST = "dispatch_name,invocation_id,action_id,timestamp_us,event\n"
FUSED = 'loc(fused["fc.mlir":7:10, "fc.mlir":9:10])'
THREE = [  # a DMA that is started in one job and waited for in the next; slice 0, then CSS
    job(0, [[DMA_IN[0]]], place='loc("fc.mlir":2:1)'),
    job(1, [[DMA_IN[1], slice_start(0)], [slice_wait(0), DMA_OUT[0]]], place=FUSED),
    job(2, [[DMA_OUT[1], CSS[0], CSS[1]]]),
]
RUNTIME = JOBS + f'0;1523;402;loc("fc.mlir":5:10)\n1;2101;377;{FUSED}\n2;2650;301;\n'
GOLDEN = """\
nss_program_index;operation;slice_id;invocation_name;nss_program_timestamp_start;nss_program_timestamp_end;\
nss_program_timestamp_total;slice_used_0_in_program;slice_used_1_in_program;dma_in_used_in_program;\
dma_out_used_in_program
0;torq_hw.dma_in_start;;;0;402;402;False;False;True;False
1;torq_hw.dma_in_wait;;;402;980;578;True;False;True;True
1;torq_hw.slice_start;0;add;402;980;578;True;False;True;True
1;torq_hw.slice_wait;0;add;402;980;578;True;False;True;True
1;torq_hw.dma_out_start;;;402;980;578;True;False;True;True
2;torq_hw.dma_out_wait;;;980;1529;549;False;False;False;True
2;torq_hw.css_start;;;980;1529;549;False;False;False;True
2;torq_hw.css_wait;;;980;1529;549;False;False;False;True
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    phases = tmp_path / "compilation_phases"
    phases.mkdir()
    (phases / "fc.9.executable-targets.mlir").write_text(module(function(THREE)))
    (tmp_path / "runtime.csv").write_text(RUNTIME)
    return tmp_path


DUMP = "compilation_phases/fc.9.executable-targets.mlir"


def host_log(*invocations: int, jobs: int = 3) -> str:
    """Every job started and waited for: 5 us to start, 100 us to wait; 10 us between."""
    rows, time = [], 1000
    for invocation in invocations:
        rows.append(f"main_dispatch_0,{invocation},-1,{time},DISPATCH_BEGIN")
        for action in range(2 * jobs):
            kind, length = (("NSS_START", 5), ("NSS_WAIT", 100))[action % 2]
            rows.append(f"main_dispatch_0,{invocation},{action},{time},{kind}_BEGIN")
            time += length
            rows.append(f"main_dispatch_0,{invocation},{action},{time},{kind}_END")
            time += 0 if action % 2 == 0 else 10
        rows.append(f"main_dispatch_0,{invocation},-1,{time},DISPATCH_END")
    return HOST + "\n".join(rows) + "\n"


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def metrics(captured: pytest.CaptureFixture[str]) -> dict[str, int]:
    return {metric["name"]: metric["time_ns"] for metric in json.loads(captured.readouterr().out)["metrics"]}


def test_the_vendors_command_line_gives_the_vendors_table(place: Path) -> None:
    assert main(["annotate_profiling.py", f"./{DUMP}", "./runtime.csv", "./annotated_runtime.csv"]) == 0
    assert Path("annotated_runtime.csv").read_text() == GOLDEN


def test_time_of_the_host_is_not_charged_to_a_job(place: Path) -> None:
    assert main(["annotate", DUMP, "runtime.csv", "out.csv"]) == 0
    times = {
        (r["nss_program_timestamp_start"], r["nss_program_timestamp_end"], r["nss_program_timestamp_total"])
        for r in rows_of("out.csv")
    }
    assert times == {("0", "402", "402"), ("603", "980", "377"), ("1228", "1529", "301")}


def test_the_end_of_a_job_is_never_taken_for_its_start(place: Path) -> None:
    """The mistake: start = time_since_open, end = start + duration, in the vendor's first script for timelines."""
    main(["annotate", DUMP, "runtime.csv", "out.json"])
    rows = json.loads(Path("out.json").read_text())["rows"]
    assert rows[-1]["nss_program_timestamp_end"] == 2650 - (1523 - 402)


def test_columns_can_have_the_names_of_the_manual(place: Path) -> None:
    main(["annotate", DUMP, "runtime.csv", "out.csv", "--headers", "human"])
    assert Path("out.csv").read_text().splitlines()[0].split(";") == [
        "NSS Program Index",
        "torq-hw Operation in program",
        "Slice ID (if applicable)",
        "Invocation Name (if applicable)",
        "NSS Program Start Timestamp [us]",
        "NSS Program End Timestamp [us]",
        "NSS Program Total Time [us]",
        "Slice 0 Used in NSS Program",
        "Slice 1 Used in NSS Program",
        "DMA In Used in NSS Program",
        "DMA Out Used in NSS Program",
    ]


def test_a_log_of_the_host_gives_a_row_per_action(place: Path) -> None:
    Path("host.csv").write_text(host_log(4))
    Path("fc.mlir").write_text("\n" * 6 + "%0 = tosa.conv2d %a\n\n%1 = tosa.rescale %0\n")
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 0
    rows = rows_of("out.csv")
    assert list(rows[0]) == [
        "action_id",
        "job_id",
        "operation",
        "invocation_names",
        "original_operators",
        "total_time",
        "slice_used_0_in_program",
        "slice_used_1_in_program",
        "dma_in_used_in_program",
        "dma_out_used_in_program",
        "cdma_used_in_program",
        "css_used_in_program",
        "timestamp_start",
        "timestamp_end",
        "location",
    ]
    assert [row["action_id"] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert rows[2] == {
        "action_id": "2",
        "job_id": "1",
        "operation": "torq_hl.start_program",
        "invocation_names": "add",
        "original_operators": "tosa.conv2d@L7 tosa.rescale@L9",
        "total_time": "5.0",
        "slice_used_0_in_program": "True",
        "slice_used_1_in_program": "False",
        "dma_in_used_in_program": "True",
        "dma_out_used_in_program": "True",
        "cdma_used_in_program": "False",
        "css_used_in_program": "False",
        "timestamp_start": "115.0",
        "timestamp_end": "120.0",
        "location": "@L7C10+@L9C10",
    }
    assert rows[5]["css_used_in_program"] == "True"


def test_what_the_runtime_does_for_itself_comes_last_and_uses_nothing(place: Path) -> None:
    log = host_log(1) + "__HAL_QUEUE_EXECUTE__,2,-1,900,HAL_CALL_BEGIN\n__HAL_QUEUE_EXECUTE__,2,-1,2000,HAL_CALL_END\n"
    Path("host.csv").write_text(log)
    main(["annotate", DUMP, "host.csv", "out.csv"])
    last = rows_of("out.csv")[-1]
    assert (last["operation"], last["action_id"], last["dma_in_used_in_program"]) == ("HAL_CALL", "", "")


def test_an_action_without_an_end_has_no_total(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = host_log(1).splitlines(keepends=True)
    (lost,) = (line for line in lines if ",5," in line and "NSS_WAIT_END" in line)
    Path("host.csv").write_text("".join(line for line in lines if line != lost))
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 0
    last = rows_of("out.csv")[-1]
    assert (last["action_id"], last["total_time"], last["timestamp_end"]) == ("5", "", "")
    assert "1 events without an end" in capsys.readouterr().err


def test_metrics_are_told_with_their_percentages(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", DUMP, "runtime.csv", "out.csv", "--json"]) == 0
    found = metrics(capsys)
    assert found["OVERALL"] == 1_529_000
    assert found["DMA_IN"] == (402 + 377) * 1000
    assert found["SLICE_0"] == 377_000
    assert found["CSS"] == 301_000
    assert found["DMA_ONLY"] == 402_000
    assert found["DMA_COMPUTE_OVERLAP"] == (377 + 301) * 1000
    assert found["IDLE"] == (1529 - 402 - 377 - 301) * 1000
    main(["annotate", DUMP, "runtime.csv", "out.csv", "--provenance", "simulated"])
    assert "time (simulated)" in capsys.readouterr().out


def test_more_than_two_slices_have_their_columns(place: Path) -> None:
    Path("d.mlir").write_text(
        module(function([job(0, [[slice_start(0), slice_start(3)], [slice_wait(0), slice_wait(3)]])]))
    )
    Path("r.csv").write_text(JOBS + "0;10;4;\n")
    main(["annotate", "d.mlir", "r.csv", "out.csv"])
    row = rows_of("out.csv")[0]
    assert [row[f"slice_used_{n}_in_program"] for n in range(4)] == ["True", "False", "False", "True"]


def test_several_inferences_are_numbered(place: Path) -> None:
    rows = [f"{n % 3};{100 * (n + 1)};50;" for n in range(6)]
    Path("runtime.csv").write_text(JOBS + "\n".join(rows) + "\n")
    assert main(["annotate", DUMP, "runtime.csv", "out.csv"]) == 0
    assert [(row["inference"], row["nss_program_index"]) for row in rows_of("out.csv")] == [
        (str(i), str(j)) for i in range(2) for j, count in ((0, 1), (1, 4), (2, 3)) for _ in range(count)
    ]


def test_an_empty_run_gives_a_table_without_rows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runtime.csv").write_text(JOBS)
    assert main(["annotate", DUMP, "runtime.csv", "out.csv"]) == 0
    assert rows_of("out.csv") == []
    assert "nothing was run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0;1;1;\n1;2;1;\n", f"has 2 rows, {DUMP} has 3 jobs (main_dispatch_0: 3): it has no row of job 2 (nss"),
        ("0;1;1;\n1;2;1;\n2;3;1;\n0;4;1;\n2;5;1;\n", "inference 1, from row 4 on, has no row of job 1 (nss_program_1)"),
        ("0;1;1;\n1;2;1;\n2;3;1;\n3;4;1;\n", "it has rows of job 3, which the dump does not have"),
    ],
)
def test_rows_that_do_not_fit_the_dump_are_explained(
    rows: str, words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runtime.csv").write_text(JOBS + rows)
    assert main(["annotate", DUMP, "runtime.csv", "out.csv"]) == 2
    assert words in capsys.readouterr().err
    assert not Path("out.csv").exists()


def test_ids_that_run_on_need_the_number_of_inferences(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("runtime.csv").write_text(JOBS + "".join(f"{n};{10 * n + 10};5;\n" for n in range(6)))
    assert main(["annotate", DUMP, "runtime.csv", "out.csv"]) == 2
    assert main(["annotate", DUMP, "runtime.csv", "out.csv", "--inferences", "2"]) == 0
    assert main(["annotate", DUMP, "runtime.csv", "out.csv", "--inferences", "3"]) == 2
    assert "expected 9 rows of 3 inferences" in capsys.readouterr().err


def test_a_log_of_other_dispatches_is_explained(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.csv").write_text(host_log(1).replace("main_dispatch_0", "other"))
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 2
    words = (
        "host.csv has other: 6 actions; compilation_phases/fc.9.executable-targets.mlir has main_dispatch_0: 6 actions"
    )
    assert words in capsys.readouterr().err


def test_actions_that_only_one_side_has_are_noted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.csv").write_text(host_log(1).replace(",4,", ",40,"))
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 0
    notes = capsys.readouterr().err
    assert f"1 rows are of actions that {DUMP} does not have: main_dispatch_0 action 40" in notes
    assert f"1 actions of {DUMP} are not in host.csv: main_dispatch_0 action 4" in notes
    assert [row["operation"] for row in rows_of("out.csv") if row["action_id"] == "40"] == ["NSS_START"]


def test_an_action_that_is_something_else_in_the_dump_is_noted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.csv").write_text(host_log(1).replace("NSS_WAIT", "ALLOC", 2))
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 0
    words = (
        f"1 rows of host.csv are something else in {DUMP}, which is of another compilation: main_dispatch_0 action 1"
    )
    assert f"{words} is ALLOC there and torq_hl.wait_program here" in capsys.readouterr().err


def test_a_log_that_fits_its_dump_is_something_else_nowhere(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("host.csv").write_text(host_log(1, 2))
    assert main(["annotate", DUMP, "host.csv", "out.csv"]) == 0
    assert "something else" not in capsys.readouterr().err


def test_a_workbook_is_a_real_one_with_numbers_and_flags(place: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    assert main(["annotate", DUMP, "runtime.csv", "out.xlsx"]) == 0
    book = openpyxl.load_workbook("out.xlsx")
    assert book.sheetnames == ["Detailed Performance Data", "Metrics"]
    header, *rows = book["Detailed Performance Data"].iter_rows(values_only=True)
    assert header[:3] == ("NSS Program Index", "torq-hw Operation in program", "Slice ID (if applicable)")
    assert rows[2] == (1, "torq_hw.slice_start", 0, "add", 603, 980, 377, True, False, True, True)
    sheet = book["Detailed Performance Data"]
    assert sheet.column_dimensions["B"].width == pytest.approx(len(header[1]) + 2, abs=1)
    assert next(book["Metrics"].iter_rows(min_row=2, values_only=True)) == ("OVERALL", 1529, 100, "measured")


def test_a_text_that_looks_like_a_formula_stays_a_text(place: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    text = module(function([job(0, [[slice_start(0)]])])).replace("slice_program_torq_hl.add", "=1+1")
    Path("d.mlir").write_text(text)
    Path("r.csv").write_text(JOBS + "0;10;4;\n")
    assert main(["annotate", "d.mlir", "r.csv", "out.xlsx"]) == 0
    cell = openpyxl.load_workbook("out.xlsx")["Detailed Performance Data"]["D2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "json", "pftrace"])
def test_the_same_input_gives_the_same_bytes(suffix: str, place: Path) -> None:
    for name in ("a", "b"):
        assert main(["annotate", DUMP, "runtime.csv", f"{name}.{suffix}"]) == 0
    assert Path(f"a.{suffix}").read_bytes() == Path(f"b.{suffix}").read_bytes()


def test_json_tells_memories_and_estimates_beside_the_rows(place: Path) -> None:
    lram, dtcm = ('memref<64xi8, {mem_space = "lram"}>', 'memref<64xi8, {mem_space = "dtcm"}>')
    before = "".join(
        f'%{n} = "memref.alloc"() <{{operandSegmentSizes = array<i32: 0, 0>}}> : () -> {kind}\n'
        for n, kind in (("d", dtcm), ("s", lram))
    )
    start = f'"torq_hw.cdma_start"(%d, %s) {{"torq-async-duration-cycles" = 12 : i64}} : ({dtcm}, {lram}) -> ()'
    Path("d.mlir").write_text(module(function([job(0, [[start, CDMA_WAIT]])], before=before)))
    Path("r.csv").write_text(JOBS + "0;10;4;\n")
    assert main(["annotate", "d.mlir", "r.csv", "out.json"]) == 0
    found = json.loads(Path("out.json").read_text())
    assert found["schema"] == "opscope.annotated/1"
    step = found["jobs"][0]["steps"][0]
    assert (step["source"], step["destination"], step["estimated_cycles"]) == ("LRAM", "DTCM", 12)
    assert found["memories"]["main_dispatch_0"] == [
        {"name": name, "peak_bytes": 64, "allocated_bytes": 64} for name in ("DTCM", "LRAM")
    ]


def test_the_timeline_has_the_vendors_tracks(place: Path) -> None:
    Path("host.csv").write_text(host_log(1))
    Path("fc.mlir").write_text("\n%0 = tosa.add %a\n" + "\n" * 4 + "%1 = tosa.conv2d %0\n")
    assert main(["annotate", DUMP, "host.csv", "out.pftrace"]) == 0
    tracks, found = tracks_and_slices(Path("out.pftrace"))
    assert list(tracks) == [
        "Host",
        "NPU Task Breakdown",
        "NPU Task Measurements",
        "Compiler Input Locations",
        "Operator Type Totals",
        "Host Profile Overview",
        "Compile Profile Overview",
    ]
    assert tracks["NPU Task Measurements"] == [
        "DMA In Used",
        "DMA Out Used",
        "Slice 0 Used",
        "CSS Used",
    ]
    assert tracks["NPU Task Breakdown"] == [
        "NDMA In",
        "NDMA Out",
        "Slice 0",
        "CSS",
        "NSS CFG Tasks (Compile)",
        "NDMA In (Compile)",
        "NDMA Out (Compile)",
        "Slice 0 (Compile)",
        "CSS (Compile)",
    ]
    assert found["NPU Task Breakdown/Slice 0"] == [("add", 115_000, 220_000)]
    assert found["NPU Task Breakdown/Slice 0 (Compile)"] == [
        ("add", 115_000, 115_400)
    ]  # 320 cycles at 800 MHz, pinned at the job
    assert found["NPU Task Breakdown/CSS"] == [("CSS", 230_000, 335_000)]
    assert found["Operator Type Totals/tosa.conv2d"] == [("tosa.conv2d: 105.000us", 0, 105_000)]
    assert found["Host Profile Overview/IDLE"] == [("IDLE: 20.000us (5.97%)", 0, 20_000)]


def test_perfetto_itself_loses_nothing_of_the_timeline(place: Path) -> None:
    from support.viewers.trace_processor import query

    Path("host.csv").write_text(host_log(1, 2))
    assert main(["annotate", DUMP, "host.csv", "out.pftrace"]) == 0
    _, slices = tracks_and_slices(Path("out.pftrace"))
    losses = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
    count, lost = query(Path("out.pftrace"), "select count(*) from slice", losses)
    assert (count, lost) == ([[sum(map(len, slices.values()))]], [])


def tracks_and_slices(path: Path) -> tuple[dict[str, list[str]], dict[str, list[tuple[str, int, int]]]]:
    """Threads by process, and the slices of every thread: name, begin, end."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    processes, threads, names = {}, {}, {}
    slices: dict[str, list[tuple[str, int, int]]] = {}
    open_at: dict[int, list[tuple[str, int]]] = {}
    for packet in trace.packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("thread"):
            threads[packet.track_descriptor.uuid] = packet.track_descriptor.thread
        elif packet.HasField("track_descriptor"):
            processes[packet.track_descriptor.process.pid] = packet.track_descriptor.process.process_name
    for packet in sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp):
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            open_at.setdefault(event.track_uuid, []).append((names[event.name_iid], packet.timestamp))
        else:
            name, begin = open_at[event.track_uuid].pop()
            thread = threads[event.track_uuid]
            place = f"{processes[thread.pid]}/{thread.thread_name}"
            slices.setdefault(place, []).append((name, begin, packet.timestamp))
    tracks: dict[str, list[str]] = {name: [] for name in processes.values()}
    for thread in threads.values():
        tracks[processes[thread.pid]].append(thread.thread_name)
    return tracks, slices


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.mlir", "runtime.csv", "o.csv"], "nowhere.mlir: cannot be read"),
        ([DUMP, "nowhere.csv", "o.csv"], "nowhere.csv: cannot be read"),
        ([DUMP, DUMP, "o.csv"], "expected a log of jobs"),
        ([DUMP, "runtime.csv", "o.doc"], "suffix '.doc' is not known; expected one of .csv, .xlsx, .json, .pftrace"),
        ([DUMP, "runtime.csv", "runtime.csv"], "is one of the files that are read"),
        ([DUMP, "runtime.csv", "no/where/o.csv"], "cannot be written"),
    ],
)
def test_wrong_use_is_explained(
    arguments: list[str], words: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["annotate", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_vendors_other_flags_are_taken(place: Path) -> None:
    Path("host.csv").write_text(host_log(1))
    line = [
        "annotate_profiling.py",
        "compilation_phases",
        "host.csv",
        "out.xlsx",
        "--debug",
        "--host_profiling",
        "--original_mlir_file",
        "fc.mlir",
        "--perfetto_file",
        "out.pb",
    ]
    assert main(line) == 0
    assert Path("out.pb").stat().st_size > 1000
