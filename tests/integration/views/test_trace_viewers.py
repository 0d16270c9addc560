"""Traces judged by the viewers themselves: everything that was written is there, nothing is dropped or warned about."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from opscope import api
from opscope.program.program_file import decode_program
from opscope.recording.build import to_run
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.workflows.record import path_of
from support.decode.opstats_folder import START_TICK, bert, keyword_spotter
from support.plugins.qnn.htp_samples import profiled, tiny
from support.viewers.browser import answer_of
from support.viewers.packages import POLYFILL, chromium, npm_package, ui_package
from support.viewers.trace_processor import query

PER_ROW = """
  select p.name, t.name, count(*), sum(s.dur), min(s.ts), max(s.ts + s.dur) from slice s
  join thread_track tt on s.track_id = tt.id join thread t using (utid) left join process p using (upid)
  group by 1, 2 order by 1, 2
"""
SPANS = "select count(*), sum(dur) from slice"
COUNTERS = "select count(*), round(sum(value), 3) from counter"
FLOWS = """
  select so.name, so.ts, so.dur, si.name, si.ts, si.dur from flow
  join slice so on flow.slice_out = so.id join slice si on flow.slice_in = si.id order by 1, 2, 3, 4, 5, 6
"""
BOUND = """
  select a.display_value from flow join slice s on flow.{side} = s.id join args a on a.arg_set_id = s.arg_set_id
  where a.flat_key in ('args.oc', 'debug.oc')
"""
LOSSES = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
NAMED = "select name, ts, dur from slice order by 1, 2, 3"
OPERANDS = """
  select count(*) from slice s join args a using (arg_set_id) where a.key in ('args.opKind', 'debug.opKind')
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def two_devices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("bert2"), devices=2)


def trace_of(folder: Path, out: Path, **options: object) -> Path:
    outcome = api.opstats(folder / "programqpc.bin", folder / "stats", out, trace=True, flows=True, **options)  # type: ignore[arg-type]
    assert not outcome.problems
    return outcome.written[0]


def written(path: Path) -> tuple[dict[str, list[dict[str, object]]], dict[tuple[str, str], tuple[int, int]]]:
    """Events of a Chrome trace by phase; and per process and row, spans and summed durations in ns."""
    events: dict[str, list[dict[str, object]]] = {}
    for event in json.loads(path.read_bytes())["traceEvents"]:
        events.setdefault(event["ph"], []).append(event)
    named = {"process_name": "pid", "thread_name": "tid"}
    names = {(key, e[key]): e["args"]["name"] for e in events["M"] if (key := named.get(str(e["name"])))}  # type: ignore[index]
    rows: dict[tuple[str, str], tuple[int, int]] = {}
    for event in (*events["X"], *events.get("i", [])):  # viewers keep an instant as a span of no length
        place = (names["pid", event["pid"]], names["tid", event["tid"]])
        count, total = rows.get(place, (0, 0))
        rows[place] = count + 1, total + round(float(str(event.get("dur", 0))) * 1000)
    return events, rows


