"""Ranges from networks left out: what they hold, what sets them, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.calibration.left_out import COVERAGE, LeftOut, network_weights, quantile


def left_out(errors: np.ndarray, networks: list[str], machines: list[int], shares: np.ndarray | None = None) -> LeftOut:
    rows = len(errors)
    shares = np.ones((rows, 1)) if shares is None else shares
    return LeftOut(networks, np.array(machines), errors, shares, np.zeros_like(shares), np.ones(shares.shape[1], bool))


def noise(seed: int, count: int, sigma: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sigma, count)


def test_ranges_told_by_other_networks_alone_hold_as_often_as_they_promise() -> None:
    held = []
    for seed in range(20):
        found = left_out(noise(seed, 60), [f"n{row}" for row in range(60)], [0] * 60)
        held.append(np.mean(np.abs(found.errors) <= found.reaches(np.arange(60) % 20)))
    assert np.mean(held) == pytest.approx(COVERAGE, abs=0.02)


def test_the_range_of_a_network_does_not_depend_on_its_own_error() -> None:
    errors, folds = noise(0, 30), np.arange(30) % 10
    before = left_out(errors, [f"n{row}" for row in range(30)], [0] * 30).reaches(folds)
    errors[3] = 5.0
    after = left_out(errors, [f"n{row}" for row in range(30)], [0] * 30).reaches(folds)
    same = folds == folds[3]
    assert after[same] == pytest.approx(before[same])


def test_one_network_far_off_does_not_widen_all_others() -> None:
    """A network that fell back to a processor, with work of its own and work that all others have."""
    errors = noise(1, 40)
    shares = np.column_stack([np.full(40, 0.8), np.full(40, 0.2)])
    found = left_out(errors, [f"n{row}" for row in range(40)], [0] * 40, shares)
    before = found.widths(found.unsure())
    errors[0] = 3.0
    assert np.median(found.widths(found.unsure()) / before) < 1.1


def test_a_machine_whose_rows_scatter_more_gets_a_wider_range() -> None:
    networks = [f"n{row}" for row in range(40)] * 4
    errors = np.concatenate([noise(2, 120, 0.1), noise(3, 40, 0.4)])
    found = left_out(errors, networks, [machine for machine in range(4) for _ in range(40)])
    calm, wild, any_ = found.factors(found.unsure(), [0, 3, None])
    assert calm < any_ < wild


def test_machines_alike_have_one_factor_and_a_machine_alone_has_that_of_all() -> None:
    errors = noise(4, 30)
    networks = [f"n{row}" for row in range(30)]
    alone = left_out(errors, networks, [0] * 30)
    twice = left_out(np.tile(errors, 2), networks * 2, [0] * 30 + [1] * 30)
    assert len(set(alone.factors(alone.unsure(), [0, None]))) == 1
    assert len(set(twice.factors(twice.unsure(), [0, 1, None]))) == 1


def test_a_machine_without_other_networks_takes_what_all_have() -> None:
    found = left_out(noise(5, 11), [f"n{row}" for row in range(11)], [0] * 10 + [1])
    rest = found.chosen(np.arange(11) < 10)
    unsure = rest.unsure()
    assert rest.factors(unsure, [1]) == rest.factors(unsure, [None])


def test_each_network_counts_alike_however_often_it_was_measured() -> None:
    assert network_weights(["a", "a", "b"]) == pytest.approx([0.5, 0.5, 1.0])
    assert quantile(np.array([1.0, 1.0, 3.0]), np.array([9.5, 9.5, 1.0])) == 1.0
    assert quantile(np.array([1.0, 1.0, 3.0]), np.array([1.0, 1.0, 1.0])) == 3.0
