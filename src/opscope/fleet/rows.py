"""A profile → rows of a store, and rows → Figures, so that what a store has can be compared like any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__
from ..core.errors import UsageError, printable
from ..core.keys import digest_of
from ..core.provenance import Provenance
from ..gate.figures import Figure, Figures, OpFigure, Row, Spread
from ..gate.metrics import METRICS, rate_spread
from ..gate.offload import offload_of
from ..gate.run_figures import of_run
from ..recording.finding import Findings
from ..recording.quantized import copy_error
from ..recording.recording import COMPILE_TIME, Recording
from ..recording.run import Run
from .schema import METRIC_COLUMNS, OF_CELL, OK, OPS
from .store import Columns, stored_name

Value = str | int | float | bool
_SECONDS = {"us": 1e-6, "ns": 1e-9}  # one of a unit
_SECRET_KEYS = ("run_key", "program_key")  # of options that a run notes for itself


@dataclass(frozen=True, slots=True)
class Origin:
    """What a row says of its cell besides the figures."""

    id: str
    key: str
    series: str
    model: str  # for people
    model_path: str
    model_sha256: str | None
    target: str  # as asked for; a run may know better
    backend: str
    options: Mapping[str, Value]
    commit: str | None
    host: str
    created: str
    sweep: str | None
    versions: Mapping[str, str]


def failed_row(origin: Origin, *, status: str, reason: str, seconds: float) -> dict[str, object]:
    """Of a cell that has no figures."""
    return _head(origin) | {"status": status, "reason": printable(reason, 1000), "seconds": seconds}


def cell_row(
    origin: Origin,
    figures: Figures,
    run: Run,
    findings: Findings,
    *,
    seconds: float,
    recording: Recording | None = None,
) -> dict[str, object]:
    """Of a cell that has figures; `recording` is what its source told, where that is at hand."""
    latency, energy = run.summary.latency, run.summary.energy
    timed = figures.metric("latency")
    known = not figures.unknown and timed is not None
    values = {metric.name: metric.value for metric in figures.metrics}
    checks = findings.checks
    offload = offload_of(figures, run)
    copy = None if recording is None else copy_error(recording.details)
    return _head(origin) | {
        "status": OK,
        "target": stored_name(figures.target),
        "batch": figures.batch,
        "cores": figures.cores,
        "devices": figures.devices,
        "provenance": figures.provenance,
        "basis": run.info.basis or None,
        "latency_low_ns": latency.low_ns if known else None,
        "latency_high_ns": latency.high_ns if known else None,
        "latency_provenance": latency.provenance if known else None,
        "latency_samples": _spread_row(timed.spread if timed else None),
        "energy_low_j": energy.low_j if energy and known else None,
        "energy_high_j": energy.high_j if energy and known else None,
        "energy_note": energy.note or None if energy else None,
        **{column: values.get(name) for name, column in METRIC_COLUMNS.items()},
        "metrics": values,
        "memories": _memories(run),
        "accelerator_time_share": offload.time_share,
        "accelerator_op_share": offload.op_share,
        "cpu_ops": [asdict(left) for left in offload.left],
        "compile_s": None if recording is None else _compile_s(recording),
        "copy": None if copy is None else asdict(copy),
        "bound": findings.bound,
        "findings": [
            {
                "rule": found.id,
                "title": found.title,
                "share": found.share,
                "cost_ns": found.cost_ns,
                "op": found.ops[0] if found.ops else None,
            }
            for found in findings.findings
        ],
        "laws_held": sum(check.holds is True for check in checks),
        "laws_violated": [check.name for check in checks if check.holds is False],
        "unknown": figures.unknown or None,
        "caveats": list(figures.caveats),
        "seconds": seconds,
    }


def _memories(run: Run) -> list[dict[str, object]]:
    """Each memory once, with its most bytes in use on any core; what nobody counted is not known."""
    found: dict[str, dict[str, object]] = {}
    for row in sorted(run.summary.memory, key=lambda row: -(row.peak_bytes or 0)):
        sizes = {"peak_bytes": row.peak_bytes, "capacity_bytes": row.capacity_bytes}
        found.setdefault(row.name, {"name": row.name, **sizes})
    return list(found.values())


def _compile_s(recording: Recording) -> float | None:
    took = recording.metric(COMPILE_TIME)
    return None if took is None or took.value is None else took.value * _SECONDS[took.unit]


def _head(origin: Origin) -> dict[str, object]:
    options = origin.options
    return {
        "id": origin.id,
        "key": origin.key,
        "series": origin.series,
        "model": origin.model,
        "model_path": origin.model_path,
        "model_sha256": origin.model_sha256,
        "target": stored_name(origin.target),
        "backend": origin.backend,
        "precision": None if options.get("precision") is None else str(options["precision"]),
        "batch": _number(options.get("batch")),
        "cores": _number(options.get("cores")),
        "devices": _number(options.get("devices")),
        "options": {name: str(value) for name, value in options.items()},
        "versions": dict(origin.versions),
        "commit": origin.commit,
        "host": origin.host,
        "created": moment(origin.created),
        "sweep": origin.sweep,
    }


def moment(text: str) -> datetime:
    """Of ISO 8601, in UTC and without a zone, as stores have it."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"created {printable(text)!r}: is no time; expected one in ISO 8601") from error
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found


