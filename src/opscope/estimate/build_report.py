"""Estimate → Report: memory use against the target's capacity, issues, advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import ModelError
from ..core.files import sha256_of
from ..core.units import Bytes, format_bytes, format_percent
from ..graph.graph import DType, Graph, Role
from ..machine.target import Figure, Holds, Target
from ..options import ReportOptions
from ..readers import graph_of
from ..recording.resources import MemoryPart, MemoryStack, MemoryUse, ModelFacts, OtherPlan, PeakTensor, Suggestion
from .advice import heavy_macs, heavy_memory, suggestions
from .battery import battery_life
from .estimator import Estimate, estimate
from .interpreters import Examined, examine, planned_by, refused
from .machines import use_machine
from .memory import PLANNER, ArenaBlock, BlockKind, pack
from .precision import in_precision, with_precision
from .price import Machine
from .report import Layer, Report
from .traffic.stores import Stores, filled, parameter_bytes
from .work import MAC_DEFINITION

if TYPE_CHECKING:
    from ..readers.torch import TorchModel

TIGHT = 0.75
CRITICAL = 0.95
PEAK_TENSORS = 8
BEST = "best"


def report_model(model: Path | Graph | TorchModel, target: str | Path | Target, options: ReportOptions) -> Report:
    """The resource report of a model file, or of a graph; the hash of a graph that is in memory is not known."""
    chosen = with_precision(target, options.precision, kv_cache=options.kv_cache)
    machine = use_machine(chosen, cores=options.cores, devices=options.devices)
    graph = graph_of(model, shapes=options.shapes, batch=options.batch, shapes_from_run=options.shapes_from_run)
    sha256 = sha256_of(model) if options.fingerprint and isinstance(model, Path) and model.is_file() else None
    as_stored = isinstance(model, Path) and not (options.shapes or options.batch or options.shapes_from_run)
    examined = examine(graph, machine.target.runtime) if isinstance(model, Path) else None
    if examined is not None and examined.refusals:
        raise ModelError(graph.source, "", refused(examined))
    report = build_report(
        in_precision(graph, machine.target, options.precision, kv_cache=options.kv_cache),
        machine,
        sha256=sha256,
        advise=options.advise,
        examined=examined if as_stored and options.precision is None else None,
        planner=options.planner,
    )
    life = None
    if options.battery is not None and options.duty is not None:
        life = battery_life(
            report.totals, machine.target, battery=options.battery, duty=options.duty, sleep=options.sleep
        )
    return replace(report, model=model_facts(graph, sha256, layer_count=len(report.layers)), battery=life)


def build_report(
    graph: Graph,
    machine: Machine,
    *,
    sha256: str | None,
    advise: bool = True,
    examined: Examined | None = None,
    planner: str | None = None,
) -> Report:
    """Return the complete resource report of a graph on a machine; `examined`: its file, by the interpreter there."""
    base = estimate(graph, machine)
    ideas = suggestions(base) if advise else ()
    memory = _memory(base, machine.devices, ideas, examined, planner)
    return Report(
        model=model_facts(graph, sha256, layer_count=len(base.layers)),
        target=machine.target,
        devices=machine.devices,
        cores=machine.cores,
        graph=base.graph,
        memory=memory,
        totals=base.totals,
        layers=base.layers,
        suggestions=ideas,
        heavy_memory=heavy_memory(base) if advise else (),
        heavy_macs=heavy_macs(base) if advise else (),
        notes=base.graph.notes,
        definition=MAC_DEFINITION,
        call_s=base.call.total / machine.clock_hz,
        arena=tuple(_blocks(base, examined, memory)),
        arena_steps=len(base.layers) if examined is None else examined.steps,
    )


def _blocks(base: Estimate, examined: Examined | None, memory: MemoryStack) -> Iterator[ArenaBlock]:
    """The arena as it is planned, by the interpreter or on the graph; above, part by part, what the runtime keeps."""
    if examined is not None:
        yield from examined.blocks
    else:
        for buffer, address in zip(base.plan.buffers, base.plan.offsets, strict=True):
            kind = BlockKind.TENSOR if buffer.tensors else BlockKind.SCRATCH
            ops, tensors = base.graph.ops, base.graph.tensors
            name = tensors[buffer.tensors[0]].name if buffer.tensors else f"scratch of {ops[buffer.first].name}"
            if buffer.size_bytes:
                yield ArenaBlock(name, kind, address, buffer.size_bytes, buffer.first, buffer.last)
    top, last = memory.arena_bytes + memory.scratch_bytes, max(len(base.layers), 1) - 1
    kept = memory.runtime_parts or (MemoryPart("runtime", memory.runtime_bytes or 0),)
    for part in kept:
        if part.size_bytes:
            steps = last if examined is None else max(examined.steps, 1) - 1
            yield ArenaBlock(part.name, BlockKind.KEPT, top, part.size_bytes, 0, steps)
        top += part.size_bytes


def model_facts(graph: Graph, sha256: str | None, *, layer_count: int) -> ModelFacts:
    """Return the model's name, size, parameter bytes and precision."""
    dtypes = [graph.tensors[t].dtype for t in graph.inputs if graph.tensors[t].role is not Role.CONSTANT]
    return ModelFacts(
        name=graph.name,
        path=graph.source,
        framework=graph.framework,
        sha256=sha256,
        file_bytes=graph.file_bytes,
        parameter_bytes=parameter_bytes(graph),
        dtype=_weight_dtype(graph) or (dtypes[0].label if dtypes else DType.UNKNOWN.label),
        layer_count=layer_count,
        op_count=len(graph.ops),
    )


