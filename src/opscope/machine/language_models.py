"""What a target reaches with language models, where that is known better than from other networks.

A runtime for language models is another one than that for other networks: it has kernels of its own for weights of few
bits and for caches, and reads a prompt in pieces. Figures for it stand beside those of the target and replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .calibration import Calibration, Validation
from .figure import Figure


@dataclass(frozen=True, slots=True)
class LanguageModels:
    """Figures that hold for language models, and how they were found."""

    figures: Mapping[str, Figure] = field(default_factory=dict)  # by key of the target, instead of the figure there
    chunk_tokens: Figure | None = None  # of a prompt, that are read at once; a shorter piece is padded to as many
    fixed_context: bool = False  # every step reads keys of the whole context, however few tokens there are yet
    head_bits: Figure | None = None  # of the head's weights, where the other integers have fewer
    device_watts: Figure | None = None  # that a device draws while it serves
    calibration: Calibration | None = None
    validation: Validation | None = None
