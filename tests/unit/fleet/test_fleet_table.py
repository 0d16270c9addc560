"""Tables, trends, exports and sides of a comparison, out of stores that are made by hand."""

from __future__ import annotations

import csv
import json
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from opscope import api
from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.fleet.export import export
from opscope.fleet.rows import failed_row
from opscope.fleet.sides import split_side
from opscope.fleet.store import Store
from opscope.fleet.table import pivot
from opscope.fleet.table_views import TableHtml, TableJson, TableMarkdown, TableText
from opscope.fleet.trend import splits, trend
from opscope.fleet.trend_views import TrendJson, TrendText
from support import fleet_cells


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s", create=True)


def add(
    store: Store,
    name: str = "net",
    ns: int = 1000,
    *,
    target: str = "chip",
    commit: str | None = None,
    day: int = 1,
    provenance: Provenance = Provenance.ESTIMATED,
    samples: tuple[int, ...] = (),
    ops: dict[str, int] | None = None,
    **options: str | int,
) -> None:
    created = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00+00:00"
    origin = fleet_cells.origin_of(name, target=target, options=options, commit=commit, created=created)
    found = fleet_cells.recorded(ops or {"all": ns}, target=target, provenance=provenance, samples=samples)
    store.add(*fleet_cells.rows(origin, found))


def text_of(view: object, shown: object) -> str:
    out = StringIO()
    view.render(shown, out)  # type: ignore[attr-defined]
    return out.getvalue()


def test_a_table_shows_each_model_on_each_target(store: Store) -> None:
    add(store, "a", 1000)
    add(store, "a", 2000, target="other")
    add(store, "b", 3_000_000)
    store.add(failed_row(fleet_cells.origin_of("b", target="other"), status="refused", reason="no such op", seconds=0))
    table = pivot(store, rows=["model"], columns=["target"], metric="latency")
    assert table.rows == ("a", "b")
    assert table.columns == ("chip (estimated)", "other (estimated)")
    assert [[table.text(row, column) for column in table.columns] for row in table.rows] == [
        ["1 us", "2 us"],
        ["3 ms", "refused"],
    ]
    for view in (TableText(), TableMarkdown(), TableHtml()):
        shown = text_of(view, table)
        assert "3 ms" in shown
        assert "b, other (estimated): no such op" in shown
    assert json.loads(text_of(TableJson(), table))["cells"][0]["value"] == 1000


def test_names_are_harmless_in_every_form_of_a_table(store: Store) -> None:
    add(store, "<script>|\x1b[31m", 1000)
    table = pivot(store, rows=["model"], columns=["target"], metric="latency")
    assert "<script>" not in text_of(TableHtml(), table)
    assert "\x1b" not in text_of(TableText(), table)
    assert "&lt;script&gt;&#124;" in text_of(TableMarkdown(), table)


def test_two_provenances_are_two_columns(store: Store) -> None:
    add(store, "a", 1000)
    add(store, "b", 2000, provenance=Provenance.MEASURED)
    table = pivot(store, rows=["model"], columns=["target"], metric="latency")
    assert table.columns == ("chip (estimated)", "chip (measured)")


def test_several_cells_in_one_place_need_a_choice(store: Store) -> None:
    add(store, ns=1000, parallel="tensor")
    add(store, ns=700, parallel="pipeline")
    with pytest.raises(UsageError, match=r"2 cells at net / chip \(estimated\) differ in parallel; expected"):
        pivot(store, rows=["model"], columns=["target"], metric="latency")
    best = pivot(store, rows=["model"], columns=["target"], metric="latency", best=True)
    assert best.entries["net", "chip (estimated)"].value == 700
    assert best.entries["net", "chip (estimated)"].note == "parallel=pipeline"
    by_option = pivot(store, rows=["model"], columns=["parallel"], metric="latency")
    assert len(by_option.columns) == 2
    chosen = pivot(store, rows=["model"], columns=["target"], metric="latency", where="options['parallel'] = 'tensor'")
    assert chosen.entries["net", "chip (estimated)"].value == 1000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"metric": "speed"}, "--metric speed: not known"),
        ({"metric": "cause"}, "--metric cause: not known"),
        ({"rows": ["findings"]}, "--rows 'findings': is no single value"),
        ({"where": "model = "}, "SQL: "),
        ({"where": "1=1); COPY (SELECT 1) TO 'x"}, "SQL: "),
        ({"where": "model = 'nobody'"}, "no cells"),
        ({"metric": "macs", "best": True}, "neither more nor less macs is better"),
    ],
)
def test_a_wrong_question_to_a_table_is_one_line(store: Store, fields: dict[str, object], words: str) -> None:
    add(store)
    chosen = {"rows": ["model"], "columns": ["target"], "metric": "latency", **fields}
    with pytest.raises(UsageError, match=words):
        pivot(store, **chosen)  # type: ignore[arg-type]


