"""`opscope bakeoff`: a sweep of one model over every chip that somebody can tell about here."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from ..backends import registry as backends
from ..core.errors import UsageError
from ..core.files import sha256_of
from ..core.manifest import Option
from ..core.precisions import copy_word
from ..fleet.plan import planned
from ..fleet.query import ask
from ..fleet.reading import inbox_tables, quoted
from ..fleet.schema import OK, REFUSED, TABLES
from ..fleet.spec import Pattern, Spec, Value
from ..fleet.store import INBOX, Store, ids_of
from ..fleet.sweep import Progress, Started, sweep
from ..fleet.verbs import commit_of
from ..options import BakeoffOptions, Shapes, SweepOptions, chosen, part_of
from ..workflows.own_backends import OWN
from .contenders import Contender, field_of
from .rows import AS_IS, Bakeoff, BakeoffRow, ranked, with_figures

INTEGER = "w8a8"  # what a model becomes for a chip that cannot take it as it is
_PRECISION, _DATA = "precision", "data"


def bakeoff(
    model: str | Path,
    on: Sequence[str] = (),
    *,
    store: str | Path | None = None,
    options: BakeoffOptions | None = None,
    commit: str | None = None,
    created: str | None = None,
    started: Callable[[Started], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **named: object,
) -> Bakeoff:
    """Compare a model on many chips: every compiler, runtime and target that works here, each in its own process.

    `on` are chips, patterns such as "ethos-u*", groups of the catalogue, backends, or "all"; by default the best-known
    chips of each group. `options` are BakeoffOptions, or their fields by name: `backend` are the backends to use;
    `precision` are the precisions to try, "as-is" among them, by default the model as it is, and w8a8 on chips that
    cannot run it so; `data` calibrates quantised copies. With `store` the rows are kept there, and rows that it has
    are not run again.

    Example:
        >>> found = opscope.bakeoff("kws.tflite", ["ethos-u*", "stm32n6"], store="bakeoff.store")
        >>> [(row.target, row.latency_ns) for rows in found.kinds.values() for row in rows]
    """
    path, asked = Path(model), chosen(BakeoffOptions, options, named)
    field = field_of(path, on, asked.backend)
    sweeps = _Sweeps(
        path,
        {} if asked.data is None else {_DATA: str(asked.data.resolve())},
        asked.shapes or {},
        store,
        part_of(SweepOptions, asked),
        commit or (None if store is None else commit_of(path.resolve().parent)),
        created or datetime.now(UTC).isoformat(timespec="seconds"),
        started,
        progress,
    )
    rows = list(sweeps.rows(field.contenders, asked.precision or [AS_IS]))
    if not asked.precision:
        told = {row.target for row in rows if row.provenance is not None}
        rest = [each for each in field.contenders if each.entry.name not in told and word_for(each.backend, INTEGER)]
        said = {(row.target, row.backend, row.reason) for row in rows}
        rows += (row for row in sweeps.rows(rest, [INTEGER]) if (row.target, row.backend, row.reason) not in said)
    return Bakeoff(path.stem, str(path), sha256_of(path), ranked(rows), field.notes, sweeps.ran)


@dataclass(slots=True)
class _Sweeps:
    """What all cells of a bakeoff share, and how many had to run."""

    model: Path
    axes: Mapping[str, Value]
    shapes: Shapes
    store: str | Path | None
    options: SweepOptions
    commit: str | None
    created: str
    started: Callable[[Started], None] | None
    progress: Callable[[Progress], None] | None
    ran: int = 0

    def rows(self, contenders: Sequence[Contender], precisions: Sequence[str]) -> Iterator[BakeoffRow]:
        """A row for every contender in every precision. What measures this machine has it for itself."""
        groups: dict[bool, list[tuple[Contender, str]]] = {True: [], False: []}
        for each in contenders:
            for asked in precisions:
                word = word_for(each.backend, asked)
                if word or asked == AS_IS:
                    groups[each.measures].append((each, word))
                else:
                    yield _row(each, asked, status=REFUSED, reason=_no_precision(each.backend, asked))
        for alone, cells in groups.items():
            if cells:
                options = replace(self.options, jobs=1) if alone else self.options
                yield from self._profiled(cells, options)

    def _profiled(self, cells: Sequence[tuple[Contender, str]], options: SweepOptions) -> list[BakeoffRow]:
        specs = list(self._specs(cells))
        by_cell = {(each.target, each.backend): each for each, _ in cells}
        rows = {
            cell.id: _row(
                by_cell[cell.target, cell.backend], str(cell.options.get(_PRECISION, AS_IS)), version=cell.version
            )
            for spec in specs
            for cell in planned(spec)
        }
        if self.store is not None:
            found = self._swept(specs, self.store, options, rows)
        else:  # nobody wants to keep them: in a folder that is gone when they were read
            with TemporaryDirectory() as folder:
                found = self._swept(specs, folder, replace(options, tidy=False), rows)
        return [with_figures(row, found[row_id]) for row_id, row in rows.items()]

    def _swept(
        self, specs: Sequence[Spec], store: str | Path, options: SweepOptions, ids: Collection[str]
    ) -> dict[str, Mapping[str, object]]:
        state = sweep(
            specs,
            store,
            options,
            created=self.created,
            commit=self.commit,
            started=self.started,
            progress=self.progress,
        )
        self.ran += state.ended
        return {str(row["id"]): row for row in stored_rows(Store(store), ids)}

    def _specs(self, cells: Sequence[tuple[Contender, str]]) -> Iterator[Spec]:
        """One of cells that have a precision, and one of those that leave the model as it is."""
        for with_word in (False, True):
            chosen = [(each, word) for each, word in cells if bool(word) is with_word]
            if not chosen:
                continue
            axes: dict[str, tuple[Value, ...]] = {
                "target": tuple(each.target for each, _ in chosen),
                "backend": tuple(each.backend for each, _ in chosen),
            }
            if with_word:
                axes[_PRECISION] = tuple(word for _, word in chosen)
            together = tuple(axes)
            for name, value in self.axes.items():  # for those who have it
                if any(name in _options(each.backend) for each, _ in chosen):
                    axes[name] = (value,)
            shapes = ((Pattern({}), self.shapes),) if self.shapes else ()
            yield Spec((glob.escape(str(self.model.resolve())),), Path(), axes, (together,), shapes=shapes)


def stored_rows(store: Store, ids: Collection[str]) -> list[Mapping[str, object]]:
    """Rows of cells by their ids. Those that nobody has put away yet are read without DuckDB."""
    wanted = set(ids)
    names = [name for name in store.listing().files[INBOX] if ids_of([name]) & wanted]
    try:
        found: list[Mapping[str, object]] = list(inbox_tables(store, names, TABLES)["cells"].to_pylist())
    except FileNotFoundError:  # put away this moment
        found = []
    rest = sorted(wanted.difference(str(row["id"]) for row in found))
    if rest:
        listed = ", ".join(map(quoted, rest))
        found += ask(store, f"SELECT * FROM cells WHERE id IN ({listed})").dictionaries()  # noqa: S608
    return found


def _row(contender: Contender, precision: str, *, version: str = "", status: str = OK, reason: str = "") -> BakeoffRow:
    entry = contender.entry
    return BakeoffRow(entry.name, entry.title, entry.group, contender.backend, version, precision, status, reason)


def word_for(backend: str, precision: str) -> str:
    """A precision as a backend has it; empty: it has none such, or the model is to stay as it is."""
    option = _options(backend).get(_PRECISION)
    if option is None or precision == AS_IS:
        return ""
    word = copy_word(precision)
    return next((each for each in (word, precision) if not option.choices or each in option.choices), "")


def _no_precision(backend: str, precision: str) -> str:
    option = _options(backend).get(_PRECISION)
    known = "a model that is so already" if option is None else f"one of {', '.join(option.choices)}"
    return str(UsageError(f"{backend}: has no --precision {precision}; expected {known}"))


def _options(backend: str) -> dict[str, Option]:
    rows = OWN[backend] if backend in OWN else backends.find(backend).options
    return {option.name: option for option in rows}
