"""A run, or the comparison of two, in the form of another program: the verb `export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..core.errors import UsageError, printable
from ..core.files import write_whole
from ..views.exports.table_files import Sheet, write_csv, write_xlsx

if TYPE_CHECKING:
    from ..recording.run import Run


@dataclass(frozen=True, slots=True)
class ExportForm:
    """What a run can become."""

    help: str
    tables: tuple[str, ...] = ()  # that `table` may name, the first of them where it names none; empty: any of the run


FORMS = {
    "csv": ExportForm("one table, for any program"),
    "xlsx": ExportForm("a workbook: every table, or one"),
    "model-explorer": ExportForm("node data of Model Explorer", ("time", "engine", "findings")),
    "pytest-benchmark": ExportForm("JSON of pytest-benchmark", ("latency", "ops")),
    "chrome": ExportForm("the timeline, Chrome JSON", ("timeline",)),
    "perfetto": ExportForm("the timeline, Perfetto's own form", ("timeline",)),
}


def export(sources: Sequence[str | Path], output: str | Path, *, form: str, table: str | None = None) -> Path:
    """Write a run, or the comparison of two, as a file of another program.

    Args:
        sources: folder of a run; or two of them, whose comparison is exported: csv and xlsx.
        output: the file.
        form: csv, xlsx, model-explorer, pytest-benchmark, chrome or perfetto.
        table: which of its tables, where a form has several; `tables_of` lists them.
    """
    if form not in FORMS:
        raise UsageError(f"--format {printable(form)}: not known; expected one of {', '.join(FORMS)}")
    folders = [Path(source) for source in sources]
    if len(folders) == 1:
        render = _of_run(folders[0], form, table)
    elif len(folders) == 2 and not FORMS[form].tables:
        render = _of_comparison(folders, form, table)
    else:
        raise UsageError(f"export: {len(folders)} runs as {form}; expected one, or two as csv or xlsx")
    write_whole(Path(output), render)
    return Path(output)


def tables_of(sources: Sequence[str | Path], *, form: str) -> tuple[str, ...]:
    """Names that `table` may have."""
    own = FORMS[form].tables
    if own:
        return own
    if len(sources) == 1:
        from ..views.exports.run_tables import RunTables

        return RunTables(_checked(Path(sources[0]))).names
    return tuple(_compared(sources))


def _checked(folder: Path) -> Path:
    from ..recording.schema import HEAD_FILE

    if not (folder / HEAD_FILE).is_file():
        raise UsageError(f"{folder}: is no run; expected the folder of one (of a store: `opscope store export`)")
    return folder


def _of_run(folder: Path, form: str, table: str | None) -> Callable[[BinaryIO], object]:
    own = FORMS[form].tables
    if not own:
        from ..views.exports.run_tables import DEFAULT, RunTables

        tables = RunTables(_checked(folder))
        if form == "csv":
            return _sheets(form, [tables.sheet(table or DEFAULT)])
        return _sheets(form, [tables.sheet(name) for name in ([table] if table else tables.names)])
    if table is not None and table not in own:
        raise UsageError(f"--table {printable(table)}: not known; {form} has {', '.join(own)}")
    from ..recording.folder_reader import read_run

    run = read_run(_checked(folder))
    return _view(run, folder, form, table or own[0])


def _view(run: Run, folder: Path, form: str, table: str) -> Callable[[BinaryIO], object]:
    from ..core.json_files import json_bytes

    if form == "model-explorer":
        from ..views.exports.model_explorer import ModelExplorerData
        from .analysing import current_findings

        data = json_bytes(ModelExplorerData(table).fields(run, current_findings(folder, run)))
    elif form == "pytest-benchmark":
        from ..views.exports.pytest_benchmark import PytestBenchmark

        data = json_bytes(PytestBenchmark(table).fields(run))
    else:
        return _timeline(run, form)
    return lambda out: out.write(data)


def _timeline(run: Run, form: str) -> Callable[[BinaryIO], object]:
    from .record import path_of

    if not len(run.trace.spans):
        raise UsageError(f"export {form}: the run has no timeline; expected one with spans")
    if form == "chrome":
        from ..views.timeline.chrome_trace import ChromeTrace

        return lambda out: ChromeTrace(run, flows=True, path=path_of(run)).render(run.trace, out)
    from ..views.timeline.perfetto_trace import PerfettoTrace

    return lambda out: PerfettoTrace(run, flows=True, path=path_of(run)).render(run.trace, out)


def _of_comparison(folders: Sequence[Path], form: str, table: str | None) -> Callable[[BinaryIO], object]:
    from ..views.exports.run_tables import sheet_of, unknown_table

    found = _compared(folders)
    chosen = table or ("ops" if form == "csv" else None)
    if chosen is not None and chosen not in found:
        raise unknown_table(chosen, list(found))
    return _sheets(form, [sheet_of(name, rows) for name, rows in found.items() if chosen in (None, name)])


def _compared(sources: Sequence[str | Path]) -> Mapping[str, Sequence[Mapping[str, object]]]:
    import msgspec

    from ..views.exports.run_tables import lists_of
    from ..views.json.compare_json import comparison_fields
    from .comparing import compare

    base, new = (_checked(Path(source)) for source in sources)
    fields = msgspec.to_builtins(comparison_fields(compare(base, new)))
    return lists_of(fields)


def _sheets(form: str, sheets: Sequence[Sheet]) -> Callable[[BinaryIO], object]:
    if form == "csv":
        return lambda out: write_csv(sheets[0], out)
    return lambda out: write_xlsx(sheets, out)
