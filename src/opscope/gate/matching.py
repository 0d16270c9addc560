"""Matches the ops of two runs: by name, then by the ops they were made from, by location, and by their neighbours.

Each step considers only the ops that earlier steps left unmatched, in time linear in the number of ops.

Example, base [conv1, relu1, conv2, fc] against new [conv1+relu1, conv2_opt, fc]: `fc` matches by name; `conv1+relu1` is
named after two base ops and forms the group FUSED; `conv2` and `conv2_opt` have the same type between the same matched
neighbours and match by STRUCTURE.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from .comparison import ADDED, FUSED, LOCATION, NAME, REMOVED, SPLIT, STRUCTURE, Match
from .figures import OpFigure, Row

_SEPARATORS = re.compile(r"\s*(?:,|;|\||\+|&&)\s*")  # separators in the name of a fused op
_POSITION = re.compile(r"(?:subgraph \d+ )?(?:node|operator|op|layer) \d+")  # an index, valid within one file only
_CONTEXTS = (3, 1, 0)  # neighbours on either side that must have the same type; strictest first
_LONGEST_NAME = 10_000


def match_ops(base: Sequence[OpFigure], new: Sequence[OpFigure], *, same_model: bool) -> list[Match]:
    """Return groups of corresponding ops; every op is in exactly one.

    `same_model` says that locations in the model file mean the same in both runs.
    """
    work = _Matching(base, new)
    work.by_name()
    work.by_origin()
    work.by_location(same_model=same_model)
    work.by_structure()
    work.assign_to_pooled()
    work.place_absorbed_ops()
    return work.matches()


class _Matching:
    """Groups under construction: `group_of` holds the group of each op, `members` the ops of each group."""

    def __init__(self, base: Sequence[OpFigure], new: Sequence[OpFigure]) -> None:
        self.sides = (base, new)
        self.group_of: tuple[list[int | None], list[int | None]] = ([None] * len(base), [None] * len(new))
        self.members: list[tuple[list[int], list[int]]] = []
        self.method: list[str] = []
        # For each run: untimed op → op of the same run that does its work.
        self.absorbed_by = (_absorbed_ops(base), _absorbed_ops(new))

    def pair(self, base: int, new: int, method: str) -> None:
        for side, position in enumerate((base, new)):
            self.group_of[side][position] = len(self.members)
        self.members.append(([base], [new]))
        self.method.append(method)

    def unmatched(self, side: int) -> list[int]:
        absorbed_by = self.absorbed_by[side]
        return [p for p, group in enumerate(self.group_of[side]) if group is None and p not in absorbed_by]

    def by_name(self) -> None:
        """Pair ops of the same name; ops that share a name are paired in order."""
        base, new = ([(op.row, op.name) for op in side] for side in self.sides)
        self._pair_keys(base, new, NAME)

    def by_origin(self) -> None:
        """Group an op with the ops of the other run that it is named after or says it was made from.

        Both directions: several base ops became one new op (FUSED), or one base op became several new ones (SPLIT).
        """
        for side in (1, 0):
            other_ops, absorbed_by = self.sides[1 - side], self.absorbed_by[1 - side]
            # Reversed, so that of several ops with one name the first wins.
            position_by_name = {other_ops[p].name: absorbed_by.get(p, p) for p in reversed(range(len(other_ops)))}
            for position, op in enumerate(self.sides[side]):
                if position in self.absorbed_by[side]:
                    continue
                made_from = [
                    position_by_name[name] for name in dict.fromkeys(_names_in_location(op)) if name in position_by_name
                ]
                named_after = [
                    position_by_name[name] for name in dict.fromkeys(_names_in_name(op)) if name in position_by_name
                ]
                parts = [p for p in dict.fromkeys((*made_from, *named_after)) if self.group_of[1 - side][p] is None]
                if parts:
                    self._absorb(side, position, parts)
                elif made_from and self.group_of[side][position] is None:
                    self._absorb(1 - side, made_from[0], [position])  # a second op made from the same one

    def _absorb(self, side: int, position: int, parts: list[int]) -> None:
        """Add unmatched ops of the other side to the group of an op; the group is created if needed."""
        group = self.group_of[side][position]
        if group is None:
            group = len(self.members)
            self.members.append(([], []))
            self.method.append(LOCATION)
            self.members[group][side].append(position)
            self.group_of[side][position] = group
        for part in parts:
            self.group_of[1 - side][part] = group
            self.members[group][1 - side].append(part)
        base, new = map(len, self.members[group])
        if max(base, new) > 1:
            self.method[group] = FUSED if base >= new else SPLIT

    def by_location(self, *, same_model: bool) -> None:
        """Pair ops of the same type at the same source location."""

        def key(op: OpFigure) -> tuple[str, ...] | None:
            first = next(iter(_names_in_location(op)), "")  # further names are ops that were fused into this one
            is_comparable = bool(op.location) and (same_model or not _POSITION.fullmatch(first))
            return (op.location, op.type) if is_comparable else None

        self._pair_keys([key(op) for op in self.sides[0]], [key(op) for op in self.sides[1]], LOCATION)

    def by_structure(self) -> None:
        """Pair ops of the same type with neighbours of the same types, between the same two matched ops."""
        for reach in _CONTEXTS:
            base, new = (self._contexts(side, reach, self._preceding_groups(side)) for side in (0, 1))
            self._pair_keys(base, new, STRUCTURE)

    def _preceding_groups(self, side: int) -> list[int]:
        """Return for every op the group of the nearest matched op before it.

        Ops with the same preceding group lie in the same gap between matched ops, so only they are compared.
        """
        found, last = [], -1
        for group in self.group_of[side]:
            last = group if group is not None and self.members[group][0] and self.members[group][1] else last
            found.append(last)
        return found

    def _contexts(self, side: int, reach: int, gaps: list[int]) -> list[tuple[Hashable, ...] | None]:
        """Return the key of every unmatched op: its gap, its type and the types of `reach` neighbours on each side."""
        ops, group_of, absorbed_by = self.sides[side], self.group_of[side], self.absorbed_by[side]
        visible = [position for position in range(len(ops)) if position not in absorbed_by]
        types = [_kind(ops[position]) for position in visible]
        keys: list[tuple[Hashable, ...] | None] = [None] * len(ops)
        for index, position in enumerate(visible):
            if group_of[position] is None and types[index] and ops[position].row is Row.OP:
                neighbours = (*types[max(0, index - reach) : index], "→", *types[index + 1 : index + 1 + reach])
                keys[position] = (gaps[position], types[index], *neighbours)
        return keys

    def _pair_keys(
        self, base: Sequence[tuple[Hashable, ...] | None], new: Sequence[tuple[Hashable, ...] | None], method: str
    ) -> None:
        """Pair unmatched ops with equal keys, in order."""
        # Lists are filled backwards so that pop() returns the first op in model order.
        waiting: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
        for position in reversed(self.unmatched(0)):
            key = base[position]
            if key is not None:
                waiting[key].append(position)
        for position in self.unmatched(1):
            key = new[position]
            if key is not None and waiting.get(key):
                self.pair(waiting[key].pop(), position, method)

    def assign_to_pooled(self) -> None:
        """Where one side has only the sum of many ops, put the other side's unmatched ops into its group."""
        for side in (0, 1):
            pooled = [p for p, op in enumerate(self.sides[side]) if op.row is Row.OTHERS]
            rest = [p for p in self.unmatched(1 - side) if self.sides[1 - side][p].row is not Row.NO_OP]
            if pooled and rest and self.group_of[side][pooled[0]] is None:
                self._absorb(side, pooled[0], rest)
                self.method[-1] = STRUCTURE

    def place_absorbed_ops(self) -> None:
        """Assign untimed ops whose work another op of their run does.

        If both runs have an op of that name absorbed by matched ops, the two are paired; otherwise the op joins the
        group of the op that does its work.
        """
        for base, new in self._absorbed_on_both_sides():
            self.pair(base, new, NAME)
            del self.absorbed_by[0][base], self.absorbed_by[1][new]
        for side, method in ((0, REMOVED), (1, ADDED)):
            for part, owner in self.absorbed_by[side].items():
                group = self.group_of[side][owner]
                if group is None:
                    group = self.group_of[side][owner] = len(self.members)
                    self.members.append(([], []))
                    self.members[group][side].append(owner)
                    self.method.append(method)
                self.group_of[side][part] = group
                self.members[group][side].append(part)

    def _absorbed_on_both_sides(self) -> list[tuple[int, int]]:
        """Return pairs of absorbed ops with the same name whose absorbing ops are in one group."""
        keys: tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]] = ({}, {})
        for side in (0, 1):
            for part, owner in self.absorbed_by[side].items():
                group = self.group_of[side][owner]
                if group is not None:
                    keys[side].setdefault((self.sides[side][part].name, group), part)
        return [(part, keys[1][key]) for key, part in keys[0].items() if key in keys[1]]

    def matches(self) -> list[Match]:
        """Return the groups in the order of the new run, then the removed ops."""
        found = [
            Match(tuple(sorted(b)), tuple(sorted(n)), method)
            for (b, n), method in zip(self.members, self.method, strict=True)
        ]
        found += [Match((), (position,), ADDED) for position in self.unmatched(1)]
        found += [Match((position,), (), REMOVED) for position in self.unmatched(0)]
        return sorted(found, key=lambda match: (match.new or (len(self.sides[1]),), match.base))


