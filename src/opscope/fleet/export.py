"""What a store has, in the forms of other programs: CSV, JSON, a workbook, runs of MLflow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from ..core.errors import UsageError, printable
from ..core.files import replacing
from ..views.exports.table_files import Sheet, write_csv, write_xlsx
from .place import needed
from .query import VIEWS, Answer, ask
from .schema import OK, TABLES
from .store import Store
from .table_views import plain

EXPERIMENT = "opscope"


def export(store: Store, form: str, output: str, *, table: str, where: str | None = None) -> int:
    """Write a table, or those of its rows that fit; returns how many."""
    if form not in FORMS:
        raise UsageError(f"export {printable(form)}: not known; expected one of {', '.join(FORMS)}")
    if table not in (*TABLES, *VIEWS):
        raise UsageError(f"--table {printable(table)}: not known; expected one of {', '.join((*TABLES, *VIEWS))}")
    answer = ask(store, f"SELECT * FROM {table}" + (f" WHERE ({where})" if where else ""))  # noqa: S608
    if form == "mlflow":
        return _to_mlflow(answer, output)
    with replacing(Path(output)) as out:
        _FILES[form](answer, out)
    return len(answer.rows)


def _sheet(answer: Answer) -> Sheet:
    rows = ([plain(value) for value in row] for row in answer.rows)
    return Sheet("cells", answer.columns, rows, len(answer.rows))


def _to_json(answer: Answer, out: BinaryIO) -> None:
    lines = (json.dumps(plain(row), ensure_ascii=False) for row in answer.dictionaries())
    out.write(("[" + ",\n".join(lines) + "]\n").encode())


_FILES: Mapping[str, Callable[[Answer, BinaryIO], None]] = {
    "csv": lambda answer, out: write_csv(_sheet(answer), out),
    "json": _to_json,
    "xlsx": lambda answer, out: write_xlsx([_sheet(answer)], out),
}
FORMS = (*_FILES, "mlflow")


def _to_mlflow(answer: Answer, address: str) -> int:
    """A run of MLflow per cell that has figures; one that is there already is left alone."""
    if "metrics" not in answer.columns:
        raise UsageError("export mlflow: the table has no metrics; expected --table cells or latest")
    mlflow = needed("mlflow", install="pip install mlflow-skinny")
    try:
        tracking = _Tracking(mlflow, address)
        return sum(_log(tracking, cell) for cell in answer.dictionaries())
    except mlflow.exceptions.MlflowException as error:
        problem = printable(" ".join(str(error).split()), 300)
        raise UsageError(f"{printable(address)}: {problem}; expected a tracking address of MLflow") from error


class _Tracking:
    """The experiment that cells become runs of."""

    def __init__(self, mlflow: ModuleType, address: str) -> None:
        self.entities = mlflow.entities
        self.client = mlflow.MlflowClient(tracking_uri=address)
        found = self.client.get_experiment_by_name(EXPERIMENT)
        self.experiment = self.client.create_experiment(EXPERIMENT) if found is None else found.experiment_id


def _log(tracking: _Tracking, cell: Mapping[str, Any]) -> bool:
    """Whether a cell became a run; one that is there already, or has no figures, does not."""
    client, entities, experiment = tracking.client, tracking.entities, tracking.experiment
    known = client.search_runs([experiment], f"tags.opscope_id = '{cell['id']}'", max_results=1)
    if cell["status"] != OK or known:
        return False
    start = int(cell["created"].replace(tzinfo=UTC).timestamp() * 1000)
    run = client.create_run(experiment, start_time=start, run_name=str(cell["model"])).info.run_id
    words = {name: cell[name] for name in ("model", "target", "backend", "precision", "batch", "cores")}
    params = {**words, **(cell["options"] or {})}
    tags = {"opscope_id": cell["id"], "provenance": cell["provenance"], "mlflow.source.git.commit": cell["commit"]}
    metrics = {re.sub(r"[^\w. -]", ".", name): value for name, value in (cell["metrics"] or {}).items()}
    client.log_batch(
        run,
        metrics=[entities.Metric(name, value, start, 0) for name, value in metrics.items() if value is not None],
        params=[entities.Param(name, str(value)[:500]) for name, value in params.items() if value is not None],
        tags=[entities.RunTag(name, str(value)) for name, value in tags.items() if value is not None],
    )
    client.set_terminated(run, end_time=start)
    return True
