"""Errors say where, what, and what was expected; names from files cannot break the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core import errors
from opscope.core.errors import ModelError, ProfilerError, TargetError, UsageError, printable


@pytest.mark.parametrize("kind", [ModelError, TargetError])
def test_the_place_is_left_out_where_there_is_none(kind: type[ModelError] | type[TargetError]) -> None:
    assert str(kind("file", "byte 0x10", "broken; expected whole")) == "file: byte 0x10: broken; expected whole"
    assert str(kind("file", "", "broken; expected whole")) == "file: broken; expected whole"


def test_every_error_a_user_can_cause_has_one_base() -> None:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert {ModelError, TargetError, UsageError} <= set(found)
    assert all(issubclass(kind, ProfilerError) for kind in found)


def test_control_characters_are_escaped_and_long_names_cut() -> None:
    assert printable("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    assert printable("x" * 200, 10) == "xxxxxxxxx…"
    assert printable("naïve 名") == "naïve 名"


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_any_name_fits_on_one_line_of_a_terminal(name: str, limit: int) -> None:
    shown = printable(name, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    shown.encode("utf-8")  # no lone surrogate survives
