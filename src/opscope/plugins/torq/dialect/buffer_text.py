"""Buffers as IREE's tools write them: `2x3xf32=[1 2 3][4 5 6]`, `1x1280xi8=0`, `4xf32=@values.npy`, `@array.npy`."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

import numpy as np

from ....core.errors import UsageError, printable
from ....device.host.inputs import NUMPY_TYPES, Array, is_float, load_inputs, typed

MAX_PRINTED = 1024  # elements; the tools cut there, too
_MOST_BYTES = 2**34
_TYPES = {f"{sign}i{bits}": f"i{bits}" for sign in ("", "s") for bits in (8, 16, 32, 64)} | {
    "ui8": "u8",
    "ui16": "u16",
    "ui32": "u32",
    "ui64": "u64",
    "f8E4M3FN": "f8e4m3",
    "f8E5M2": "f8e5m2",
    "f8E8M0FNU": "f8e8m0",
    "bf16": "bf16",
    "f16": "f16",
    "f32": "f32",
    "f64": "f64",
    "i1": "bool",
}
_FORM = re.compile(r"((?:\d+x)*)([a-z]+\d\w*)")
_NAMES = {label: name for name, label in reversed(_TYPES.items())} | {"c64": "cf64", "c128": "cf128"}


def read_buffer(text: str) -> Array:
    """One `--input`: a shape and type with values, with a file of them, or a `.npy` file alone."""
    shown = f"--input={printable(text, 60)}"
    if text.startswith("@"):
        return _npy(text[1:])
    form, equals, values = text.partition("=")
    found = _FORM.fullmatch(form.strip())
    if found is None or found[2] not in _TYPES:
        known = ", ".join(_TYPES)
        raise UsageError(f"{shown}: not a buffer; expected SHAPExTYPE=VALUES such as 1x1280xi8=0, of a type {known}")
    shape = tuple(int(extent) for extent in found[1].split("x") if extent)
    dtype = np.dtype(NUMPY_TYPES[_TYPES[found[2]]])
    if prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise UsageError(f"{shown}: larger than {_MOST_BYTES} bytes; expected a smaller buffer")
    if values.startswith("@"):
        return _file(values[1:], shape, dtype, shown)
    return _values(values if equals else "0", shape, dtype, shown)


def _values(text: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], shown: str) -> Array:
    """One value for all, or as many as there are elements; brackets and commas are for the eye."""
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    count = prod(shape)
    if len(words) not in (1, count) and not (count == 0 and not words):
        raise UsageError(f"{shown}: {len(words)} values; expected 1 or {count}")
    try:
        numbers = [_number(word, dtype) for word in words]
        flat = np.array(numbers, dtype)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{shown}: {printable(str(error), 80)}; expected numbers of type {dtype}") from error
    return np.ascontiguousarray(np.broadcast_to(flat, (count,)) if len(words) == 1 else flat).reshape(shape)


def _number(word: str, dtype: np.dtype[np.generic]) -> int | float:
    if dtype.kind == "b":
        return word.lower() not in ("0", "false")
    try:
        if is_float(dtype):
            return float(word)
        number, bits = int(word, 0), 8 * dtype.itemsize
    except ValueError as error:
        raise ValueError(f"{word!r} is no number") from error
    least, most = (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not least <= number <= most:
        raise OverflowError(f"{number} is outside {least} to {most}")
    return number


def _npy(path: str) -> Array:
    return load_inputs({"": Path(path)})[""]


def _file(path: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], shown: str) -> Array:
    """An array of that form, or raw bytes of that size."""
    if path.endswith(".npy"):
        found = typed(_npy(path), dtype)
        if found.dtype != dtype or tuple(found.shape) != shape:
            form = f"{'x'.join(map(str, found.shape))}x{found.dtype}"
            raise UsageError(f"{shown}: the file holds {form}; expected what stands before the =")
        return found
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read ({error.strerror}); expected a file of values") from error
    if len(raw) != prod(shape) * dtype.itemsize:
        raise UsageError(f"{shown}: the file has {len(raw)} bytes; expected {prod(shape) * dtype.itemsize}")
    return np.frombuffer(raw, dtype).reshape(shape)


def buffer_text(array: Array) -> str:
    """A buffer as `iree-run-module` prints it, cut behind `MAX_PRINTED` elements."""
    dtype = np.dtype(array.dtype)
    known = next((name for name, kind in NUMPY_TYPES.items() if np.dtype(kind) == dtype), "")
    form = "x".join([*map(str, array.shape), _NAMES.get(known, known)])
    left = [MAX_PRINTED]
    return f"{form}={_nested(np.asarray(array), left, outer=True)}"


def _nested(array: Array, left: list[int], *, outer: bool) -> str:
    """Rows in brackets; the outermost axis has none of its own."""
    if array.ndim == 0:
        left[0] -= 1
        return _element(array)
    if array.ndim == 1:
        shown = array[: max(0, left[0])]
        text = " ".join(_element(value) for value in shown) + ("..." if len(shown) < len(array) else "")
        left[0] -= len(shown)
        return text if outer else f"[{text}]"
    text = "".join(_nested(row, left, outer=False) for row in array)
    return text if outer else f"[{text}]"


def _element(value: object) -> str:
    """The tools print complex numbers as their bytes."""
    number = np.asarray(value).item()
    if isinstance(number, complex):
        return np.asarray(value).tobytes().hex().upper()
    return f"{number:G}" if isinstance(number, float) else str(int(number))