CASES: dict[str, dict[str, object]] = {
    "merged": {},
    "threads apart, with barriers": {"merge_thread_groups": False, "barriers": True},
    "one core": {"cores": (1,)},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_perfetto_ingests_every_span_counter_and_arrow(
    folder: Path, tmp_path: Path, options: dict[str, object]
) -> None:
    path = trace_of(folder, tmp_path, **options)
    events, rows = written(path)
    spans, per_row, counters, flows, losses, operands = query(path, SPANS, PER_ROW, COUNTERS, FLOWS, LOSSES, OPERANDS)
    assert losses == []
    assert spans[0][0] == len(events["X"]) + len(events["i"])
    assert {(p, t): (n, d) for p, t, n, d, *_ in per_row} == rows
    assert counters[0][0] == len(events["C"])
    assert len(flows) == len(events["s"]) == len(events["f"]) > 100
    assert operands[0][0] == sum("opKind" in e["args"] for e in events["X"])  # type: ignore[operator]


def test_arrows_bind_to_the_producer_and_the_consumer(folder: Path, tmp_path: Path) -> None:
    """An arrow never points back in time, and its consumer does not start before the producer is done."""
    (flows,) = query(trace_of(folder, tmp_path), FLOWS)
    for _, start, duration, _, target_start, _ in flows:
        assert int(str(start)) + int(str(duration)) <= int(str(target_start)) + 1


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_protobuf_and_json_are_the_same_to_perfetto(folder: Path, tmp_path: Path, options: dict[str, object]) -> None:
    chrome = trace_of(folder, tmp_path, **options)
    proto = trace_of(folder, tmp_path, trace_format="perfetto", **options)
    assert proto.name.endswith(".qaic-opstats.trace.pftrace")
    questions = (SPANS, PER_ROW, COUNTERS, FLOWS, LOSSES, NAMED, OPERANDS)
    assert query(proto, *questions) == query(chrome, *questions)


def test_protobuf_writes_each_text_once(folder: Path, tmp_path: Path) -> None:
    """A second core has the names and the kinds of the first: only its times are new, a quarter of what JSON adds."""

    def added(trace_format: str) -> int:
        one, both = (
            trace_of(folder, tmp_path, trace_format=trace_format, cores=cores).stat().st_size
            for cores in ((0,), (0, 1))
        )
        return both - one

    assert 4 * added("perfetto") < added("json")


def test_several_devices_and_the_host_are_ingested_whole(two_devices: Path, tmp_path: Path) -> None:
    begin = START_TICK / 19.2
    host = tmp_path / "host.json"
    spans = [("outer", -20.0, 90.0), ("inner", 10.0, 30.0), ("across", 60.0, 40.0)]  # the last only overlaps
    events = [{"ph": "X", "pid": 1, "tid": 0, "name": n, "ts": begin + t, "dur": d} for n, t, d in spans]
    host.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    for name in ("json", "perfetto"):
        path = trace_of(two_devices, tmp_path, host_trace=host, trace_format=name)
        per_row, losses, flows = query(path, PER_ROW, LOSSES, FLOWS)
        assert losses == []
        found = {(p, t): n for p, t, n, *_ in per_row}
        assert found["Host", "host 1/0"] == 2
        assert found["Host", "host 1/0 2"] == 1
        assert {p for p, _ in found} == {
            "Host",
            *(f"QAicGraph_slice0{d} Device {d}" for d in (0, 1)),
            *(f"QAicGraph_slice0{d}_Core_{c}" for d in (0, 1) for c in (0, 1)),
        }
        if name == "json":
            events_written, rows = written(path)
            assert {(p, t): (n, d) for p, t, n, d, *_ in per_row} == rows
            assert len(flows) == len(events_written["s"])


def test_spans_shorter_than_a_tick_are_kept(tmp_path: Path) -> None:
    path = trace_of(keyword_spotter(tmp_path / "kws"), tmp_path / "out")
    events, rows = written(path)
    assert any(e["dur"] == 0 for e in events["X"])
    per_row, losses, flows = query(path, PER_ROW, LOSSES, FLOWS)
    assert losses == []
    assert {(p, t): (n, d) for p, t, n, d, *_ in per_row} == rows
    assert len(flows) == len(events["s"])


def test_arrows_between_spans_shorter_than_a_tick_find_them(tmp_path: Path) -> None:
    """Every dependency is drawn, and each arrow is bound to the op that its end names."""
    folder = keyword_spotter(tmp_path / "kws")
    path = trace_of(folder, tmp_path / "out")
    events, _ = written(path)
    chart = {"s": "slice_out", "f": "slice_in"}
    bound = {}
    for phase, side in chart.items():
        (rows,) = query(path, BOUND.format(side=side))
        bound[phase] = Counter(int(str(row[0])) for row in rows)
        named = Counter(int(e["args"]["oc"]) for e in events[phase])  # type: ignore[index]
        assert bound[phase] == named
    program = decode_program((folder / "programqpc.bin").read_bytes(), source="kws")
    assert bound["s"].total() == len(program.dependency_sources)
    proto = trace_of(folder, tmp_path / "out", trace_format="perfetto")
    assert query(proto, FLOWS) == query(path, FLOWS)


def test_the_judge_bites(tmp_path: Path) -> None:
    """A trace as one would write it without knowing the viewer loses spans, and the same questions find out."""
    events = [
        {"ph": "X", "pid": 1, "tid": tid, "name": "x", "ts": n * 1.0, "dur": 1.5} for tid in (0, 1) for n in range(50)
    ]
    path = tmp_path / "innocent.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    spans, losses = query(path, SPANS, LOSSES)
    assert int(str(spans[0][0])) < len(events)
    assert losses


MARKED = """
  select count(*), sum(s.dur) from slice s join args a using (arg_set_id) join thread_track tt on s.track_id = tt.id
  where a.key in ('args.critical path', 'debug.critical path') and a.display_value = 'true'
"""
TRACKS = """
  select t.name, count(*), round(sum(c.value), 3) from counter c join counter_track t on c.track_id = t.id
  group by 1 order by 1
"""


def test_path_and_utilisation_of_a_vendors_model_are_the_same_to_perfetto_in_both_forms(tmp_path: Path) -> None:
    run = to_run(profiled(tiny()), command=(), created="", sha256=None)
    path = path_of(run)
    found = []
    for name, view in (("a.json", ChromeTrace), ("a.pftrace", PerfettoTrace)):
        with (tmp_path / name).open("wb") as out:
            view(run, flows=True, path=path).render(run.trace, out)
        spans, rows, flows, losses, marked, tracks = query(
            tmp_path / name, NAMED, PER_ROW, FLOWS, LOSSES, MARKED, TRACKS
        )
        assert losses == []
        assert len(spans) == len(run.trace.spans) + len(path.start)
        (row,) = [row for row in rows if row[1] == "Critical path"]
        assert row[2:4] == [len(path.start), int((path.end - path.start).sum())]
        on_path = path.ns > 0
        assert marked[0][0] == int(on_path.sum()) > 5
        assert {str(track[0]).partition(",")[0] for track in tracks} == {
            "VTCM used (bytes)",
            *(f"{engine} utilisation" for engine in ("HVX", "HMX", "DMA")),
            *(f"DDR {way}" for way in ("read", "write")),
        }
        found.append((spans, rows, flows, marked, tracks))
    assert found[0] == found[1]


BOTH_ENDS = (  # of an arrow say `oc`, as in the vendor's traces
    "Different phases of dependency provided values for argument oc. The last provided value will be used."
)
CATAPULT = """<!DOCTYPE html><meta charset="utf-8"><script src="webcomponents.min.js"></script>
<script>
const say = (answer) => fetch("/answer", {method: "POST", body: JSON.stringify(answer)});
addEventListener("error", (event) => say({error: String(event.message)}));
</script>
<link rel="import" href="trace_viewer_full.html">
<script>
addEventListener("WebComponentsReady", async () => {
  try {
    const text = await (await fetch("trace.json")).text();
    const model = new tr.Model();
    const importer = new tr.importer.Import(model);
    await importer.importTraces([text]);
    const rows = {};
    for (const thread of model.getAllThreads()) {
      const slices = thread.sliceGroup.slices;
      const place = thread.parent.name + "|" + thread.name;
      rows[place] = [slices.length, slices.reduce((sum, slice) => sum + Math.round(slice.duration * 1e6), 0)];
    }
    let samples = 0;
    for (const process of model.getAllProcesses())
      for (const counter of Object.values(process.counters)) samples += counter.series[0].samples.length;
    say({rows, samples, flows: model.flowEvents.length, warnings: model.importWarnings.map((w) => w.message)});
  } catch (error) { say({error: String(error.stack || error)}); }
});
</script>
"""


def in_no_time(end: dict[str, object], spans: list[dict[str, object]]) -> bool:
    """The end of an arrow is in a span of no length: this importer binds to spans that last alone."""
    rows = [e for e in spans if e["tid"] == end["tid"]]
    return not any(e["ts"] <= end["ts"] < e["ts"] + e["dur"] for e in rows)  # type: ignore[operator]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_the_importer_of_chrome_tracing_reads_all_of_it(
    folder: Path, tmp_path: Path, options: dict[str, object]
) -> None:
    chromium()
    events, rows = written(path := trace_of(folder, tmp_path / "out", **options))
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text(CATAPULT, encoding="utf-8")
    shutil.copy(path, site / "trace.json")
    shutil.copy(npm_package(POLYFILL) / "webcomponents.min.js", site)
    shutil.copy(ui_package() / "html" / "trace_viewer_full.html", site)
    answer = answer_of(site, "index.html", tmp_path / "profile")
    assert "error" not in answer, answer["error"]
    warnings = [text for text in answer["warnings"] if text != BOTH_ENDS]
    unbound = {number[0] for text in warnings if (number := re.findall(r"\d+", text))}
    assert all("actual slice, so cannot be" in text or "no flow start found" in text for text in warnings)
    assert unbound <= {str(e["id"]) for e in (*events["s"], *events["f"]) if in_no_time(e, events["X"])}
    expected = {f"{process}|{row}": list(sums) for (process, row), sums in rows.items()}
    assert answer["rows"] == expected
    assert answer["samples"] == len(events["C"])
    assert answer["flows"] == len(events["s"]) - len(unbound)


