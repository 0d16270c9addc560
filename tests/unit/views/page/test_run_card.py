"""A Run in a notebook: what its card says in words."""

from __future__ import annotations

from dataclasses import replace

from opscope.views.page.run_card import card
from support.recording.page_build import small_findings, small_run


def test_less_than_one_in_a_second_is_not_none_and_a_range_of_one_value_is_no_range() -> None:
    run = small_run()
    latency = replace(run.summary.latency, low_ns=139_999, high_ns=140_001)
    slow = replace(run.summary, latency=latency, throughput_per_s=0.3194)
    text = card(run.info, slow, small_findings(run))
    assert "0.319 per second" in text
    assert "range" not in text
    assert "range 135 us – 145 us" in card(run.info, run.summary, None)
    assert "14,286 per second" in card(run.info, run.summary, None)
