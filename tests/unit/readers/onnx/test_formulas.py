"""Arithmetic in the names of dimensions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.readers.onnx.formulas import evaluate, names_in

SIZES = {"past": 5, "seq": 3, "height": 321, "N": 10, "s0": 7, "a.b:0": 4}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("past", 5),
        ("past + seq", 8),
        ("past+seq+1", 9),
        ("2*seq", 6),
        ("floor(height/2)", 160),
        ("floor(height/2 - 1/2) + 1", 161),
        ("ceiling(height/2)", 161),
        ("(N - 1)//2 + 1", 5),
        ("((s0 - 1)//2) + 1", 4),
        ("Max(1, s0, seq)", 7),
        ("Min(2, s0)", 2),
        ("-1 + N", 9),
        ("-seq**2 + N", 1),
        ("Mod(N, seq)", 1),
        ("torch.floordiv(N, 3)", 3),
        ("a.b:0 * 2", 8),
        ("N - 2 - 3", 5),
        ("12", 12),
    ],
)
def test_formulas_of_exporters_are_evaluated(text: str, size: int) -> None:
    assert evaluate(text, SIZES) == size


@pytest.mark.parametrize(
    "text",
    [
        "unknown",
        "past + unknown",
        "height/2",  # is no whole number
        "seq - past",  # is negative
        "N/0",
        "N // (s0 - 7)",
        "floor(1, 2)",
        "abs(N)",
        "past seq",
        "past +",
        "2seq",
        "0.5*N",
        "2**3**2",
        "N**99",
        "9**8 * 9**8 * 9**8",
        "p2o.DynamicDimension.0",
        "",
        "(" * 300 + "1" + ")" * 300,
        "-" * 399 + "1",
        "1" * 2000,
    ],
)
def test_what_cannot_be_told_has_no_value(text: str) -> None:
    assert evaluate(text, SIZES) is None


def test_a_name_that_looks_like_a_formula_is_a_name_first() -> None:
    assert evaluate("past + seq", {**SIZES, "past + seq": 99}) == 99


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("past + 2*seq + past", ("past", "seq")),
        ("n/(n - 1)", ("n",)),
        ("floor(height/2)", ("height",)),
        ("p2o.DynamicDimension.0", ("p2o.DynamicDimension.0",)),
        ("any words at all", ("any words at all",)),
    ],
)
def test_a_formula_is_made_of_names(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


@given(st.text(alphabet="NS01 +-*/%(),.floor", max_size=60))
def test_any_text_has_a_size_or_none(text: str) -> None:
    size = evaluate(text, {"N": 3, "S": 0})
    assert size is None or size >= 0
    assert names_in(text)
