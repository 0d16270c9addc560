"""The picture of the arena: a rectangle per block, where and as large as the plan has it."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from opscope import api
from opscope.cli import main
from opscope.estimate.report import Report
from opscope.views.page.arena_picture import ArenaPicture
from opscope.zoo.catalogue import Recipe, make

PICTURE = Path(__file__).parents[4] / "docs" / "images" / "arena-kws.svg"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    model = tmp_path_factory.mktemp("arena") / "kws.tflite"
    make(Recipe("kws-cnn", format="tflite", precision="int8"), model)
    return api.report(model, "max32690-cm4", advise=False)


def drawn(report: Report) -> str:
    out = io.StringIO()
    ArenaPicture().render(report, out)
    return out.getvalue()


def test_every_block_has_a_rectangle_that_says_what_it_is(report: Report) -> None:
    blocks = [found for found in ET.fromstring(drawn(report)).iter(f"{SVG}rect") if found.get("class") != "ground"]  # noqa: S314
    assert len(blocks) == len(report.arena)
    title = blocks[0].find(f"{SVG}title")
    assert title is not None
    first = report.arena[0]
    assert title.text == f"{first.name}: 496 B at {first.address:,}, from {first.first} to {first.last}"


def test_rectangles_of_blocks_that_live_at_once_do_not_overlap(report: Report) -> None:
    blocks = report.arena
    for one in blocks:
        for other in blocks:
            if one is not other and one.first <= other.last and other.first <= one.last:
                assert one.address + one.size_bytes <= other.address or other.address + other.size_bytes <= one.address
    assert max(block.address + block.size_bytes for block in blocks) == report.memory.peak_bytes


def test_an_onnx_model_on_another_target_is_drawn_by_layers(tmp_path: Path) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    text = drawn(api.report(tmp_path / "kws.onnx", "adsp-21834-fx", advise=False))
    assert "layer; hatched" in text
    assert "grey" in text


def test_a_name_cannot_become_markup(report: Report) -> None:
    from dataclasses import replace

    hostile = replace(report.arena[0], name="<script>&\x1b[0m")
    text = drawn(replace(report, arena=(hostile,)))
    assert "<script>" not in text
    assert "\x1b" not in text


def test_the_picture_in_the_guide_is_what_the_program_draws(report: Report, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PICTURE.write_text(drawn(report), encoding="utf-8", newline="\n")
    assert PICTURE.read_text(encoding="utf-8") == drawn(report)


def test_a_report_without_a_plan_has_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(Recipe("kws-cnn", format="tflite", precision="int8"), tmp_path / "kws.tflite")
    words = ["report", str(tmp_path / "kws.tflite"), "--target", "max32690-cm4", "--compat", "cfs", "--format", "svg"]
    assert main(words) == 2
    assert (
        "--format svg: no arena was planned; expected a model with tensors, and no --compat" in capsys.readouterr().err
    )
