"""Chips whose makers or users publish latencies: targets from data sheets, fitted to those tables."""

from __future__ import annotations

from ...core.manifest import Manifest

MANIFEST = Manifest(
    name="published",
    title="Chips with published latencies",
    package=__package__,
    order=80,
    targets="targets",
)
