"""NVIDIA's data-centre GPUs: targets, and a sampler of what they draw."""

from __future__ import annotations

from ...core.manifest import Manifest

MANIFEST = Manifest(
    name="nvidia",
    title="NVIDIA GPUs",
    package=__package__,
    order=85,
    targets="targets",
    sampler=".power:sampled_power",
)
