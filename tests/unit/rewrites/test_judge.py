"""When a time is better by more than noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.core.provenance import Provenance
from opscope.rewrites.judge import Judge, Judged, OpCost, helps, is_slower, joined, speedup
from opscope.rewrites.trial_worker import judged_of
from support.rewrites.searching import write_model


def told(ns: int | None, *, unknown: int = 0, known: int = 0) -> Judged:
    return Judged(ns, ns, ns, Provenance.SIMULATED, known_ns=known, unknown_ops=unknown)


def measured(middle: float, spread: float, *, seed: int) -> Judged:
    samples = np.random.default_rng(seed).normal(middle, spread, 30).astype(int).tolist()
    blank = Judged(provenance=Provenance.MEASURED, samples_ns=tuple(samples))
    return joined(blank, Judged())


def test_a_time_that_comes_out_the_same_every_time_helps_by_a_thousandth() -> None:
    assert helps(told(100_000), told(99_800))
    assert not helps(told(100_000), told(99_950))
    assert is_slower(told(100_000), told(100_200))
    assert not is_slower(told(100_000), told(100_050))


def test_measured_times_help_where_their_samples_leave_no_doubt() -> None:
    base = measured(1_000_000, 50_000, seed=0)
    assert helps(base, measured(800_000, 50_000, seed=1))
    assert not helps(base, measured(1_000_000, 50_000, seed=2))
    assert not helps(base, measured(990_000, 50_000, seed=3))


def test_an_op_whose_cost_becomes_known_helps_whatever_it_costs() -> None:
    before = told(None, unknown=1, known=50)
    assert helps(before, told(1000))
    assert is_slower(told(1000), before)
    assert helps(before, told(None, unknown=1, known=40))
    assert not helps(before, Judged(problem="refused"))


def test_two_measurements_are_one_with_all_samples() -> None:
    one, other = (
        Judged(provenance=Provenance.MEASURED, samples_ns=tuple(range(start, start + 10))) for start in (100, 200)
    )
    both = joined(one, other)
    assert (both.latency_ns, both.low_ns, both.high_ns, len(both.samples_ns)) == (109, 102, 207, 20)


def test_ops_that_are_touched_cost_what_they_take_of_the_critical_path_first() -> None:
    judged = Judged(ops={"a": OpCost(5, 50), "b": OpCost(0, 70)})
    assert judged.cost(("a", "b", "b", "unheard-of")) == (5, 120)


def test_what_an_answer_depends_on_is_in_the_key() -> None:
    judges = [
        Judge("estimate", "aic100-std"),
        Judge("estimate", "aic100-pro"),
        Judge("sim", "aic100-std"),
        Judge("sim", "aic100-std", {"cores": 2}),
        Judge("sim", "aic100-std", shapes={"x": (1, 2)}),
    ]
    assert len({judge.key for judge in judges}) == len(judges)
    assert Judge("sim", "aic100-std", {"cores": 2}).key == judges[3].key


@pytest.mark.parametrize(("judge", "words"), [(Judge("sim", "aic100-std"), "sim of aic100-std"), (Judge("ort"), "ort")])
def test_a_judge_says_who_it_is(judge: Judge, words: str) -> None:
    assert judge.told == words


@pytest.mark.parametrize(
    ("provenance", "unknown"), [(Provenance.VENDOR_MODEL, 1), (Provenance.ESTIMATED, 1), (Provenance.MEASURED, 0)]
)
def test_an_op_that_falls_back_and_has_no_time_is_unknown(provenance: Provenance, unknown: int, tmp_path: Path) -> None:
    """A vendor's model tells the time of its accelerator alone: less of that is no gain where more falls back."""
    recorded = api.profile(write_model(tmp_path / "model.onnx"), "aic100-std", backend="estimate")
    summary = recorded.run.summary
    first, *others = summary.ops
    left = replace(
        summary,
        ops=(replace(first, on_cpu=True, wall_ns=None), *others),
        latency=replace(summary.latency, provenance=provenance),
    )
    judged = judged_of(replace(recorded, run=replace(recorded.run, summary=left)))
    assert judged.unknown_ops == unknown
    more = told(50, unknown=2)
    assert not helps(judged, more)
    assert speedup(judged, more) is None


def test_times_of_the_same_ops_have_a_ratio() -> None:
    assert speedup(told(100, unknown=1), told(50, unknown=1)) == 2.0
    assert speedup(told(100), None) is None
    assert speedup(told(None), told(50)) is None
