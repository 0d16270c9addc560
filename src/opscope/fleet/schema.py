"""The tables of a store: one row per cell, one row per op of a cell.

Other programs read these columns. One that is added, renamed or removed makes a new VERSION, with a line in UPGRADES
that brings a table of the version before up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from ..gate.figures import BYTES, COUNT, JOULES, NS, PER_SECOND
from ..gate.metrics import METRICS

VERSION = 3
SCHEMA = "opscope.store/"
OK, FAILED, REFUSED = "ok", "failed", "refused"  # has figures; crashed, too long or too large; said why it cannot be

_UNITS = {NS: "_ns", BYTES: "_bytes", PER_SECOND: "_per_s", JOULES: "_j", COUNT: "_count"}
METRIC_COLUMNS = {  # metric → its column; parts of one, `memory_read:DDR`, are in the map `metrics`
    name: f"{name}{_UNITS[metric.unit]}" for name, metric in METRICS.items() if not metric.only_parts
}

_TEXT, _NUMBER, _COUNT, _TRUTH = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_SPREAD = pa.struct([("count", _COUNT), ("effective", _NUMBER), ("tick", _NUMBER), ("values", pa.list_(_NUMBER))])
_FINDING = pa.struct([("rule", _TEXT), ("title", _TEXT), ("share", _NUMBER), ("cost_ns", _COUNT), ("op", _TEXT)])
_WORDS = pa.map_(_TEXT, _TEXT)
_MEMORY = pa.struct([("name", _TEXT), ("peak_bytes", _COUNT), ("capacity_bytes", _COUNT)])
_LEFT = pa.struct([("type", _TEXT), ("count", _COUNT), ("reason", _TEXT)])
_COPY = pa.struct([("precision", _TEXT), ("sqnr_db", _NUMBER), ("cosine", _NUMBER), ("data", _TEXT)])

CELLS = pa.schema(
    [
        ("id", _TEXT),  # of the row: the key, and which time it was profiled again
        ("key", _TEXT),  # of what the figures depend on: model, target, options, code and tool versions
        ("series", _TEXT),  # of what stays the same from commit to commit: path of the model, target, backend, options
        ("status", _TEXT),
        ("reason", _TEXT),  # why there are no figures; null: there are
        ("model", _TEXT),
        ("model_path", _TEXT),
        ("model_sha256", _TEXT),
        ("target", _TEXT),
        ("backend", _TEXT),
        ("precision", _TEXT),  # as asked for; null: as the model is
        ("batch", _COUNT),
        ("cores", _COUNT),
        ("devices", _COUNT),
        ("options", _WORDS),  # every option that was given
        ("provenance", _TEXT),
        ("basis", _TEXT),  # what times rest on, where that is more than the provenance says
        ("latency_low_ns", _NUMBER),
        ("latency_high_ns", _NUMBER),
        ("latency_provenance", _TEXT),
        ("latency_samples", _SPREAD),
        ("energy_low_j", _NUMBER),
        ("energy_high_j", _NUMBER),
        ("energy_note", _TEXT),  # what it leaves out
        *((column, _NUMBER) for column in METRIC_COLUMNS.values()),
        ("metrics", pa.map_(_TEXT, _NUMBER)),  # every metric by the name that limits use
        ("memories", pa.list_(_MEMORY)),  # each once, with its most bytes in use on any core
        ("accelerator_time_share", _NUMBER),  # of the clock that ops take; the rest is the processor's
        ("accelerator_op_share", _NUMBER),  # of the ops
        ("cpu_ops", pa.list_(_LEFT)),  # types that the processor runs and why, most ops first
        ("compile_s", _NUMBER),  # on the host, as the compiler says, else its whole call; null: none, or nobody told
        ("copy", _COPY),  # how far a quantised copy is from the model at its worst output; without noise: cosine 1
        ("bound", _TEXT),
        ("findings", pa.list_(_FINDING)),  # costliest first
        ("laws_held", _COUNT),
        ("laws_violated", pa.list_(_TEXT)),
        ("unknown", _TEXT),  # ops whose cost is not known: then there are no totals
        ("caveats", pa.list_(_TEXT)),
        ("versions", _WORDS),  # opscope, and the tool behind the backend
        ("commit", _TEXT),  # of the repository that the model is in; a + behind it: with changes
        ("host", _TEXT),
        ("created", pa.timestamp("us")),  # of the run, or the start of the sweep; UTC
        ("seconds", _NUMBER),  # that the cell took
        ("sweep", _TEXT),
        ("run", _TEXT),  # folder of the run; null: it was not kept
    ]
)
OPS = pa.schema(
    [
        ("id", _TEXT),  # of the row in cells
        ("model", _TEXT),
        ("target", _TEXT),
        ("backend", _TEXT),
        ("position", _COUNT),  # in the model; null: work of no op
        ("name", _TEXT),
        ("type", _TEXT),
        ("engine", _TEXT),
        ("location", _TEXT),
        ("wall_ns", _COUNT),
        ("own_ns", _COUNT),  # its part of the clock
        ("samples", _SPREAD),
        ("busy_ns", _COUNT),
        ("wait_ns", _COUNT),
        ("share", _NUMBER),
        ("macs", _COUNT),
        ("out_bytes", _COUNT),
        ("moved_bytes", _COUNT),
        ("energy_j", _NUMBER),
        ("placed", _TEXT),
        ("does", _TEXT),
        ("on_cpu", _TRUTH),
        ("reason", _TEXT),
        ("provenance", _TEXT),
    ]
)
OF_CELL = ("id", "model", "target", "backend", "provenance")  # columns of ops that are those of their cell

_ADDED = {
    2: ("energy_note", "memories", "accelerator_time_share", "accelerator_op_share", "cpu_ops", "compile_s", "copy"),
    3: (
        *("ttft_ns", "tpot_ns", "prefill_tokens_per_s", "decode_tokens_per_s"),
        *("weights_bytes", "kv_cache_bytes", "token_energy_j"),
    ),
}


def _of_version(version: int) -> Mapping[str, pa.Schema]:
    later = {name for number, names in _ADDED.items() if number > version for name in names}
    return {"cells": pa.schema([field for field in CELLS if field.name not in later]), "ops": OPS}


SCHEMAS: Mapping[int, Mapping[str, pa.Schema]] = {number: _of_version(number) for number in range(1, VERSION + 1)}
TABLES = SCHEMAS[VERSION]


def _with_columns(table: str, rows: pa.Table, version: int) -> pa.Table:
    """With the columns that a version added, of which older rows know nothing."""
    for name in _ADDED[version] if table == "cells" else ():
        rows = rows.append_column(name, pa.nulls(len(rows), CELLS.field(name).type))
    return rows


# version → what makes tables of the next one out of its tables, by name of the table
UPGRADES: Mapping[int, Callable[[str, pa.Table], pa.Table]] = {
    1: lambda table, rows: _with_columns(table, rows, 2),
    2: lambda table, rows: _with_columns(table, rows, 3),
}
