"""Reads and writes baseline files: small, sorted, one op per line, made for review in a repository."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from ..core.errors import UsageError, printable
from ..core.provenance import Provenance
from .figures import Figure, Figures, Labels, OpFigure, Row, Spread, known_labels
from .metrics import METRICS, current_name, rate_spread

SCHEMA = "opscope.baseline/1"
_EXPECTED = f"expected {SCHEMA}, or the folder that `opscope profile MODEL -o RUN` leaves"
MOST_OPS = 2000  # written one by one; the cheapest ops beyond this number are summed into one
LARGEST_BYTES = 1 << 26
_COLUMNS = ("name", "type", "engine", "location", "wall_ns", "own_ns", "samples", "module", "work", "row")
_NAMES = {Row.NO_OP: "(no op)", Row.OTHERS: "(other ops)"}  # by which files of earlier versions tell these rows


class _Samples(msgspec.Struct):
    count: int
    effective: float
    values: list[float]
    tick: float = 0.0
    median: float = 0.0  # of `values`; written for the reviewer, not read back
    mad: float = 0.0


class _Metric(msgspec.Struct):
    unit: str
    value: int | float | None
    provenance: Provenance | None = None


class _Op(msgspec.Struct, array_like=True):
    name: str
    type: str
    engine: str
    location: str
    wall_ns: int | None
    own_ns: int | None
    samples: list[float] | None = None  # count, effective count, tick, quantiles
    module: str = ""
    work: dict[str, int] = {}
    row: Row = Row.OP


class _Head(msgspec.Struct):
    schema: str = ""


class _File(msgspec.Struct):
    model: str
    target: str
    provenance: Provenance
    devices: int
    cores: int
    batch: int | None
    metrics: dict[str, _Metric]
    ops: list[_Op]
    op_columns: list[str] = []
    sha256: str | None = None
    samples: _Samples | None = None
    caveats: list[str] = []
    unknown: str = ""
    backend: str = ""
    options: dict[str, str] = {}


_HEAD, _BASELINE = (
    msgspec.json.Decoder(_Head),
    msgspec.json.Decoder(_File),
)  # built at import: msgspec crashes if two threads inspect a class at once


def encode_baseline(figures: Figures, *, labels: Mapping[str, Labels]) -> bytes:
    """Return the bytes of a baseline file; equal figures give equal bytes, with no date or path in them."""
    ops = _largest_ops(figures.ops)
    shown = replace(figures, ops=tuple(ops))
    latency = figures.metric("latency")
    head: dict[str, object] = {
        "schema": SCHEMA,
        "model": figures.model,
        "sha256": figures.sha256,
        "target": figures.target,
        "provenance": figures.provenance,
        "devices": figures.devices,
        "cores": figures.cores,
        "batch": figures.batch,
        "metrics": {metric.name: _metric_fields(metric) for metric in figures.metrics},
        "samples": None if latency is None or latency.spread is None else _sample_fields(latency.spread),
        "rollups": {name: _rollup(ops, of_run(shown)) for name, of_run in known_labels(labels, shown).items()},
        "op_columns": list(_COLUMNS),
        "caveats": list(figures.caveats),
    }
    told: dict[str, object] = {"unknown": figures.unknown, "backend": figures.backend, "options": dict(figures.options)}
    head |= {name: value for name, value in told.items() if value}
    return _text(head, map(_row, ops)).encode()


def _metric_fields(metric: Figure) -> dict[str, object]:
    return {"unit": metric.unit, "value": _integral_as_int(metric.value), "provenance": metric.provenance}


def _row(op: OpFigure) -> list[object]:
    row: list[object] = [op.name, op.type, op.engine, op.location, op.wall_ns, op.own_ns]
    spread = op.spread
    samples = spread and [spread.count, *map(_plain, (spread.effective, spread.tick, *spread.values))]
    if op.row is not Row.OP:
        return [*row, samples, op.module, dict(op.work), op.row]
    if op.work:
        return [*row, samples, op.module, dict(op.work)]
    if op.module:
        return [*row, samples, op.module]
    return row if samples is None else [*row, samples]


def _text(head: Mapping[str, object], rows: Iterable[Sequence[object]]) -> str:
    """Return JSON with sorted keys and one line per metric and op, so that a diff shows what moved."""
    lines = []
    for key in sorted([*head, "ops"]):
        if key == "ops":
            body = ",\n".join(f"  {_json(row)}" for row in rows)
            lines.append(f' "ops": [\n{body}\n ]' if body else ' "ops": []')
        elif key in ("metrics", "rollups"):
            body = ",\n".join(f"  {_json(name)}: {_json(value)}" for name, value in _entries(key, head[key]))
            lines.append(f" {_json(key)}: {{\n{body}\n }}" if body else f" {_json(key)}: {{}}")
        else:
            lines.append(f" {_json(key)}: {_json(head[key])}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _entries(key: str, value: object) -> Iterable[tuple[str, object]]:
    """Return sorted entries; rollups are flattened to `type:MatMul`, so that each has its own line."""
    if not isinstance(value, dict):
        raise TypeError(key)
    flat = value if key == "metrics" else {f"{a}:{b}": ns for a, rows in value.items() for b, ns in rows.items()}
    return sorted(flat.items())


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _integral_as_int(value: float | None) -> float | int | None:
    return value if value is None or value != int(value) else int(value)


def _plain(value: float) -> float | int:
    """Return whole numbers as int, others rounded to 3 digits."""
    return int(value) if value == int(value) else round(value, 3)


def _sample_fields(spread: Spread) -> dict[str, object]:
    return {
        "count": spread.count,
        "effective": _plain(spread.effective),
        "tick": _plain(spread.tick),
        "median": _plain(spread.median),
        "mad": _plain(spread.mad),
        "values": [_plain(v) for v in spread.values],
    }


def _rollup(ops: Sequence[OpFigure], labels: Sequence[str]) -> dict[str, int]:
    """Return own times (or wall times) summed by label: for the reviewer, never read back."""
    totals: dict[str, int] = {}
    for op, label in zip(ops, labels, strict=True):
        ns = op.own_ns if op.own_ns is not None else op.wall_ns
        if ns:
            totals[label] = totals.get(label, 0) + ns
    return totals


def _largest_ops(ops: Sequence[OpFigure]) -> list[OpFigure]:
    """Return all ops, or the costliest ones and the sum of the others, in model order."""
    if len(ops) <= MOST_OPS:
        return list(ops)
    order = sorted(range(len(ops)), key=lambda p: (-(ops[p].own_ns or 0), -(ops[p].wall_ns or 0), p))
    rest = [ops[p] for p in sorted(order[MOST_OPS:])]
    return [*(ops[p] for p in sorted(order[:MOST_OPS])), _sum_ops(rest)]


def _sum_ops(ops: Sequence[OpFigure]) -> OpFigure:
    walls = [op.wall_ns for op in ops if op.wall_ns is not None]
    owns = [op.own_ns for op in ops if op.own_ns is not None]
    times = sum(walls) if walls else None, sum(owns) if owns else None
    return OpFigure(_NAMES[Row.OTHERS], "", "", "", *times, row=Row.OTHERS)


def decode_baseline(data: bytes, *, source: str, label: str) -> Figures:
    """Parse a baseline file; damage, unknown metrics or another schema are one-line errors."""
    try:
        schema = _HEAD.decode(data).schema
        if schema != SCHEMA:
            raise UsageError(f"{source}: schema is {printable(schema)!r}; {_EXPECTED}")
        return _figures(_BASELINE.decode(data), label)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{source}: not a baseline ({printable(str(error))}); {_EXPECTED}") from error
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{source}: {printable(str(error))}; expected schema {SCHEMA}") from error


def _figures(found: _File, label: str) -> Figures:
    """Convert the decoded file to Figures; the samples apply to latency and throughput."""
    unknown = [name for name in found.metrics if name.partition(":")[0] not in METRICS]
    if unknown:
        raise ValueError(f"metrics: {unknown[0]!r} is not known")
    metrics = [
        Figure(name, metric.value, metric.unit, metric.provenance or found.provenance)
        for name, metric in _current(found.metrics).items()
    ]
    if found.samples is not None:
        spread = Spread(found.samples.count, found.samples.effective, tuple(found.samples.values), found.samples.tick)
        metrics = [_with_samples(metric, spread, found.batch) for metric in metrics]
    return Figures(
        label=label,
        model=found.model,
        sha256=found.sha256,
        target=found.target,
        provenance=found.provenance,
        devices=found.devices,
        cores=found.cores,
        batch=found.batch,
        metrics=tuple(metrics),
        ops=tuple(_op(op if "row" in found.op_columns else _named(op)) for op in found.ops),
        caveats=tuple(found.caveats),
        unknown=found.unknown,
        backend=found.backend,
        options=found.options,
    )


def _current(metrics: Mapping[str, _Metric]) -> Mapping[str, _Metric]:
    """Under today's names: what an earlier version called causes is the occupancy, also where a cause has that name."""
    if all(current_name(name) == name for name in metrics):
        return metrics
    return {name.replace("cause:", "occupancy:", 1): metric for name, metric in metrics.items()}


def _with_samples(metric: Figure, spread: Spread, batch: int | None) -> Figure:
    if metric.name == "latency":
        return replace(metric, spread=spread)
    if metric.name == "throughput":
        return replace(metric, spread=rate_spread(metric.value, spread, batch))
    return metric


def _named(op: _Op) -> _Op:
    """Of a file of an earlier version, which has nothing but names."""
    return msgspec.structs.replace(op, row=next((row for row, name in _NAMES.items() if name == op.name), Row.OP))


def _op(op: _Op) -> OpFigure:
    spread = None
    if op.samples is not None:
        if len(op.samples) < 4:
            raise ValueError(f"op {op.name!r}: samples need a count, an effective count, a tick and values")
        count, effective, tick, *values = op.samples
        spread = Spread(int(count), effective, tuple(values), tick)
    return OpFigure(
        op.name,
        op.type,
        op.engine,
        op.location,
        op.wall_ns,
        op.own_ns,
        spread,
        module=op.module,
        work=op.work,
        row=op.row,
    )
