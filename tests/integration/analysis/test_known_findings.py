"""`findings.json` is used again where it is of this very Run, and never where it is not."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from opscope import api
from opscope.analysis.run_analysis import RunAnalysis
from opscope.core import keys
from opscope.core.errors import ProfilerError, UsageError
from opscope.recording import findings_file
from opscope.recording.finding import Findings
from opscope.recording.findings_file import FindingsJson, decode_findings, key_of
from opscope.workflows import analysing, viewing
from opscope.zoo import Recipe, make
from support.recording.page_build import small_findings, small_run


def text_of(findings: Findings, key: str | None = None) -> bytes:
    out = StringIO()
    FindingsJson(key=key).render(findings, out)
    return out.getvalue().encode()


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known")
    make(Recipe("kws-cnn"), folder / "kws.onnx")
    api.profile(folder / "kws.onnx", "aic100-std", options={"cores": 2}, run=folder / "kws.run")
    return folder / "kws.run"


@pytest.fixture
def run_folder(profiled: Path, tmp_path: Path) -> Path:
    shutil.copytree(profiled, tmp_path / "kws.run")
    return tmp_path / "kws.run"


@pytest.fixture
def never_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    def analysed(*_: object) -> None:
        raise AssertionError("the run is analysed again")

    monkeypatch.setattr(analysing, "analyse", analysed)


def known(folder: Path) -> Findings | None:
    return findings_file.known_findings(folder, viewing.open_folder(folder))


def test_what_is_read_back_is_what_was_written() -> None:
    run = small_run()
    for findings in (small_findings(run), Findings("unknown", (), None, "measured")):
        assert decode_findings(text_of(findings), spans=len(run.trace.spans), source="findings.json") == findings


def test_what_profile_found_is_what_a_new_analysis_finds(run_folder: Path) -> None:
    """What-ifs that it simulated included: they are in the file."""
    run = viewing.open_folder(run_folder)
    assert known(run_folder) == analysing.findings_of(run_folder, RunAnalysis(run))


@pytest.mark.usefixtures("never_analysed")
def test_a_run_that_profile_or_analyze_left_is_shown_without_a_second_analysis(run_folder: Path) -> None:
    run = viewing.open_folder(run_folder)
    assert viewing.findings_of(run_folder, run).findings
    os.utime(run_folder / "run.json")  # a copy has other times, and the same content
    assert viewing.findings_of(run_folder, run).findings


def test_analyze_leaves_findings_that_are_used_again(run_folder: Path) -> None:
    (run_folder / "findings.json").unlink()
    assert known(run_folder) is None
    _, findings = api.analyze(run_folder)
    assert known(run_folder) == findings


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
def test_findings_of_another_run_are_not_taken(run_folder: Path, name: str) -> None:
    """Whatever the times of the files say."""
    times = (run_folder / name).stat()
    (run_folder / name).write_bytes((run_folder / name).read_bytes() + b"\n")
    os.utime(run_folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert known(run_folder) is None


def test_findings_of_other_tables_are_not_taken(run_folder: Path, tmp_path: Path) -> None:
    make(Recipe("fc"), tmp_path / "fc.onnx")
    api.profile(tmp_path / "fc.onnx", "aic100-std", run=tmp_path / "fc.run")
    shutil.copy(run_folder / "findings.json", tmp_path / "fc.run" / "findings.json")
    assert known(tmp_path / "fc.run") is None


def test_findings_of_other_code_are_not_taken(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings_file, "code_of", lambda *_: "of tomorrow")
    assert known(run_folder) is None


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "opscope.findings/2"},
        {"key": None},
        {"findings": "none"},
        {"path": [{"start_ns": 5, "end_ns": 2**70, "span": 0, "op": None, "cause": "compute", "after": ""}]},
        {"path": [{"start_ns": 5, "end_ns": 6, "span": 10**9, "op": None, "cause": "compute", "after": ""}]},
    ],
)
def test_findings_that_are_damaged_or_impossible_are_not_taken(run_folder: Path, change: dict[str, object]) -> None:
    file = run_folder / "findings.json"
    file.write_bytes(msgspec.json.encode(json.loads(file.read_bytes()) | change))
    assert known(run_folder) is None
    assert viewing.findings_of(run_folder, viewing.open_folder(run_folder)).findings


def test_a_file_cut_short_is_not_taken(run_folder: Path) -> None:
    file = run_folder / "findings.json"
    file.write_bytes(file.read_bytes()[:-100])
    assert known(run_folder) is None


def test_an_impossible_row_is_named() -> None:
    run = small_run()
    findings = small_findings(run)
    wrong = replace(findings, findings=(replace(findings.findings[0], spans=(10**6,)),))
    with pytest.raises(ProfilerError, match=r"^findings\.json: names a row that spans\.parquet does not have"):
        decode_findings(text_of(wrong), spans=len(run.trace.spans), source="findings.json")


def test_the_key_is_read_without_the_rest() -> None:
    findings = small_findings(small_run())
    assert key_of(text_of(findings, "abc"), source="findings.json") == "abc"
    assert key_of(text_of(findings), source="findings.json") is None


def test_what_a_backend_told_is_no_way_out_of_the_run(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}", encoding="utf-8")
    (run_folder / "profile.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UsageError, match=r"profile\.json: is no plain file"):
        viewing.open_folder(run_folder)


def test_a_change_of_any_code_that_a_result_depends_on_changes_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("noun.py", "analysis/rule.py", "analysis/rules/one.py", "views/page.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    monkeypatch.setattr(keys, "__file__", str(tmp_path / "api" / "keys.py"))
    found = [keys.code_of("analysis")]
    for name in ("noun.py", "analysis/rule.py", "analysis/rules/one.py"):
        (tmp_path / name).write_text("second")
        found.append(keys.code_of("analysis"))
    assert len(set(found)) == 4
    (tmp_path / "views/page.py").write_text("second")
    assert keys.code_of("analysis") == found[-1]
