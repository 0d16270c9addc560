"""Optimisers of libraries, on models that have something for each of them."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxscript import optimizer

from opscope.rewrites import catalogue
from opscope.rewrites.onnx import editor, files, library_worker
from opscope.rewrites.rewrite import RewriteContext, RewriteError
from support.rewrites.rewriting import assert_same, operators, rewrite_file
from support.rewrites.weighted_models import drawn, model

HERE = ["fold-constants", "share-equal-ops"]
ELSEWHERE = ["onnxslim", "onnxruntime-basic", "onnxruntime-extended"]
BODY = """
    k = Add(one, two) g = Identity(x)
    a = Mul(g, k) b = Mul(g, k) c = Add(a, b)
    u = Relu(x)
    n = Conv(c, w) y = BatchNormalization(n, s, s, m, s)
"""


def _model(shape: tuple[int, int, int, int], opset: int = 17) -> onnx.ModelProto:
    weights = {"w": drawn(2, shape[1], 1, 1), "s": abs(drawn(2)) + 0.5, "m": drawn(2)}
    return model(f"T{list(shape)} x", "T[] y", BODY, opset=opset, one=drawn(1), two=drawn(1, seed=2), **weights)


def _assert_less(before: Path, after: Path) -> None:
    assert_same(before, after)
    assert len(operators(after)) < len(operators(before))


@pytest.mark.parametrize("rewrite", [*HERE, *ELSEWHERE])
@settings(max_examples=4)
@given(shape=st.tuples(*[st.integers(1, 4)] * 4), opset=st.sampled_from([13, 17, 21]))
def test_a_library_leaves_less_that_gives_the_same(
    rewrite: str, tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int, int, int], opset: int
) -> None:
    folder = tmp_path_factory.mktemp("library")
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(_model(shape, opset), before)
    if rewrite in HERE:
        assert rewrite_file(before, rewrite, after)
    else:
        library_worker.LIBRARIES[rewrite](before, after)
    _assert_less(before, after)


@pytest.mark.parametrize("rewrite", [*HERE, "onnxslim"])
def test_a_library_says_nothing_and_changes_no_settings(
    rewrite: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    loggers = [logging.getLogger(), logging.getLogger("onnxslim"), logging.getLogger("onnxscript")]
    settings_before = [(each.level, list(each.handlers)) for each in loggers]
    onnx.save(_model((1, 2, 3, 3)), tmp_path / "before.onnx")
    assert rewrite_file(tmp_path / "before.onnx", rewrite, tmp_path / "after.onnx")
    assert capfd.readouterr() == ("", "")
    assert [(each.level, list(each.handlers)) for each in loggers] == settings_before
    _assert_less(tmp_path / "before.onnx", tmp_path / "after.onnx")


def test_operators_that_only_the_runtime_has_are_refused(tmp_path: Path) -> None:
    made = model("T[1,4,8,8] x", "T[] y", "c = Conv(x, w) y = Relu(c)", w=drawn(4, 4, 3, 3))
    onnx.save(made, tmp_path / "before.onnx")
    with pytest.raises(RewriteError, match=r"uses operators of com\.microsoft"):
        rewrite_file(tmp_path / "before.onnx", "onnxruntime-extended", tmp_path / "after.onnx")


def test_what_was_made_of_a_model_is_kept(tmp_path: Path) -> None:
    onnx.save(_model((1, 2, 3, 3)), tmp_path / "before.onnx")
    opened, context = editor.open_model(tmp_path / "before.onnx"), RewriteContext(folder=tmp_path / "kept")
    entry = catalogue.named("onnxslim", "onnx")
    assert editor.sites(opened, entry, context)
    (kept,) = (tmp_path / "kept").iterdir()
    editor.save(editor.copy(opened), kept)
    assert not editor.sites(opened, entry, context)  # what is kept is taken


def test_a_model_too_large_for_one_message_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(_model((1, 2, 3, 3)), tmp_path / "before.onnx")
    monkeypatch.setattr(files, "LARGEST_FILE", 8)
    with pytest.raises(RewriteError, match="takes models of up to"):
        rewrite_file(tmp_path / "before.onnx", "onnxslim", tmp_path / "after.onnx")


@pytest.mark.parametrize("rewrite", ["fold-constants", "onnxruntime-basic"])
def test_a_library_that_fails_says_why(rewrite: str, tmp_path: Path) -> None:
    made = model("T[1,4] x", "T[] y", "y = Relu(x)")
    made.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(made, tmp_path / "before.onnx")
    if rewrite in HERE:  # which looks at what it knows, and leaves the rest
        assert not rewrite_file(tmp_path / "before.onnx", rewrite, tmp_path / "after.onnx")
        return
    with pytest.raises(RewriteError, match="NoSuchOperator"):
        rewrite_file(tmp_path / "before.onnx", rewrite, tmp_path / "after.onnx")


def test_attributes_that_the_version_does_not_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of onnxscript write a Reshape with `allowzero`, which version 14 brought; folding alone is taken."""

    def merge(given: ir.Model, output_size_limit: int) -> None:
        assert output_size_limit
        reshape = next(node for node in given.graph if node.op_type == "Reshape")
        reshape.attributes["allowzero"] = ir.AttrInt64("allowzero", 1)

    monkeypatch.setattr(optimizer, "optimize_ir", merge)
    body = "k = Add(one, two) z = Mul(x, k) y = Reshape(z, i)"
    made = model("T[2,3] x", "T[] y", body, opset=12, i=[3, 2], one=drawn(1), two=drawn(1))
    onnx.save(made, tmp_path / "before.onnx")
    assert rewrite_file(tmp_path / "before.onnx", "fold-constants", tmp_path / "after.onnx")
    assert_same(tmp_path / "before.onnx", tmp_path / "after.onnx")
    assert operators(tmp_path / "after.onnx") == ["Mul", "Reshape"]
