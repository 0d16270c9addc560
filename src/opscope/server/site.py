"""Address → Answer. No part of a request is used as a path; it only selects entries of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote

from .. import __version__
from ..core.errors import ProfilerError, UsageError
from ..core.files import open_plain
from ..workflows import viewing
from . import answers, pages, perfetto
from .answers import Answer, refusal
from .catalogue import Catalogue, ListedRun
from .store import Store

if TYPE_CHECKING:
    from ..recording.run import Run
    from ..views.page.spans import SpanRows
    from .store_runs import StoreRuns

_RUN = re.compile(r"run/([0-9a-f]{16})/(|perfetto|trace\.(?:json|json\.gz|pftrace)|spans/(\d{1,6})\.bin)")
_UI = "perfetto/"
_MOST_FIELDS = 32  # fields of a query
_MOST_COMPARED = 8
Query = tuple[tuple[str, str], ...]


class Site:
    """The routes of the server."""

    def __init__(
        self, catalogue: Catalogue | StoreRuns, *, token: str, origin: str, scratch: Path, ui: Path | None
    ) -> None:
        self._catalogue = catalogue
        self._token = token
        self._origin = origin
        self._store = Store(scratch)
        self._runs = _LastRun()
        self._ui = {} if ui is None else perfetto.ui_files(ui)

    @property
    def address(self) -> str:
        """The start address: the page of a single run, else the list, or the page of a store."""
        start = f"{self._origin}/{self._token}/"
        runs = self._catalogue
        if isinstance(runs, Catalogue) and runs.is_single:
            return f"{start}run/{runs.listing().entries[0].id}/"
        return start

    def answer(self, target: str) -> Answer:
        """Return the answer to the path and query of a request, as received."""
        path, _, query = target.partition("?")
        token, slash, place = path.removeprefix("/").partition("/")
        if not slash or not compare_digest(token.encode(), self._token.encode()):
            return refusal(HTTPStatus.NOT_FOUND)
        try:
            return self._route(place, _fields(query))
        except ProfilerError as error:
            page = pages.problem_page("This cannot be shown", str(error))
            return Answer(page, status=HTTPStatus.UNPROCESSABLE_ENTITY)

    def _route(self, place: str, query: Query) -> Answer:
        """Return the answer for the path after the token."""
        if place == "":
            return self._list(query)
        if place in pages.ASSETS:
            return Answer(pages.asset(place), pages.ASSETS[place], policy=answers.DATA)
        if place == "compare":
            return self._compare(dict.fromkeys(value for name, value in query if name == "run"))
        if place.startswith(_UI):
            return self._ui_file(place.removeprefix(_UI))
        found = _RUN.fullmatch(place)
        entry = None if found is None else self._catalogue.find(found[1])
        if found is None or entry is None:
            return refusal(HTTPStatus.NOT_FOUND)
        if found[3] is not None:
            return self._piece(entry, int(found[3]))
        handlers: dict[str, Callable[[ListedRun], Answer]] = {
            "": self._page,
            "perfetto": self._perfetto,
            viewing.trace_name(entry.path): self._trace,
        }
        return handlers[found[2]](entry) if found[2] in handlers else refusal(HTTPStatus.NOT_FOUND)

    def _list(self, query: Query) -> Answer:
        runs, words = self._catalogue, dict(query)
        if isinstance(runs, Catalogue):
            return Answer(pages.list_page(runs.listing(), root=str(runs.root), sort=words.get("sort")))
        where = words.get("where", "")
        page = self._store.open(f"store {where}", runs.stamp(), lambda out: runs.write_page(where, out))
        return Answer(page, policy=answers.RUN_PAGE)

    def _compare(self, run_ids: Iterable[str]) -> Answer:
        entries = [entry for run_id in run_ids if (entry := self._catalogue.find(run_id)) is not None]
        if not 2 <= len(entries) <= _MOST_COMPARED:
            raise UsageError(f"{len(entries)} runs are ticked; expected 2 to {_MOST_COMPARED}")
        stamps = tuple(_stamp(entry.path) for entry in entries)
        page = self._store.open(
            f"compare {' '.join(entry.id for entry in entries)}",
            stamps,
            lambda out: viewing.write_compare_page([(e.name, viewing.open_folder(e.path)) for e in entries], out),
        )
        return Answer(page, policy=answers.RUN_PAGE)

    def _ui_file(self, name: str) -> Answer:
        found = self._ui.get(name or "index.html")
        if found is None:
            return refusal(HTTPStatus.NOT_FOUND)
        return Answer(found[0].open("rb"), found[1], policy=answers.PERFETTO_UI)

    def _page(self, entry: ListedRun) -> Answer:
        if viewing.has_own_page(entry.path):
            page = open_plain(entry.path / viewing.PAGE)
            return Answer(page, policy=answers.FOREIGN_PAGE, opener=answers.NO_OPENER_POLICY)
        stamp = _stamp(entry.path)
        page = self._store.open(
            f"page {entry.id}",
            stamp,
            lambda out: viewing.write_page(entry.path, self._runs.get(entry.path, stamp), out),
        )
        return Answer(page, policy=answers.RUN_PAGE)

    def _perfetto(self, entry: ListedRun) -> Answer:
        """Redirect to the local Perfetto UI with the trace's address, or ask before using the public one."""
        if not viewing.has_timeline(entry.path):
            raise UsageError(f"{entry.name}: has totals and no timeline; expected a run with spans")
        name = viewing.trace_name(entry.path)
        if not self._ui:
            return Answer(pages.consent_page(entry, trace=name), opener=answers.MAY_OPEN_WINDOWS)
        trace = quote(f"{self._origin}/{self._token}/run/{entry.id}/{name}", safe="")
        place = f"../../perfetto/index.html#!/?url={trace}"
        return Answer(b"", status=HTTPStatus.SEE_OTHER, policy=answers.DATA, extra=(("Location", place),))

    def _trace(self, entry: ListedRun) -> Answer:
        own, stamp = viewing.own_trace(entry.path), _stamp(entry.path)
        if own is not None:
            trace = open_plain(own)
        else:
            trace = self._store.open(
                f"trace {entry.id}", stamp, lambda out: viewing.write_trace(self._runs.get(entry.path, stamp), out)
            )
        save = (("Content-Disposition", f'attachment; filename="{viewing.trace_name(entry.path)}"'),)
        return Answer(trace, answers.BINARY, policy=answers.DATA, extra=save)

    def _piece(self, entry: ListedRun, number: int) -> Answer:
        """Return one chunk of the run's spans, which its page loads on demand."""
        rows = self._runs.rows(entry.path, _stamp(entry.path))
        if rows is None or number >= rows.pieces:
            return refusal(HTTPStatus.NOT_FOUND)
        return Answer(rows.piece(number), answers.BINARY, policy=answers.DATA)


class _LastRun:
    """Cache of the run requested last: a page requests many chunks of one run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._key: object = None
        self._run: Run | None = None
        self._rows: SpanRows | None = None

    def get(self, path: Path, stamp: object) -> Run:
        with self._lock:
            return self._get(path, stamp)

    def rows(self, path: Path, stamp: object) -> SpanRows | None:
        with self._lock:
            run = self._get(path, stamp)
            if self._rows is None:
                self._rows = viewing.span_pieces(run)
            return self._rows

    def _get(self, path: Path, stamp: object) -> Run:
        if self._run is None or self._key != (path, stamp):
            self._run = self._rows = None
            self._run = viewing.open_folder(path)
            self._key = (path, stamp)
        return self._run


def _stamp(folder: Path) -> object:
    """Return a value that changes when the run's files are written again."""
    files = [path.lstat() for name in viewing.RUN_FILES if (path := folder / name).exists()]
    return __version__, tuple((file.st_mtime_ns, file.st_size, file.st_ino) for file in files)


def _fields(query: str) -> Query:
    """Parse the query string."""
    try:
        return tuple(parse_qsl(query, max_num_fields=_MOST_FIELDS))
    except ValueError:  # more fields than any page of this server sends
        return ()
