"""What users of a comparison read, in every form; and names that would like to be markup."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree as ET

import pytest

from opscope.gate.compare import compare
from opscope.gate.comparison import Comparison
from opscope.gate.figures import Figures
from opscope.gate.limits import parse_limit
from opscope.gate.side_by_side import side_by_side
from opscope.views.json.compare_json import CompareJson, SideBySideJson
from opscope.views.text.compare_github import CompareGithub
from opscope.views.text.compare_junit import CompareJunit
from opscope.views.text.compare_markdown import CompareMarkdown, SideBySideMarkdown
from opscope.views.text.compare_text import CompareText, SideBySideText
from support.recording.compare_build import LABELS, figures, op

LIMITS = ("latency>5%", "peak_memory>0", "op:nowhere>1us")
HOSTILE = "</details><script>|@everyone\x1b[31m\n::error::`x` <b>&\u202e"


def compared(base: Figures, new: Figures, *limits: str) -> Comparison:
    return compare(base, new, limits=[parse_limit(text) for text in limits], labels=LABELS, allow=("model",))


def sample(*limits: str) -> Comparison:
    base = figures(
        [op("in", 100_000), op("conv", 400_000), op("old", 50_000, kind="Tanh")], latency=600_000, label="a.run"
    )
    new = figures(
        [op("in", 100_000), op("conv", 520_000), op("more", 30_000, kind="Add")], latency=740_000, label="b.run"
    )
    return compared(base, new, *limits)


def text_of(view: object, found: object) -> str:
    out = StringIO()
    view.render(found, out)  # type: ignore[attr-defined]
    return out.getvalue()


def test_text_has_the_verdict_first_then_totals_then_what_explains_them() -> None:
    assert (
        text_of(CompareText(top=2), sample(*LIMITS))
        == """\
base  a.run: net on chip, 1 core, batch 1 – simulated
new   b.run: net on chip, 1 core, batch 1 – simulated
FAIL  latency +23.3% (+140 us), limit latency>5%
ok    peak_memory unchanged, limit peak_memory>0
??    op:nowhere is in neither run; expected one such as conv, old, more, in

metric          base      new            change
───────────  ───────  ───────  ────────────────
latency       600 us   740 us  +23.3% (+140 us)
peak_memory  4.00 KB  4.00 KB         unchanged

what explains the change of latency, +140 us, by op
   part   share                op                    time, base     new  why
───────  ──────  ────────────  ────────────────────  ──────────  ──────  ───────
+120 us   85.7%  ████████████  conv                      400 us  520 us
 −50 us  −35.7%  █████         old                        50 us          removed
 +30 us                        (1 more)
 +40 us   28.6%                not explained by ops

