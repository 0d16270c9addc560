"""Text from outside made harmless for a page: no control characters, no reordering marks, no endless names."""

from __future__ import annotations

import re

NAME_LENGTH = 48
TITLE_LENGTH = 300
PROSE_LENGTH = 1000

# controls, marks that reorder text, line separators, halves of surrogate pairs, non-characters
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_PICTURES = 0x2400  # Unicode block of visible control characters


def clean(text: str) -> str:
    """The same text with every character that could hide or reorder others made visible."""
    return _HARMFUL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(_PICTURES + code) if code < 0x20 else "\ufffd"


def shorten(text: str, limit: int) -> str:
    """Cut in the middle: both ends of a name tell more than its beginning alone."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def short_name(text: str, limit: int = NAME_LENGTH) -> str:
    return clean(shorten(text, limit))


def full_name(text: str) -> str:
    return clean(shorten(text, TITLE_LENGTH))


def prose(text: str) -> str:
    return clean(shorten(text, PROSE_LENGTH))
