"""The HTML report: its numbers are the Report's, whatever a model is called."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

from opscope.core.units import UNKNOWN, format_bytes, format_count, format_joules, format_seconds
from opscope.estimate.report import Report
from opscope.views.page.html_text import clean, script_json, shorten
from opscope.views.report_page.figures import figure_rows
from opscope.views.report_page.layers import COLUMNS, MOST_HTML_ROWS
from opscope.views.report_page.svg_charts import buckets, ticks
from report_samples import chain, page_of, report_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><!-- \u2028 ]]>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "x" * 100_000,
    "\u202eevil\u202c",
    "שלום/شبكة",
    "emoji👩‍🚀🔥",
    "bell\x07\x1b[31m\x00\nline",
    "\ud800half",
)
VOID = {"meta", "link", "input", "br", "hr", "img"}


@dataclass
class Page(HTMLParser):
    """Elements with their attributes and text, and whether every tag was closed."""

    html: str
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    open_tags: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        assert self.open_tags == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        self.texts[len(self.elements) - 1] = ""
        if tag not in VOID:
            self.open_tags.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, index in self.open_tags:
            self.texts[index] += data

    def all(self, tag: str, css: str = "") -> list[tuple[dict[str, str], str]]:
        return [
            (attributes, " ".join(self.texts[i].split()))
            for i, (name, attributes) in enumerate(self.elements)
            if name == tag and (not css or css in attributes.get("class", "").split())
        ]

    def by_id(self, key: str) -> tuple[dict[str, str], str]:
        return next(
            (a, " ".join(self.texts[i].split())) for i, (_, a) in enumerate(self.elements) if a.get("id") == key
        )


def column_of(page: Page, css: str) -> list[tuple[dict[str, str], str]]:
    """Cells of one column of the layer table, without header and footer."""
    start = next(i for i, (_, a) in enumerate(page.elements) if a.get("id") == "layer-table")
    end = next(i for i, (tag, _) in enumerate(page.elements) if tag == "tfoot" and i > start)
    return [
        (attributes, " ".join(page.texts[i].split()))
        for i, (tag, attributes) in enumerate(page.elements[:end])
        if i > start and tag == "td" and css in attributes["class"].split()
    ]


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(chain(["conv", "relu", "conv", "add", "softmax"]))


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    return Page(page_of(report))


def test_key_numbers_are_those_of_the_report(report: Report, page: Page) -> None:
    assert report.totals.latency_s is not None
    assert report.totals.energy_j is not None
    shown = {key: page.by_id(f"card-{key}")[1] for key in ("latency", "ram", "parameters", "macs", "energy", "layers")}
    assert format_seconds(report.totals.latency_s.value) in shown["latency"]
    assert format_bytes(report.memory.peak_bytes) in shown["ram"]
    assert format_bytes(report.totals.parameter_bytes) in shown["parameters"]
    assert format_count(report.totals.macs) in shown["macs"]
    assert format_joules(report.totals.energy_j.value) in shown["energy"]
    assert f"{report.totals.accelerated_layers} of {len(report.layers)}" in shown["layers"]


def test_every_layer_has_a_row_with_its_exact_values(report: Report, page: Page) -> None:
    for css, values in {
        "index": [layer.index for layer in report.layers],
        "cycles": [layer.cycles for layer in report.layers],
        "latency": [layer.latency_s for layer in report.layers],
        "macs": [layer.macs for layer in report.layers],
        "element-ops": [layer.element_ops for layer in report.layers],
        "parameters": [layer.parameter_bytes for layer in report.layers],
        "live": [layer.live_bytes for layer in report.layers],
        "energy": [layer.energy_j for layer in report.layers],
    }.items():
        assert [float(cell[0]["data-v"]) for cell in column_of(page, css)] == values, css
    assert [text for _, text in column_of(page, "bound")] == [layer.bound for layer in report.layers]
    assert [text for _, text in column_of(page, "name")] == [layer.name for layer in report.layers]
    assert [text for _, text in column_of(page, "accelerated")] == ["No"] * len(report.layers)


def test_unknown_is_a_dash_with_its_reason() -> None:
    report = report_of(chain(["conv", "custom", "relu"]))
    page = Page(page_of(report))
    assert report.totals.withheld
    card = page.by_id("card-latency")[1]
    assert UNKNOWN in card
    assert report.totals.withheld in card
    cells = column_of(page, "cycles")
    unknown = [attributes for attributes, text in cells if text == UNKNOWN]
    assert len(unknown) == 1
    assert "data-v" not in unknown[0]
    assert unknown[0]["title"] == report.layers[report.totals.unknown_layers[0]].reason
    assert report.totals.power_note in page.html
    assert "Not in this chart, cost unknown: 1 layer." in page.html


@pytest.mark.parametrize("target", ["max32690-cm4", "aic100-std"])
def test_the_parameter_column_reconciles_with_the_total(target: str) -> None:
    report = report_of(chain(["conv", "relu", "conv", "conv"], shared_weights=True), target)
    page = Page(page_of(report))
    parts, text = page.by_id("reconciliation")
    column = sum(float(cell[0]["data-v"]) for cell in column_of(page, "parameters"))
    assert column == int(parts["data-column"])
    assert int(parts["data-column"]) - int(parts["data-shared"]) + int(parts["data-converted"]) == int(
        parts["data-total"]
    )
    assert int(parts["data-total"]) == report.totals.parameter_bytes
    assert int(parts["data-shared"]) == 2 * int(parts["data-column"]) // 3
    assert f"{report.totals.parameter_bytes:,} B" in text
    assert sum(" shared" in text for _, text in column_of(page, "parameters")) == 2


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_and_nothing_else(name: str) -> None:
    harmless = Page(page_of(report_of(chain(["conv", "relu", "custom"]))))
    hostile = Page(page_of(report_of(chain(["conv", "relu", "custom"], name=lambda i: f"{name}{i}"))))
    tags = [tag for tag, _ in harmless.elements]
    assert [tag for tag, _ in hostile.elements] == tags
    assert not [a for _, a in hostile.elements if any(key.startswith("on") for key in a)]
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069\u2028\ud800-\udfff]", hostile.html)
    assert len(hostile.html.encode()) < len(harmless.html) + 60_000
    assert max(len(a.get("title", "")) for _, a in hostile.elements) <= 1000


def test_many_layers_travel_as_data_that_cannot_end_its_script() -> None:
    kinds = ["conv", "add"] * (MOST_HTML_ROWS // 2) + ["softmax"]
    report = report_of(chain(kinds, name=lambda i: HOSTILE[i % 3] + str(i), shared_weights=True), advise=False)
    html = page_of(report)
    page = Page(html)
    data = page.by_id("layer-rows")[1]
    rows = json.loads(data)
    assert len(rows) == len(report.layers) > MOST_HTML_ROWS
    assert "<" not in data
    macs = [column.css for column in COLUMNS].index("macs")
    assert [row[macs][1] for row in rows] == [layer.macs for layer in report.layers]
    assert len(page.all("tbody")[0][0]) == 0
    drawings = re.findall("<svg.*?</svg>", html, re.DOTALL)
    assert len(drawings) == 4
    assert max(len(drawing.encode()) for drawing in drawings) < 200_000


def test_the_same_report_gives_the_same_bytes(report: Report, page: Page) -> None:
    assert page_of(report) == page.html


def test_nothing_is_fetched_and_only_the_known_script_runs(page: Page) -> None:
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert not [a for _, a in page.elements if a.get("src") or a.get("href", "#")[0] not in "#d"]
    assert "http://" not in page.html
    assert "https://" not in page.html


def test_tables_and_charts_have_names_for_screen_readers(page: Page) -> None:
    assert len(page.all("caption")) == len(page.all("table"))
    sortable = [a for a, _ in page.all("th") if "aria-sort" in a]
    assert len(sortable) == len(COLUMNS)
    assert [a["aria-sort"] for a in sortable].count("ascending") == 1
    for attributes, _ in page.all("svg"):
        assert attributes["role"] == "img"
        for key in attributes["aria-labelledby"].split():
            assert page.by_id(key)[1]
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_a_roofline_that_cannot_be_drawn_says_why() -> None:
    assert "Not drawn: the target file gives no bandwidth for RAM, flash." in page_of(
        report_of(chain(["conv"]), "cfs-sample")
    )
    assert "Not drawn: no layer with MACs has a known time." in page_of(report_of(chain(["add", "softmax"])))


def test_a_graph_without_layers_still_has_a_page() -> None:
    page = Page(page_of(report_of(chain([]))))
    assert "Not drawn: no layer runs." in page.html


def test_suggestions_show_before_after_and_change(report: Report, page: Page) -> None:
    assert report.suggestions
    idea = report.suggestions[0]
    assert idea.text in page.html
    assert f"{format_bytes(idea.before.parameter_bytes)} →" in page.html
    change = 100 * (idea.after.parameter_bytes / idea.before.parameter_bytes - 1)
    assert f"−{abs(change):.1f}%" in page.html or "±0%" in page.html


def test_every_figure_of_the_target_names_its_source(report: Report, page: Page) -> None:
    assert report.target.sources[report.target.clocks.core_hz.source] in page.html
    assert report.definition in page.html


def test_importing_the_view_does_not_import_jinja() -> None:
    code = "import sys, opscope.views.report_page.report_html; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_long_name_keeps_both_ends() -> None:
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abc", 5) == "abc"


def test_control_characters_become_visible() -> None:
    assert clean("a\x00\x1b\u202eb\ud800") == "a␀␛\ufffdb\ufffd"


def test_json_in_a_script_is_plain_ascii() -> None:
    text = script_json(["</script>", "<!--", "\u2028", "&"])
    assert text.isascii()
    assert not re.search("[<>&]", text)
    assert json.loads(text) == ["</script>", "<!--", "\u2028", "&"]


def test_ticks_are_round_in_their_base() -> None:
    assert ticks(200 * 1024, base=1024) == [0, 64 * 1024, 128 * 1024, 192 * 1024]
    assert ticks(0.0041) == pytest.approx([0, 0.002, 0.004])
    assert ticks(0) == [0]


def test_columns_never_exceed_their_limit_and_cover_every_layer() -> None:
    for count in (0, 1, 360, 361, 5000, 100_000):
        groups = buckets(count)
        assert len(groups) <= 360
        assert [i for group in groups for i in group] == list(range(count))


def test_figures_are_found_wherever_a_target_holds_them(report: Report) -> None:
    rows = {(row.part, row.figure): row.value for row in figure_rows(report.target)}
    assert rows["clocks", "core clock in hertz"] == "120,000,000"
    assert rows["cpu", "macs per cycle"] == "0.5"
    assert rows["RAM", "size in bytes"] == "1,048,576 (1.00 MB)"
