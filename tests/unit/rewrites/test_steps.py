"""Steps as a file, and where they fit on another export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import ProfilerError
from opscope.rewrites.outcome import Optimized, TrialResult, Tried
from opscope.rewrites.rewrite import Site
from opscope.rewrites.steps import RewriteStep, fitting, read_steps, steps_bytes

SITE = Site(("b", "a"), "Add(2x3,2x3);Mul(2x3)", ("b/new",))


def found(*steps: Tried) -> Optimized:
    return Optimized("model.onnx", "0" * 64, "better.onnx", "ort", None, None, steps, (), "3 drawn inputs", 0.01)


def test_steps_are_written_and_read_back(tmp_path: Path) -> None:
    rows = (
        Tried("fold", None, (SITE,), TrialResult.TAKEN),
        Tried("merge", (SITE.group,), (SITE,), TrialResult.TAKEN, is_exact=False),
    )
    file = tmp_path / "steps.json"
    file.write_bytes(steps_bytes(found(*rows)))
    assert read_steps(file) == (RewriteStep("fold", None, (SITE,)), RewriteStep("merge", (SITE.group,), (SITE,)))
    assert json.loads(file.read_text())["model"] == {"name": "model.onnx", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "cut short"),
        (b'{"schema": "opscope.run/1", "steps": []}', "expected opscope.rewrites/1"),
        (b'{"schema": "opscope.rewrites/1", "steps": [{"rewrite": 3, "groups": null}]}', "steps"),
    ],
)
def test_a_file_that_holds_no_steps_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "steps.json"
    file.write_bytes(content)
    with pytest.raises(ProfilerError, match=words):
        read_steps(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfilerError, match="cannot be read"):
        read_steps(tmp_path / "none.json")


def test_steps_fit_by_group_then_by_types_of_ops() -> None:
    place = Site(SITE.removed, SITE.group)
    step = RewriteStep("merge", (SITE.group,), (place,))
    other_names = Site(("x", "y"), SITE.group)
    other_shapes = Site(("x", "y"), "Add(8x3,8x3);Mul(8x3)")
    others = Site(("x", "y"), "Add(8x3,8x3);Div(8x3)")
    for sites, count, words in (
        ((other_names, others), 1, ""),
        ((other_names, other_names), 2, "fits in 2 places instead of 1"),
        ((other_shapes, others), 1, "shapes are others, matched by types of ops alone"),
        ((others,), 0, "fits nowhere any more"),
        ((), 0, "fits nowhere any more"),
    ):
        wanted, told = fitting(step, sites)
        assert (sum(map(wanted, sites)), told) == (count, words)
    everywhere, told = fitting(RewriteStep("merge", None, (place, place)), (others,))
    assert (everywhere(others), told) == (True, "fits in 1 places instead of 2")
