"""Why a network moves data at all: forms in its graph that leave the same values in another place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..core.meaning import Does
from ..graph.kinds import KINDS, Family, what_kind_does
from ..recording.run import Run

_CUTS = ("slice", "gather", "split")
_PARTS = 2  # of one tensor: fewer are no pattern
_MOST = 10_000  # ops that one walk looks at


@dataclass(frozen=True, slots=True)
class Pattern:
    """A form in the graph, and what to do about it."""

    seen: str
    action: str


class DataFlow:
    """Who reads what of whom, between the ops of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @cached_property
    def before(self) -> Mapping[int, Sequence[int]]:
        return self._neighbours("target", "source")

    @cached_property
    def after(self) -> Mapping[int, Sequence[int]]:
        return self._neighbours("source", "target")

    def pattern(self, ops: Iterable[int]) -> Pattern | None:
        """The first form that one of these ops, which only move data, is part of."""
        for op in ops:
            for rule in (self._focus, self._packed, self._flip):
                found = rule(op)
                if found is not None:
                    return found
        return None

    def _neighbours(self, key: str, value: str) -> Mapping[int, Sequence[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        if self._run.graph is not None:
            for one, other in zip(self._run.graph[key].tolist(), self._run.graph[value].tolist(), strict=True):
                found[one].append(other)
        return found

    def _kind(self, op: int) -> str:
        return self._run.ops[op].kind

    def _family(self, op: int) -> Family | None:
        kind = KINDS.get(self._kind(op))
        return None if kind is None else kind.family

    def _moves(self, op: int) -> bool:
        return what_kind_does(self._kind(op)) is Does.LAYOUT

    def _ends(self, start: int, way: Mapping[int, Sequence[int]], through: Callable[[int], bool]) -> set[int]:
        """The first ops on a way that it does not go through."""
        ends: set[int] = set()
        seen, left = {start}, [start]
        while left and len(seen) < _MOST:
            for other in way.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    (left.append if through(other) else ends.add)(other)
        return ends

    def _focus(self, op: int) -> Pattern | None:
        """Slices of one tensor that are put together again."""
        if self._kind(op) not in _CUTS:
            return None
        for join in self._ends(op, self.after, self._keeps_apart):
            if self._kind(join) != "concat":
                continue
            cuts = [cut for cut in self._cuts_before(join) if self._same_source(cut, op)]
            if len(cuts) >= _PARTS:
                return Pattern(
                    f"slices of one tensor, which {self._run.ops[join].name} puts together again (a Focus layer)",
                    "replace slices and concatenation with SpaceToDepth, or fold them into a convolution with a stride",
                )
        return None

    def _keeps_apart(self, op: int) -> bool:
        return self._moves(op) and self._kind(op) != "concat"

    def _cuts_before(self, join: int) -> list[int]:
        found, left = [], list(self.before.get(join, ()))
        seen = set(left)
        while left and len(seen) < _MOST:
            op = left.pop()
            if self._kind(op) in _CUTS:
                found.append(op)
            elif self._moves(op):
                new = [other for other in self.before.get(op, ()) if other not in seen]
                seen.update(new)
                left += new
        return found

    def _same_source(self, one: int, other: int) -> bool:
        roots = [self._ends(op, self.before, lambda found: self._kind(found) in _CUTS) for op in (one, other)]
        return roots[0] == roots[1]

    def _packed(self, op: int) -> Pattern | None:
        """One product whose result is cut into parts that further products take."""
        for source in self._ends(op, self.before, self._passes):
            if self._family(source) is not Family.CONTRACTION:
                continue
            ends = self._ends(source, self.after, self._passes)
            products = [end for end in ends if self._family(end) is Family.CONTRACTION]
            if len(products) >= _PARTS and self._is_cut(source):
                name = self._run.ops[source].name
                return Pattern(
                    f"the result of {name} is cut into parts for {len(products)} products (queries, keys and values "
                    "in one projection)",
                    f"split the weights of {name}: one projection for every part, and nothing is left to cut",
                )
        return None

    def _passes(self, op: int) -> bool:
        return self._moves(op) or self._family(op) in (Family.ELEMENTWISE, Family.NORMALISE)

    def _is_cut(self, source: int) -> bool:
        left, seen = [source], {source}
        while left and len(seen) < _MOST:
            for other in self.after.get(left.pop(), ()):
                if self._kind(other) in _CUTS:
                    return True
                if other not in seen and self._passes(other):
                    seen.add(other)
                    left.append(other)
        return False

    def _flip(self, op: int) -> Pattern | None:
        if self._kind(op) != "transpose":
            return None
        return Pattern(
            "the order of axes changes between neighbours",
            "export the network in the layout that the accelerator takes (channels last), or move the transposition "
            "to where it cancels another",
        )
