"""Runs in Python: tables as data frames, totals as objects, and a real notebook that shows them."""

from __future__ import annotations

import builtins
import html.parser
import json
import re
import shutil
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

import opscope
from opscope import api
from opscope.core.errors import UsageError
from opscope.core.units import format_latency
from opscope.workflows import viewing
from opscope.zoo import Recipe, make
from support.decode.opstats_folder import keyword_spotter

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e" + "x" * 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = keyword_spotter(tmp_path_factory.mktemp("kws"))
    api.opstats(made / "programqpc.bin", made / "stats", made / "out", run=made / "kws.run")
    return made / "kws.run"


class Tags(html.parser.HTMLParser):
    """Every tag and attribute of a piece of HTML, and whether tags close what they opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_spans_are_a_data_frame_that_adds_up(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run, whole = opscope.open_run(folder), viewing.open_folder(folder)
    spans = run.spans
    assert isinstance(spans, pandas.DataFrame)
    assert len(spans) == len(whole.trace.spans)
    assert int((spans.end_ns - spans.start_ns).sum()) == int(
        (whole.trace.spans["end_ns"] - whole.trace.spans["start_ns"]).sum()
    )
    names = {op.name for op in whole.ops}
    assert set(spans.op_name.dropna().unique()) <= names
    by_op = spans[spans.kind == "op"].groupby("op_name", observed=True).size()
    assert int(by_op.sum()) == int(((spans.kind == "op") & spans.op.notna()).sum()) > 0


def test_unknown_is_missing_and_never_zero(folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    spans = opscope.open_run(folder).spans
    expected = viewing.open_folder(folder).trace.spans
    for column in ("op", "command", "waits_on"):
        assert spans[column].dtype in (pandas.Int32Dtype(), pandas.Int64Dtype())
        assert np.array_equal(spans[column].isna().to_numpy(), expected[column] == -1)
        assert np.array_equal(spans[column].fillna(-1).to_numpy(np.int64), expected[column])


def test_the_other_tables_have_a_row_for_everything(folder: Path) -> None:
    run, whole = opscope.open_run(folder), viewing.open_folder(folder)
    assert len(run.ops) == len(whole.summary.ops)
    assert len(run.edges) == len(whole.trace.edges)
    assert len(run.counters) == len(whole.trace.samples)
    assert len(run.commands) == len(whole.commands.rows)
    assert list(run.ops["name"]) == [op.name for op in whole.summary.ops]
    assert (run.summary, run.info) == (whole.summary, whole.info)
    assert run.findings.provenance == "simulated"


def test_without_pandas_tables_are_arrow_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    genuine = builtins.__import__

    def without_pandas(name: str, *rest: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return genuine(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    run = opscope.open_run(folder)
    assert isinstance(run.spans, pa.Table)
    assert isinstance(run.ops, pa.Table)
    assert "op_name" in run.spans.column_names


def test_the_card_has_the_numbers_of_the_summary(folder: Path) -> None:
    run = opscope.open_run(folder)
    card = run._repr_html_()
    tags = Tags(card)
    assert tags.open == []
    assert tags.tags <= {
        "div",
        "strong",
        "em",
        "bdi",
        "span",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ol",
        "li",
        "br",
    }
    assert tags.attributes <= {"style", "title", "role", "aria-label"}
    assert "url(" not in card
    assert f"{run.summary.latency.known_ns / 1e3:.3g} us" in card
    assert f"bound by <strong>{run.findings.bound}</strong>" in card
    costliest = max(run.summary.ops, key=lambda op: op.busy_ns or 0)
    assert costliest.name.rpartition("/")[2][-20:] in card
    assert len(card) < 20_000


def test_hostile_names_are_shown_harmlessly(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.run"
    shutil.copytree(folder, copy)
    for name, change in (
        ("run.json", {"network": HOSTILE, "target": HOSTILE}),
        ("summary.json", {}),
    ):
        fields = json.loads((copy / name).read_bytes()) | change
        for op in fields.get("ops", []):
            op |= {"name": HOSTILE, "type": HOSTILE, "engine": HOSTILE}
        (copy / name).write_text(json.dumps(fields), encoding="utf-8")
    run = opscope.open_run(copy)
    card = run._repr_html_()
    assert Tags(card).tags.isdisjoint({"script", "img"})
    assert "\u202e" not in card
    assert len(card) < 40_000
    assert "\u202e" not in repr(run)
    assert len(repr(run)) < 1000


@pytest.mark.parametrize("damage", ["missing", "run.json", "summary.json", "spans.parquet", "link"])
def test_what_cannot_be_read_is_one_line(folder: Path, tmp_path: Path, damage: str) -> None:
    copy = tmp_path / "copy.run"
    if damage != "missing":
        shutil.copytree(folder, copy)
    if damage == "link":
        (copy / "run.json").unlink()
        (copy / "run.json").symlink_to(folder / "run.json")
    elif damage != "missing":
        (copy / damage).write_bytes(b"{")
    with pytest.raises(UsageError, match=r"; expected|as Parquet"):
        opscope.open_run(copy).spans  # noqa: B018 - reading is what is tested


def test_a_profile_shows_itself(tmp_path: Path) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    recorded = opscope.profile(tmp_path / "kws.onnx", "aic100-std", options={"cores": 2})
    assert "bound by <strong>" in recorded._repr_html_()
    screen = str(recorded)
    assert screen.startswith("kws on aic100-std, 2 cores (simulated)")
    assert "COSTLIEST OPS" in screen
    for shown in (repr(recorded), repr(recorded.run)):
        assert shown.endswith(", simulated>")
        assert len(shown) < 100


def test_a_report_shows_its_headline(tmp_path: Path) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    report = opscope.report(tmp_path / "kws.onnx", "max32690-cm4")
    latency = report.totals.latency_s
    assert latency is not None
    time = format_latency(*(seconds * 1e9 for seconds in astuple(latency)))
    assert repr(report) == f"<Report kws on max32690-cm4, {time}, {report.provenance}>"


def test_a_real_notebook_shows_a_run_and_its_tables(folder: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    page = (Path(__file__).parents[3] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    shown = "\n\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    shutil.copytree(folder, tmp_path / "kws.run")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in shown.split("\n\n")])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert "costliest" in pages[0]
    assert "<table" in pages[1]
    assert "costliest" in pages[-1]
    assert all(output["output_type"] == "execute_result" for output in outputs)


def test_a_run_whose_provenance_is_no_word_of_ours_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.run"
    shutil.copytree(folder, copy)
    fields = json.loads((copy / "run.json").read_bytes()) | {"provenance": HOSTILE}
    (copy / "run.json").write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(UsageError, match="Invalid enum value"):
        opscope.open_run(copy)
