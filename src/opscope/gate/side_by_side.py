"""Several Figures → one column each, ops matched to those of the first run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.sums import known_sum
from ..core.units import UNKNOWN
from .comparison import ADDED, REMOVED, STRUCTURE, SideBySide, SideRow
from .families import families_of, farthest
from .figures import NS, Figures, Labels, Row, caveats_of
from .matching import match_ops
from .metrics import METRICS


def side_by_side(runs: Sequence[Figures], *, by: str, label: Labels | None) -> SideBySide:
    """`label` gives those of the rollup `by`; None: ops themselves."""
    groups, matched, likely = _op_groups(runs)
    rows = _rollup_rows(runs, label) if label is not None else [_op_row(runs, group) for group in groups]
    rows = [row for row in rows if any(value is not None for value in row.values)]
    rows.sort(key=lambda row: (*(-(value or 0) for value in row.values), row.name))
    pairs = ((group[0], group[1]) for group in groups)
    families = families_of(runs[0], runs[1], pairs) if len(runs) == 2 else ()
    notes = (*_notes(runs, likely), *farthest(families, runs[0].provenance))
    return SideBySide(tuple(runs), tuple(_metric_rows(runs)), by, tuple(rows), matched, notes, families)


def _notes(runs: Sequence[Figures], likely: Sequence[int]) -> Iterable[str]:
    for what in ("target", "batch", "devices", "cores"):
        values = [UNKNOWN if (value := getattr(run, what)) is None else str(value) for run in runs]
        if len(set(values)) > 1:
            yield f"{what}: {', '.join(values)}"
    if len({run.provenance for run in runs}) > 1:
        yield "columns are of different provenance: a ratio between them says how far two methods are apart"
    yield from caveats_of(runs)
    for run, count in zip(runs, likely, strict=True):
        if count:
            words = "op is" if count == 1 else "ops are"
            yield f"{run.label}: {count} {words} matched by surroundings, not by name"


def _metric_rows(runs: Sequence[Figures]) -> Iterable[SideRow]:
    places = {name: place for place, name in enumerate(METRICS)}
    columns = [{metric.name: metric.value for metric in run.metrics} for run in runs]
    names = dict.fromkeys(name for column in columns for name in column)
    for name in sorted(names, key=lambda name: places[name.partition(":")[0]]):
        values = tuple(column.get(name) for column in columns)
        about = METRICS[name.partition(":")[0]]
        if any(values if about.only_parts else (value is not None for value in values)):
            yield SideRow(name, about.unit, values, about.better)


def _op_groups(runs: Sequence[Figures]) -> tuple[list[list[list[int]]], tuple[int, ...], list[int]]:
    """Rows of ops that are the same work, as positions per run; ops in common with the first; those by structure."""
    first, parent = runs[0], list(range(sum(len(run.ops) for run in runs)))
    offsets = [sum(len(run.ops) for run in runs[:number]) for number in range(len(runs))]
    matched, likely = [len(first.ops)], [0]
    for number, run in enumerate(runs[1:], start=1):
        matches = match_ops(first.ops, run.ops, same_model=first.sha256 is not None and first.sha256 == run.sha256)
        for match in matches:
            nodes = [*match.base, *(offsets[number] + position for position in match.new)]
            _join(parent, nodes)
        together = [match for match in matches if match.how not in (ADDED, REMOVED)]
        matched.append(sum(len(match.new) for match in together if run.ops[match.new[0]].row is not Row.NO_OP))
        likely.append(sum(1 for match in together if match.how == STRUCTURE))
    _join_names(runs, offsets, parent)
    groups: dict[int, list[list[int]]] = {}
    for number, run in enumerate(runs):
        for position in range(len(run.ops)):
            root = _root(parent, offsets[number] + position)
            groups.setdefault(root, [[] for _ in runs])[number].append(position)
    return list(groups.values()), tuple(matched), likely


def _join_names(runs: Sequence[Figures], offsets: Sequence[int], parent: list[int]) -> None:
    """Ops that the first run does not have are the same in others where their names are."""
    known = {(op.row, op.name) for op in runs[0].ops}
    seen: dict[tuple[Row, str], int] = {}
    for number, run in enumerate(runs[1:], start=1):
        own: set[tuple[Row, str]] = set()
        for position, op in enumerate(run.ops):
            key = (op.row, op.name)
            if key not in known and key not in own:
                own.add(key)
                node = offsets[number] + position
                _join(parent, [seen.setdefault(key, node), node])


def _root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


def _join(parent: list[int], nodes: Sequence[int]) -> None:
    for node in nodes[1:]:
        one, other = _root(parent, nodes[0]), _root(parent, node)
        parent[max(one, other)] = min(one, other)


def _op_row(runs: Sequence[Figures], group: Sequence[Sequence[int]]) -> SideRow:
    ops = [[run.ops[position] for position in positions] for run, positions in zip(runs, group, strict=True)]
    shown = next(found for found in ops if found)
    names = list(dict.fromkeys(op.name for op in [op for op in shown if op.is_timed] or shown))
    name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return SideRow(name, NS, tuple(known_sum(op.wall_ns for op in found) for found in ops), "less")


def _rollup_rows(runs: Sequence[Figures], labels: Labels) -> list[SideRow]:
    groups: dict[str, list[list[int | None]]] = {}
    for number, run in enumerate(runs):
        for op, label in zip(run.ops, labels(run), strict=True):
            groups.setdefault(label, [[] for _ in runs])[number].append(op.wall_ns)
    return [SideRow(name, NS, tuple(known_sum(walls) for walls in columns), "less") for name, columns in groups.items()]
