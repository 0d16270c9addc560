"""How many examples a property is tried on, as a multiple of the profile's: `make test-slow` tries all on more."""

from __future__ import annotations

from hypothesis import settings


def draws(times: float) -> int:
    """So many times as many as a property with no number of its own."""
    return round(times * settings().max_examples)
