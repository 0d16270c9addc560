"""Arrays to run a model on when the user gives none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

RANDOM_INPUTS = "random"  # the word that asks for them
Port = tuple[str, str, tuple[int, ...]]  # name, data type, shape
NUMPY_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "bool": "bool",
    "string": "str",
}


def random_arrays(ports: Sequence[Port], *, seed: int) -> Iterator[npt.NDArray[np.generic]]:
    """Floats from −1 to 1, bytes of any value; larger integers and strings 0 or 1.

    Such integers are valid as mask, position and row of a table.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    for _, label, shape in ports:
        kind = np.dtype(NUMPY_TYPES[label])
        if kind.kind == "f":
            yield random.uniform(-1, 1, shape).astype(kind)
        elif kind.kind in "iu" and kind.itemsize == 1:
            yield random.integers(0, 256, shape, np.uint8).view(kind)
        else:
            yield random.integers(0, 2, shape).astype(kind)
