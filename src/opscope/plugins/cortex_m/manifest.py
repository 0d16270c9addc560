"""Arm's micro-controller cores: targets from their manuals, fitted to published latencies of the same four networks."""

from __future__ import annotations

from ...core.manifest import Manifest

MANIFEST = Manifest(
    name="cortex_m",
    title="Arm Cortex-M",
    package=__package__,
    order=82,
    targets="targets",
)
