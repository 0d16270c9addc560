"""The options of every backend whose models are converted for it, as data: `backends.registry` adds them."""

from __future__ import annotations

from .manifest import Option

AS_IS = "as-is"  # types stay those of the file
PRECISION, DATA = "precision", "data"
CONVERTING = (
    Option(
        PRECISION,
        "quantise a float model to this precision, or not at all: as-is (default: what the compiler needs)",
        (AS_IS, "w8a8", "w8a16"),
    ),
    Option(
        DATA,
        "inputs for quantisation, and for checks of a converted model (default: random data, with a note)",
        metavar="DIR|F.npz",
    ),
)
