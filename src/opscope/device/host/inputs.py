"""Inputs of a run: read from files or arrays and checked, or generated from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...core.errors import UsageError, printable
from ...core.random_arrays import NUMPY_TYPES as RANDOM_TYPES
from ...program.program import Port, Program

Array = npt.NDArray[np.generic]
_SMALL_FLOATS: Mapping[str, type[np.generic]] = {  # NumPy calls them void; NPY files hold their bits
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
}
NUMPY_TYPES: Mapping[str, type[np.generic]] = {
    **{label: np.dtype(name).type for label, name in RANDOM_TYPES.items()},
    "c64": np.complex64,
    "c128": np.complex128,
    **_SMALL_FLOATS,
}
_MAX_INPUT_BYTES = 2**34
_CHARACTER_BYTES = 4  # of a string; how many it has, the type does not say


def is_float(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind == "f" or dtype.type in _SMALL_FLOATS.values()


def typed(array: Array, dtype: np.dtype[np.generic]) -> Array:
    """The array in a type that its file cannot name: an NPY file has `V2` for bf16."""
    nameless = array.dtype.kind == "V" and array.dtype.type is np.void and array.dtype.itemsize == dtype.itemsize
    return array.view(dtype) if nameless else array


def load_inputs(files: Mapping[str, Path]) -> dict[str, Array]:
    """Load arrays from `.npy` files; pickled objects are refused, and files are mapped, not read."""
    arrays: dict[str, Array] = {}
    for name, path in files.items():
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror or error}); expected a .npy file") from error
        except (ValueError, EOFError, MemoryError, OverflowError) as error:
            raise UsageError(f"{path}: not an array ({printable(str(error))}); expected a .npy file") from error
        if not isinstance(found, np.ndarray):
            raise UsageError(f"{path}: an archive of arrays; expected a .npy file with one")
        arrays[name] = found
    return arrays


def check_inputs(program: Program, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the given inputs in program order; a missing or unknown name, type or shape is an error.

    State that stays on the device need not be given: it begins with zeros.
    """
    ports = {name: (dtype, shape) for name, dtype, shape in program.inputs}
    arrays: dict[str, Array] = {}
    for name, array in given.items():
        if name not in ports:
            raise UsageError(
                f"input {printable(name)!r}: the program has none of that name; expected {_describe_ports(program)}"
            )
        dtype, shape = ports[name]
        anything: object = array  # of Python's callers
        if not isinstance(anything, np.ndarray | np.generic):
            found = printable(type(anything).__name__)
            raise UsageError(f"input {printable(name)!r}: found {found}; expected {_describe_ports(program)}")
        value = arrays[name] = typed(array, np.dtype(_numpy_type(dtype)))
        if tuple(value.shape) != shape or not _has_type(value, dtype):
            found = f"{value.dtype} of {_extents(tuple(value.shape))}"
            raise UsageError(f"input {printable(name)!r}: found {found}; expected {_describe_ports(program)}")
    for name, (dtype, shape) in ports.items():
        if name in program.retained and name not in arrays and _count(name, shape, np.dtype(_numpy_type(dtype))) >= 0:
            arrays[name] = np.zeros(shape, _numpy_type(dtype))
    missing = [printable(name) for name in ports if name not in arrays]
    if missing:
        raise UsageError(f"input {missing[0]!r}: missing; expected {_describe_ports(program)}")
    return {name: np.ascontiguousarray(arrays[name]) for name in ports}


def port_types(ports: Sequence[Port]) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
    """Shape and NumPy type of inputs or outputs, by name."""
    return {name: (shape, np.dtype(_numpy_type(dtype))) for name, dtype, shape in ports}


def zero_inputs(program: Program) -> dict[str, Array]:
    """Return zeros for every input."""
    return {
        name: np.zeros(shape, _numpy_type(dtype))
        for name, dtype, shape in program.inputs
        if _count(name, shape, np.dtype(_numpy_type(dtype))) >= 0
    }


def random_inputs(program: Program, *, seed: int) -> dict[str, Array]:
    """Return random inputs: floats from −1 to 1, 8-bit integers of any value, larger integers and strings 0 or 1.

    Integers of 16 bits and more are usually masks, positions or table indices: 0 and 1 are valid for all of these.
    """
    arrays: dict[str, Array] = {}
    for number, (name, dtype, shape) in enumerate(program.inputs):
        kind = np.dtype(_numpy_type(dtype))
        count = _count(name, shape, kind)
        words = np.random.PCG64(np.random.SeedSequence((seed, number))).random_raw(count)
        if kind.kind == "c" or is_float(kind):
            values = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0).astype(kind)
        elif kind.kind == "U":
            values = np.where(words >> np.uint64(63), "1", "0")
        elif kind.kind in "iu" and kind.itemsize == 1:
            values = (words >> np.uint64(56)).astype(np.uint8).view(kind)
        else:
            values = (words >> np.uint64(63)).astype(kind)
        arrays[name] = values.reshape(shape)
    return arrays


def _count(name: str, shape: tuple[int, ...], kind: np.dtype[np.generic]) -> int:
    """Return the number of elements of an input; a size beyond the limit is an error."""
    count = 1
    for extent in shape:
        count *= extent
        if extent < 0 or count * (kind.itemsize or _CHARACTER_BYTES) > _MAX_INPUT_BYTES:
            raise UsageError(
                f"input {printable(name)!r}: shape {_extents(shape)}; expected at most {_MAX_INPUT_BYTES} bytes"
            )
    return count


def _numpy_type(dtype: str) -> type[np.generic]:
    if dtype not in NUMPY_TYPES:
        raise UsageError(f"data type {printable(dtype)}: has no arrays; expected one of {', '.join(NUMPY_TYPES)}")
    return NUMPY_TYPES[dtype]


def _has_type(value: Array, dtype: str) -> bool:
    """Strings are arrays of text of any length, or of Python objects, as runtimes give them."""
    kind = np.dtype(_numpy_type(dtype))
    return value.dtype.kind in "UO" if kind.kind == "U" else value.dtype == kind


def _describe_ports(program: Program) -> str:
    return ", ".join(
        f"{printable(name)} ({_type_name(dtype)} of {_extents(shape)})" for name, dtype, shape in program.inputs
    )


def _type_name(dtype: str) -> str:
    kind = np.dtype(_numpy_type(dtype))
    return "strings" if kind.kind == "U" else str(kind)


def _extents(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one element"
