"""Console output and eval_perf.csv of Rockchip's RKNN toolkit → Recording.

On a board a row has two numbers of different origin: Time(us) is measured, cycles are the vendor's model, by shapes
and clocks alone. They are kept apart: the time is the op's time, the cycles are its estimate.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from ...core.errors import ImportFileError
from ...core.provenance import Provenance
from ...importers.reading import numbered, to_ns
from ...recording.recording import (
    CLOCK,
    LATENCY,
    Check,
    KernelTotal,
    Metric,
    OpRecord,
    Placed,
    Recording,
    ResourceCycles,
)
from ...recording.summary import MemoryTotal
from .console import Console, Ranked, Table, Walk
from .layer_table import BOTH, CSV_COLUMNS, READS, Layer, traffic_is

_US, _MS = 1e3, 1e6
_FACT = Provenance.COMPILER_FACT
_MODEL = Provenance.VENDOR_MODEL
_PLACED = {"NPU": Placed.ACCELERATOR, "GPU": Placed.ACCELERATOR, "CPU": Placed.CPU}
_PUT_IN = ("InputOperator", "OutputOperator", "exDataConvert")  # conversions that no model has
_CORES = {3: "rk3588", 2: "rk3576"}  # whose tables tell the load of so many cores (User Guide 2.3.2, table 3-2)


class RknnLog:
    """One table of layers with its totals, and whatever else the console tells about the same network."""

    name = "rknn-log"

    def read(self, path: Path) -> Recording:
        """The last measured table; without one, the last of the compiler; without any, totals alone."""
        found = Walk().through(self.lines(path))
        if found.is_empty:
            raise ImportFileError(
                str(path),
                "",
                "no table of layers, no totals and no sizes; expected what rknn.eval_perf(), rknn.eval_memory() or "
                "rknn.build() with verbose=True prints",
            )
        return _recording(self.name, found, chosen(found.tables))

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        return numbered(path)


class RknnCsv(RknnLog):
    """eval_perf.csv: the same rows, split at their blanks, most often without a heading."""

    name = "rknn-csv"

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        yield 0, CSV_COLUMNS
        for number, line in numbered(path):
            try:
                cells = next(csv.reader([line]), [])
            except csv.Error:
                cells = line.split(",")  # so that the row is counted, if it is none
            yield number, " ".join(cell.strip() for cell in cells)


def chosen(tables: Sequence[Table]) -> Table | None:
    """The last that measured, else the last with cycles, else the last with rows."""
    filled = [table for table in tables if table.layers]
    for fits in (lambda table: table.is_measured, lambda table: table.has_cycles, lambda _: True):
        kept = [table for table in filled if fits(table)]
        if kept:
            return kept[-1]
    return None


def _recording(maker: str, found: Console, table: Table | None) -> Recording:
    provenance = _provenance(found, table)
    layers = table.layers if table is not None else []
    ranking = table.ranking if table is not None and table.ranking else found.ranking
    meaning = traffic_is(layers)
    clock = found.clocks_hz.get("NPU")
    target, how = _target(found, table)
    return Recording(
        maker=maker,
        tool=_tool(found),
        producer=found.versions,
        provenance=provenance,
        ops=tuple(_op(layer, provenance, clock, meaning, _cores(table)) for layer in layers),
        metrics=tuple(_metrics(found, table, provenance)),
        kernels=tuple(_kernels(ranking)),
        memory=tuple(_memory(found)),
        checks=tuple(_checks(found, table, ranking)),
        notes=(*_notes(found, table, provenance, meaning), *how),
        target=target,
        clocks_hz=found.clocks_hz,
        cores=_cores(table),
        inferences=1 if table is not None or found.whole_us is not None else None,
        samples_ns=tuple(ns for ms in found.samples_ms if (ns := to_ns(ms, _MS)) is not None) if table is None else (),
        details={"layers": [_details(layer) for layer in layers]} if layers else {},
    )


def _provenance(found: Console, table: Table | None) -> Provenance:
    if table is None:
        timed = found.whole_us is not None or found.mean_ms is not None or found.ranking
        return Provenance.MEASURED if timed else _FACT
    if table.is_measured:
        return Provenance.MEASURED
    return _MODEL if table.has_cycles or any(layer.time_us for layer in table.layers) else _FACT


def _cores(table: Table | None) -> int | None:
    return table.heading.cores if table is not None else None


def _tool(found: Console) -> str:
    name = next((name for name in found.versions if name.startswith("rknn-toolkit")), None)
    return f"{name} {found.versions[name]}" if name is not None else "Rockchip RKNN"


def _target(found: Console, table: Table | None) -> tuple[str | None, tuple[str, ...]]:
    """The part that the log names, else the one that has tables with so many cores."""
    if found.targets:
        name = min(found.targets, key=lambda target: found.targets[target])
        others = sorted(set(found.targets) - {name})
        return name, (f"target: {name}; the log also names {', '.join(others)}",) if others else ()
    cores = _cores(table)
    if cores in _CORES:
        return _CORES[cores], (f"target: {_CORES[cores]}, the part whose tables tell the load of {cores} cores",)
    return None, ()


def _op(layer: Layer, provenance: Provenance, clock: float | None, meaning: str, cores: int | None) -> OpRecord:
    time_ns = to_ns(layer.time_us, _US) if provenance is not _FACT else None
    if provenance is _MODEL and not layer.time_us:
        time_ns = None  # the compiler prints 0 where it has none
    busy = sum(load > 0 for load in layer.load_percent)
    record = OpRecord(
        layer.name,
        type=layer.type,
        placed=Placed.INSERTED if layer.type in _PUT_IN else _PLACED.get(layer.engine, Placed.UNKNOWN),
        engines=(layer.engine,) if layer.engine else (),
        on_cpu=_PLACED[layer.engine] is Placed.CPU if layer.engine in _PLACED else None,
        shape=layer.shapes,
        calls=1,
        time_ns=time_ns,
        macs=layer.macs,
        outer_bytes=layer.rw_bytes if meaning == BOTH else None,
        outer_read_bytes=layer.rw_bytes if meaning == READS else None,
        threads=busy or None,
        engine_threads=cores if busy else None,
    )
    if layer.total_cycles is None:
        return record
    parts = (("NPU", False, layer.npu_cycles), ("DDR", True, layer.ddr_cycles))
    resources = tuple(ResourceCycles(name, memory, cycles) for name, memory, cycles in parts if cycles is not None)
    if provenance is Provenance.MEASURED:
        estimated_ns = to_ns(layer.total_cycles / clock, 1e9) if clock else None
        return replace(record, estimated_ns=estimated_ns, resource_cycles=resources)
    return replace(record, cycles=layer.total_cycles, resource_cycles=resources)


def _details(layer: Layer) -> dict[str, object]:
    """The row in the table's own words, with the cycles of the vendor's model also where times are measured."""
    return {
        "id": layer.number,
        "name": layer.name,
        "data_type": layer.dtype,
        "ddr_cycles": layer.ddr_cycles,
        "npu_cycles": layer.npu_cycles,
        "total_cycles": layer.total_cycles,
        "mac_usage_percent": list(layer.mac_usage_percent),
        "load_percent": list(layer.load_percent),
        "rw_bytes": layer.rw_bytes,
        **layer.counts,
    }


def _metrics(found: Console, table: Table | None, provenance: Provenance) -> Iterator[Metric]:
    if table is not None:
        yield from _table_metrics(found, table, provenance)
    elif found.whole_us is not None:
        yield Metric(LATENCY, to_ns(found.whole_us, _US), "ns")
    elif found.mean_ms is not None:
        yield Metric(LATENCY, to_ns(found.mean_ms, _MS), "ns", note="mean of the benchmark")
    elif found.ranking:
        yield Metric(LATENCY, to_ns(sum(row.total_us for row in found.ranking), _US), "ns", note="sum of all types")
    measured_rate = found.rates.get(0) or found.mean_rate
    if measured_rate is not None and table is None:
        yield Metric("throughput", measured_rate, "1/s")
    for clock, rate in found.rates.items():
        if clock:
            yield Metric(f"throughput at {clock} MHz", rate, "1/s", _MODEL)
    for name, size in found.sizes.items():
        yield Metric(name, size, "bytes", _FACT)


def _table_metrics(found: Console, table: Table, provenance: Provenance) -> Iterator[Metric]:
    layers = table.layers
    timed = [layer for layer in layers if layer.time_us]
    if provenance is not _FACT and timed:
        total = table.total_us
        known = total if total is not None else None if _is_cut(table) else sum(layer.time_us or 0 for layer in layers)
        withheld = "rows are missing, and the log has no total" if known is None else ""
        yield Metric(LATENCY, to_ns(known, _US), "ns", note=withheld)
        for engine, us in _engine_times(layers).items():
            yield Metric(f"time on {engine}", to_ns(us, _US), "ns")
    if found.whole_us is not None and table.is_measured:
        yield Metric("latency_without_profiler", to_ns(found.whole_us, _US), "ns")
    if found.mean_ms is not None and table.is_measured:
        yield Metric("latency_of_benchmark", to_ns(found.mean_ms, _MS), "ns", note="mean")
    if found.clocks_hz.get("NPU") and provenance is _MODEL and not timed:
        yield Metric(CLOCK, found.clocks_hz["NPU"], "Hz")
    cycles = [layer.total_cycles for layer in layers if layer.total_cycles is not None]
    if cycles:
        yield Metric("npu_cycles", sum(cycles), "cycles", _MODEL, f"of {len(cycles)} of {len(layers)} layers")
    yield from _counts(table)


def _engine_times(layers: Sequence[Layer]) -> dict[str, float]:
    times: dict[str, float] = {}
    for layer in layers:
        if layer.engine:
            times[layer.engine] = times.get(layer.engine, 0) + (layer.time_us or 0)
    return times


def _counts(table: Table) -> Iterator[Metric]:
    layers = table.layers
    for engine, count in Counter(layer.engine for layer in layers if layer.engine).items():
        yield Metric(f"layers on {engine}", count, "1", _FACT)
    moved = table.total_bytes or sum(layer.rw_bytes or 0 for layer in layers)
    if moved and not (_is_cut(table) and table.total_bytes is None):
        yield Metric("memory traffic", moved, "bytes", _MODEL, "RW(KB) of all layers")
    shared = [layer for layer in layers if any(layer.load_percent) and layer.time_us]
    whole = sum(layer.time_us or 0 for layer in shared)
    for core in range(table.heading.cores or 0):
        part = sum((layer.time_us or 0) * (*layer.load_percent, *[0.0] * 3)[core] / 100 for layer in shared)
        if whole:
            yield Metric(f"work on core {core}", part / whole, "share", note="load by time, of layers on the NPU")


def _is_cut(table: Table) -> bool:
    return table.rows_left_out or table.unread.count > 0 or bool(_gaps(table.layers))


def _gaps(layers: Sequence[Layer]) -> list[str]:
    """Numbers that are missing between rows. Those of the first toolkit are not in order."""
    numbers = [layer.number for layer in layers if layer.engine]
    pairs = [(one, two) for one, two in pairwise(numbers) if two != one + 1]
    return [f"{one + 1}" if two == one + 2 else f"{one + 1} to {two - 1}" for one, two in pairs if two > one]


def _kernels(ranking: Sequence[Ranked]) -> Iterator[KernelTotal]:
    for row in ranking:
        times = {"NPU": row.npu_us, "GPU": row.gpu_us, "CPU": row.cpu_us}
        engine = max(times, key=lambda name: times[name])
        yield KernelTotal(row.type, engine, row.count, time_ns=to_ns(row.total_us, _US))


def _memory(found: Console) -> Iterator[MemoryTotal]:
    whole = found.sizes.get("total memory")
    parts = [size for name, size in found.sizes.items() if name in ("weight memory", "internal memory", "other memory")]
    if whole or parts:
        yield MemoryTotal("DDR", 0, None, whole or sum(parts), None, None, None, None)


def _checks(found: Console, table: Table | None, ranking: Sequence[Ranked]) -> Iterator[Check]:
    yield from _rate_check(found, table)
    if table is None:
        return
    layers = table.layers
    if table.total_us is not None:
        total = sum(layer.time_us or 0 for layer in layers)
        yield Check(
            "layers add up to the total time",
            abs(total - table.total_us) <= len(layers),  # each is rounded to 1 µs
            f"{len(layers)} rows take {total:g} us, the log says {table.total_us:g} us",
        )
    if table.total_bytes is not None:
        moved = sum(layer.rw_bytes or 0 for layer in layers)
        near = abs(moved - table.total_bytes) <= 1024 * len(layers)
        yield Check(
            "layers add up to the total traffic",
            near,
            f"{moved / 1024:g} KB, the log says {table.total_bytes / 1024:g} KB",
        )
    modelled = [layer for layer in layers if layer.total_cycles is not None]
    if modelled:
        right = sum(layer.total_cycles == max(layer.ddr_cycles or 0, layer.npu_cycles or 0) for layer in modelled)
        yield Check(
            "total cycles = the most of DDR and NPU", right == len(modelled), f"{right} of {len(modelled)} rows"
        )
    if ranking:
        yield _ranking_check(layers, ranking)


def _rate_check(found: Console, table: Table | None) -> Iterator[Check]:
    total_us = found.whole_us if found.whole_us is not None or table is None else table.total_us
    rate = found.rates.get(0)
    if total_us and rate:
        holds = abs(rate * total_us / 1e6 - 1) <= 0.01
        yield Check("FPS = 1 ÷ total time", holds, f"{rate:g} a second, {total_us:g} us")


def _ranking_check(layers: Sequence[Layer], ranking: Sequence[Ranked]) -> Check:
    """Counts and times of every type, as the second table has them."""
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for layer in layers:
        counts[layer.type] += 1
        times[layer.type] += round(layer.time_us or 0)
    wrong = [
        f"{row.type} {counts[row.type]} rows of {times[row.type]} us, not {row.count} of {row.total_us}"
        for row in ranking
        if counts[row.type] != row.count or abs(times[row.type] - row.total_us) > row.count
    ]
    detail = f"{len(ranking) - len(wrong)} of {len(ranking)} types" + (f"; {'; '.join(wrong[:5])}" if wrong else "")
    return Check("layers add up to the ranking of types", not wrong, detail)


def _notes(found: Console, table: Table | None, provenance: Provenance, meaning: str) -> Iterator[str]:
    if table is None:
        return
    yield from table.unread.notes()
    others = [other for other in found.tables if other is not table]
    if others:
        said = "; ".join(f"line {other.line}: {_kind(other)}, {len(other.layers)} rows" for other in others[:5])
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        taken = f"that of line {table.line} is taken ({_kind(table)})"
        yield f"{len(found.tables)} tables in the log: {taken}; not {said}{more}"
    gaps = _gaps(table.layers)
    if gaps or table.rows_left_out:
        yield f"rows are left out of the table: {', '.join(gaps[:5]) or '...'}"
    modelled = [layer for layer in table.layers if layer.total_cycles is not None]
    if table.is_measured and modelled:
        clock = found.clocks_hz.get("NPU")
        where = (
            f"estimates are at {clock:.0f} Hz"
            if clock
            else "no estimates, for the log does not say the clock of the NPU"
        )
        yield f"times are measured, profiler on; cycles, and what binds a layer, are the vendor's model ({where})"
    without = [layer for layer in table.layers if layer.total_cycles is None and layer.engine == "NPU"]
    if modelled and without:
        yield f"layers on the NPU without cycles in the vendor's model: {len(without)}"
    if provenance is _FACT:
        yield "the compiler printed no cycles and no times: placement, shapes and bytes alone"
    if any(layer.rw_bytes for layer in table.layers):
        words = {READS: "what a layer reads: inputs and weights", BOTH: "what a layer reads and writes"}
        odd = "not what its shapes say, in this release: it is kept in the details alone"
        yield f"RW(KB) counts {words[meaning]}" if meaning else f"RW(KB) of a row is {odd}"


def _kind(table: Table) -> str:
    return "measured" if table.is_measured else "the compiler's model" if table.has_cycles else "without times"
