"""Colour for terminals: words of a few meanings, or plain text where colour is not wanted."""

from __future__ import annotations

from dataclasses import dataclass

_CODES = {
    "strong": "1",
    "faint": "2",
    "good": "32",
    "bad": "1;31",
    "compute": "34",
    "memory": "35",
    "link": "36",
    "host-link": "96",
    "wait": "33",
    "layout": "32",
    "launch": "31",
    "host": "91",
    "unknown": "2",
}


@dataclass(frozen=True, slots=True)
class Ink:
    """Writes words in the colour of their meaning; without colour it leaves them as they are."""

    colour: bool = False

    def __call__(self, text: str, meaning: str) -> str:
        return f"\x1b[{_CODES[meaning]}m{text}\x1b[0m" if self.colour and text and meaning in _CODES else text
