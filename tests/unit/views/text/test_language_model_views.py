"""A language model for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from opscope.gate.token_budget import judge_tokens
from opscope.recording.language_model import Ranged
from opscope.views.json.language_model_json import LanguageModelJson
from opscope.views.text.language_model_text import LanguageModelMarkdown, LanguageModelText, fits_text, rate_text
from support.recording.token_points import MODEL, OUTSIDE, POINT


def text(found: object = MODEL) -> str:
    out = StringIO()
    LanguageModelText().render(found, out)
    return out.getvalue()


def test_the_table_has_every_point_with_ranges_bounds_and_rates() -> None:
    lines = text().splitlines()
    assert lines[0] == ("net on chip, 4 devices (2 cards), weights mxfp6, cache mxint8, tensor parallel – estimated")
    head, row = lines[3], lines[5]
    for word in ("batch", "prompt", "context", "TTFT", "TPOT", "tokens/s/user", "tokens/s/device", "tokens/s/card"):
        assert word in head
    for word in (
        "40 ms (30 ms – 60 ms)",
        "compute",
        "20 ms (16 ms – 25 ms)",
        "memory",
        "25 (20 – 31.2)",
        "50 (40 – 62.5)",
    ):
        assert word in row


def test_below_the_table_stands_what_fits_and_what_was_taken_for_granted() -> None:
    lines = text().splitlines()
    assert "largest that fits: batch 2 × context 4,096" in lines
    assert "1 of 2 points do not fit: their times are those of a larger memory" in lines
    assert lines[-1] == "the host is not in these times"
    assert "nothing fits" in text(replace(MODEL, points=(OUTSIDE,), largest=()))


def test_a_measurement_has_the_columns_that_it_knows() -> None:
    bare = replace(
        POINT,
        weight_bytes=None,
        kv_bytes=None,
        capacity_bytes=None,
        energy_per_token_mj=None,
        shares_decode={},
        bound_prefill="",
        bound_decode="",
        tpot_ms=Ranged(20.0, None, 25.0),
    )
    found = text(replace(MODEL, points=(bare,), devices=None, cards=None, largest=(), notes=()))
    assert "MEMORY" not in found
    assert "bound" not in found
    assert "tokens/s/device" not in found
    assert " 20 ms " in found


def test_what_does_not_fit_says_by_how_much() -> None:
    assert fits_text(POINT) == "yes, 44%"
    assert fits_text(OUTSIDE) == "no, 1.38 × 16.00 GB"
    assert fits_text(replace(POINT, fits=None)) == "—"
    assert rate_text(Ranged(21.37, 21.365, 21.375)) == "21.4"


def test_markdown_has_the_same_cells() -> None:
    out = StringIO()
    LanguageModelMarkdown().render(replace(MODEL, model="a|b"), out)
    assert "a&#124;b on chip" in out.getvalue()
    assert "| 40 ms (30 ms – 60 ms) | compute |" in out.getvalue()


def test_json_has_a_value_a_low_and_a_high_end() -> None:
    out = StringIO()
    LanguageModelJson(verdict=judge_tokens(MODEL, {"tpot": 0.001})).render(MODEL, out)
    data = json.loads(out.getvalue())
    point = data["points"][0]
    assert data["schema"] == "opscope.llm/1"
    assert (data["devices"], data["cards"], data["weights"], data["kv"]) == (4, 2, "mxfp6", "mxint8")
    assert point["ttft_ms"] == {"value": 40.0, "low": 30.0, "high": 60.0}
    assert point["decode_tokens_per_s_per_card"]["value"] == 50.0
    assert {
        "batch",
        "prompt",
        "context",
        "tpot_ms",
        "prefill_tokens_per_s",
        "decode_tokens_per_s",
        "weight_bytes",
    } < set(point)
    assert {"kv_bytes", "fits", "bound_prefill", "bound_decode", "energy_per_token_mj", "provenance"} < set(point)
    assert data["largest"] == [{"batch": 2, "context": 4096}]
    assert data["budget"]["verdict"] == "fail"
