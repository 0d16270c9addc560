"""Elements of a constant, read from the file when a shape depends on them."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .model import Constant, Element, packed_bytes
from .parse import key_and_value
from .wire import Wire, signed

if TYPE_CHECKING:
    import numpy.typing as npt

# TensorProto.DataType → NumPy; 4-bit types, bfloat16, complex numbers and strings decide no shape.
NUMPY_TYPES: dict[int, np.dtype[np.generic]] = {
    1: np.dtype("<f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    4: np.dtype("<u2"),
    5: np.dtype("<i2"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
    9: np.dtype("?"),
    10: np.dtype("<f2"),
    11: np.dtype("<f8"),
    12: np.dtype("<u4"),
    13: np.dtype("<u8"),
}
_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _RAW_DATA, _DOUBLE_DATA, _UINT64_DATA = 4, 5, 7, 9, 10, 11


def elements_of(constant: Constant, wire: Wire) -> npt.NDArray[np.generic] | None:
    """Return a constant's elements; None if its type has none here, or the file does not hold them."""
    dtype = NUMPY_TYPES.get(constant.element)
    if dtype is None:
        return None
    count = prod(constant.dims)
    if constant.integers is not None:
        found = np.array(constant.integers, np.int64).astype(dtype)
    elif constant.content:
        found = np.frombuffer(constant.content, dtype)
    else:
        found = _stored(constant, dtype, wire)
    return found.reshape(constant.dims) if found.size == count else None


def _stored(constant: Constant, dtype: np.dtype[np.generic], wire: Wire) -> npt.NDArray[np.generic]:
    """Read the data fields of the TensorProto; every type has a field of its own, or raw bytes."""
    parts: list[npt.NDArray[np.generic]] = []
    place: dict[str, str] = {}
    for tag, a, b in wire.fields(constant.start, constant.end):
        number, packed = tag >> 3, tag & 7 == 2
        if number == _RAW_DATA:
            parts.append(
                np.frombuffer(wire.buffer[a:b], dtype) if (b - a) % dtype.itemsize == 0 else np.zeros(0, dtype)
            )
        elif number in (_FLOAT_DATA, _DOUBLE_DATA):
            kind = np.dtype("<f4" if number == _FLOAT_DATA else "<f8")
            parts.append(np.frombuffer(wire.buffer[a : b - (b - a) % kind.itemsize], kind).astype(dtype))
        elif number in (_INT32_DATA, _INT64_DATA, _UINT64_DATA):
            values = [signed(value) for value in (wire.varints(a, b) if packed else (a,))]
            parts.append(_from_varints(values, constant.element, dtype))
        elif tag == 0x6A:  # external_data
            key, text = key_and_value(wire, a, b)
            place[key] = text
    if place:
        return _external(place, packed_bytes(constant.dims, constant.element), dtype, wire)
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _from_varints(values: list[int], element: int, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    whole = np.array(values, np.int64)
    if element == Element.FLOAT16:  # its bits, in int32_data
        return whole.astype(np.uint16).view(np.float16)
    return whole.astype(dtype)


def _external(place: dict[str, str], size: int, dtype: np.dtype[np.generic], wire: Wire) -> npt.NDArray[np.generic]:
    """Read data kept in a file beside the model; a place outside the model's folder is not followed."""
    folder = Path(wire.source).resolve().parent
    path = (folder / place.get("location", "")).resolve()
    offset = place.get("offset", "0")
    if not path.is_relative_to(folder) or not path.is_file() or not offset.isdecimal():
        return np.zeros(0, dtype)
    with path.open("rb") as file:
        file.seek(int(offset))
        content = file.read(size)
    return np.frombuffer(content, dtype) if len(content) == size else np.zeros(0, dtype)
