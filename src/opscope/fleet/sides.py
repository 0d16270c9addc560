"""A side of a comparison that is in a store: `STORE:COMMIT`, or `STORE:COMMIT,model=NAME,target=NAME`.

A baseline that lives in a store is such a side: a row whose commit is the name that the baseline was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import UsageError, printable
from ..core.keys import digest_of
from ..gate.compare import compare
from ..gate.figures import Figures
from ..workflows.comparing import LABELS, Source, Updated, figures_of, with_kinds
from .compaction import compact
from .keeping import run_rows
from .query import ask
from .reading import quoted
from .rows import figures_of_rows
from .store import Columns, Store, is_store
from .table import column_of

_TELLING = ("model", "target", "backend", "precision", "batch", "cores")
_MOST_LISTED = 5


def split_side(text: str) -> tuple[str, str] | None:
    """Store and commit with its conditions; None: the text is a file or a folder."""
    place, colon, rest = text.rpartition(":")
    if not colon or not place or rest.startswith("//") or Path(text).exists():
        return None
    return (place, rest) if is_store(place) else None


def read_sides(sources: Sequence[Source]) -> list[Source]:
    """Sources, those in stores as figures; the first that is in none tells which cell is meant."""
    texts = [str(source) if isinstance(source, str | Path) else "" for source in sources]
    sides = [split_side(text) if text else None for text in texts]
    if not any(sides):
        return list(sources)
    others = [source for source, side in zip(sources, sides, strict=True) if side is None]
    like = figures_of(others[0]) if others else None
    return [
        source if side is None else figures_at(*side, like=like) for source, side in zip(sources, sides, strict=True)
    ]


def figures_at(place: str, rest: str, *, like: Figures | None = None) -> Figures:
    """The figures of the one cell that fits; `like` is the other side, which tells where several do."""
    store = Store(place)
    commit, *words = rest.split(",")
    conditions = ["status = 'ok'"]
    if commit:
        conditions.append(f"commit LIKE {quoted(_escaped(commit))} || '%' ESCAPE '!'")
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{printable(rest)}: {printable(word)!r}; expected COLUMN=VALUE such as model=resnet50")
        conditions.append(f"{column_of(name, 'column')}::VARCHAR = {quoted(value)}")
    newest = "QUALIFY row_number() OVER (PARTITION BY series ORDER BY created DESC, id) = 1"
    where = " AND ".join(conditions)
    cells = ask(store, f"SELECT * FROM cells WHERE {where} {newest} ORDER BY id").dictionaries()  # noqa: S608
    if len(cells) > 1 and like is not None:
        for column in ("model", "target", "batch", "cores"):
            cells = [cell for cell in cells if cell[column] == getattr(like, column)] or cells
    if len(cells) != 1:
        raise UsageError(_not_one(f"{place}:{rest}", cells))
    return cell_figures(store, cells[0], label=f"{place}:{rest}")


def cell_figures(store: Store, cell: Mapping[str, object], *, label: str) -> Figures:
    """The figures of a row of cells, with its ops."""
    return _with_ops(store, [cell], label)[str(cell["id"])]


def figures_by_id(store: Store, ids: Sequence[str]) -> dict[str, Figures]:
    """The figures of several cells, each under its id; one that is not there is left out."""
    cells = ask(store, "SELECT * FROM cells WHERE id IN (FROM unnest(?))", [list(ids)]).dictionaries()
    return _with_ops(store, cells, None)


def _with_ops(store: Store, cells: Sequence[Mapping[str, object]], label: str | None) -> dict[str, Figures]:
    sql = "SELECT * FROM ops WHERE id IN (FROM unnest(?)) ORDER BY position NULLS LAST"
    ops: dict[str, list[dict[str, object]]] = {str(cell["id"]): [] for cell in cells}
    for op in ask(store, sql, [list(ops)]).dictionaries():
        ops[str(op["id"])].append(op)
    rows = {str(cell["id"]): cell for cell in cells}
    return {
        row_id: with_kinds(figures_of_rows(cell, ops[row_id], label=label or row_id)) for row_id, cell in rows.items()
    }


def save_baseline(run: Path, place: str, name: str) -> Figures:
    """Keep a run in a store under a name; one of the same model, target and options that has it is not replaced."""
    store, (cell, ops) = Store(place), _named(run, name)
    if _of_name(store, cell):
        raise UsageError(
            f"{place}:{name}: is there; expected a new name, or `opscope baseline update RUN {place}:{name}`"
        )
    store.add(cell, ops)
    return figures_of(run)


def update_baseline(run: Path, place: str, name: str, *, now_s: float) -> Updated:
    """Put a run in the place of the one that a store has under a name, and say what that changes."""
    store, (cell, ops) = Store(place), _named(run, name)
    before = _of_name(store, cell)
    if not before:
        raise UsageError(
            f"{place}:{name}: has no such baseline; expected `opscope baseline save RUN -o {place}:{name}`"
        )
    old = cell_figures(store, before[0], label=f"{place}:{name}")
    changed = before[0]["id"] != cell["id"]
    try:
        result = Updated(compare(old, figures_of(run), labels=LABELS), changed=changed)
    except UsageError as error:  # replaced all the same, because that is what was asked
        result = Updated(None, str(error), changed=changed)
    compact(store, now_s=now_s, drop={str(row["id"]) for row in before})
    store.add(cell, ops)
    return result


def _named(run: Path, name: str) -> tuple[dict[str, object], Columns]:
    if not name or "," in name:
        raise UsageError(f"baseline {printable(name)!r}: is no name; expected STORE:NAME without a comma")
    cell, ops = run_rows(run, commit=name)
    return cell | {"id": digest_of(str(cell["id"]), name)}, ops  # the run itself may be a row of the store as well


def _of_name(store: Store, cell: Mapping[str, object]) -> list[dict[str, object]]:
    sql = "SELECT * FROM cells WHERE commit = ? AND series = ? ORDER BY created DESC, id"
    return ask(store, sql, [cell["commit"], cell["series"]]).dictionaries()


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _not_one(side: str, cells: list[dict[str, object]]) -> str:
    if not cells:
        return f"{printable(side)}: no cell with figures is of that commit; expected one that `opscope store ls` lists"
    differ = [name for name in _TELLING if len({str(cell[name]) for cell in cells}) > 1]
    shown = "; ".join(", ".join(f"{name}={cell[name]}" for name in differ) for cell in cells[:_MOST_LISTED])
    more = "; …" if len(cells) > _MOST_LISTED else ""
    narrower = f"{printable(side)},{differ[0] if differ else 'model'}=…"
    return f"{printable(side)}: {len(cells)} cells fit ({printable(shown, 400)}{more}); expected one, as {narrower}"
