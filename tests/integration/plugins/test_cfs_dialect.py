"""The vendor's documented command lines, word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.core.errors import TargetError
from opscope.plugins.cfs.flags import target_name
from opscope.zoo import Recipe, make

PROFILE_KEYS = (  # of `cfsai profile --json-file`, releases 2.0 and 2.1 of analogdevicesinc/codefusion-studio
    "info",
    "model_summary",
    "hardware_metrics",
    "memory_analysis",
    "layer_performance",
    "optimization_suggestions",
    "optimization_opportunities",
    "errors",
)
COMPAT_KEYS = ("info", "model_summary", "memory_issues", "operator_issues", "unsupported_types")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "resnet.tflite"
    make(Recipe("cifar-resnet", format="tflite"), path)
    return path


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_cfsai_profile_prints_the_five_tables(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cfsai", "profile", "--model", model, "--target", "MAX32690.CM4") == 0
    text, notes = capsys.readouterr()
    for heading in (
        "MODEL SUMMARY",
        "MEMORY ANALYSIS",
        "HARDWARE PERFORMANCE",
        "PER-LAYER PERFORMANCE",
        "OPTIMIZATION",
    ):
        assert f"=== {heading}" in text
    assert notes == ""


def test_the_dialect_and_the_native_verb_print_the_same(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for words in (
        ("cfsai", "profile", "--model", model, "--target", "cfs-sample"),
        ("report", model, "--target", "cfs-sample", "--compat", "cfs"),
    ):
        assert run(*words) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_cfsai_profile_writes_both_files(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, document = tmp_path / "profile.txt", tmp_path / "profile.json"
    words = ("--target", "MAX32690(WLP).CM4", "--json-file", document, "--text-file", text)
    assert run("cfsai", "profile", "--model", model, *words) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"wrote {document}\nwrote {text}\n"
    found = json.loads(document.read_text())
    assert tuple(found) == PROFILE_KEYS
    assert tuple(found["info"])[:3] == ("timestamp", "type", "version")
    assert (found["info"]["type"], found["info"]["hardware"]) == ("profile", "max32690-cm4")
    assert found["optimization_suggestions"] == found["errors"] == []
    assert set(found["optimization_opportunities"]) == {"totals", "layerwise", "macs"}
    assert set(found["memory_analysis"]) >= {"issues", "recommendations"}
    assert found["hardware_metrics"]["total_cycles"] == sum(layer["cycles"] for layer in found["layer_performance"])
    assert "=== MODEL SUMMARY ===" in text.read_text()


def test_cfsai_compat_says_whether_the_model_goes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cfsai", "compat", "--model", model, "--target", "MAX32690") == 0
    assert capsys.readouterr().out == "resnet on max32690-cm4: compatible\n"


def test_cfsai_compat_writes_its_json(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "compat.json"
    assert run("cfsai", "compat", "--model", model, "--target", "MAX78002", "--json-file", path) == 0
    found = json.loads(path.read_text())
    assert tuple(sorted(found)) == tuple(sorted(COMPAT_KEYS))
    assert found["operator_issues"] == []


def test_cfsai_compat_has_no_text_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--model", model, "--target", "MAX78002", "--text-file", tmp_path / "x.txt")
    assert run("cfsai", "compat", *words) == 2
    assert capsys.readouterr().err == (
        "opscope: cfsai compat: --text-file is for profile; expected --json-file or neither\n"
    )


@pytest.mark.parametrize("action", ["profile", "compat"])
def test_cfsutil_prints_text_or_json(model: Path, action: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("cfsutil", "ai", action, "--soc", "MAX32690", "--core", "CM4", "--model", model)
    assert run(*words) == 0
    assert capsys.readouterr().out
    assert run(*words, "--format", "json") == 0
    keys = PROFILE_KEYS if action == "profile" else COMPAT_KEYS
    assert set(json.loads(capsys.readouterr().out)) == set(keys)


def test_cfsutil_writes_its_report_in_either_format(model: Path, tmp_path: Path) -> None:
    words = ("cfsutil", "ai", "profile", "--soc", "MAX32690", "--core", "CM4", "--package", "WLP", "--model", model)
    text, document = tmp_path / "report.txt", tmp_path / "report.json"
    assert run(*words, "--report-file", text) == 0
    assert run(*words, "--report-file", document, "--report-format", "json") == 0
    assert text.read_text().startswith("=== MODEL SUMMARY ===")
    assert tuple(json.loads(document.read_text())) == PROFILE_KEYS


@pytest.mark.parametrize(
    ("vendor", "ours"),
    [
        ("MAX32690.CM4", "max32690-cm4"),
        ("MAX32690(WLP).CM4", "max32690-cm4"),
        ("MAX78002", "max78002-cm4"),
        ("max32657.cm33.acc", "max32657-cm33"),
        ("ADSP-21834.FX", "adsp-21834-fx"),
        ("cfs-sample", "cfs-sample"),
        ("./mychip.toml", "./mychip.toml"),
    ],
)
def test_vendor_spellings_find_our_targets(vendor: str, ours: str) -> None:
    assert target_name(vendor) == ours


def test_a_chip_that_is_not_known_lists_the_ones_that_are_as_the_vendor_spells_them() -> None:
    with pytest.raises(
        TargetError, match=r"^MAX78000\.RV32: no such target; expected SOC\[\.CORE\], one of .*MAX32690\.CM4"
    ):
        target_name("MAX78000.RV32")


@pytest.mark.parametrize("text", ["", "(", "a.b.c.d.e", "..", "MAX32690(", "\n"])
def test_any_other_spelling_is_refused_in_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cfsai", "profile", "--model", "m.tflite", "--target", text) == 2
    assert capsys.readouterr().err.count("\n") == 1