def op_columns(figures: Figures, run: Run) -> Columns:
    """Every op of a cell, with what the comparison needs of it and what the summary has besides."""
    totals = {total.op: total for total in run.summary.ops}
    ops = figures.ops
    positions = [None if op.row is Row.NO_OP else place for place, op in enumerate(ops)]
    rest = [totals.get(position) for position in positions]
    of_ops = {name: [getattr(op, name) for op in ops] for name in ("name", "type", "engine", "location")}
    times = {name: [getattr(op, name) for op in ops] for name in ("wall_ns", "own_ns")}
    of_totals = {
        name: [None if total is None else getattr(total, name) for total in rest]
        for name in OPS.names
        if name not in (*OF_CELL, *of_ops, *times, "position", "samples")
    }
    return {
        **of_ops,
        **times,
        "position": positions,
        "samples": [_spread_row(op.spread) for op in ops],
        **of_totals,
    }


def figures_of_rows(cell: Mapping[str, object], ops: Sequence[Mapping[str, object]], *, label: str) -> Figures:
    """What was put into a store, as a comparison takes it."""
    provenance = Provenance(str(cell["provenance"]))
    spread = spread_of_row(cell["latency_samples"])
    metrics = dict(cell["metrics"])  # type: ignore[call-overload]
    batch = _number(cell["batch"])
    found = []
    for name, value in metrics.items():
        own = Provenance(str(cell["latency_provenance"] or provenance)) if name == "latency" else provenance
        samples = None
        if spread is not None and name in ("latency", "throughput"):
            samples = spread if name == "latency" else rate_spread(value, spread, batch)
        found.append(Figure(name, value, METRICS[name.partition(":")[0]].unit, own, samples))
    return Figures(
        label=label,
        model=str(cell["model"]),
        sha256=None if cell["model_sha256"] is None else str(cell["model_sha256"]),
        target=str(cell["target"] or ""),
        provenance=provenance,
        devices=_number(cell["devices"]) or 1,
        cores=_number(cell["cores"]) or 1,
        batch=batch,
        metrics=tuple(found),
        ops=tuple(_op_figure(op) for op in ops),
        created=str(cell["created"]),
        caveats=tuple(cell["caveats"] or ()),  # type: ignore[arg-type]
        unknown=str(cell["unknown"] or ""),
    )


def _op_figure(op: Mapping[str, object]) -> OpFigure:
    name, kind, engine, location = (str(op[column] or "") for column in ("name", "type", "engine", "location"))
    walls, spread = (_number(op["wall_ns"]), _number(op["own_ns"])), spread_of_row(op["samples"])
    row = Row.NO_OP if op["position"] is None else Row.OP
    return OpFigure(name, kind, engine, location, *walls, spread, row=row)


def _spread_row(spread: Spread | None) -> dict[str, object] | None:
    if spread is None:
        return None
    return {"count": spread.count, "effective": spread.effective, "tick": spread.tick, "values": list(spread.values)}


def spread_of_row(found: object) -> Spread | None:
    """What `_spread_row` made."""
    if not isinstance(found, dict):
        return None
    return Spread(found["count"], found["effective"], tuple(found["values"]), found["tick"])


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def series_of(model_path: str, target: str, backend: str, options: Mapping[str, Value]) -> str:
    """What stays the same from commit to commit."""
    return digest_of(model_path, target, backend, options_text(options))


def options_text(options: Mapping[str, Value]) -> str:
    """One spelling, whatever the order they were given in; 1 and "1" are two values."""
    return "\n".join(f"{name}={value!r}" for name, value in sorted(options.items()))


def rows_of_run(
    run: Run, findings: Findings, *, folder: Path, commit: str | None, host: str
) -> tuple[dict[str, object], Columns]:
    """A run that was profiled before, or imported."""
    info = run.info
    options = {name: value for name, value in info.options.items() if name not in _SECRET_KEYS}
    backend = str(options.pop("backend", "") or info.provenance)
    path, figures = info.model, of_run(run, label="")
    key = digest_of(info.sha256 or path, info.target, backend, options_text(options), __version__)
    origin = Origin(
        id=digest_of(key, info.created, *info.command),
        key=key,
        series=series_of(path, info.target, backend, options),
        model=info.network or Path(path).stem,
        model_path=path,
        model_sha256=info.sha256,
        target=info.target,
        backend=backend,
        options=options,
        commit=commit,
        host=host,
        created=info.created,
        sweep=None,
        versions={"opscope": __version__},
    )
    row = cell_row(origin, figures, run, findings, seconds=0.0) | {"seconds": None, "run": str(folder.resolve())}
    return row, op_columns(figures, run)
