"""`report --format html`: the page of a Run holds the report's numbers, whatever the model is called."""

from __future__ import annotations

import html
import re
import subprocess
import sys

import msgspec
import pytest

from opscope.estimate.recorded_resources import resources_of
from opscope.estimate.report import Report
from opscope.views.page import page
from opscope.views.page.contract import PageData
from support.estimate.report_samples import chain, page_of, report_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><!-- \u2028 ]]>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "\u202eevil\u202c",
    "bell\x07\x1b[31m\x00\nline",
    "\ud800half",
)


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(chain(["conv", "relu", "conv", "add", "softmax"]))


def data_of(text: str) -> PageData:
    found = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return msgspec.json.decode(found[1], type=PageData, strict=True)


def test_the_page_holds_the_resources_of_the_report(report: Report) -> None:
    data = data_of(page_of(report))
    assert data.resources == resources_of(report)
    assert [op.name for op in data.ops] == [layer.name for layer in report.layers]


def test_the_same_report_gives_the_same_bytes(report: Report) -> None:
    assert page_of(report) == page_of(report)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_data_and_nothing_else(name: str) -> None:
    tags = re.compile("<[a-zA-Z!/]")
    harmless = page_of(report_of(chain(["conv", "relu", "custom"])))
    hostile = page_of(report_of(chain(["conv", "relu", "custom"], name=lambda i: f"{name}{i}")))
    assert tags.findall(hostile) == tags.findall(harmless)


def test_nothing_is_fetched_and_only_the_known_script_runs(report: Report) -> None:
    text = page_of(report)
    policy = html.unescape(re.findall('Content-Security-Policy" content="([^"]*)"', text)[0])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'none'" in policy
    assert not re.search('(src|href)="(?!data:,)', text)


def test_a_graph_without_layers_still_has_a_page() -> None:
    data = data_of(page_of(report_of(chain([]))))
    assert data.resources is not None
    assert data.resources.layers == ()


def test_of_very_many_layers_the_page_holds_the_first_and_says_so(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MOST_OPS", 2)
    data = data_of(page_of(report))
    assert data.resources is not None
    assert len(data.resources.layers) == 2
    assert any("resources of the first 2 of 4 layers" in note for note in data.notes)


def test_the_view_does_not_need_templates() -> None:
    code = "import sys, opscope.views.page.page; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
