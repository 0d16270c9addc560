"""What a kernel does, by the engine it runs on and the words of its name: the compiler says no more."""

from __future__ import annotations

import re

from ...core.meaning import Does
from ...core.words import does_of_kernel
from .importers.timeline import DMA

_MOVES = re.compile(r"^[@*](Spill|Fill|InputSlice|OutputSlice)|_(to|from)_vtcm")  # to and from VTCM, whoever does it
_LAYOUT = re.compile(
    r"rearrange|forceformat|zap|^(d2s|s2d|x2s)|decimate|^broadcast|_to_q[iu]\d|^(aligned|strided)?slice", re.I
)


def does_of(kernel: str, engine: str) -> Does:
    if engine == DMA or _MOVES.search(kernel):
        return Does.MOVE
    return Does.LAYOUT if _LAYOUT.search(kernel) else does_of_kernel(kernel)
