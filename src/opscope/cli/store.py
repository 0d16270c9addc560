"""The verbs `store`, `table` and `trend`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import View, add_format, positive, write_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from ..fleet.compaction import Cleaned
    from ..fleet.keeping import Content
    from ..fleet.table import Table


FORMS = ("csv", "json", "xlsx", "mlflow")
TABLES = ("cells", "ops", "findings", "latest")


class StoreCommand:
    """Keep many profiles as rows: add runs, list, query in SQL, merge files, remove unused files, export."""

    examples = """\
examples:
  opscope store add bert.run --store fleet.store
  opscope store ls --store fleet.store
  opscope store query "SELECT model, target, latency_ns FROM latest ORDER BY latency_ns" --store fleet.store
  opscope store export csv --store fleet.store -o cells.csv

Tables are cells, ops, findings and latest (the newest cell of every series); `query "DESCRIBE cells"` lists columns.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="add|ls|query|compact|gc|export")

        def action(name: str, words: str) -> ArgumentParser:
            part = actions.add_parser(name, help=words, allow_abbrev=False)
            part.add_argument("--store", required=True, metavar="STORE", help="folder, or address of a store")
            part.add_argument("--json", action="store_true", help="print JSON")
            return part

        add = action("add", "put runs into a store")
        add.add_argument("runs", type=Path, nargs="+", metavar="RUN")
        add.add_argument(
            "--commit", metavar="C", help="commit to keep with every row (default: that of git in this folder)"
        )
        action("ls", "what a store holds")
        query = action("query", "ask in SQL")
        query.add_argument("sql", metavar="SQL", help="a SELECT statement")
        query.add_argument(
            "--most", type=positive, default=100_000, metavar="N", help="most rows to print (default 100000)"
        )
        action("compact", "put small files together; bring an older store up to date")
        gc = action("gc", "remove what nothing needs")
        gc.add_argument(
            "--superseded", action="store_true", help="also remove rows that a newer row of their series replaces"
        )
        export = action("export", "write a table for another program")
        export.add_argument("form", choices=FORMS)
        export.add_argument(
            "-o", "--output", required=True, metavar="FILE", help="file to write; for mlflow, the tracking address"
        )
        export.add_argument("--table", choices=TABLES, default="cells", help="table to export (default: cells)")
        export.add_argument("--where", metavar="SQL", help="SQL condition on the rows")

    def run(self, args: Namespace) -> int:
        actions: dict[str, Callable[[Namespace], None]] = {
            "add": _add,
            "ls": _ls,
            "query": _query,
            "compact": _compact,
            "gc": _gc,
            "export": _export,
        }
        actions[args.action](args)
        return 0


def _add(args: Namespace) -> None:
    from ..fleet import verbs

    _say(args, {"added": verbs.add_to_store(args.runs, args.store, commit=args.commit)}, "added {added}")
    print(f"wrote {args.store}", file=sys.stderr)


def _say(args: Namespace, found: dict[str, object], words: str) -> None:
    text = json.dumps(found) if args.json else words.format(**found)
    write_result(lambda out: print(text, file=out), None)


def _ls(args: Namespace) -> None:
    from ..fleet import verbs

    found = verbs.store_content(args.store)
    write_result(lambda out: _print_content(found, out, as_json=args.json), None)


def _print_content(found: Content, out: TextIO, *, as_json: bool) -> None:
    from ..core.json_files import write_json
    from ..core.units import format_bytes
    from ..fleet.table_views import AnswerText, plain

    if as_json:
        head = {"version": found.version, "files": found.files, "size_bytes": found.size_bytes}
        write_json(head | {"groups": plain(found.groups.dictionaries())}, out)
        return
    AnswerText().render(found.groups, out)
    print(f"version {found.version}, {found.files} files, {format_bytes(found.size_bytes)}", file=out)


def _query(args: Namespace) -> None:
    from ..fleet import verbs
    from ..fleet.table_views import AnswerJson, AnswerText

    found = verbs.ask_store(args.store, args.sql, most=args.most)
    view = AnswerJson() if args.json else AnswerText()
    write_result(lambda out: view.render(found, out), None)
    if len(found.rows) == args.most:
        print(f"note: the first {args.most:,} rows; --most asks for more", file=sys.stderr)


