"""Outputs of a model as a reference runtime returns them, and the form in which they are saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from ...core.errors import UsageError
from .inputs import Array

# A tensor; a sequence of tensors or of maps; a map from labels to numbers; nothing, of an optional without a value.
Output = Array | Sequence[object] | Mapping[object, object] | None


def saved_form(value: Output) -> Array | dict[str, Array]:
    """A tensor as one array; anything else as several arrays by name, for one archive.

    A map is `keys` and `values`; a sequence of maps with the same keys, as classifiers give, `keys` and one row of
    `values` per map; any other sequence has its elements under their numbers, those of maps as `0.keys`, `0.values`.
    """
    if isinstance(value, np.ndarray):
        return _plain(value)
    if isinstance(value, Mapping):
        return _map_arrays(value)
    if not isinstance(value, Sequence):
        raise UsageError("holds no value; expected a tensor, a map or a sequence")
    if value and all(isinstance(item, Mapping) for item in value):
        maps = cast("Sequence[Mapping[object, object]]", value)
        if all(item.keys() == maps[0].keys() for item in maps):
            rows = [[item[key] for key in maps[0]] for item in maps]
            return {"keys": _array(list(maps[0])), "values": _array(rows)}
    return dict(_numbered(value))


def _numbered(items: Sequence[object]) -> Iterator[tuple[str, Array]]:
    for number, item in enumerate(items):
        if isinstance(item, Mapping):
            for name, array in _map_arrays(item).items():
                yield f"{number}.{name}", array
        else:
            yield str(number), _array(item)


def _map_arrays(value: Mapping[object, object]) -> dict[str, Array]:
    return {"keys": _array(list(value)), "values": _array(list(value.values()))}


def _array(value: object) -> Array:
    try:
        return _plain(np.asarray(value))
    except ValueError:
        raise UsageError("holds elements of different shapes; expected one shape") from None


def _plain(array: Array) -> Array:
    """The same elements without Python objects, which no file of arrays holds: runtimes give strings as such."""
    if array.dtype != object:
        return array
    items = array.ravel().tolist()
    for kind, stored in ((str, np.str_), (bytes, np.bytes_)):
        if all(isinstance(item, kind) for item in items):
            return np.array(items, stored).reshape(array.shape)
    raise UsageError("holds elements that are neither numbers nor strings; expected those")