def _weight_dtype(graph: Graph) -> str:
    """Return the type that most parameter bytes are stored in; an index input says nothing about precision."""
    sizes: dict[DType, int] = {}
    for tensor in graph.tensors:
        if tensor.role is Role.CONSTANT:
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + (tensor.bytes or 0)
    return max(sizes, key=lambda dtype: sizes[dtype]).label if sizes else ""


@dataclass(frozen=True, slots=True)
class PeakRam:
    """RAM that an inference takes at the most, by part."""

    bound: Bytes  # of tensors alive at once
    arena: Bytes
    scratch: Bytes
    kept: Bytes | None  # by the runtime, whatever runs; None: not known
    figure: Figure | None  # of the target, that says what is kept; None: an interpreter's own parts do
    planner: str

    @property
    def total(self) -> int:
        return self.arena + self.scratch + (self.kept or 0)


def peak_ram(base: Estimate, examined: Examined | None = None) -> PeakRam:
    """The peak of RAM as the graph is planned; `examined`: its file, by the interpreter there, which plans itself."""
    plan, runtime = base.plan, base.machine.target.runtime
    if examined is not None:
        kept = Bytes(sum(part.size_bytes for part in examined.tail))
        return PeakRam(examined.bound, examined.arena, examined.scratch, kept, None, examined.planner)
    kept_bytes = None if runtime.bytes is None else Bytes(round(runtime.bytes.value))
    named = f"{runtime.name}, by its rules on the graph: {PLANNER}" if runtime.interpreter else PLANNER
    return PeakRam(plan.bound_bytes, plan.arena_bytes, plan.scratch_bytes, kept_bytes, runtime.bytes, named)


def _memory(
    base: Estimate, devices: int, ideas: Sequence[Suggestion], examined: Examined | None, planner: str | None
) -> MemoryStack:
    """Return the memory section of the report: the stack of RAM parts, use per memory, issues and advice."""
    plan, ram = base.plan, peak_ram(base, examined)
    uses = _uses(base, devices, ram, examined)
    earlier = {memory.name for memory in base.machine.target.stores[:-1]}  # full is no problem: the next takes the rest
    judged = [use for use in uses if use.name not in earlier or not use.fits]
    is_whole = examined is None or examined.is_whole
    alive = plan.alive_at(plan.peak_step) if base.layers else []
    names = [(base.graph.tensors[b.tensors[0]].name, b.size_bytes) for b in alive[:PEAK_TENSORS]]
    return MemoryStack(
        bound_bytes=ram.bound,
        arena_bytes=ram.arena,
        planner=ram.planner,
        scratch_bytes=ram.scratch,
        runtime_bytes=ram.kept,
        peak_layer=plan.peak_step if base.layers else None,
        peak_tensors=tuple(PeakTensor(name, size) for name, size in names),
        unknown_tensors=plan.unknown_tensors,
        uses=uses,
        issues=tuple(_issues(judged, plan.unknown_tensors, is_whole)),
        recommendations=tuple(_recommendations(judged, base.layers, plan.peak_step, ideas)),
        status=status(judged),
        runtime_parts=() if examined is None else examined.tail,
        runtime_is_whole=is_whole,
        other_plan=None if planner is None else _other_plan(base, examined, planner, ram.arena + ram.scratch),
    )


