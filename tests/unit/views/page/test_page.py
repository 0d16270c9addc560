"""The page of a Run as a file: its data are the Run's, and nothing in it can break out."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import msgspec
import numpy as np
import pytest

from opscope import api
from opscope.core.errors import UsageError
from opscope.graph.graph import ABSENT, DType, Graph, Op, Role, Tensor
from opscope.program.program import COMMAND, OpInfo
from opscope.recording.finding import Findings
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import empty_trace
from opscope.recording.run import GRAPH_EDGE, CommandTable, Run, graph_edges
from opscope.recording.summary import Summary
from opscope.recording.summary_file import summary_fields
from opscope.views.page import contract as page_contract
from opscope.views.page import page
from opscope.views.page import tables as page_tables
from opscope.views.page.compare_page import ComparePage, default_labels
from opscope.views.page.contract import CompareData, PageData
from opscope.views.page.html import asset
from opscope.views.page.page import RunPage
from opscope.views.page.spans import rows_of
from support.recording.packed_columns import decode
from support.recording.page_build import small_findings, small_run
from support.recording.run_build import write_run

ROOT = Path(__file__).parents[4]
WEB = ROOT / "web"
HOSTILE = (
    "half \ud800 a pair",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\u202egnp.exe",
    "😀" * 20,
    "x" * 100_000,
)


def rendered(run: Run, findings: Findings | None = None, view: RunPage | None = None) -> str:
    out = StringIO()
    (view or RunPage()).render(run, findings, out)
    return out.getvalue()


def data_of(text: str) -> bytes:
    found = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return found[1].encode()


def page_of(text: str) -> PageData:
    return msgspec.json.decode(data_of(text), type=PageData, strict=True)


def blocks_of(text: str) -> dict[str, dict[str, np.ndarray]]:  # type: ignore[type-arg]
    found = re.findall('<script type="application/octet-stream" id="block-([^"]*)">([^<]*)</script>', text)
    return {name: decode(base64.b64decode(piece)) for name, piece in found}


def test_the_data_are_those_of_the_run() -> None:
    run = small_run()
    data = page_of(rendered(run))
    assert (data.info, data.ops, data.summary) == (run.info, run.ops, run.summary)
    assert data.names == tuple(run.trace.names)
    fields = summary_fields(run.summary)
    for name, value in json.loads(data_of(rendered(run)))["summary"].items():
        if name not in ("lanes", "routes"):  # the file adds ratios to these
            assert value == json.loads(msgspec.json.encode(fields[name]))


def test_blocks_hold_spans_commands_edges_and_counters() -> None:
    run = small_run()
    blocks = blocks_of(rendered(run, small_findings(run)))
    assert set(blocks) == {"spans-0", "commands", "edges", "counters", "path"}
    assert len(blocks["spans-0"]["start"]) == len(run.trace.spans)
    assert blocks["commands"]["local_address"].tolist() == run.commands.rows["local_address"].tolist()
    assert sorted(zip(*(blocks["edges"][name].tolist() for name in ("source", "target", "data")), strict=True)) == [
        (0, 1, 0),
        (1, 2, 1),
        (2, 3, 1),
        (3, 4, 1),
    ]
    assert blocks["counters"]["value"].tolist() == run.trace.samples["value"].tolist()


def test_findings_and_path_point_at_rows_of_the_page() -> None:
    run = small_run()
    findings = small_findings(run)
    text = rendered(run, findings)
    data, blocks = page_of(text), blocks_of(text)
    spans = blocks["spans-0"]
    assert data.findings is not None
    assert data.findings.path == ()
    (row,) = data.findings.findings[0].spans
    (wanted,) = findings.findings[0].spans
    assert spans["start"][row] == run.trace.spans["start_ns"][wanted]
    assert spans["kind"][row] == run.trace.spans["kind"][wanted]
    for place, step in enumerate(findings.path):
        assert spans["start"][blocks["path"]["row"][place]] == step.start_ns
        assert blocks["path"]["length"][place] == step.end_ns - step.start_ns


def test_spans_outside_the_table_stay_unknown() -> None:
    run = small_run()
    findings = small_findings(run)
    wrong = replace(findings, findings=(replace(findings.findings[0], spans=(10**6, -5)),))
    data = page_of(rendered(run, wrong))
    assert data.findings is not None
    assert data.findings.findings[0].spans == (-1, -1)


def test_the_graph_is_kept_with_a_run_and_an_older_run_has_none(tmp_path: Path) -> None:
    run = replace(small_run(), graph=np.array([(0, 3), (3, 2)], GRAPH_EDGE))
    for name, kept in (("with", run), ("without", replace(run, graph=None))):
        write_run(kept, tmp_path / name)
    assert read_run(tmp_path / "without").graph is None
    assert read_run(tmp_path / "with").graph.tolist() == [(0, 3), (3, 2)]  # type: ignore[union-attr]
    wrong = replace(run, graph=np.array([(0, 4)], GRAPH_EDGE))
    write_run(wrong, tmp_path / "wrong")
    with pytest.raises(UsageError, match=r"graph\.parquet: target 4; expected 0 to 3"):
        read_run(tmp_path / "wrong")


def test_an_absent_output_gives_nothing_to_an_absent_input() -> None:
    tensors = tuple(Tensor(name, (1,), DType.F32, Role.ACTIVATION) for name in "abc")
    ops = (Op("split", "Split", "one", (0,), (1, ABSENT)), Op("conv", "Conv", "two", (1, 1, ABSENT), (2,)))
    assert graph_edges(Graph("net", "", "ONNX", ops, tensors, (0,), (2,))).tolist() == [(0, 1)]
    unlinked = (ops[0], replace(ops[1], inputs=(0, ABSENT)))
    assert not len(graph_edges(Graph("net", "", "ONNX", unlinked, tensors, (0,), (2,))))


def test_a_served_page_knows_the_pieces_of_every_span() -> None:
    run = small_run()
    served = page_of(rendered(run, view=RunPage(most_rows=6, served=True))).spans.served
    whole = rows_of(run.trace, most=None)
    assert served is not None
    assert (served.rows, served.pieces) == (len(whole), whole.pieces)
    assert served.lane_first == tuple(whole.lane_first.tolist())


def test_the_policy_names_the_one_script_and_the_one_style_by_their_hashes() -> None:
    text = rendered(small_run())
    found = re.search('Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    policy = html.unescape(found[1])
    scripts = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    for kind, (body,) in (("script", scripts), ("style", styles)):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self'" in html.unescape(rendered(small_run(), view=RunPage(served=True)))


@pytest.mark.parametrize("name", HOSTILE, ids=("half", "script", "comment", "reordering", "emoji", "long"))
def test_no_name_can_leave_its_place(name: str) -> None:
    run = small_run((name, "b", "c", "d"))
    run = replace(run, info=replace(run.info, network=name, target=name, model=name, command=(name,)))
    text = rendered(run)
    assert text.encode()
    assert text.count("<script") == rendered(small_run()).count("<script")
    assert text.count("</script") == rendered(small_run()).count("</script")
    assert text.count("<!--") == 0
    assert json.loads(data_of(text))["ops"][0]["name"] == name  # whole, for whoever asks for it
    assert not re.search("[\u202a-\u202e]", text.split("</title>")[0])


def test_the_built_script_cannot_end_its_element() -> None:
    assert "</script" not in asset("page.js").lower()
    assert "<!--" not in asset("page.js")
    assert "</style" not in asset("page.css").lower()
    assert "//" not in re.sub(r"https?://www\.w3\.org/2000/svg", "", asset("page.css"))


def test_the_same_run_gives_the_same_bytes() -> None:
    assert rendered(small_run()) == rendered(small_run())


def test_a_run_with_totals_alone_has_a_page() -> None:
    run = small_run()
    nothing = CommandTable(np.zeros(0, COMMAND), (), (), (), (), (), (), (), (), ())
    bare = replace(run, trace=empty_trace("measured"), commands=nothing, summary=Summary(run.summary.latency, None, 1))
    text = rendered(bare)
    data = page_of(text)
    assert (data.spans.rows, data.commands, data.path, data.graph.sources) == (0, None, None, ())
    assert blocks_of(text) == {}


def test_a_large_run_is_thinned_and_says_so() -> None:
    run = small_run()
    data = page_of(rendered(run, view=RunPage(most_rows=6)))
    assert data.spans.spans == len(run.trace.spans)
    assert data.spans.rows <= 6
    assert data.spans.window_ns > 0
    assert data.spans.served is None
    served = page_of(rendered(run, view=RunPage(most_rows=6, served=True))).spans.served
    assert served is not None
    assert served.rows == len(run.trace.spans)


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_tables, "MOST_COMMANDS", 2)
    monkeypatch.setattr(page_tables, "MOST_EDGES", 2)
    monkeypatch.setattr(page, "MOST_OPS", 2)
    text = rendered(small_run())
    data = page_of(text)
    assert data.notes == (
        "the table of ops has the first 2 of 5 rows; summary.json has all",
        "operands, cost parts and the arena map of 5 commands are not in this page; commands.parquet has them",
        "4 dependencies are not in this page; edges.parquet has them",
    )
    assert set(blocks_of(text)) == {"counters", "spans-0"}


def test_the_schema_in_the_tree_is_the_contract() -> None:
    written = json.loads((WEB / "contract.schema.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(page_contract.json_schema())), "`make web` writes it again"


def test_every_field_of_the_contract_is_in_the_types_of_the_script() -> None:
    types = (WEB / "src" / "contract.ts").read_text(encoding="utf-8")
    definitions = page_contract.json_schema()["$defs"]
    assert isinstance(definitions, dict)
    for name, definition in definitions.items():
        found = re.search(rf"export interface {name} {{\n(.*?)\n}}", types, re.DOTALL)
        assert found is not None, f"{name} is missing; `make web` writes it"
        assert sorted(re.findall(r"^  (\w+):", found[1], re.MULTILINE)) == sorted(definition["properties"]), name


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules").is_dir(),
    reason="no node, or `npm ci` was not run in web/; `make web` does",
)
def test_the_assets_in_the_package_are_what_the_sources_build(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", "--out", str(tmp_path)], cwd=WEB, check=True, timeout=60)
    for name in ("page.js", "page.css", "THIRD_PARTY_LICENSES.txt"):
        assert (tmp_path / name).read_text(encoding="utf-8") == asset(name), f"{name}: run `make web`"


def test_a_comparison_holds_the_summaries_of_its_runs() -> None:
    base = small_run()
    new = replace(base, summary=replace(base.summary, ops=base.summary.ops[1:]))
    out = StringIO()
    ComparePage(labels=("before", "after")).render((base, new), None, out)
    data = msgspec.json.decode(data_of(out.getvalue()), type=CompareData)
    assert [run.label for run in data.runs] == ["before", "after"]
    assert [run.summary for run in data.runs] == [base.summary, new.summary]
    assert data.compared is None


def test_a_given_comparison_brings_its_ops_as_it_matched_them() -> None:
    base = small_run()
    more = replace(base.summary.ops[1], name="/other", type="Tanh")
    known = (*base.ops[1:], OpInfo(more.name, more.type, "", "node 9"))
    new = replace(base, ops=known, summary=replace(base.summary, ops=(*base.summary.ops[1:4], more)))
    comparison = api.compare(base, new)
    out = StringIO()
    ComparePage().render((base, new), comparison, out)
    data = msgspec.json.decode(data_of(out.getvalue()), type=CompareData)
    assert data.compared is not None
    shown = {op.name: op for op in data.compared.ops}
    assert len(data.compared.ops) == len(comparison.ops)
    assert {op.how for op in data.compared.ops} >= {"name", "added", "removed"}
    for row in comparison.ops:
        found = shown[row.name]
        assert (found.how, found.base_ns, found.new_ns) == (row.how, row.time.base, row.time.new)
        known = {"added": row.time.new, "removed": None if row.time.base is None else -row.time.base}
        assert found.change_ns == known.get(row.how, row.time.change)


def test_one_run_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match=r"^1 run: nothing to compare; expected two or more"):
        ComparePage().render((small_run(),), None, StringIO())
    with pytest.raises(UsageError, match=r"^1 labels for 2 runs; expected one each"):
        ComparePage(labels=("a",)).render((small_run(),) * 2, None, StringIO())


def test_runs_are_called_by_what_tells_them_apart() -> None:
    run = small_run()
    other = replace(run, info=replace(run.info, target="other"))
    assert default_labels((run, other)) == ["hand-made", "other"]
    assert default_labels((run, run)) == ["base", "new"]
    assert default_labels((run, run, run)) == ["base", "new 1", "new 2"]
