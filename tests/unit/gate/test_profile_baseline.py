from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from opscope.errors import UsageError
from opscope.gate.profile_baseline import compare_profiles, read_baseline
from opscope.profiled import Metric, Profiled
from opscope.views.htp_json import ProfiledJson


def profiled(
    time: float | None, *, read: int = 10, version: str = "2.7.0", provenance: str = "vendor-model"
) -> Profiled:
    metrics = (
        Metric("htp_execution_time", time, "us", provenance), Metric("ddr_read", read, "bytes", "compiler-fact"),
    )  # fmt: skip
    target = {"name": "SA8255"}
    return Profiled("htp", "m.onnx", target, {}, {"onnxruntime-qnn": version}, provenance, None, metrics)


def written(folder: Path, result: Profiled) -> Path:
    out = StringIO()
    ProfiledJson().render(result, out)
    (folder / "profile.json").write_text(out.getvalue())
    return folder


def test_a_regression_beyond_the_limit_fails_and_one_within_passes(tmp_path: Path) -> None:
    base = read_baseline(written(tmp_path, profiled(100.0)))
    lines, verdict = compare_profiles(base, profiled(104.0, read=20), limit=0.05)
    assert verdict.passed
    assert lines == [
        "htp_execution_time: 100 → 104 us (4.0%) [vendor-model]", "ddr_read: 10 → 20 bytes (100.0%) [compiler-fact]",
    ]  # fmt: skip
    _, verdict = compare_profiles(base, profiled(106.0), limit=0.05)
    assert [check.reason for check in verdict.checks] == ["htp_execution_time: 6.0% against a limit of 5.0%"]
    assert not verdict.passed


def test_without_a_limit_nothing_fails(tmp_path: Path) -> None:
    _, verdict = compare_profiles(read_baseline(written(tmp_path, profiled(1.0))), profiled(99.0), limit=None)
    assert verdict.passed


@pytest.mark.parametrize("new", [profiled(None), profiled(100.0, provenance="measured")])
def test_what_cannot_be_compared_does_not_pass(tmp_path: Path, new: Profiled) -> None:
    _, verdict = compare_profiles(read_baseline(written(tmp_path, profiled(100.0))), new, limit=0.5)
    assert not verdict.passed


def test_another_version_of_the_package_is_said(tmp_path: Path) -> None:
    base = read_baseline(written(tmp_path, profiled(1.0, version="2.6.0")))
    lines, _ = compare_profiles(base, profiled(1.0), limit=None)
    assert lines[0] == "note: the baseline was made by onnxruntime-qnn 2.6.0; differences may come from that"
    assert lines[1] == "htp_execution_time: 1 → 1 us (unchanged) [vendor-model]"


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "cannot be read"), ("{", "not a profile"), ('{"metrics": []}', "schema is ''; expected opscope.profile/1")],
)
def test_an_unreadable_baseline_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "profile.json").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_baseline(tmp_path)
