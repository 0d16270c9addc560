"""The parts of a run → Figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.columns import Floats
from ..core.provenance import Provenance
from ..core.units import format_bytes
from ..program.program import OpCycles, OpInfo
from ..recording.run import Run, RunInfo
from ..recording.summary import NO_OP_NAME, OpTotal, Summary
from ..recording.trace import OpSpans
from ..recording.unknown import in_a_line, unknown_of
from .bootstrap import spread_of, tick_of
from .figures import EXACT, Figures, OpFigure, Row, Spread
from .metrics import METRICS, figures_of
from .op_causes import COMMANDS, CYCLES, MACS, MOVED_BYTES
from .op_times import WorkSpans, own_times, wall_times

CUSTOM = "custom"  # a kind that tells nothing: two such ops may be anything

_ORIGIN = (  # options that say where a run is from, not what was chosen; cores and devices have fields of their own
    "backend",
    "imported_as",
    "imported_from",
    "tool",
    "program_key",
    "run_key",
    "target_file",
    "cores",
    "devices",
    "seed",
)
_COUNTS = ("ops", "commands")  # are known whatever an op costs
OP_QUANTILES = 9  # kept of the samples of an op: a baseline of some hundred ops stays small


def of_run(run: Run, *, label: str) -> Figures:
    """Of a run that is in memory."""
    rows = run.trace.own_spans
    spans = OpSpans(rows["kind"], rows["op"], rows["inference"], rows["start_ns"], rows["end_ns"])
    return figures_of_parts(run.info, run.ops, run.summary, spans, label=label, op_cycles=run.commands.op_cycles)


def figures_of_parts(
    info: RunInfo,
    ops: Sequence[OpInfo],
    summary: Summary,
    spans: OpSpans,
    *,
    label: str,
    op_cycles: Sequence[OpCycles] = (),
) -> Figures:
    """Of what a run consists of; without spans, ops have the times that the summary has."""
    exact = info.provenance in EXACT
    spread = spread_of(summary.samples_ns) if len(summary.samples_ns) > 1 and not exact else None
    metrics = figures_of(summary, provenance=info.provenance, spread=spread)
    if info.provenance == Provenance.EMULATED:
        metrics = tuple(
            metric for metric in metrics if METRICS[metric.name.partition(":")[0]].unit not in ("ns", "1/s")
        )
        spans = OpSpans(*(column[:0] for column in spans))
    unknown = in_a_line(unknown_of(ops), len(ops))
    if unknown:
        metrics = tuple(metric if metric.name in _COUNTS else replace(metric, value=None) for metric in metrics)
    work = WorkSpans.of(spans, len(ops))
    own = _own(info, summary, work)
    spreads = {} if exact else _spreads(work)
    return Figures(
        label=label,
        model=info.network or info.model,
        sha256=info.sha256,
        target=info.target,
        provenance=info.provenance,
        devices=info.devices,
        cores=info.cores,
        batch=info.batch,
        metrics=metrics,
        ops=tuple(_ops(ops, summary, own, spreads, op_cycles, timed=info.provenance != Provenance.EMULATED)),
        created=info.created,
        caveats=info.caveats,
        unknown=unknown,
        backend=str(info.options.get("backend", "")),
        options=_options(info, summary),
    )


def _options(info: RunInfo, summary: Summary) -> dict[str, str]:
    """What was chosen, without where it comes from; a local memory that all cores have alike is part of it."""
    sizes: dict[str, set[int]] = {}
    for memory in summary.memory:
        if memory.core is not None and memory.capacity_bytes is not None:
            sizes.setdefault(memory.name, set()).add(memory.capacity_bytes)
    local = {name: format_bytes(size) for name, found in sizes.items() if len(found) == 1 for size in found}
    return {name: str(value) for name, value in sorted(info.options.items()) if name not in _ORIGIN} | local


def _own(info: RunInfo, summary: Summary, work: WorkSpans) -> Floats | None:
    """Parts of the clock by op: of the inference that the summary is of, or the median of all where they are noisy."""
    times, ops = own_times(work), work.ops
    if not len(times.ns):
        return None
    if info.provenance in EXACT or len(times.inferences) == 1:
        return times.of(_typical(summary, len(times.inferences)), ops)
    medians = np.zeros(ops + 1)
    for op, samples in times.samples().items():
        medians[op] = np.median(samples)
    return medians


def _typical(summary: Summary, inferences: int) -> int:
    """Position of the inference whose latency the summary has."""
    samples, value = summary.samples_ns, summary.latency.value_ns
    return samples.index(value) if len(samples) == inferences and value in samples else 0


def _spreads(work: WorkSpans) -> dict[int, Spread]:
    if len(work.inferences) < 2:
        return {}
    times = wall_times(work)
    tick = tick_of(np.rint(times.ns))  # of one op alone, all times may be the same
    return {op: spread_of(np.rint(samples), most=OP_QUANTILES, tick=tick) for op, samples in times.samples().items()}


def _ops(
    ops: Sequence[OpInfo],
    summary: Summary,
    own: Floats | None,
    spreads: dict[int, Spread],
    op_cycles: Sequence[OpCycles],
    *,
    timed: bool,
) -> list[OpFigure]:
    """In the order of the model; work of no op last."""
    totals = {len(ops) if total.op is None else total.op: total for total in summary.ops}
    no_op = len(ops) in totals or (own is not None and own[len(ops)] > 0)
    infos = [*ops, OpInfo(NO_OP_NAME, "", "", "")] if no_op else list(ops)
    cycles = _cycles_of(op_cycles)
    rows = []
    for number, info in enumerate(infos):
        found = totals.get(number)
        spread = spreads.get(number)
        wall = None if found is None or not timed else found.wall_ns
        rows.append(
            OpFigure(
                name=info.name,
                type=info.type or (found.type if found else ""),
                engine=found.engine if found else "",
                location=info.location,
                wall_ns=round(spread.median) if spread is not None else wall,
                own_ns=None if own is None or info.unknown else round(float(own[number])),
                spread=spread,
                kind="" if info.kind == CUSTOM else info.kind,
                module=info.module,
                work=_work(found, cycles.get(number, {})),
                row=Row.OP if number < len(ops) else Row.NO_OP,
            )
        )
    return rows


def _cycles_of(rows: Sequence[OpCycles]) -> dict[int, dict[str, int]]:
    """By op and resource; commands of an op are added up."""
    found: dict[int, dict[str, int]] = {}
    for row in rows:
        of_op = found.setdefault(row.op, {})
        name = f"{CYCLES}{row.resource}"
        of_op[name] = of_op.get(name, 0) + row.cycles
    return found


def _work(total: OpTotal | None, cycles: dict[str, int]) -> dict[str, int]:
    """What the run tells of how much an op does; what it does not tell is left out."""
    if total is None:
        return cycles
    amounts = {MACS: total.macs, MOVED_BYTES: total.moved_bytes, COMMANDS: total.commands}
    return {name: amount for name, amount in amounts.items() if amount} | cycles
