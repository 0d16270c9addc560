"""Whoever made a Run: one breakdown, the same in its files, in the gate, on the page and in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from opscope import api
from opscope.cli import main
from opscope.core.provenance import Provenance
from opscope.core.units import format_percent
from opscope.program.program_file import encode_program
from opscope.recording.finding import BOUNDS, OTHER_BOUND, Findings
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import OpRecord, Placed, Recording
from opscope.recording.run import Run
from opscope.recording.summary import OCCUPANCY, Latency, Share
from opscope.views.page.contract import PageData
from opscope.workflows.comparing import figures_of
from opscope.workflows.record import analysed as record_analysed
from opscope.workflows.record import page_of
from opscope.zoo import Recipe, make
from support.decode.opstats_folder import compiled, run
from support.recording.analyse_build import CAUSE_OF_RULE

SAMPLES = Path(__file__).parents[2] / "samples"
CREATED = "2026-01-01T00:00:00"
TWO_LAYERS = Recipe("bert-base", precision="f16", sequence=64, weights=False, options={"layers": 2})


def simulated(folder: Path) -> Path:
    make(Recipe("kws-cnn"), folder / "kws.onnx")
    api.profile(folder / "kws.onnx", "aic100-std", run=folder / "run", created=CREATED)
    return folder / "run"


def estimated(folder: Path) -> Path:
    make(Recipe("kws-cnn", format="tflite", precision="int8"), folder / "kws.tflite")
    api.profile(folder / "kws.tflite", "max32690-cm4", run=folder / "run", created=CREATED)
    return folder / "run"


def decoded(folder: Path) -> Path:
    stats = run(folder, compiled(folder, TWO_LAYERS), inferences=3)
    api.opstats(folder / "programqpc.bin", stats, folder, run=folder / "run", created=CREATED)
    return folder / "run"


def backend(folder: Path) -> Path:
    """A real runtime, in whose own words the time is HVX and dispatch."""
    times = {"a": 60, "b": 40}
    recording = Recording(
        maker="htp",
        provenance=Provenance.VENDOR_MODEL,
        model="net.onnx",
        target="chip",
        latency=Latency(110, None, None, Provenance.VENDOR_MODEL),
        ops=tuple(OpRecord(name, "Conv", placed=Placed.ACCELERATOR, time_ns=ns) for name, ns in times.items()),
        path_shares=(Share("HVX", 100.0, 0.9), Share("dispatch and waits", 10.0, 0.1)),
    )
    record_analysed(recording, folder / "run", command=(), created=CREATED, sha256=None)
    return folder / "run"


def imported(name: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        api.import_profile([SAMPLES / name], folder / "run", created=CREATED)
        return folder / "run"

    return made


ORIGINS = {
    "simulated": simulated,
    "estimated": estimated,
    "decoded": decoded,
    "backend": backend,
    "timeline": imported("torq_host_h1.csv"),
    "table": imported("tensorrt_profile.json"),
}


@pytest.fixture(scope="module", params=ORIGINS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ORIGINS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def analysed(folder: Path) -> tuple[Run, Findings]:
    return api.analyze(folder)


def test_the_summary_has_the_breakdown_of_the_findings_and_it_is_the_wall_time(
    folder: Path, analysed: tuple[Run, Findings]
) -> None:
    found = analysed[1]
    assert read_run(folder).summary.breakdown == found.breakdown
    written = json.loads((folder / "summary.json").read_bytes())
    assert written["schema"] == "opscope.summary/2"
    assert written["breakdown"] == json.loads((folder / "findings.json").read_bytes())["verdict"]["breakdown"]
    assert {part.cause for part in found.breakdown} <= {*BOUNDS, OTHER_BOUND}
    assert sum(part.ns for part in found.breakdown) == found.wall_ns
    assert sum(part.share for part in found.breakdown) == pytest.approx(1)


def test_no_finding_about_a_cause_costs_more_than_the_breakdown_has_of_it(analysed: tuple[Run, Findings]) -> None:
    run, found = analysed
    parts = {part.cause: part.ns for part in found.breakdown}
    told = [finding for finding in found.findings if finding.id in CAUSE_OF_RULE and len(run.trace.spans)]
    assert all((finding.cost_ns or 0) <= parts[CAUSE_OF_RULE[finding.id]] for finding in told)


def test_the_gate_compares_the_same_parts(folder: Path, analysed: tuple[Run, Findings]) -> None:
    told = {part.cause: round(part.ns) for part in analysed[1].breakdown}
    for figures in (figures_of(folder), figures_of(analysed[0])):
        causes = {m.name.removeprefix("cause:"): m.value for m in figures.metrics if m.name.startswith("cause:")}
        assert {cause: ns for cause, ns in causes.items() if ns} == told
        assert set(causes) >= {*BOUNDS, OTHER_BOUND}


def test_the_page_and_the_text_show_the_same_shares(
    folder: Path, analysed: tuple[Run, Findings], capsys: pytest.CaptureFixture[str]
) -> None:
    run, found = analysed
    page = page_of(run, found)["report.html"].decode()
    data = re.search('<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    shown = msgspec.json.decode(data[1].encode(), type=PageData)
    assert shown.summary.breakdown == found.breakdown
    assert shown.findings is not None
    assert shown.findings.breakdown == found.breakdown
    assert main(["analyze", str(folder)]) == 0
    text = capsys.readouterr().out
    for part in found.breakdown:
        assert re.search(rf"^  {part.cause} +{re.escape(format_percent(part.share))} ", text, re.MULTILINE)


def test_waits_are_the_same_in_both_files(folder: Path, analysed: tuple[Run, Findings]) -> None:
    told = [(row.group, row.cause, row.wait_ns, row.count) for row in read_run(folder).summary.waits]
    assert told == [(row.engine, row.cause, row.wait_ns, row.count) for row in analysed[1].waits]


def test_every_law_holds_that_can_be_known(folder: Path) -> None:
    checks = {check.name: check.holds for check in api.check(folder)}
    assert checks["breakdown of the summary = that of the verdict"]
    assert False not in checks.values()


def as_earlier(folder: Path, breakdown: list[dict[str, object]]) -> None:
    """As the version before wrote it."""
    path = folder / "summary.json"
    fields = json.loads(path.read_bytes())
    del fields["occupancy"]
    path.write_text(json.dumps(fields | {"schema": "opscope.summary/1", "breakdown": breakdown}))


def test_a_folder_of_the_version_before_has_its_occupancy_and_gets_its_breakdown_when_read(tmp_path: Path) -> None:
    folder = decoded(tmp_path)
    now = read_run(folder)
    as_earlier(folder, [{"cause": p.cause, "ns": p.ns, "share": p.share} for p in now.summary.occupancy])
    earlier = read_run(folder)
    assert (earlier.summary.breakdown, earlier.summary.occupancy) == ((), now.summary.occupancy)
    assert [part.cause for part in earlier.summary.occupancy] == list(OCCUPANCY)
    assert figures_of(folder).metrics == figures_of(now).metrics
    assert api.analyze(folder)[0].summary == now.summary


def test_the_words_of_a_backend_in_a_folder_of_the_version_before_are_neither(tmp_path: Path) -> None:
    folder = backend(tmp_path)
    as_earlier(folder, [{"cause": "HVX", "ns": 100.0, "share": 1.0}])
    summary = read_run(folder).summary
    assert (summary.breakdown, summary.occupancy) == ((), ())
    assert {m.name for m in figures_of(folder).metrics if m.value and m.name.startswith("cause:")} == {
        "cause:compute",
        "cause:unknown",
    }


def test_layers_and_blocks_are_the_same_everywhere_where_names_number_nothing(tmp_path: Path) -> None:
    program = compiled(tmp_path, TWO_LAYERS)
    letters = str.maketrans("0123456789", "abcdefghij")
    ops = tuple(replace(op, name=f"op {str(number).translate(letters)}") for number, op in enumerate(program.ops))
    program = replace(program, ops=ops)
    (tmp_path / "programqpc.bin").write_bytes(encode_program(program))
    stats, folder = run(tmp_path, program, inferences=1), tmp_path / "run"
    api.opstats(tmp_path / "programqpc.bin", stats, tmp_path, run=folder, created=CREATED)
    found, findings = api.analyze(folder)
    side = {by: api.side_by_side([folder, folder], by=by) for by in ("layer", "block")}
    for by, rows in (("layer", found.summary.layers), ("block", found.summary.blocks)):
        rollup = findings.rollup(by)
        assert rollup is not None
        busy = {row.name: row.busy_ns for row in rollup.rows if row.busy_ns is not None}
        assert busy == {row.name: row.busy_ns for row in rows}
        assert any(name.startswith("repeat ") for name in busy)
        assert {row.name for row in side[by].rows} == set(busy)
