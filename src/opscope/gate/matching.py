"""Which ops of two runs are the same work: by name, then by what they were made from, then by their surroundings.

Every step looks at what earlier steps left over, and takes time that grows with the number of ops.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from .comparison import ADDED, FUSED, LOCATION, NAME, REMOVED, SPLIT, STRUCTURE, Match
from .figures import NO_OP_NAME, OTHERS_NAME, OpFigure

_SEPARATORS = re.compile(r"\s*(?:,|;|\||\+|&&)\s*")  # between the ops that a fused one is named after
_POSITION = re.compile(r"(?:subgraph \d+ )?(?:node|operator|op|layer) \d+")  # in one file only
_CONTEXTS = (3, 1, 0)  # neighbours on either side that have to be of the same type
_LONGEST_NAME = 10_000


def match_ops(base: Sequence[OpFigure], new: Sequence[OpFigure], *, same_model: bool) -> list[Match]:
    """Groups of ops that go together; every op is in exactly one. `same_model`: places in the file mean the same."""
    work = _Matching(base, new)
    work.by_name()
    work.by_origin()
    work.by_location(same_model=same_model)
    work.by_structure()
    work.leftovers()
    work.put_inside()
    return work.matches()


class _Matching:
    """Groups as they grow: an op is in the group that its entry in `group_of` says."""

    def __init__(self, base: Sequence[OpFigure], new: Sequence[OpFigure]) -> None:
        self.sides = (base, new)
        self.group_of: tuple[list[int | None], list[int | None]] = ([None] * len(base), [None] * len(new))
        self.members: list[tuple[list[int], list[int]]] = []
        self.how: list[str] = []
        self.inside = (_inside(base), _inside(new))  # op without a time → op of its own run that does its work

    def pair(self, base: int, new: int, how: str) -> None:
        for side, position in enumerate((base, new)):
            self.group_of[side][position] = len(self.members)
        self.members.append(([base], [new]))
        self.how.append(how)

    def free(self, side: int) -> list[int]:
        inside = self.inside[side]
        return [p for p, group in enumerate(self.group_of[side]) if group is None and p not in inside]

    def by_name(self) -> None:
        """The same name; ops that share one go together in their order."""
        self._pair_keys([(op.name,) for op in self.sides[0]], [(op.name,) for op in self.sides[1]], NAME)

    def by_origin(self) -> None:
        """Several ops became one that is named after them, or says that it was made from them; or the other way."""
        for side in (1, 0):
            there, inside = self.sides[1 - side], self.inside[1 - side]
            others = {there[p].name: inside.get(p, p) for p in reversed(range(len(there)))}
            for position, op in enumerate(self.sides[side]):
                if position in self.inside[side]:
                    continue
                made_from = [others[name] for name in dict.fromkeys(_listed(op)) if name in others]
                named_after = [others[name] for name in dict.fromkeys(_named(op)) if name in others]
                parts = [p for p in dict.fromkeys((*made_from, *named_after)) if self.group_of[1 - side][p] is None]
                if parts:
                    self._absorb(side, position, parts)
                elif made_from and self.group_of[side][position] is None:
                    self._absorb(1 - side, made_from[0], [position])  # a second op made from the same one

    def _absorb(self, side: int, position: int, parts: list[int]) -> None:
        """Put free ops of the other side into the group of an op."""
        group = self.group_of[side][position]
        if group is None:
            group = len(self.members)
            self.members.append(([], []))
            self.how.append(LOCATION)
            self.members[group][side].append(position)
            self.group_of[side][position] = group
        for part in parts:
            self.group_of[1 - side][part] = group
            self.members[group][1 - side].append(part)
        base, new = map(len, self.members[group])
        if max(base, new) > 1:
            self.how[group] = FUSED if base >= new else SPLIT

    def by_location(self, *, same_model: bool) -> None:
        """The same type at the same place of the source."""

        def key(op: OpFigure) -> tuple[str, ...] | None:
            first = next(iter(_listed(op)), "")  # behind it may stand what was fused into the op
            is_place = bool(op.location) and (same_model or not _POSITION.fullmatch(first))
            return (op.location, op.type) if is_place else None

        self._pair_keys([key(op) for op in self.sides[0]], [key(op) for op in self.sides[1]], LOCATION)

    def by_structure(self) -> None:
        """The same type with neighbours of the same types, between the same two ops that are matched already."""
        for reach in _CONTEXTS:
            base, new = (self._contexts(side, reach, self._gaps(side)) for side in (0, 1))
            self._pair_keys(base, new, STRUCTURE)

    def _gaps(self, side: int) -> list[int]:
        """For every op, the group of the nearest matched op before it: what lies between two of them is one gap."""
        found, last = [], -1
        for group in self.group_of[side]:
            last = group if group is not None and self.members[group][0] and self.members[group][1] else last
            found.append(last)
        return found

    def _contexts(self, side: int, reach: int, gaps: list[int]) -> list[tuple[Hashable, ...] | None]:
        ops, free, inside = self.sides[side], self.group_of[side], self.inside[side]
        shown = [position for position in range(len(ops)) if position not in inside]
        types = [_kind(ops[position]) for position in shown]
        keys: list[tuple[Hashable, ...] | None] = [None] * len(ops)
        for place, position in enumerate(shown):
            if free[position] is None and types[place] and ops[position].name not in (NO_OP_NAME, OTHERS_NAME):
                around = (*types[max(0, place - reach) : place], "→", *types[place + 1 : place + 1 + reach])
                keys[position] = (gaps[position], types[place], *around)
        return keys

    def _pair_keys(
        self, base: Sequence[tuple[Hashable, ...] | None], new: Sequence[tuple[Hashable, ...] | None], how: str
    ) -> None:
        waiting: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
        for position in reversed(self.free(0)):
            key = base[position]
            if key is not None:
                waiting[key].append(position)
        for position in self.free(1):
            key = new[position]
            if key is not None and waiting.get(key):
                self.pair(waiting[key].pop(), position, how)

    def leftovers(self) -> None:
        """Where one side has only the sum of many ops, what is left of the other belongs to it."""
        for side in (0, 1):
            pooled = [p for p, op in enumerate(self.sides[side]) if op.name == OTHERS_NAME]
            rest = [p for p in self.free(1 - side) if self.sides[1 - side][p].name != NO_OP_NAME]
            if pooled and rest and self.group_of[side][pooled[0]] is None:
                self._absorb(side, pooled[0], rest)
                self.how[-1] = STRUCTURE

    def put_inside(self) -> None:
        """Ops that others of their own run do the work of: a pair where both sides have it, else with those."""
        for base, new in self._both_inside():
            self.pair(base, new, NAME)
            del self.inside[0][base], self.inside[1][new]
        for side, how in ((0, REMOVED), (1, ADDED)):
            for part, owner in self.inside[side].items():
                group = self.group_of[side][owner]
                if group is None:
                    group = self.group_of[side][owner] = len(self.members)
                    self.members.append(([], []))
                    self.members[group][side].append(owner)
                    self.how.append(how)
                self.group_of[side][part] = group
                self.members[group][side].append(part)

    def _both_inside(self) -> list[tuple[int, int]]:
        """Pairs of one name that ops which go together do the work of."""
        keys: tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]] = ({}, {})
        for side in (0, 1):
            for part, owner in self.inside[side].items():
                group = self.group_of[side][owner]
                if group is not None:
                    keys[side].setdefault((self.sides[side][part].name, group), part)
        return [(part, keys[1][key]) for key, part in keys[0].items() if key in keys[1]]

    def matches(self) -> list[Match]:
        """Groups in the order of the new run, then what was removed."""
        found = [
            Match(tuple(sorted(b)), tuple(sorted(n)), how) for (b, n), how in zip(self.members, self.how, strict=True)
        ]
        found += [Match((), (position,), ADDED) for position in self.free(1)]
        found += [Match((position,), (), REMOVED) for position in self.free(0)]
        return sorted(found, key=lambda match: (match.new or (len(self.sides[1]),), match.base))


def _inside(ops: Sequence[OpFigure]) -> dict[int, int]:
    """Ops without a time that another one says it was made from, each with that one; a run may know no times at all."""
    is_timed = any(op.is_timed for op in ops)
    place = {op.name: position for position, op in reversed(list(enumerate(ops)))}
    found: dict[int, int] = {}
    for position, op in enumerate(ops):
        for name in _listed(op) if op.is_timed or not is_timed else ():
            part = place.get(name)
            if part is not None and part != position and not ops[part].is_timed:
                found.setdefault(part, position)
    return found


def _kind(op: OpFigure) -> str:
    """Formats spell the same type in many ways; the kind is the same in all."""
    return op.kind or op.type


def _listed(op: OpFigure) -> Iterable[str]:
    """Names of ops that this one says it was made from."""
    return _parts(op.location)


def _named(op: OpFigure) -> Iterable[str]:
    """Names of ops that this one is named after."""
    parts = _parts(op.name)
    return parts if len(parts) > 1 else ()


def _parts(text: str) -> list[str]:
    return [part for part in _SEPARATORS.split(text) if part] if len(text) <= _LONGEST_NAME else []
