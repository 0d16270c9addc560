"""CSV files of Arm's Ethos-U compiler: cycles per op and resource, and the summary of the network.

Its model: an op takes as long as the busiest resource (max), ops follow each other (sum). Both are checked. Ops that
it leaves to the CPU cost 0 in these files, which is not known but unknown.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import ImportFileError, printable
from ...core.provenance import Provenance
from ...importers.reading import Unread, number_in, numbered, whole_in
from ...recording.recording import CLOCK, LATENCY, Check, Metric, OpRecord, Placed, Recording, ResourceCycles

TOOL = "Vela"
TOTAL = "cycles"
NPU = "NPU"
RESOURCES = {  # column → resource
    NPU: NPU,
    "SRAM AC": "SRAM",
    "DRAM AC": "DRAM",
    "OnFlash AC": "on-chip flash",
    "OffFlash AC": "off-chip flash",
}
_KIB = 1024
_TARGET = ("accelerator_configuration", "system_config", "memory_mode")
_WEIGHTS = ("total_original_weights", "total_npu_encoded_weights", "arena_cache_size")
_SECONDS, _KIBIBYTES, _GIBIBYTES_S = ("inference_time",), "_memory_used", "_bandwidth"


class VelaLayers:
    """One row per op of the compiled network."""

    name = "vela-layers"

    def read(self, path: Path) -> Recording:
        """The table of layers, without rows whose cycles cannot be read."""
        unread = Unread("rows")
        rows = []
        for number, row in _rows(path, unread):
            if whole_in(row.get("Op Cycles", "")) is None:
                unread.add(f"line {number}", f"Op Cycles is {row.get('Op Cycles', 'missing')}")
            else:
                rows.append((number, row))
        ops = tuple(_op(row) for _, row in rows)
        on_cpu = sum(op.cycles is None for op in ops)
        notes = [f"{on_cpu} ops on the CPU have no cycles in the file: totals leave them out"] if on_cpu else []
        total = sum(number_in(row["Op Cycles"]) or 0.0 for _, row in rows)  # earlier versions write halves of cycles
        metrics = (Metric(TOTAL, total, "cycles"), Metric("MACs", sum(op.macs or 0 for op in ops), "1"))
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.VENDOR_MODEL,
            ops=ops,
            metrics=metrics if not on_cpu else metrics[1:],
            checks=(_longest_resource(rows),),
            notes=(*notes, *unread.notes()),
            inferences=1,
        )


class VelaSummary:
    """One row: the network as a whole."""

    name = "vela-summary"

    def read(self, path: Path) -> Recording:
        """The first row of the summary; further ones are of other compilations."""
        rows = list(_rows(path, Unread("rows")))
        if not rows:
            raise ImportFileError(str(path), "line 2", "no row; expected the figures of one network")
        notes = [f"{len(rows) - 1} more rows, of other runs, are not read"] if len(rows) > 1 else []
        row = rows[0][1]
        unknown = [key for key, text in row.items() if text.strip().lower() in ("nan", "inf", "-inf")]
        notes += [f"{', '.join(unknown)}: not a number in the file"] if unknown else []
        metrics = tuple(_totals(row))
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.VENDOR_MODEL,
            metrics=metrics,
            checks=tuple(_time_is_cycles(row)),
            notes=tuple(notes),
            inferences=1,
            target=" ".join(filter(None, map(row.get, _TARGET))),
            model=row.get("network"),
        )


def _rows(path: Path, unread: Unread) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells by column; of columns with the same name, the first."""
    columns: Sequence[str] | None = None
    for number, line in numbered(path):
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error as error:
            raise ImportFileError(str(path), f"line {number}", f"not CSV ({error})") from error
        if columns is None or cells == columns:  # every subgraph may have its heading
            columns = cells
        elif len(cells) == len(columns):
            row: dict[str, str] = {}
            for column, cell in zip(columns, cells, strict=True):
                row.setdefault(column, cell)
            yield number, row
        elif cells:
            unread.add(f"line {number}", f"{len(cells)} cells, not {len(columns)}: {line}")


def _op(row: dict[str, str]) -> OpRecord:
    """A row of the table of layers; ops on the CPU have no cycles in the file."""
    target = row.get("Target", "").strip() or None
    known = target is None or target.upper() != "CPU"
    resources = ((label, whole_in(row.get(column, ""))) for column, label in RESOURCES.items())
    return OpRecord(
        row.get("Name", ""),
        type=row.get("Original Operator", row.get("TFLite_operator", row.get("TFLite Operator", ""))),
        placed=Placed.UNKNOWN if known else Placed.CPU,
        engines=() if target is None else (target,),
        kernel=row.get("NNG Operator", ""),
        calls=1,
        cycles=whole_in(row.get("Op Cycles", "")) if known else None,
        resource_cycles=tuple(
            ResourceCycles(label, label != NPU, cycles) for label, cycles in resources if cycles is not None
        )
        if known
        else (),
        macs=whole_in(row.get("MAC Count", "")) if known else None,
        memory_bytes=whole_in(row.get("Staging Usage", row.get("SRAM Usage", ""))),
    )


def _longest_resource(rows: Sequence[tuple[int, dict[str, str]]]) -> Check:
    wrong = []
    for number, row in rows:
        cycles = whole_in(row.get("Op Cycles", ""))
        used = [value for column in RESOURCES if (value := whole_in(row.get(column, ""))) is not None]
        if cycles is None or (used and cycles != max(used)):
            wrong.append(f"line {number}: {printable(row.get('Op Cycles', ''), 20)} is not {max(used, default=0)}")
    detail = f"{len(rows) - len(wrong)} of {len(rows)} rows" + (f"; {'; '.join(wrong[:5])}" if wrong else "")
    return Check("op cycles = the most of its resources", not wrong, detail)


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    factor: float = 1.0


def _unit(column: str) -> _Unit | None:
    """Unit of a column of the summary, by its name, and the factor from the file's own unit; None: not a figure."""
    if column in _SECONDS:
        return _Unit("ns", 1e9)
    if column.endswith(_KIBIBYTES):
        return _Unit("bytes", _KIB)
    if column.endswith(_GIBIBYTES_S):
        return _Unit("bytes/s", _KIB**3)
    if column.endswith("_bytes") or column in _WEIGHTS:
        return _Unit("bytes")
    if column.startswith("cycles_"):
        return _Unit("cycles")
    known = {
        "core_clock": "Hz",
        "inferences_per_second": "1/s",
        "nn_macs": "1",
        "nn_tops": "1e12/s",
        "batch_size": "1",
        "passes_before_fusing": "1",
        "passes_after_fusing": "1",
    }
    return _Unit(known[column]) if column in known else None


_RENAMED = {"core_clock": CLOCK, "inference_time": LATENCY, "cycles_total": TOTAL, "nn_macs": "MACs"}


def _totals(row: dict[str, str]) -> Iterator[Metric]:
    for column, text in row.items():
        unit, value = _unit(column), number_in(text)
        if unit is not None and value is not None:
            yield Metric(_RENAMED.get(column, column.replace("_", " ")), value * unit.factor, unit.name)


def _time_is_cycles(row: dict[str, str]) -> Iterator[Check]:
    values = [number_in(row.get(key, "")) for key in ("cycles_total", "core_clock", "inference_time")]
    cycles, clock, seconds = values
    if cycles is not None and clock and seconds is not None:
        holds = math.isclose(seconds, cycles / clock, rel_tol=1e-6, abs_tol=1e-12)
        yield Check("time = cycles ÷ clock", holds, f"{seconds} s, {cycles:.0f} cycles at {clock:.0f} Hz")
