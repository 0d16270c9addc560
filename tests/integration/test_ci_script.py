"""The CI script of docs/ci.md, taken from the page and run as CI runs it: on the same model, and on a degraded one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from opscope.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
SCRIPT = "ci/performance.sh"
OPTIONS = ("--target", "aic100-std", "--cores", "2")

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def run_script(folder: Path, model: str, baseline: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "ci").mkdir(exist_ok=True)
    (folder / SCRIPT).write_text(blocks("bash")[0])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return subprocess.run(
        ["sh", SCRIPT, model, baseline, *OPTIONS],
        cwd=folder,
        env={**kept, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's repository: a model, its baseline, and the model as a pull request leaves it."""
    folder = tmp_path_factory.mktemp("repository")
    for name, channels in (("good", "64"), ("wider", "128")):
        assert main(["zoo", "kws-cnn", "--channels", channels, "-o", str(folder / f"{name}.onnx")]) == 0
    assert main(["profile", str(folder / "good.onnx"), *OPTIONS, "-o", str(folder / "good.run")]) == 0
    assert main(["baseline", "save", str(folder / "good.run"), "-o", str(folder / "perf.json")]) == 0
    assert (folder / "perf.json").stat().st_size < 50_000
    return folder


def test_an_unchanged_model_passes_with_a_comment_and_a_report(repository: Path) -> None:
    done = run_script(repository, "good.onnx", "perf.json")
    assert done.returncode == 0, done.stderr
    assert (repository / "comment.md").read_text(encoding="utf-8").startswith("### opscope: ✅ no regression\n")
    assert json.loads((repository / "verdict.json").read_text())["verdict"] == "pass"
    suite = ET.parse(repository / "performance.xml").getroot()  # noqa: S314 – written a moment ago
    assert (suite.get("tests"), suite.get("failures")) == ("3", "0")


def test_a_wider_model_fails_and_the_comment_says_what_made_it_slower(repository: Path) -> None:
    done = run_script(repository, "wider.onnx", "perf.json")
    assert done.returncode == 1, done.stderr
    assert "FAIL  latency +" in done.stdout
    comment = (repository / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### opscope: ❌ regression\n")
    assert "/pointwise/Conv |" in comment
    verdict = json.loads((repository / "verdict.json").read_text())
    whole = verdict["explanations"]["op"]
    assert whole["change_ns"] > 0
    assert sum(part["ns"] for part in whole["parts"]) + whole["rest_ns"] == pytest.approx(whole["change_ns"])


def test_on_github_a_regression_is_an_annotation_and_a_summary(repository: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = run_script(repository, "wider.onnx", "perf.json", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stderr
    assert "\n::error title=opscope%3A latency>2%25::latency +" in done.stdout
    assert summary.read_text(encoding="utf-8").startswith("### opscope: ❌ regression\n")


def test_what_cannot_be_judged_is_no_pass(repository: Path) -> None:
    assert run_script(repository, "missing.onnx", "perf.json").returncode == 2
    assert run_script(repository, "good.onnx", "missing.json").returncode == 2


def test_the_steps_of_both_systems_call_the_script_as_it_is(repository: Path) -> None:
    yaml = pytest.importorskip("yaml")
    github, gitlab = (yaml.safe_load(block) for block in blocks("yaml"))
    steps = [step.get("run", "") for step in github["jobs"]["performance"]["steps"]]
    calls = [line for line in (*steps, *gitlab["performance"]["script"]) if SCRIPT in line]
    assert calls == [f"sh {SCRIPT} models/kws.onnx perf/kws.json {' '.join(OPTIONS)}"] * 2
    assert gitlab["performance"]["artifacts"]["reports"]["junit"] == "performance.xml"
    assert any("--body-file comment.md" in step for step in steps)
