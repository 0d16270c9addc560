"""How every combination of some options is tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import Shapes
from .shared import SHAPES, jobs


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """Options of `what_if`: the shapes of all combinations, and how many are tried at once."""

    jobs: int | None = field(default=None, metadata=jobs())
    shapes: Shapes | None = field(default=None, metadata=SHAPES)
