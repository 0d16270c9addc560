"""What a rule sees of a node: its operands' types and shapes, and values where it asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..model import Constant, Node

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]

Shape = tuple[int, ...]
Found = TypeVar("Found")

MAX_EXTENT = 1 << 62  # beyond it, a number of elements no longer fits a signed 64-bit integer


class Open(Exception):  # noqa: N818 - it is not an error: the rest of the model is read
    """A shape or value that cannot be known before the model runs, and why."""


class Contradiction(Open):
    """Operands that the operator does not take: no run of the model with these shapes can get past this node."""

    def __init__(self, node: Node, problem: str) -> None:
        super().__init__(f"{node.op_type} at {node.location} {problem}")
        self.node = node
        self.problem = problem


class Operand(NamedTuple):
    """A tensor as far as it is known before the model runs."""

    element: int = 0  # TensorProto.DataType; 0: unknown
    shape: Shape | None = None
    because: str = ""  # why there is no shape
    is_constant: bool = False  # follows from constants and shapes alone, so it is computed before the first inference
    items: tuple[Operand, ...] | None = None  # elements of a sequence; its shape is None

    @property
    def text(self) -> str:
        return "?" if self.shape is None else "×".join(map(str, self.shape)) or "scalar"


Outputs = Sequence[Operand]


class Values(Protocol):
    """Gives the elements of tensors that are known before the model runs; raises `Open` for all others."""

    def array(self, name: str) -> Array: ...

    def integers(self, name: str) -> tuple[int, ...]: ...

    def floats(self, name: str) -> tuple[float, ...]: ...

    def constant(self, constant: Constant) -> Array: ...


class Call:
    """One node with its operands. Accessors raise `Open` with the reason, so that rules read as if all were known."""

    __slots__ = ("node", "operands", "opset", "values")

    def __init__(self, node: Node, operands: Sequence[Operand | None], opset: int, values: Values) -> None:
        self.node = node
        self.operands = operands  # None: absent
        self.opset = opset  # version of the node's domain
        self.values = values

    @property
    def place(self) -> str:
        return f"{self.node.op_type} at {self.node.location}"

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def operand(self, index: int) -> Operand:
        found = self.operands[index] if index < len(self.operands) else None
        if found is None:
            raise self.mismatch(f"has no input {index}")
        return found

    def element(self, index: int) -> int:
        return self.operand(index).element

    def shape(self, index: int) -> Shape:
        found = self.operand(index)
        if found.shape is None:
            raise Open(found.because)
        return found.shape

    def array(self, index: int) -> Array:
        """Return the elements of an operand."""
        return self._known(index, self.values.array)

    def _known(self, index: int, find: Callable[[str], Found]) -> Found:
        """Return what is known of an operand's elements; if nothing is, the data decide."""
        self.operand(index)
        try:
            return find(self.node.inputs[index])
        except Contradiction:
            raise
        except Open as reason:
            raise Open(f"decided at run time by {self.place}: {reason}") from None

    def integers(self, index: int) -> tuple[int, ...]:
        """Return the elements of an operand as integers."""
        return self._known(index, self.values.integers)

    def integer(self, index: int) -> int:
        found = self.integers(index)
        if len(found) != 1:
            raise self.mismatch(f"input {index} has {len(found)} elements; expected one")
        return found[0]

    def floats(self, index: int) -> tuple[float, ...]:
        return self._known(index, self.values.floats)

    def axis(self, rank: int, default: int = 0, *, end: int = 0) -> int:
        """Return the attribute `axis`, counted from the front; with `end` 1 it may lie behind the last one."""
        return self.front_axis(self.node.integer("axis", default), rank, end=end)

    def front_axis(self, axis: int, rank: int, *, end: int = 0) -> int:
        if not -rank <= axis < rank + end:
            raise self.mismatch(f"axis {axis} does not exist in {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def axes(self, index: int = 1) -> tuple[int, ...] | None:
        """Return the axes of an operator that has them as an attribute or, in later opsets, as an input."""
        given = self.node.integers("axes")
        if given is None and self.has(index):
            given = self.integers(index)
        return given

    def mismatch(self, problem: str) -> Contradiction:
        return Contradiction(self.node, problem)

    def undecided(self, problem: str) -> Open:
        return Open(f"{self.place} {problem}")


def like(call: Call, index: int = 0) -> Operand:
    """An output of the type and shape of an input."""
    return Operand(call.element(index), call.shape(index))


def broadcast(call: Call, shapes: Sequence[Shape]) -> Shape:
    """NumPy's rule: (8, 1, 5) and (3, 1) give (8, 3, 5)."""
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for place, extent in enumerate(shape, rank - len(shape)):
            if out[place] == 1:
                out[place] = extent
            elif extent not in (1, out[place]):
                raise call.mismatch(f"cannot broadcast {' and '.join(Operand(shape=s).text for s in shapes)}")
    return tuple(out)


def checked(call: Call, shape: Sequence[int]) -> Shape:
    """Refuse extents that no tensor can have."""
    if min(shape, default=0) < 0 or prod(shape) > MAX_EXTENT:
        raise call.mismatch(f"would give a tensor of {'×'.join(map(str, shape))}")
    return tuple(shape)
