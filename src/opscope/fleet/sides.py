"""A side of a comparison that is in a store: `STORE:COMMIT`, or `STORE:COMMIT,model=NAME,target=NAME`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.errors import UsageError, printable
from ..gate.figures import Figures
from ..workflows.comparing import Source, figures_of, with_kinds
from .query import ask
from .reading import quoted
from .rows import figures_of_rows
from .store import Store, is_store
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
    ops = ask(store, "SELECT * FROM ops WHERE id = ? ORDER BY position NULLS LAST", [cell["id"]]).dictionaries()
    return with_kinds(figures_of_rows(cell, ops, label=label))


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