2 ops in both, 1 added, 1 removed
"""
    )


def test_text_of_no_change_is_short_and_an_unknown_latency_is_said() -> None:
    same = figures([op("a")])
    assert "what explains" not in text_of(CompareText(), compared(same, same))
    unknown = text_of(CompareText(), compared(figures(latency=None), figures()))
    assert "latency is not known in the base: there is no change to explain" in unknown
    assert next(line.split() for line in unknown.splitlines() if line.startswith("latency ")) == [
        "latency",
        "—",
        "1",
        "us",
        "—",
    ]


def test_json_is_the_verdict_schema() -> None:
    found = json.loads(text_of(CompareJson(), sample(*LIMITS)))
    assert (found["schema"], found["verdict"]) == ("opscope.verdict/1", "fail")
    metric = found["metrics"][0]
    keys = ("name", "base", "new", "change", "unit", "limit", "verdict", "provenance")
    assert {key: metric[key] for key in keys} == {
        "name": "latency",
        "base": 600_000,
        "new": 740_000,
        "change": 140_000,
        "unit": "ns",
        "limit": "latency>5%",
        "verdict": "fail",
        "provenance": "simulated",
    }
    whole = found["explanations"]["op"]
    assert sum(part["ns"] for part in whole["parts"]) + whole["rest_ns"] == whole["change_ns"] == 140_000
    assert [check["verdict"] for check in found["checks"]] == ["fail", "pass", "unknown"]
    assert found["ops"][0]["time_ns"]["ratio"] == pytest.approx(0.3)
    assert found["ops"][-2]["time_ns"]["ratio"] is None  # from nothing


def test_junit_has_one_case_per_limit() -> None:
    suite = ET.fromstring(text_of(CompareJunit(), sample(*LIMITS)))  # noqa: S314 – written a moment ago
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == list(LIMITS)
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["system-out"], ["error"]]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")


def test_github_annotates_what_does_not_pass() -> None:
    lines = text_of(CompareGithub(), sample(*LIMITS)).splitlines()
    assert lines[0] == "::error title=opscope%3A latency>5%25::latency +23.3%25 (+140 us), limit latency>5%25"
    assert lines[1].startswith("::error title=opscope%3A op%3Anowhere>1us::op:nowhere is in neither run")
    assert lines[2] == "::group::opscope compare"
    assert lines[-1] == "::endgroup::"


def test_markdown_is_short_with_the_details_folded() -> None:
    text = text_of(CompareMarkdown(), sample(*LIMITS))
    assert text.startswith("### opscope: ❌ regression\n")
    assert "| latency | 600 us | 740 us | +23.3% (+140 us) |  |" in text
    assert text.count("<details>") == text.count("</details>") == 1
    assert "| +120 us | 85.7% | conv | 400 us | 520 us |  |" in text
    assert text_of(CompareMarkdown(), sample("latency>50%")).startswith("### opscope: ✅ no regression\n")
    assert text_of(CompareMarkdown(), sample()).startswith("### opscope: differences\n")


@pytest.mark.parametrize("view", [CompareText(), CompareMarkdown(), CompareGithub(), CompareJunit(), CompareJson()])
def test_a_hostile_name_stays_a_name(view: object) -> None:
    base = figures([op(HOSTILE, 10), op("a", 5)], latency=20, label=HOSTILE, model=HOSTILE)
    new = figures([op(HOSTILE, 30), op("a", 5)], latency=40, label=HOSTILE, model=HOSTILE)
    text = text_of(view, compared(base, new, f"op:{HOSTILE}>1%"))
    assert "\x1b" not in text
    assert "\u202e" not in text or isinstance(view, CompareJson)  # names in JSON are data
    if isinstance(view, CompareMarkdown):
        assert "<script>" not in text
        assert "@everyone" not in text
        assert text.count("</details>") == 1
    if isinstance(view, CompareGithub):
        commands = [line for line in text.splitlines() if line.startswith("::")]
        assert [line.split(" ")[0].split("::")[1] for line in commands] == ["error", "group", "endgroup"]
    if isinstance(view, CompareJunit):
        assert len(list(ET.fromstring(text).iter("testcase"))) == 1  # noqa: S314 – written a moment ago


def several() -> list[Figures]:
    return [
        figures([op("a", 1000), op("b", 500, kind="Add")], latency=2000, label="one", provenance="estimated"),
        figures([op("a", 1500)], latency=3000, label="two"),
        figures([op("a", 200_000), op("b", 100, kind="Add")], latency=500_000, label="three", provenance="measured"),
    ]


def test_several_runs_have_a_column_and_a_bar_each_under_their_provenance() -> None:
    assert (
        text_of(SideBySideText(top=1), side_by_side(several(), by="op", label=None))
        == """\
one  : net on chip, 1 core, batch 1 – estimated
two  : net on chip, 1 core, batch 1 – simulated
three: net on chip, 1 core, batch 1 – measured
note  columns are of different provenance: a ratio between them says how far two methods are apart

latency
  estimated
    one         2 us  ▏
  simulated
    two         3 us  ▏
  measured
    three     500 us  ██████████████████████████████

metric       one [estimated]  two [simulated]  three [measured]
───────────  ───────────────  ───────────────  ────────────────
latency                 2 us     3 us   ×1.50    500 us    ×250
peak_memory          4.00 KB  4.00 KB   ×1.00   4.00 KB   ×1.00

