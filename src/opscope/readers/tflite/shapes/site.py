"""One operator as the rules for shapes and values see it: operands, options, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....graph.graph import ABSENT, DType
from ..flatbuffer import INT32
from ..model import StoredOperator, StoredTensor
from ..ops import Shape

if TYPE_CHECKING:
    from .evaluate import Array, Evaluator
    from .frame import Frame


class UndecidedError(Exception):
    """A shape that the file does not decide; the text says who decides."""


class UnknownValueError(UndecidedError):
    """A value that the file does not decide; the text says where it comes from."""


class Site:
    """One operator in one call of its subgraph. What is not known is an UndecidedError, so that rules need no tests."""

    __slots__ = ("_evaluator", "frame", "number", "stored")

    def __init__(self, frame: Frame, number: int, stored: StoredOperator, evaluator: Evaluator) -> None:
        self.number = number
        self.stored = stored
        self.frame = frame
        self._evaluator = evaluator

    @property
    def type(self) -> str:
        return self.stored.code.type

    @property
    def input_count(self) -> int:
        return len(self.stored.inputs)

    @property
    def output_count(self) -> int:
        return len(self.stored.outputs)

    def has(self, operand: int) -> bool:
        return operand < len(self.stored.inputs) and self.stored.inputs[operand] != ABSENT

    def shape(self, operand: int) -> Shape:
        tensor = self._tensor(operand)
        shape = self.frame.shapes[tensor]
        if shape is None:
            raise UndecidedError(self.frame.reasons.get(tensor, ""))
        return shape

    def shapes(self) -> list[Shape]:
        return [self.shape(operand) for operand in range(self.input_count)]

    def ranked(self, operand: int, *ranks: int) -> Shape:
        """Return the shape of an input that has one of the ranks."""
        shape = self.shape(operand)
        if len(shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            raise ValueError(f"input {operand} of shape {list(shape)}; expected rank {expected}")
        return shape

    def dtype(self, operand: int) -> DType:
        return self.frame.subgraph.tensors[self._tensor(operand)].dtype

    def output(self, place: int = 0) -> StoredTensor:
        """Return an output as the file stores it."""
        return self.frame.subgraph.tensors[self.stored.outputs[place]]

    def value(self, operand: int) -> Array:
        return self._evaluator.known(self.frame, self._tensor(operand))

    def integers(self, operand: int) -> tuple[int, ...]:
        """Return the elements of an input, in order."""
        return self._evaluator.integers(self.frame, self._tensor(operand))

    def integer(self, operand: int) -> int:
        """Return the only element of an input."""
        found = self.integers(operand)
        if len(found) != 1:
            raise ValueError(f"input {operand} has {len(found)} elements; expected one")
        return found[0]

    def option(self, field: int, default: int = 0) -> int:
        return default if self.stored.options is None else self.stored.options.number(field, INT32, default)

    def flag(self, field: int, default: bool = False) -> bool:
        return default if self.stored.options is None else self.stored.options.flag(field, default)

    def numbers(self, field: int) -> Sequence[int]:
        return () if self.stored.options is None else self.stored.options.int32s(field)

    def long_numbers(self, field: int) -> Sequence[int]:
        return () if self.stored.options is None else self.stored.options.int64s(field)

    def _tensor(self, operand: int) -> int:
        if not self.has(operand):
            raise ValueError(f"input {operand} is missing")
        return self.stored.inputs[operand]


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that operands have together: extents of 1, and missing leading ones, stretch."""
    rank = max(map(len, shapes), default=0)
    found = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if -axis <= len(shape)} - {1}
        if len(extents) > 1:
            listed = " and ".join(str(list(shape)) for shape in shapes)
            raise ValueError(f"operands of shapes {listed} do not broadcast")
        found.append(extents.pop() if extents else 1)
    return tuple(found)
