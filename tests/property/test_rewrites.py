"""Every exact rewrite of the catalogue, on drawn networks, one after the other in a drawn order: outputs stay."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from opscope.rewrites import catalogue
from opscope.rewrites.onnx import editor
from opscope.rewrites.rewrite import RewriteError, everywhere
from support.rewrites.drawn_networks import Drawing
from support.rewrites.rewriting import assert_same

TOLERANCE = 1e-4  # of the largest output: many rewrites, each exact to rounding


ELSEWHERE = ("onnxslim", "onnxruntime-basic", "onnxruntime-extended")  # seconds each: a process of its own


def _hold(seeds: range, folder: Path, *, without: tuple[str, ...] = (), batches: tuple[int, ...] = ()) -> Counter[str]:
    """Apply all, twice, to the networks of some seeds, and see that outputs stay; how often each applied.

    Args:
        batches: of a batch that is open; none: it is fixed.
    """
    exact = [entry for entry in catalogue.known("onnx") if not entry.needs and entry.name not in without]
    applied: Counter[str] = Counter()
    for seed in seeds:
        before, after = folder / "before.onnx", folder / "after.onnx"
        steps = Drawing(seed, open_batch=bool(batches)).save(before)
        random = np.random.default_rng(seed)
        order = [exact[place] for _ in range(2) for place in random.permutation(len(exact))]
        model, done = editor.open_model(before), []
        for entry in order:
            with suppress(RewriteError):  # of a library that does not take it
                model, sites = editor.apply(model, entry, everywhere)
                done += [entry.name] if sites else []
        editor.save(model, after)
        try:
            for batch in batches or (1,):
                assert_same(before, after, draws=1, tolerance=TOLERANCE, batch=batch)
        except Exception as error:
            raise AssertionError(f"seed {seed}: steps {steps}: rewrites {done}") from error
        applied.update(done)
    return applied


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_all_rewrites_keep_outputs(first: int, tmp_path: Path) -> None:
    applied = _hold(range(first, first + 5), tmp_path, without=ELSEWHERE)
    assert len(applied) > 15
    assert applied.total() > 5 * 8


def test_all_rewrites_of_an_open_batch_hold_for_every_batch(tmp_path: Path) -> None:
    applied = _hold(range(8), tmp_path, without=ELSEWHERE, batches=(1, 2, 5))
    assert len(applied) > 15


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 220, 20))
def test_all_rewrites_keep_outputs_of_many(first: int, tmp_path: Path) -> None:
    applied = _hold(range(first, first + 20), tmp_path)
    assert len(applied) > 30
    assert applied.total() > 20 * 10
