"""Names from outside, made harmless."""

from __future__ import annotations

from opscope.views.page.html_text import clean, shorten


def test_a_long_name_keeps_both_ends() -> None:
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abc", 5) == "abc"


def test_control_characters_become_visible() -> None:
    assert clean("a\x00\x1b\u202eb\ud800") == "a␀␛\ufffdb\ufffd"
