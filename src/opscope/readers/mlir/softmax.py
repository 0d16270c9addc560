"""A softmax of integers that TOSA spells out, as the one op that it is.

TOSA has no softmax. A converter writes one of 8-bit integers as some forty ops on wider ones: maximum, difference, the
exponential from tables, sum, reciprocal by Newton's method, product. Compilers know the pattern, and the file that it
was converted from has one op. Here it is told by what it begins and ends with, not by each step between:

    x (8 bits) ─▶ rescale ─▶ maximum of rows ─▶ … sum of rows … ─▶ rescale ─▶ y (8 bits)

where nothing else reads what is between, and nothing that is not constant enters there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...graph.graph import Op, Role, Tensor

_MAXIMUM, _SUM = "tosa.reduce_max", "tosa.reduce_sum"
_MOST_OPS = 64  # of the pattern
_NARROW = 8  # bits of what it begins and ends with


def join_softmax(ops: Sequence[Op], tensors: Sequence[Tensor], outputs: Sequence[int]) -> list[Op]:
    """The ops with every softmax that is spelt out as one op, where its last one stood."""
    found = _Patterns(ops, tensors, outputs)
    joined: dict[int, Op] = {}  # position of the last op of a pattern → what stands for it
    gone: set[int] = set()
    for op in ops:
        pattern = found.of(op) if op.type == _MAXIMUM else None
        if pattern is not None and gone.isdisjoint(pattern):
            gone.update(pattern)
            last, first = ops[pattern[-1]], ops[pattern[0]]
            names = tuple(name for place in pattern for name in ops[place].sources or (ops[place].name,))
            joined[pattern[-1]] = replace(
                last,
                kind="softmax",
                type="softmax",
                inputs=first.inputs[:1],
                attributes={"axes": op.attributes.get("axes", ())},
                sources=names,
            )
    return [joined.get(place, op) for place, op in enumerate(ops) if place in joined or place not in gone]


class _Patterns:
    """Looks for the pattern around a maximum."""

    def __init__(self, ops: Sequence[Op], tensors: Sequence[Tensor], outputs: Sequence[int]) -> None:
        self.ops, self.tensors, self.outputs = ops, tensors, frozenset(outputs)
        self.maker: Mapping[int, int] = {t: place for place, op in enumerate(ops) for t in op.outputs}
        self.readers: dict[int, list[int]] = {}
        for place, op in enumerate(ops):
            for t in op.inputs:
                self.readers.setdefault(t, []).append(place)

    def of(self, maximum: Op) -> list[int] | None:
        """Positions of the ops of a softmax, in order; None where the maximum is part of something else."""
        first = self.maker.get(maximum.inputs[0])
        if first is None or self.ops[first].kind != "quantize" or self._bits(self.ops[first].inputs[0]) > _NARROW:
            return None
        region, ends, waiting = {first}, set[int](), [first]
        while waiting:
            place = waiting.pop()
            for t in self.ops[place].outputs:
                if t in self.outputs and place != first:
                    return None
                for reader in self.readers.get(t, ()):
                    if reader in region or reader in ends:
                        continue
                    op = self.ops[reader]
                    if op.kind == "quantize" and self._bits(op.outputs[0]) <= _NARROW:
                        ends.add(reader)
                        continue
                    region.add(reader)
                    waiting.append(reader)
            if len(region) > _MOST_OPS:
                return None
        whole = sorted(region | ends)
        sums = any(self.ops[place].type == _SUM for place in region)
        return whole if len(ends) == 1 and sums and self._is_closed(first, set(whole)) else None

    def _is_closed(self, first: int, region: set[int]) -> bool:
        """Whether everything that enters the pattern behind its first op is constant."""
        return all(
            self.maker.get(t) in region or t < 0 or self.tensors[t].role is Role.CONSTANT
            for place in region - {first}
            for t in self.ops[place].inputs
        )

    def _bits(self, tensor: int) -> int:
        return self.tensors[tensor].dtype.bits