def test_an_exact_metric_changes_where_it_differs(store: Store) -> None:
    for day, (commit, conv) in enumerate([("aaa", 600), ("bbb", 600), ("ccc", 900), ("ddd", 900)]):
        add(store, commit=commit, day=day, ops={"conv": conv, "gemm": 400})
    (series,) = trend(store, metric="latency")
    (change,) = series.changes
    assert (change.at, change.before, change.after) == ("ccc", 1000, 1300)
    assert change.ops == (("conv", 300.0),)
    shown = text_of(TrendText(metric="latency", by="commit"), [series])
    assert "commit ccc: 1 us → 1.3 us, +30.0% worse" in shown
    assert "conv +300 ns" in shown
    assert json.loads(text_of(TrendJson(), [series]))[0]["changes"][0]["at"] == "ccc"


def test_a_noisy_metric_changes_where_noise_does_not_explain_it(store: Store) -> None:
    random = np.random.default_rng(3)
    for day in range(24):
        level = 10_000 if day < 14 else 11_000
        ns = round(level + random.normal(0, 150))
        add(store, ns=ns, commit=f"c{day:02}", day=day, provenance=Provenance.MEASURED)
    (series,) = trend(store, metric="latency")
    (change,) = series.changes
    assert change.at == "c14"
    assert change.interval is not None
    assert change.interval.low < 0.1 < change.interval.high


def test_few_noisy_points_are_judged_by_their_samples(store: Store) -> None:
    base = (1000, 1004, 998, 1002, 1001, 999, 1003, 1000)
    for day, factor in enumerate((1.0, 1.0, 1.2)):
        samples = tuple(round(ns * factor) for ns in base)
        add(store, ns=samples[0], commit=f"c{day}", day=day, provenance=Provenance.MEASURED, samples=samples)
    (series,) = trend(store, metric="latency")
    assert [change.at for change in series.changes] == ["c2"]
    assert "how far repeated cells lie apart is not known" in series.changes[0].note


def test_noise_alone_seldom_makes_a_change_point() -> None:
    random = np.random.default_rng(0)
    found = [len(splits(random.normal(100, 5, 40), seed=number)) for number in range(100)]
    assert sum(count > 0 for count in found) <= 4  # 1 % each


@pytest.mark.parametrize("places", [[10], [12, 30], [8, 20, 34]])
def test_levels_are_found_where_they_begin(places: list[int]) -> None:
    random = np.random.default_rng(1)
    values, level = random.normal(100, 1, 44), 100.0
    for place in places:
        level *= 1.2
        values[place:] += level - values[place:].mean()
    assert splits(values) == places


def test_a_trend_by_an_unknown_word_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="--by colour: not known"):
        trend(store, metric="latency", by="colour")


def test_a_side_of_a_comparison_may_be_in_a_store(store: Store, tmp_path: Path) -> None:
    add(store, commit="aaa111", ops={"conv": 600, "gemm": 400})
    add(store, commit="bbb222", day=2, ops={"conv": 900, "gemm": 400})
    add(store, "twin", commit="bbb222", day=2)
    found = api.compare(f"{tmp_path}/s:aaa", f"{tmp_path}/s:bbb,model=net", fail_on=["latency>5%"])
    assert found.word == "fail"
    assert found.explanation is not None
    assert found.explanation.parts[0].name == "conv"
    with pytest.raises(UsageError, match=r"s:bbb: 2 cells fit \(model=.*\); expected one, as .*s:bbb,model=…"):
        api.compare(f"{tmp_path}/s:aaa", f"{tmp_path}/s:bbb")
    with pytest.raises(UsageError, match="no cell with figures is of that commit"):
        api.compare(f"{tmp_path}/s:aaa", f"{tmp_path}/s:ccc")
    run = fleet_cells.recorded({"conv": 600, "gemm": 400}).run
    assert api.compare(f"{tmp_path}/s:aaa", run).word == "pass"


