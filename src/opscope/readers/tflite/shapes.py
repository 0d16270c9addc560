"""Changes the batch of a TensorFlow Lite model, the only change of shape its files allow.

A file stores every shape; an extent left open at export is stored as 1, with -1 in the shape's signature. Extents along
other axes depend on each other by arithmetic that the file does not hold, so only the leading one can be set: it is
scaled in every tensor whose signature leaves it open or, in a file with no open batch, in every activation whose
leading extent equals the old batch.

Example: batch 1 → 8 turns [1, 224, 224, 3] into [8, 224, 224, 3]; where the batch is open, a tensor [49, 64] with
signature [-1, 64] (1 × 49 windows) becomes [392, 64].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.errors import UsageError, printable
from .model import StoredTensor, Subgraph

OPEN = -1


@dataclass(frozen=True, slots=True)
class Batch:
    """A change of the leading extent."""

    old: int
    new: int
    is_open: bool  # the signatures mark the tensors whose leading extent is the batch
    source: str

    def shape(self, tensor: StoredTensor) -> tuple[int, ...] | None:
        """Return the shape of an activation, input or variable under the new batch."""
        shape = tensor.shape
        if not shape or not self._has_batch_axis(tensor):
            return shape
        scaled, remainder = divmod(shape[0] * self.new, self.old)
        if remainder:
            name = printable(tensor.name)
            change = f"from batch {self.old} to {self.new}"
            raise UsageError(f"{self.source}: tensor {name!r}: leading extent {shape[0]} cannot go {change}")
        return (scaled, *shape[1:])

    def _has_batch_axis(self, tensor: StoredTensor) -> bool:
        if self.is_open:
            return tensor.signature[:1] == (OPEN,)
        return tensor.shape is not None and tensor.shape[0] == self.old


def requested_batch(
    subgraph: Subgraph,
    shapes: Mapping[str, tuple[int, ...]],
    batch: int | None,
    *,
    aliases: Mapping[str, int],
    source: str,
) -> Batch | None:
    """Return the change that `shapes` and `batch` ask for, None if there is none.

    `aliases` are the signature's names for inputs.
    """
    requested = {_new_batch(subgraph, name, shape, aliases, source) for name, shape in shapes.items()} - {None}
    if batch is not None:
        requested.add(batch)
    if not requested:
        return None
    if len(requested) > 1:
        raise UsageError(f"{source}: batches {', '.join(map(str, requested))} were asked for; inputs share one")
    (new,) = requested
    if new is None or new < 1:
        raise UsageError(f"{source}: batch {new}; expected 1 or more")
    old, is_open = _stored_batch(subgraph, source)
    return None if new == old else Batch(old, new, is_open, source)


def open_extents(subgraph: Subgraph) -> list[str]:
    """Return the open extents besides the batch, as `'name' dimension 1 (read as 1)`."""
    found = []
    for tensor in (subgraph.tensors[index] for index in subgraph.inputs if index >= 0):
        for axis, extent in enumerate(tensor.signature):
            if extent == OPEN and axis and tensor.shape and axis < len(tensor.shape):
                found.append(f"{printable(tensor.name)!r} dimension {axis} (read as {tensor.shape[axis]})")
    return found


def _stored_batch(subgraph: Subgraph, source: str) -> tuple[int, bool]:
    """Return the batch in the file and whether it is open; inputs that disagree are an error."""
    inputs = [subgraph.tensors[index] for index in subgraph.inputs if index >= 0]
    ranked = [tensor for tensor in inputs if tensor.shape]
    opened = [tensor for tensor in ranked if tensor.signature[:1] == (OPEN,)]
    extents = {tensor.shape[0] for tensor in opened or ranked if tensor.shape}
    if len(extents) != 1 or 0 in extents:
        raise UsageError(
            f"{source}: --batch needs inputs that share their leading extent; they are {_describe_inputs(subgraph)}"
        )
    return extents.pop(), bool(opened)


def _new_batch(
    subgraph: Subgraph, name: str, shape: tuple[int, ...], aliases: Mapping[str, int], source: str
) -> int | None:
    """Return the batch that a requested shape implies; None if it equals the stored shape."""
    index = next((i for i in subgraph.inputs if i >= 0 and subgraph.tensors[i].name == name), aliases.get(name))
    if index is None or index not in subgraph.inputs:
        raise UsageError(f"{source}: no input is named {printable(name)!r}; inputs are {_describe_inputs(subgraph)}")
    stored = subgraph.tensors[index].shape
    if stored == shape:
        return None
    if stored and len(stored) == len(shape) and stored[1:] == shape[1:]:
        return shape[0]
    has = "no shape" if stored is None else f"shape {list(stored)}"
    raise UsageError(
        f"{source}: input {printable(name)!r} has {has}, not {list(shape)}; TensorFlow Lite files fix their shapes: "
        f"export the model again, or change only dimension 0, with --batch, of {_describe_inputs(subgraph)}"
    )


def _describe_inputs(subgraph: Subgraph, most: int = 8) -> str:
    inputs = [subgraph.tensors[index] for index in subgraph.inputs if index >= 0]
    names = [f"{printable(t.name)!r} {'of unknown shape' if t.shape is None else list(t.shape)}" for t in inputs[:most]]
    return ", ".join(names) + (f" and {len(inputs) - most} more" if len(inputs) > most else "")
