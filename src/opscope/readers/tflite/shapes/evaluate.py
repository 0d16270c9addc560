"""Values on demand: a shape rule asks for an operand, and what leads to it is evaluated, once, and nothing else.

Weights are therefore not read. Elements and operators are counted against budgets, as a hostile file may ask for any
number of either; what is beyond them is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ....core.errors import printable
from ....graph.graph import ABSENT, DType
from ..model import StoredModel, StoredOperator
from ..ops import Shape
from .frame import Frame, Unknown
from .rules import RULES
from .site import Site, UndecidedError, UnknownValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

MAX_ELEMENTS = 1 << 16  # of one value: shape arithmetic has a few, indices and masks may have thousands
MAX_ALL_ELEMENTS = 1 << 23
MAX_OPERATORS = 1 << 15  # evaluated in all, repeated trips of loops included

# Operands whose value is needed, where that is not all: the others decide the shape of the output, which is known.
NEEDS: Mapping[str, tuple[int, ...]] = {
    "SHAPE": (),
    "RANK": (),
    "ZEROS_LIKE": (),
    "RESHAPE": (0,),
    "SQUEEZE": (0,),
    "EXPAND_DIMS": (0,),
    "FILL": (1,),
    "BROADCAST_TO": (0,),
    "SCATTER_ND": (0, 1),
}

# Operators that `values` has rules for: named here, since that module loads numpy, and most files need no value.
_VALUED = (
    "ABS ADD ARG_MAX ARG_MIN BROADCAST_ARGS BROADCAST_TO CAST CEIL CONCATENATION CUMSUM DIV DYNAMIC_UPDATE_SLICE "
    "EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL "
    "LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR MAXIMUM MINIMUM MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 POW RANGE "
    "RANK REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RESHAPE REVERSE_V2 ROUND SCATTER_ND SELECT "
    "SELECT_V2 SHAPE SIGN SLICE SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TILE "
    "TOPK_V2 TRANSPOSE UNIQUE UNPACK WHERE ZEROS_LIKE"
)
VALUED = frozenset(_VALUED.split())

# Other types hold quantised numbers, whose arithmetic is another one.
_NUMPY_TYPES = {
    DType.I32: "<i4",
    DType.I64: "<i8",
    DType.U32: "<u4",
    DType.F32: "<f4",
    DType.F64: "<f8",
    DType.BOOL: "|b1",
}


class Evaluator:
    """Evaluates tensors of one model, within its budgets."""

    def __init__(self, model: StoredModel) -> None:
        self._model = model
        self._elements = MAX_ALL_ELEMENTS
        self.operators_left = MAX_OPERATORS

    @cached_property
    def _values(self) -> ModuleType:
        """The rules for values. They need numpy, which takes long to load, and most files need no value."""
        from . import values

        return values

    def known(self, frame: Frame, tensor: int) -> Array:
        """Return a value; one that is not known is an UndecidedError that says where it comes from."""
        found = self.find(frame, tensor)
        if isinstance(found, Unknown):
            raise UnknownValueError(found.origin)
        return found

    def integers(self, frame: Frame, tensor: int) -> tuple[int, ...]:
        """Return the elements of a value of whole numbers; those of a constant need no numpy."""
        place, source = frame.reference(tensor)
        if source not in place.wiring.producers and source not in place.wiring.inputs:
            found = self._model.integers(place.subgraph.tensors[source], MAX_ELEMENTS)
            if found is not None:
                return found
        value = self.known(frame, tensor)
        if value.dtype.kind == "f":
            raise ValueError("numbers with a fraction; expected whole numbers")
        return tuple(value.reshape(-1).tolist())

    def find(self, frame: Frame, tensor: int) -> Array | Unknown:
        """Return a value, or why there is none. A stack instead of recursion: chains may be as long as the file."""
        if tensor in frame.references and tensor in frame.wiring.inputs:
            frame.asked.add(tensor)
        first = frame.reference(tensor)
        stack = [first]
        while stack:
            place, current = stack[-1]
            if current in place.values:
                stack.pop()
                continue
            needs = self._needs(place, current)
            known = [needed[0].values.get(needed[1]) for needed in needs]
            unknown = next((value for value in known if isinstance(value, Unknown)), None)
            if unknown is not None:  # whatever the other operands are
                place.values[current] = unknown
                continue
            missing = [needed for needed, value in zip(needs, known, strict=True) if value is None]
            computed = [needed for needed in missing if needed[1] in needed[0].wiring.producers]
            if missing:  # computed ones first, so that constants are not read in vain
                stack += computed or missing
                continue
            stack.pop()
            self._evaluate_tensor(place, current)
        return first[0].values[first[1]]

    def _needs(self, frame: Frame, tensor: int) -> list[tuple[Frame, int]]:
        """Return the tensors that a tensor is made from."""
        if self._refusal(frame, tensor) is not None or tensor not in frame.wiring.producers:
            return []
        number = frame.wiring.producers[tensor]
        stored = frame.subgraph.operators[number]
        inputs = self._operands(stored)
        written = frame.wiring.producers
        if any(written.get(each, -1) >= number for each in inputs):  # not in order: refused where ops are read
            frame.values[tensor] = Unknown(_result_of(frame, tensor))
            return []
        for each in inputs:
            if each in frame.references and each in frame.wiring.inputs:
                frame.asked.add(each)
        return [frame.reference(each) for each in inputs]

    def _evaluate_tensor(self, frame: Frame, tensor: int) -> None:
        """Evaluate one tensor, whose operands are evaluated, and the others that its operator writes."""
        refusal = self._refusal(frame, tensor)
        if refusal is not None:
            frame.values.setdefault(tensor, Unknown(refusal))
        elif tensor not in frame.wiring.producers:
            frame.values[tensor] = self._constant(frame, tensor)
        elif tensor not in frame.values:
            self._run(frame, tensor, frame.wiring.producers[tensor])

    def _refusal(self, frame: Frame, tensor: int) -> str | None:
        """Return why a tensor is not evaluated, from what is known of it; None if it may be."""
        stored, shape = frame.subgraph.tensors[tensor], frame.shapes[tensor]
        number = frame.wiring.producers.get(tensor)
        if stored.is_variable:
            return f"the state {printable(stored.name)!r}"
        is_empty = shape is not None and 0 in shape
        if tensor in frame.wiring.inputs or (number is None and not stored.data.size and not is_empty):
            return f"the values of input {printable(stored.name)!r}"
        if shape is None or stored.dtype not in _NUMPY_TYPES or prod(shape) > MAX_ELEMENTS or stored.data.file:
            return f"the elements of {printable(stored.name)!r}" if number is None else _result_of(frame, tensor)
        if number is not None and frame.subgraph.operators[number].code.type not in VALUED:
            return _result_of(frame, tensor)
        return None

    def _constant(self, frame: Frame, tensor: int) -> Array | Unknown:
        """Read a constant out of the file."""
        import numpy as np

        stored, shape = frame.subgraph.tensors[tensor], frame.shapes[tensor] or ()
        dtype = np.dtype(_NUMPY_TYPES[stored.dtype])
        size = prod(shape) * dtype.itemsize
        content = self._model.bytes_at(stored.data, size)
        if len(content) != size or not self._afford(prod(shape)):
            return Unknown(f"the elements of {printable(stored.name)!r}")
        return np.frombuffer(content, dtype).reshape(shape)

    def _run(self, frame: Frame, tensor: int, number: int) -> None:
        """Evaluate all outputs of one operator."""
        stored = frame.subgraph.operators[number]
        outputs = [frame.shapes[output] for output in stored.outputs if output != ABSENT]
        shapes = [shape for shape in outputs if shape is not None]
        found: Sequence[Array] = ()
        if len(shapes) == len(stored.outputs) and self.operators_left > 0 and self._afford(sum(map(prod, shapes))):
            self.operators_left -= 1
            try:
                found = self._evaluate(Site(frame, number, stored, self), shapes)
            except UnknownValueError as error:
                frame.values[tensor] = Unknown(str(error))
                return
            except (UndecidedError, ValueError, IndexError, TypeError, OverflowError) as error:
                # What the runtime cannot compute either; a run would say so.
                frame.values[tensor] = Unknown(f"{_result_of(frame, tensor)} ({printable(str(error))})")
                return
        for output, value in zip(stored.outputs, found, strict=False):
            dtype = _NUMPY_TYPES.get(frame.subgraph.tensors[output].dtype)
            if dtype is not None and value.shape == frame.shapes[output]:
                frame.values[output] = value.astype(dtype)
        frame.values.setdefault(tensor, Unknown(_result_of(frame, tensor)))

    def _evaluate(self, site: Site, shapes: Sequence[Shape]) -> Sequence[Array]:
        """Return the outputs. Their shapes are computed first: those that a file states may be too small to be true."""
        if site.type not in NEEDS and RULES[site.type](site) != shapes:
            return ()
        found: Sequence[Array] = self._values.evaluate(site, shapes)
        return found

    def _operands(self, stored: StoredOperator) -> Sequence[int]:
        """Return the inputs whose value an operator needs."""
        needed = NEEDS.get(stored.code.type)
        inputs = stored.inputs if needed is None else [stored.inputs[i] for i in needed if i < len(stored.inputs)]
        return [tensor for tensor in inputs if tensor != ABSENT]

    def _afford(self, elements: int) -> bool:
        self._elements -= elements
        return self._elements >= 0


def _result_of(frame: Frame, tensor: int) -> str:
    number = frame.wiring.producers.get(tensor, 0)
    what = printable(frame.subgraph.operators[number].code.type)
    return f"the result of {what} at subgraph {frame.subgraph.index} operator {number}"
