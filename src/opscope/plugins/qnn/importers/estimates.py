"""What the vendor's performance model wrote down when a graph was prepared, where there is no timeline beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....core.provenance import Provenance
from ....core.sums import known_sum, whole_sum
from ....recording.recording import Metric, Recording, StageTime, empty_trace
from ....recording.summary import Latency, MemoryTotal
from .events import FINALIZE_TIME, Message

_TIME, _CYCLES = "Simulated (Accelerator exec time us", "Simulated (Accelerator exec cycles"
_LOW, _HIGH = " (lower estimate))", " (upper estimate))"
_READS = ("Input Fill", "Intermediate Fill", "Inter HTP Fill")
_WRITES = ("Output Spill", "Intermediate Spill", "Inter HTP Spill")
_MISSING = "Missing Ops (Number of Ops with no Costs associated)"


def with_estimates(facts: Recording, prepared: Sequence[Message]) -> Recording:
    """With the stages of the compiler; and where there is an estimate, a Recording of the vendor's model."""
    facts = replace(facts, stages=tuple(compiler_stages(prepared))) if prepared else facts
    value, low, high = (_sum(prepared, f"{_TIME}{end}") for end in (")", _LOW, _HIGH))
    if value is None:
        return facts
    model = Provenance.VENDOR_MODEL
    return replace(
        facts,
        provenance=model,
        trace=empty_trace(model),
        latency=Latency(_ns(value) or 0, _ns(low), _ns(high), model),
        inferences=1,
        metrics=tuple(_metrics(prepared)),
        memory=(MemoryTotal("DDR", 0, None, None, None, None, _bytes(prepared, _READS), _bytes(prepared, _WRITES)),),
    )


def _ns(us: int | None) -> int | None:
    return None if us is None else us * 1000


def _sum(prepared: Sequence[Message], event: str) -> int | None:
    """Over all graphs; None: one of them does not tell."""
    return whole_sum(message.value(event) for message in prepared)


def _bytes(prepared: Sequence[Message], events: Sequence[str]) -> int | None:
    return known_sum(_sum(prepared, event) for event in events)


def _metrics(prepared: Sequence[Message]) -> Iterator[Metric]:
    """Under the names that a profile of the same compiler has."""
    model = Provenance.VENDOR_MODEL
    for name, unit, event in (("htp_execution_time", "us", _TIME), ("htp_execution_cycles", "cycles", _CYCLES)):
        value, low, high = (_sum(prepared, f"{event}{end}") for end in (")", _LOW, _HIGH))
        if value is not None:
            yield Metric(name, value, unit, model, "", low, high)
    for name, events in (("ddr_read", _READS), ("ddr_write", _WRITES)):
        yield Metric(name, _bytes(prepared, events), "bytes", model)
    for event in (*_READS, *_WRITES):
        size = _sum(prepared, event)
        if size is not None:
            note = "includes weights" if event == "Input Fill" else ""
            yield Metric(event.lower().replace(" ", "_"), size, "bytes", model, note)
    missing = _sum(prepared, _MISSING)
    if missing is not None:
        yield Metric("ops_without_cost", missing, "count", model, "the estimate leaves these out")
    compiled = _sum(prepared, FINALIZE_TIME)
    if compiled is not None:
        note = "time of the compiler on the machine that made the file, not of the model"
        yield Metric("compile_time", compiled, "us", Provenance.MEASURED, note)


def compiler_stages(prepared: Sequence[Message | None]) -> Iterator[StageTime]:
    """Stages of the compiler, summed over graphs."""
    times: dict[str, int] = {}
    for message in prepared:
        event = message.find(FINALIZE_TIME) if message else None
        for stage in event.children if event else ():
            times[stage.name] = times.get(stage.name, 0) + (stage.value or 0)
    return (StageTime(name, value) for name, value in times.items())