UI = """<!DOCTYPE html><meta charset="utf-8">
<iframe id="ui" src="/ui/index.html" style="width:1300px;height:800px"></iframe>
<script>
const say = (answer) => fetch("/answer", {method: "POST", body: JSON.stringify(answer)});
const ui = document.getElementById("ui").contentWindow;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
  try {
    const buffer = await (await fetch("TRACE")).arrayBuffer();
    let pong = false;
    addEventListener("message", (event) => { pong ||= event.data === "PONG"; });
    while (!pong) { ui.postMessage("PING", "*"); await wait(200); }
    ui.postMessage({perfetto: {buffer, title: "judged"}}, "*");
    while (!ui.app || !ui.app.trace) await wait(200);
    const result = await ui.app.trace.engine.query("select count(*) as n from slice where name = 'aicsoftmax'");
    const row = result.firstRow({n: 0});
    while (!ui.document.body.innerText.includes("QAicGraph_Core_0")) await wait(200);
    say({spans: row.n, title: ui.document.title});
  } catch (error) { say({error: String(error.stack || error)}); }
})();
</script>
"""


@pytest.mark.parametrize("trace_format", [pytest.param("json", marks=pytest.mark.slow), "perfetto"])
def test_the_perfetto_ui_opens_a_trace_and_finds_a_named_span(folder: Path, tmp_path: Path, trace_format: str) -> None:
    chromium()
    path = trace_of(folder, tmp_path / "out", trace_format=trace_format)
    events, _ = written(trace_of(folder, tmp_path / "out"))
    site = tmp_path / "site"
    shutil.copytree(ui_package() / "web_dist", site / "ui")
    shutil.copy(path, site / "trace")
    (site / "index.html").write_text(UI.replace("TRACE", "trace"), encoding="utf-8")
    answer = answer_of(site, "index.html", tmp_path / "profile")
    assert "error" not in answer, answer["error"]
    assert answer["spans"] == Counter(e["name"] for e in events["X"])["aicsoftmax"] > 0
    assert "judged" in str(answer["title"])