def _absorbed_ops(ops: Sequence[OpFigure]) -> dict[int, int]:
    """Return, for each untimed op listed in another op's location, that op.

    In a run without any times every listed op counts as absorbed.
    """
    is_timed = any(op.is_timed for op in ops)
    position_by_name = {op.name: position for position, op in reversed(list(enumerate(ops)))}
    found: dict[int, int] = {}
    for position, op in enumerate(ops):
        for name in _names_in_location(op) if op.is_timed or not is_timed else ():
            part = position_by_name.get(name)
            if part is not None and part != position and not ops[part].is_timed:
                found.setdefault(part, position)
    return found


def _kind(op: OpFigure) -> str:
    """Return the op kind, or the format's own type name if the kind is unknown."""
    return op.kind or op.type


def _names_in_location(op: OpFigure) -> Iterable[str]:
    """Return the names of the ops that this one was made from, as its location lists them."""
    return _parts(op.location)


def _names_in_name(op: OpFigure) -> Iterable[str]:
    """Return the names of the ops that this one is named after; empty for a plain name."""
    parts = _parts(op.name)
    return parts if len(parts) > 1 else ()


def _parts(text: str) -> list[str]:
    return [part for part in _SEPARATORS.split(text) if part] if len(text) <= _LONGEST_NAME else []
