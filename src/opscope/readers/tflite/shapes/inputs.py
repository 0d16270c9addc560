"""Shapes of the model's inputs: as stored, as asked for (`--shape`, `--batch`), and what is still open.

Example: `x` is stored as [1, 1] with signature [-1, -1]; `--shape x=1x16000` makes it [1, 16000]. Without that, the
model is refused, because one sample is not what anybody runs. An open batch alone is read as stored, and noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from shlex import quote

from ....core.errors import ModelError, UsageError, printable
from ....graph.graph import ABSENT, DType, Note
from ..model import MAX_TENSOR_ELEMENTS, StoredTensor, Subgraph
from ..ops import Shape

OPEN = -1
MAX_LISTED = 8  # dimensions, and inputs, in one message
MAX_NAME = 500  # characters of a name that is to be copied

Extents = tuple[int, ...]  # of a tensor, OPEN where the file leaves one open


@dataclass(frozen=True, slots=True)
class InputShapes:
    """The shape of each input, by tensor number."""

    shapes: Mapping[int, Shape]
    is_resized: bool  # some are not as the file stores them
    notes: tuple[Note, ...]


def input_shapes(
    subgraph: Subgraph,
    requested: Mapping[str, Shape],
    batch: int | None,
    *,
    aliases: Mapping[str, int],
    source: str,
) -> InputShapes:
    """Return the shapes of the inputs; one that the file leaves open and nobody gives is an error.

    `aliases` are the signature's names for inputs.
    """
    inputs = {index: subgraph.tensors[index] for index in subgraph.inputs if index != ABSENT}
    extents = {index: stored_extents(tensor) for index, tensor in inputs.items()}
    given = _given(inputs, requested, aliases, source)
    _require_known(subgraph, inputs, extents, given, source=source)
    if batch is not None:
        given = _with_batch(inputs, extents, given, batch, source)
    shapes = {index: shape for index, tensor in inputs.items() if (shape := given.get(index, tensor.shape)) is not None}
    is_resized = any(shapes.get(index) != tensor.shape for index, tensor in inputs.items())
    return InputShapes(shapes, is_resized, tuple(_notes(inputs, extents, given)))


def stored_extents(tensor: StoredTensor) -> Extents | None:
    """Return the extents with OPEN where the file leaves one open; None if even the rank is."""
    shape = tensor.shape
    if shape is None:
        return None
    signature = tensor.signature if len(tensor.signature) == len(shape) else shape
    return tuple(OPEN if OPEN in each or not each[0] else each[0] for each in zip(shape, signature, strict=True))


def _given(
    inputs: Mapping[int, StoredTensor], requested: Mapping[str, Shape], aliases: Mapping[str, int], source: str
) -> dict[int, Shape]:
    """Return the requested shapes by tensor number, checked."""
    given: dict[int, Shape] = {}
    for name, shape in requested.items():
        index = next((i for i, tensor in inputs.items() if tensor.name == name), aliases.get(name))
        if index is None or index not in inputs:
            raise UsageError(f"{source}: no input is named {printable(name)!r}; the model has {_listed(inputs)}")
        stored = inputs[index].shape
        if stored is not None and len(stored) != len(shape):
            problem = f"input {printable(name)!r} has {len(stored)} dimensions, not {list(shape)}"
            raise UsageError(f"{source}: {problem}; the model has {_listed(inputs)}")
        if min(shape, default=1) < 1 or prod(shape) > MAX_TENSOR_ELEMENTS:
            raise UsageError(f"{source}: input {printable(name)!r} of shape {list(shape)}; expected extents from 1")
        if given.setdefault(index, shape) != shape:
            raise UsageError(f"{source}: input {printable(name)!r} was given {list(shape)} and {list(given[index])}")
    return given


def _with_batch(
    inputs: Mapping[int, StoredTensor],
    extents: Mapping[int, Extents | None],
    given: Mapping[int, Shape],
    batch: int,
    source: str,
) -> dict[int, Shape]:
    """Return the given shapes and those that follow from the batch.

    It leads every input whose leading extent is open; where none is, those that lead with what the first leads with.
    """
    if batch < 1:
        raise UsageError(f"{source}: batch {batch}; expected 1 or more")
    leading = {index: each[0] for index, each in extents.items() if each}
    batched = _batched(inputs, extents) or [
        index for index in leading if leading[index] == next(iter(leading.values()))
    ]
    if not batched:
        raise UsageError(f"{source}: --batch needs an input with a leading extent; the model has {_listed(inputs)}")
    found = dict(given)
    for index in batched:
        stored = inputs[index].shape or ()
        shape = found.setdefault(index, (batch, *stored[1:]))
        if shape[0] != batch:
            raise UsageError(
                f"{source}: batch {batch} and an input {printable(inputs[index].name)!r} of shape {list(shape)} were "
                "asked for; expected one batch"
            )
    return found


def _batched(inputs: Mapping[int, StoredTensor], extents: Mapping[int, Extents | None]) -> list[int]:
    """Return the inputs that lead with an open batch. A vector of numbers alone is a length, not a batch."""
    opened = [index for index, each in extents.items() if each and each[0] == OPEN]
    is_batch = any(len(extents[i] or ()) > 1 or inputs[i].dtype is DType.STRING for i in opened)
    return opened if is_batch else []


def _require_known(
    subgraph: Subgraph,
    inputs: Mapping[int, StoredTensor],
    extents: Mapping[int, Extents | None],
    given: Mapping[int, Shape],
    *,
    source: str,
) -> None:
    """Refuse inputs with open extents that nobody gave; the batch alone may stay open."""
    batched = _batched(inputs, extents)
    wanting = {
        index: each
        for index, each in extents.items()
        if index not in given and _is_wanting(inputs[index], each, has_batch=index in batched)
    }
    if not wanting:
        return
    from .suggest import suggested

    names = {index: printable(inputs[index].name, MAX_NAME) for index in wanting}
    axes = [
        f"dimension {a} of {names[i]!r}" for i, each in wanting.items() for a, e in enumerate(each or ()) if e == OPEN
    ]
    axes += [f"all of {names[index]!r}" for index, each in wanting.items() if each is None]
    flags = []
    for index, each in wanting.items():
        sizes = suggested(subgraph, index, 2 if each is None else len(each))
        known = zip(each or (OPEN,) * len(sizes), sizes, strict=True)
        flags.append(f"--shape {quote(names[index])}={'x'.join(str(b if a == OPEN else a) for a, b in known)}")
    opened = f"{len(axes)} dimension{'s are' if len(axes) > 1 else ' is'} open: {', '.join(axes[:MAX_LISTED])}"
    wanted = f"expected {'their sizes' if len(axes) > 1 else 'its size'}, for example {' '.join(flags[:MAX_LISTED])}"
    raise ModelError(source, "", f"{opened} ({_listed({index: inputs[index] for index in wanting})}); {wanted}")


def _is_wanting(tensor: StoredTensor, extents: Extents | None, *, has_batch: bool) -> bool:
    """Whether a model cannot be read without these extents. Strings have no size that one could count anyway."""
    if extents is None:
        return tensor.dtype is not DType.STRING
    return OPEN in extents[1 if has_batch else 0 :]


def _notes(
    inputs: Mapping[int, StoredTensor], extents: Mapping[int, Extents | None], given: Mapping[int, Shape]
) -> list[Note]:
    left = [inputs[index] for index in _batched(inputs, extents) if index not in given]
    if not left:
        return []
    batches = ", ".join(sorted({str((tensor.shape or (1,))[0]) for tensor in left}))
    return [Note("open-batch", f"batch is open in the file; read at batch {batches}, --batch N for another")]


def _listed(inputs: Mapping[int, StoredTensor]) -> str:
    names = []
    for tensor in list(inputs.values())[:MAX_LISTED]:
        extents = stored_extents(tensor)
        shape = ", ".join("?" if extent == OPEN else str(extent) for extent in extents or ())
        text = "no shape in the file" if extents is None else f"[{shape}]"
        names.append(f"input {printable(tensor.name)!r}: {text}")
    return ", ".join(names) + (f" and {len(inputs) - MAX_LISTED} more" if len(inputs) > MAX_LISTED else "")
