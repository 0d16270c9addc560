"""Sequences of tensors: as long as every element is known, so is what is taken out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model import Element
from .call import Call, Open, Operand
from .layout import joined, split_shapes

MAX_ITEMS = 100_000


def run_sequence(call: Call) -> list[Operand] | None:
    """Return the output of an operator on sequences; None for any other operator."""
    rule = None if call.node.domain else _RULES.get(call.node.op_type)
    return None if rule is None else [rule(call)]


def _items(call: Call) -> tuple[Operand, ...]:
    found = call.operand(0)
    if found.items is None:
        raise Open(found.because or f"{call.place} reads a sequence that is decided at run time")
    return found.items


def _sequence(call: Call, items: tuple[Operand, ...]) -> Operand:
    if len(items) > MAX_ITEMS:
        raise call.undecided(f"would give a sequence of {len(items):,} tensors")
    return Operand(items=items)


def _construct(call: Call) -> Operand:
    return _sequence(call, tuple(operand for operand in call.operands if operand is not None))


def _empty(call: Call) -> Operand:
    return Operand(items=())


def _place(call: Call, index: int, length: int) -> int:
    """An optional position, from the front; without one, the end."""
    if not call.has(index):
        return length
    position = call.integer(index)
    if not -length <= position <= length:
        raise call.mismatch(f"has position {position} in a sequence of {length}")
    return position + length if position < 0 else position


def _insert(call: Call) -> Operand:
    items = _items(call)
    place = _place(call, 2, len(items))
    return _sequence(call, (*items[:place], call.operand(1), *items[place:]))


def _erase(call: Call) -> Operand:
    items = _items(call)
    place = _place(call, 1, len(items) - 1) if call.has(1) else len(items) - 1
    return Operand(items=(*items[:place], *items[place + 1 :]))


def _at(call: Call) -> Operand:
    """One element; which one need not be known if all are alike."""
    items = _items(call)
    if items and len({(item.element, item.shape) for item in items}) == 1:
        return items[0]._replace(is_constant=False)
    position = call.integer(1)
    if not -len(items) <= position < len(items):
        raise call.mismatch(f"takes element {position} of {len(items)}")
    return items[position]._replace(is_constant=False)


def _length(call: Call) -> Operand:
    return Operand(Element.INT64, ())


def _split(call: Call) -> Operand:
    """Parts of given lengths, or of one length each; by default of length 1, and then without the axis."""
    shape = call.shape(0)
    axis = call.axis(len(shape))
    element = call.element(0)
    if not call.has(1):
        kept = (1,) if call.node.integer("keepdims", 1) else ()
        if shape[axis] > MAX_ITEMS:
            raise call.undecided(f"would give a sequence of {shape[axis]:,} tensors")
        return Operand(items=(Operand(element, (*shape[:axis], *kept, *shape[axis + 1 :])),) * shape[axis])
    lengths = call.integers(1)
    if call.shape(1) == ():
        step = max(1, lengths[0])
        count = -(-shape[axis] // step)
        if count > MAX_ITEMS:
            raise call.undecided(f"would give a sequence of {count:,} tensors")
        sizes = [min(step, shape[axis] - step * part) for part in range(count)]
        return Operand(items=tuple(Operand(element, (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes))
    return Operand(items=tuple(Operand(element, part) for part in split_shapes(call, len(lengths))))


def _join(call: Call) -> Operand:
    return joined(call, list(_items(call)))


def _get(call: Call) -> Operand:
    return call.operand(0)


_RULES: Mapping[str, Callable[[Call], Operand]] = {
    "ConcatFromSequence": _join,
    "Optional": _get,
    "OptionalGetElement": _get,
    "OptionalHasElement": lambda call: Operand(Element.BOOL, ()),
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