time of op  one [estimated]  two [simulated]  three [measured]
──────────  ───────────────  ───────────────  ────────────────
a                      1 us   1.5 us   ×1.50    200 us    ×200
(1 more in --format json)
"""
    )


def test_many_runs_are_put_into_several_tables_that_all_start_with_the_first() -> None:
    runs = [figures(label=f"run{n}", latency=100 + n) for n in range(8)]
    text = text_of(SideBySideText(), side_by_side(runs, by="op", label=None))
    heads = [line for line in text.splitlines() if line.startswith("metric")]
    assert len(heads) == 3
    assert all("run0" in head for head in heads)
    assert all(sum(f"run{n} [" in head for head in heads) == 1 for n in range(1, 8))


def test_several_runs_as_markdown_and_json() -> None:
    found = side_by_side(several(), by="op", label=None)
    markdown = text_of(SideBySideMarkdown(), found)
    assert "| time of op | one \\[estimated\\] | two \\[simulated\\] | three \\[measured\\] |" in markdown
    assert "| b | 500 ns | — | 100 ns   ×0.20 |" in markdown
    fields = json.loads(text_of(SideBySideJson(), found))
    assert fields["schema"] == "opscope.side-by-side/1"
    assert fields["rows"][1] == {"name": "b", "unit": "ns", "values": [500, None, 100], "ratios": [1.0, None, 0.2]}
    assert [run["provenance"] for run in fields["runs"]] == ["estimated", "simulated", "measured"]


def test_every_note_is_a_line_of_its_own_in_markdown() -> None:
    runs = [replace(run, caveats=("with x", "without y")) for run in several()]
    for text in (
        text_of(SideBySideMarkdown(), side_by_side(runs, by="op", label=None)),
        text_of(CompareMarkdown(), compared(runs[0], runs[0])),
    ):
        lines = text.splitlines()
        assert sum(line.endswith(("with x", "without y")) for line in lines) == 2
        assert all(line.startswith("> - ") for line in lines if line.startswith(">"))


def test_caveats_are_in_every_form() -> None:
    runs = [replace(run, caveats=("with x",)) for run in several()]
    assert "note  one, two, three: with x" in text_of(SideBySideText(), side_by_side(runs, by="op", label=None))
    assert "note  one: with x" in text_of(CompareText(), compared(runs[0], runs[0]))
    fields = json.loads(text_of(CompareJson(), compared(runs[0], runs[0])))
    assert fields["notes"] == ["one: with x"]
    assert fields["base"]["caveats"] == ["with x"]


def test_a_table_of_some_of_the_runs_has_no_row_that_is_unknown_in_all_of_them() -> None:
    runs = [figures(label=f"run{n}", peak=4096 if n == 7 else None) for n in range(8)]
    tables = text_of(SideBySideText(), side_by_side(runs, by="op", label=None)).split("metric")[1:]
    assert ["peak_memory" in table for table in tables] == [False, False, True]


def test_what_is_not_known_of_a_run_is_a_dash_and_one_op_is_one() -> None:
    run = replace(figures([op("a")]), batch=None)
    text = text_of(CompareText(), compared(run, run))
    assert "net on chip, 1 core, batch — – simulated" in text
    assert text.endswith("\n1 op in both\n")
    assert text_of(CompareText(), compared(figures(), figures())).endswith("\nno ops in either run\n")
    assert text_of(CompareText(), compared(run, figures())).endswith("\nops in one of the runs only\n")


def test_runs_without_anything_have_no_empty_tables() -> None:
    nothing = figures(latency=None, peak=None)
    for view in (CompareText(), CompareMarkdown()):
        text = text_of(view, compared(nothing, nothing))
        assert "no totals in either run" in text
        assert "metric" not in text
    assert "latency is not known in either run" in text_of(CompareText(), compared(nothing, nothing))
    for view in (SideBySideText(), SideBySideMarkdown()):
        text = text_of(view, side_by_side([nothing, nothing], by="type", label=LABELS["type"]))
        assert "no metric in any of the runs" in text
        assert "no time of type in any of the runs" in text
        assert "---" not in text
        assert "──" not in text


def test_runs_of_different_precision_do_not_look_alike_in_any_form() -> None:
    options = ({"precision": "as-is", "VTCM": "8.00 MB"}, {"precision": "w8a8", "VTCM": "4.00 MB", "opt_level": "3"})
    base, new = (replace(figures([op("a")], label=f"{n}.run"), backend="htp", options=o) for n, o in enumerate(options))
    lines = [
        "net on chip, 1 core, batch 1, precision as-is, VTCM 8.00 MB, opt level default – simulated",
        "net on chip, 1 core, batch 1, precision w8a8, VTCM 4.00 MB, opt level 3 – simulated",
    ]
    both = side_by_side([base, new], by="op", label=None)
    for view, found in (
        (CompareText(), compared(base, new)),
        (CompareMarkdown(), compared(base, new)),
        (SideBySideText(), both),
        (SideBySideMarkdown(), both),
    ):
        text = text_of(view, found)
        assert all(line in text for line in lines)
    runs = json.loads(text_of(SideBySideJson(), both))["runs"]
    assert [run["options"]["precision"] for run in runs] == ["as-is", "w8a8"]
    assert json.loads(text_of(CompareJson(), compared(base, new)))["new"]["options"]["opt_level"] == "3"
