"""The options of every backend whose models are converted for it, as data: `backends.registry` adds them.

Backends that quantise models themselves have options of the same names, and say the same of them.
"""

from __future__ import annotations

from .manifest import Option

AS_IS = "as-is"  # types stay those of the file
PRECISION, DATA = "precision", "data"
PRECISION_HELP = (
    "precision to run the model in: f16, w8a8 (= i8), w8a16, w4a16, mxfp6 (weights only), if the target has it "
    "(default: as it is)"
)
DATA_HELP = (
    "samples for quantisation and for checks of converted models: an .npz or a folder, as `opscope quantize` takes "
    "(default: random data, with a note)"
)
CONVERTING = (
    Option(
        PRECISION,
        PRECISION_HELP,
        (AS_IS, "w8a8", "w8a16"),
        differs="a float model is quantised for a compiler that takes nothing else, but for as-is",
    ),
    Option(DATA, DATA_HELP, metavar="DIR|F.npz"),
)