def _other_plan(base: Estimate, examined: Examined | None, planner: str, arena_bytes: int) -> OtherPlan:
    """The same buffers in another order: the best that a bounded search finds, or that of an interpreter."""
    if planner == BEST:
        found = pack(base.plan.buffers if examined is None else examined.buffers, at_most=arena_bytes)
    else:
        found = planned_by(planner, base.graph)
    return OtherPlan(planner, found, arena_bytes - found)


def _uses(base: Estimate, devices: int, ram: PeakRam, examined: Examined | None) -> tuple[MemoryUse, ...]:
    """Return required and available bytes of each home memory; one memory may hold activations and constants."""
    target, home = base.machine.target, base.machine.target.home(Holds.ACTIVATIONS)
    word = "constants" if target.compression is None else "constants, compressed"
    sizes = list(Stores(base.graph, target).used.values())
    if examined is not None:
        word = "constants: the whole file"
        sizes = filled([memory.bytes.value for memory in target.stores], examined.file_bytes)
    uses = {home.name: MemoryUse(home.name, "activations", ram.total, round(home.bytes.value))}
    for memory, size in zip(target.stores, sizes, strict=True):
        if memory.name != home.name:
            uses[memory.name] = MemoryUse(memory.name, word, round(size), round(memory.bytes.value))
            continue
        available = round(home.bytes.value) * target.instances(home, devices=devices, cores=1)
        both = f"activations and {word}"
        uses[home.name] = MemoryUse(home.name, both, ram.total + round(size), available)
    return tuple(uses.values())


def status(uses: Sequence[MemoryUse]) -> str:
    """Return the worst state of all memories, from OK to DOES NOT FIT."""
    worst = max(use.share for use in uses)
    if worst > 1:
        return "DOES NOT FIT"
    return "CRITICAL" if worst > CRITICAL else "WARNING" if worst > TIGHT else "OK"


def _issues(uses: Sequence[MemoryUse], unknown: int, is_whole: bool) -> list[str]:
    issues = []
    for use in uses:
        figures = f"{format_bytes(use.required_bytes)} of {use.name} for {use.holds}"
        if not use.fits:
            issues.append(f"{figures} exceeds the {format_bytes(use.available_bytes)} available")
        elif use.share > TIGHT:
            issues.append(
                f"{figures} is {format_percent(use.share)} of the {format_bytes(use.available_bytes)} available"
            )
    if not is_whole:
        issues.append("custom operators keep memory of their own, which is not known: peak memory is a lower bound")
    if unknown:
        issues.append(f"{unknown} tensors have no size in the model: peak memory is a lower bound")
    return issues


def _recommendations(
    uses: Sequence[MemoryUse], layers: Sequence[Layer], peak: int, ideas: Sequence[Suggestion]
) -> list[str]:
    """Return advice for memories that are short: missing bytes, layer of the peak, suggestions that make it fit."""
    lines = []
    for use in uses:
        if use.share <= TIGHT:
            continue
        if not use.fits:
            missing = use.required_bytes - use.available_bytes
            share = missing / use.available_bytes if use.available_bytes else None
            lines.append(f"{use.name}: free {format_bytes(missing)} ({format_percent(share, 0)})")
        if "activations" in use.holds and layers:
            lines.append(f"{use.name}: the peak is at layer {peak} ({layers[peak].operator} {layers[peak].name})")
        sufficient = [idea for idea in ideas if _required_after(use, idea) <= use.available_bytes]
        lines += [
            f"{use.name}: fits after “{idea.text}” ({format_bytes(_required_after(use, idea))})"
            for idea in sufficient[:2]
        ]
        if not sufficient and not use.fits:
            lines.append(f"{use.name}: no single change makes it fit; combine suggestions or choose a larger target")
    return lines


def _required_after(use: MemoryUse, idea: Suggestion) -> int:
    """Return the bytes a memory needs after a suggestion."""
    saved = 0
    if "activations" in use.holds:
        saved += idea.before.peak_bytes - idea.after.peak_bytes
    if "constants" in use.holds:
        saved += idea.before.parameter_bytes - idea.after.parameter_bytes
    return use.required_bytes - saved