def test_a_file_with_a_colon_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a:b").write_text("")
    assert split_side(str(tmp_path / "a:b")) is None
    assert split_side("C:\\runs\\x.run") is None
    assert split_side("s3://bucket/store:abc") == ("s3://bucket/store", "abc")
    assert split_side("s3://bucket/store") is None


def test_exports_have_every_row(store: Store, tmp_path: Path) -> None:
    add(store, "=1+1", 1000)
    add(store, "b", 2000)
    assert export(store, "csv", str(tmp_path / "c.csv"), table="cells") == 2
    with (tmp_path / "c.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["latency_ns"] for row in rows) == ["1000.0", "2000.0"]
    assert json.loads(rows[0]["metrics"])["latency"] in (1000, 2000)
    export(store, "json", str(tmp_path / "c.json"), table="ops", where="model = 'b'")
    assert [row["wall_ns"] for row in json.loads((tmp_path / "c.json").read_text())] == [2000]
    export(store, "xlsx", str(tmp_path / "c.xlsx"), table="latest")
    from openpyxl import load_workbook

    sheet = load_workbook(tmp_path / "c.xlsx").active
    names = [cell.value for cell in next(sheet.iter_rows(max_row=1))]
    values = {
        row[names.index("model")].value: row[names.index("model")].data_type for row in sheet.iter_rows(min_row=2)
    }
    assert values["=1+1"] == "s"  # a name is text, not a formula
    with pytest.raises(UsageError, match="--table secrets: not known"):
        export(store, "csv", str(tmp_path / "x"), table="secrets")
    with pytest.raises(UsageError, match="export yaml: not known"):
        export(store, "yaml", str(tmp_path / "x"), table="cells")
    assert not (tmp_path / "x").exists()


class FakeTracking:
    """As much of MLflow as an export uses."""

    runs: dict[str, dict[str, object]] = {}  # noqa: RUF012 - one for all clients, as a server is

    def __init__(self, tracking_uri: str) -> None:
        if tracking_uri == "nowhere":
            raise ConnectionAbortedError("no such\nserver")

    def get_experiment_by_name(self, name: str) -> None:
        assert name == "opscope"

    def create_experiment(self, name: str) -> str:
        return "1"

    def search_runs(self, experiments: list[str], text: str, max_results: int) -> list[object]:
        wanted = text.removeprefix("tags.opscope_id = '").removesuffix("'")
        return [run for run in self.runs.values() if ("opscope_id", wanted) in run["tags"]]  # type: ignore[operator]

    def create_run(self, experiment: str, start_time: int, run_name: str) -> object:
        self.runs[run_name] = {"start": start_time}
        return SimpleNamespace(info=SimpleNamespace(run_id=run_name))

    def log_batch(self, run: str, **lists: list[tuple[object, ...]]) -> None:
        self.runs[run] |= lists

    def set_terminated(self, run: str, end_time: int) -> None:
        self.runs[run]["end"] = end_time


def test_cells_become_runs_of_mlflow_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    entities = SimpleNamespace(**dict.fromkeys(("Metric", "Param", "RunTag"), lambda *values: values))
    errors = SimpleNamespace(MlflowException=ConnectionAbortedError)
    fake = SimpleNamespace(MlflowClient=FakeTracking, entities=entities, exceptions=errors)
    monkeypatch.setitem(sys.modules, "mlflow", fake)  # type: ignore[arg-type]
    monkeypatch.setattr(FakeTracking, "runs", {})
    add(store, "a", 1000, commit="abc", precision="i8")
    store.add(failed_row(fleet_cells.origin_of("b"), status="failed", reason="no", seconds=0))
    assert export(store, "mlflow", "file:x", table="cells") == 1
    assert export(store, "mlflow", "file:x", table="cells") == 0
    (run,) = FakeTracking.runs.values()
    assert ("latency", 1000.0, run["start"], 0) in run["metrics"]  # type: ignore[operator]
    assert ("precision", "i8") in run["params"]  # type: ignore[operator]
    assert ("mlflow.source.git.commit", "abc") in run["tags"]  # type: ignore[operator]
    with pytest.raises(UsageError, match=r"^nowhere: no such server; expected a tracking address"):
        export(store, "mlflow", "nowhere", table="cells")
    with pytest.raises(UsageError, match="the table has no metrics"):
        export(store, "mlflow", "file:x", table="ops")