def _compact(args: Namespace) -> None:
    from ..fleet import verbs

    _cleaned(args, verbs.compact_store(args.store))


def _gc(args: Namespace) -> None:
    from ..fleet import verbs

    _cleaned(args, verbs.clean_store(args.store, superseded=args.superseded))


def _cleaned(args: Namespace, found: Cleaned) -> None:
    counts: dict[str, object] = {"before": found.before, "after": found.after, "removed": len(found.removed)}
    words = "{before} files of rows became {after}; {removed} files that nothing needs were removed"
    _say(args, counts | {"busy": list(found.busy)}, words)
    for partition in found.busy:
        print(f"note: {partition}: somebody else is at it, and it was left alone", file=sys.stderr)


def _export(args: Namespace) -> None:
    from ..fleet import verbs

    rows = verbs.export_store(args.store, args.form, args.output, table=args.table, where=args.where)
    _say(args, {"rows": rows, "output": args.output}, "{rows} rows")
    print(f"wrote {args.output}", file=sys.stderr)


class TableCommand:
    """Print one metric of the latest cells of a store as a table, models by targets or any other two columns."""

    examples = """\
examples:
  opscope table fleet.store --rows model --columns target --metric latency --best
  opscope table fleet.store --rows model,precision --columns cores --where "target = 'aic100-std'" --format md
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("store", metavar="STORE", help="folder, or address of a store")
        parser.add_argument(
            "--rows", default="model", metavar="COLUMN,…", help="columns or options that make the rows (default model)"
        )
        parser.add_argument(
            "--columns",
            default="target",
            metavar="COLUMN,…",
            help="columns or options that make the columns (default target)",
        )
        parser.add_argument(
            "--metric", default="latency", metavar="M", help="metric, by its name in limits (default latency)"
        )
        parser.add_argument(
            "--best", action="store_true", help="show the best of several cells in one place, and which it is"
        )
        parser.add_argument("--where", metavar="SQL", help="SQL condition on the cells")
        add_format(parser, ("text", "md", "html", "json"))
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)")

    def run(self, args: Namespace) -> int:
        from ..fleet import verbs
        from ..fleet.table_views import TableHtml, TableJson, TableMarkdown, TableText

        found = verbs.table(
            args.store,
            rows=args.rows.split(","),
            columns=args.columns.split(","),
            metric=args.metric,
            best=args.best,
            where=args.where,
        )
        views: dict[str, View[Table]] = {
            "text": TableText(),
            "md": TableMarkdown(),
            "html": TableHtml(),
            "json": TableJson(),
        }
        view = views[args.format]
        write_result(lambda out: view.render(found, out), args.output)
        return 0


class TrendCommand:
    """Follow a metric from commit to commit: change points that noise does not explain, their ops and their cause."""

    examples = """\
examples:
  opscope trend fleet.store --metric latency --by commit
  opscope trend fleet.store --metric peak_memory --where "target = 'aic100-std'" --json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("store", metavar="STORE", help="folder, or address of a store")
        parser.add_argument(
            "--metric", default="latency", metavar="M", help="metric, by its name in limits (default latency)"
        )
        parser.add_argument(
            "--by",
            choices=("commit", "sweep", "created"),
            default="commit",
            help="order of the cells (default: commit)",
        )
        parser.add_argument("--where", metavar="SQL", help="SQL condition on the cells")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)")

    def run(self, args: Namespace) -> int:
        from ..fleet import verbs
        from ..fleet.trend_views import TrendJson, TrendText

        found = verbs.trend(args.store, metric=args.metric, by=args.by, where=args.where)
        view = TrendJson() if args.json else TrendText(metric=args.metric, by=args.by)
        write_result(lambda out: view.render(found, out), args.output)
        return 0


COMMANDS = {"store": StoreCommand(), "table": TableCommand(), "trend": TrendCommand()}
