"""Why an op takes another time than before, as far as what both runs tell of its work says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..core.units import format_bytes
from .figures import OpFigure

CYCLES = "cycles:"  # before the name of a resource: what the op takes if that resource alone binds it
MACS, MOVED_BYTES, COMMANDS = "macs", "moved_bytes", "commands"
SAME_WORK = "the same work"

Amounts = Mapping[str, int]


def cause_of(base: Sequence[OpFigure], new: Sequence[OpFigure]) -> str:
    """What is different about the work; empty: one of the two does not tell.

    `SRAM 1,608 → NPU 5,479 cycles` is an op that a memory bound before, and the engine binds now.
    """
    old, now = _work(base), _work(new)
    engines = [", ".join(dict.fromkeys(op.engine for op in ops if op.engine)) for ops in (base, new)]
    words = [f"{engines[0]} → {engines[1]}"] if all(engines) and engines[0] != engines[1] else []
    words += [*_binding(old, now), *_amounts(old, now)]
    is_same = old == now and bool(old.keys() - {COMMANDS})  # as many commands may each do more
    return "; ".join(words) or (SAME_WORK if is_same else "")


def _work(ops: Sequence[OpFigure]) -> Amounts:
    total: Counter[str] = Counter()
    for op in ops:
        total.update(op.work)
    return total


def _binding(old: Amounts, now: Amounts) -> Iterator[str]:
    """The resource that takes longest, before and now."""
    sides = [{name: value for name, value in work.items() if name.startswith(CYCLES) and value} for work in (old, now)]
    if not all(sides) or sides[0] == sides[1]:
        return
    (first, before), (second, after) = (max(side.items(), key=lambda item: item[1]) for side in sides)
    one, other = (name.removeprefix(CYCLES) for name in (first, second))
    yield f"{one} {before:,} → {'' if one == other else f'{other} '}{after:,} cycles"


def _amounts(old: Amounts, now: Amounts) -> Iterator[str]:
    for name, label in ((MACS, "MACs"), (MOVED_BYTES, "bytes moved"), (COMMANDS, "commands")):
        if name in old and name in now and old[name] != now[name]:
            yield f"{label} {_shown(name, old[name])} → {_shown(name, now[name])}"


def _shown(name: str, amount: int) -> str:
    return format_bytes(amount) if name == MOVED_BYTES else f"{amount:,}"
