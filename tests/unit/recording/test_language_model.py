"""Figures of a language model, and the ranges around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.recording.language_model import Ranged, inverse, scaled
from support.recording.token_points import MODEL, POINT


def test_the_slow_end_of_a_time_is_the_low_end_of_its_rate() -> None:
    assert inverse(Ranged(20.0, 16.0, 25.0), 1e3) == Ranged(50.0, 40.0, 62.5)
    assert inverse(Ranged(20.0, None, 25.0), 1e3) == Ranged(50.0, 40.0, None)
    assert inverse(Ranged(0.0), 1e3) is None


def test_a_share_of_a_figure_has_that_share_of_its_range() -> None:
    assert scaled(Ranged(8.0, None, 10.0), 0.5) == Ranged(4.0, None, 5.0)
    assert scaled(None, 0.5) is None


def test_what_one_user_gets_follows_from_the_time_between_tokens() -> None:
    assert POINT.decode_tokens_per_s_per_user == Ranged(50.0, 40.0, 62.5)
    assert replace(POINT, tpot_ms=None).decode_tokens_per_s_per_user is None


def test_bytes_are_needed_for_weights_and_cache() -> None:
    assert POINT.needed_bytes == 7 << 30
    assert replace(POINT, kv_bytes=None).needed_bytes is None


def test_a_point_is_named_by_what_is_known_of_it() -> None:
    assert POINT.words == "batch=2,prompt=128,context=1024"
    assert replace(POINT, batch=None, context=None).words == "prompt=128"


def test_a_language_model_has_a_point() -> None:
    with pytest.raises(ValueError, match="without points"):
        replace(MODEL, points=())
