"""Files that a compilation left → the Recording that a profile of the same compilation gives.

A log has the timelines of the vendor's model; schematics, one per graph, have the compiler's decisions and the names of
ops; the op trace has the nodes of the model. Where a file is not there, the others tell what they can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ....core.errors import ImportFileError, TargetError, UsageError
from ....core.provenance import Provenance
from ....importers.reading import read_bytes
from ....recording.recording import Metric, OpRecord, Placed, Recording
from ..causes import causes_of
from ..compilation import Compilation, CompiledGraph
from ..details import PARTS, Part
from ..hexagon import MB
from ..options import HtpOptions
from ..profile import assemble
from ..socs import SOCS, Soc, find_soc
from .device_files import TARGET, TOOL
from .events import FINALIZE, Message, node_times, plain_name
from .log import Log
from .op_trace import MappedOp, OpTrace, read_op_trace
from .schematic import OP_MASK, CompiledOp, OpBytes, ScheduledOp, Schematic, read_schematic
from .timeline import DMA, ENGINES, HMX, SCALAR, Timeline, read_timeline

OP_TRACE = "qnn_op_trace.json"
SCHEMATICS = "*_schematic.bin"
_MOST_BESIDE = 64  # files that are looked at for those of the same compilation
_ENDS = {"Input": "q::Input", "Output": "q::Output"}  # as runs call them → as schematics do
_FLAGS = {engine: (f"uses_{engine.lower()}",) for engine in ENGINES if engine != SCALAR}
# What copies read that are neither ends of the graph nor spilled: without a schematic it is taken for weights.
_CONSTANT = CompiledOp(1 << 63, "$Const", (), "", ())
_FACTS = "facts of the compiler, no times: these are in the log of the same compilation (*_qnn.log), import both"
_NO_NAMES = "ops are named by kernel and OpId: names are in the schematic of the same compilation, import both"


@dataclass(slots=True)
class _Beside:
    """What else of the same compilation is there."""

    schematics: dict[str, Schematic] = field(default_factory=dict)  # by graph
    op_trace: OpTrace | None = None
    notes: list[str] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)  # that these are from


class QnnSchematic:
    """What the compiler decided: no times."""

    name = "qnn-schematic"

    def read(self, path: Path, beside: Sequence[Path] = ()) -> Recording:
        schematic = read_schematic(read_bytes(path), source=str(path))
        found = _beside(path, beside, {schematic.graph})
        found.schematics = {schematic.graph: schematic}
        graphs = [CompiledGraph(schematic.graph, None, schematic, None)]
        whole = _recording(graphs, found, path, self.name, (_FACTS,))
        return replace(whole, metrics=tuple(metric for metric in whole.metrics if metric.value is not None))


class QnnOpMapping:
    """Which nodes of the model are on the accelerator, in which graphs; which are not, and why."""

    name = "qnn-op-mapping"

    def read(self, path: Path) -> Recording:
        """A row per op that the compiler got, and per node that it did not take."""
        trace = read_op_trace(read_bytes(path), source=str(path))
        soc = next((soc for soc in SOCS if soc.id == trace.soc_model), None)
        ops = [_mapped_op(op) for ops in trace.graphs.values() for op in ops]
        ops += [OpRecord(n.name, n.type, placed=Placed.CPU, reason=n.reason, engines=("CPU",)) for n in trace.refused]
        covered = {node for op in ops for node in (op.name, *op.covers)} - {node.name for node in trace.refused}
        counts = (
            ("graphs", len(trace.graphs)),
            ("nodes_on_accelerator", len(covered)),
            ("nodes_on_cpu", len(trace.refused)),
        )
        fact = Provenance.COMPILER_FACT
        whole = Recording(
            maker=self.name,
            tool=TOOL,
            provenance=fact,
            ops=tuple(ops),
            metrics=tuple(Metric(name, count, "count", fact) for name, count in counts),
            notes=("where nodes run, no times: these are in the log of the same compilation (*_qnn.log), import both",),
            target=soc.label if soc else TARGET,
            model=trace.model or None,
            network=Path(trace.model).stem,
            details={PARTS: tuple(Part(name, None, None, None, None, None) for name in trace.graphs)},
        )
        return replace(whole, causes=causes_of(whole))


def _mapped_op(op: MappedOp) -> OpRecord:
    """Under the name of the node of the model that it is, or that it was made from."""
    name = plain_name(op.name)
    shown = name if name in op.nodes or not op.nodes else op.nodes[0]
    covers = tuple(node for node in op.nodes if node != shown)
    return OpRecord(shown, op.type, placed=Placed.ACCELERATOR, covers=covers, engines=("HTP",))


def of_log(log: Log, path: Path, form: str, beside: Sequence[Path], notes: Sequence[str]) -> Recording:
    """The whole timeline of a log, in the words of the files beside it."""
    prepared = {message.graph: message for message in log.messages if message.method == FINALIZE}
    found = _beside(path, beside, set(log.timelines))
    names = _names_of_runs(log.messages)
    graphs = []
    for name, raw in log.timelines.items():
        timeline = read_timeline(raw, source=f"{path}: timeline of {name}")
        schematic = found.schematics.get(name) or _schematic_of(name, timeline, names.get(name, {}))
        graphs.append(CompiledGraph(name, prepared.get(name), schematic, timeline))
    if not found.schematics and not any(names.values()):
        found.notes.append(_NO_NAMES)
    return _recording(graphs, found, path, form, notes)


def _recording(
    graphs: Sequence[CompiledGraph], found: _Beside, path: Path, form: str, notes: Sequence[str]
) -> Recording:
    """As of a profile, less what was asked for: that is in no file."""
    mapped = found.op_trace or OpTrace(None, {}, ())
    op_trace = replace(mapped, graphs={graph.name: mapped.graphs.get(graph.name, ()) for graph in graphs})
    nodes = tuple(_nodes(graphs, op_trace))
    soc, size = _soc(graphs, op_trace)
    options = HtpOptions(soc=soc or Soc(0, 0, (size or 0) // MB, model="unknown"), vtcm_mb=(size or 0) // MB or None)
    model = mapped.model or ""
    whole = assemble(Path(model), options, Compilation(tuple(graphs), op_trace, nodes, (), {}))
    machine = whole.machine if soc else {k: v for k, v in whole.machine.items() if k in ("clock_hz", "hvx_threads")}
    capacity = soc is not None or size is not None
    return replace(
        whole,
        maker=form,
        source=str(path),
        tool=TOOL,
        model=model or None,
        network=Path(model).stem,
        target=soc.label if soc else TARGET,
        machine=machine,
        options={"vtcm_mb": options.vtcm_mb} if size else {},
        memory=whole.memory if capacity else tuple(replace(row, capacity_bytes=None) for row in whole.memory),
        metrics=whole.metrics if capacity else tuple(m for m in whole.metrics if m.name != "vtcm_capacity"),
        notes=(*notes, *found.notes, *(whole.notes if soc else ())),
        vendor_tables={},
    )


def _beside(path: Path, given: Sequence[Path], graphs: set[str]) -> _Beside:
    """Schematics and op trace of these graphs: those given, and those that lie beside the file.

    One that was given and cannot be read is an error; one that only lies there is a note.
    """
    found = _Beside()
    lying = [*sorted(path.parent.glob(SCHEMATICS))[:_MOST_BESIDE], path.parent / OP_TRACE]
    for file in dict.fromkeys((*given, *lying)):
        if file == path or not file.is_file():
            continue
        try:
            _read_beside(file, found, graphs)
        except ImportFileError as error:
            if file in given:
                raise
            found.notes.append(f"left out, though it lies beside the file: {error}")
    for file in given:
        if file not in found.files:
            raise UsageError(f"{file}: of another compilation than {path}; expected files of the same one")
    return found


def _read_beside(file: Path, found: _Beside, graphs: set[str]) -> None:
    """Keep what is of one of the graphs."""
    raw = read_bytes(file)
    if raw.lstrip()[:1] == b"{":
        trace = read_op_trace(raw, source=str(file))
        if found.op_trace is None and graphs & set(trace.graphs):
            found.op_trace = trace
            found.files.add(file)
            found.notes.append(f"nodes of the model are as {file.name} has them")
        return
    schematic = read_schematic(raw, source=str(file))
    if schematic.graph in graphs and schematic.graph not in found.schematics:
        found.schematics[schematic.graph] = schematic
        found.files.add(file)
        found.notes.append(f"names and the compiler's decisions are those of {file.name}")


def _nodes(graphs: Sequence[CompiledGraph], op_trace: OpTrace) -> Iterator[tuple[str, str]]:
    """Nodes of the model, with what the accelerator's library calls their types.

    Several of one name are none of the model, where names differ: the runtime calls all that it adds by their type.
    """
    told: list[tuple[str, str]] = []
    for graph in graphs:
        mapped = [(node, op.type) for op in op_trace.graphs[graph.name] for node in dict.fromkeys(op.nodes)]
        told += mapped or [(plain_name(name), "") for name in graph.schematic.names.values()]
    told += [(node.name, node.type) for node in op_trace.refused]
    times = Counter(name for name, _ in told)
    yield from ((name, kind) for name, kind in told if times[name] == 1)


def _soc(graphs: Sequence[CompiledGraph], op_trace: OpTrace) -> tuple[Soc | None, int | None]:
    """The part that was compiled for, and the bytes of VTCM, as far as the files tell."""
    settings: Mapping[str, float | str] = next((g.timeline.settings for g in graphs if g.timeline is not None), {})
    size = settings.get("vtcm_size_in_bytes")
    soc = next((soc for soc in SOCS if soc.id == op_trace.soc_model), None)
    if soc is None and settings.get("soc_type"):
        try:
            soc = find_soc(str(settings["soc_type"]))
        except TargetError:
            soc = None
    return soc, round(size) if isinstance(size, int | float) and 0 < size < 2**40 else None


def _names_of_runs(messages: Sequence[Message]) -> dict[str, dict[int, str]]:
    """Of every graph, the names that its runs give to ops by number; with the number, where several have one name."""
    found: dict[str, dict[int, str]] = {}
    for message in messages:
        names = found.setdefault(message.graph, {})
        for node in node_times(message):
            names.setdefault(node.op_id, node.name)
    times = Counter(name for names in found.values() for name in names.values() if name not in _ENDS)
    return {
        graph: {op: name if times[name] < 2 else f"{name} OpId_{op}" for op, name in names.items()}
        for graph, names in found.items()
    }


def _schematic_of(graph: str, timeline: Timeline, names: Mapping[int, str]) -> Schematic:
    """What a timeline alone tells of the compiler's decisions: ops by number, their engines and bytes, their order."""
    work = timeline.work[~timeline.work["bookkeeping"]]
    columns = ["id", "engine", "kernel", "dram_read", "dram_write", "vtcm_read", "vtcm_write"]
    ops: dict[int, CompiledOp] = {}
    flags: dict[int, tuple[str, ...]] = {}
    moved: list[OpBytes] = []
    kernels: dict[int, Counter[tuple[bool, bool, str]]] = {}
    length = (work["end"] - work["start"]).tolist()
    for (op, engine, kernel, read, write, near_read, near_write), cycles in zip(
        work[columns].tolist(), length, strict=True
    ):
        name = timeline.kernels[kernel]
        is_copy = ENGINES[engine] == DMA
        ops[op] = CompiledOp(op, f"q::{name}", (_CONSTANT.id,) if is_copy else (), "", ())
        flags[op] = _FLAGS.get(ENGINES[engine], ())
        moved.append(OpBytes(op, read, write, near_read, near_write, is_copy))
        rank = ENGINES[engine] == HMX, ENGINES[engine] != DMA, name
        kernels.setdefault(op & OP_MASK, Counter())[rank] += cycles
    shown = {op: names.get(op) or f"{_main_kernel(found)} OpId_{op}" for op, found in sorted(kernels.items())}
    ends = {op: CompiledOp(op, _ENDS[name], (), "", ()) for op, name in shown.items() if name in _ENDS}
    return Schematic(
        graph=graph,
        names={op: name for op, name in shown.items() if op not in ends},
        before=ends | {_CONSTANT.id: _CONSTANT},
        ops=ops,
        moved=tuple(moved),
        flags=flags,
        steps=tuple(_steps(timeline)),
        memory=(),
    )


def _main_kernel(kernels: Mapping[tuple[bool, bool, str], int]) -> str:
    """Of those of one op, the longest on the matrix engine; else of those that do not only move its operands."""
    return max(kernels, key=lambda kernel: (kernel[0], kernel[1], kernels[kernel], kernel[2]))[2]


def _steps(timeline: Timeline) -> Iterator[ScheduledOp]:
    """A step per op; one in which the foreground thread waits follows the work that it waits for.

    A wait names the kernel and the op, and is of its own number: it is for the last such work that began before it.
    """
    begun: dict[tuple[int, str], int] = {}
    columns = ["id", "kernel", "order", "bookkeeping"]
    seen: dict[int, int] = {}
    for op, kernel, place, keeps in timeline.work[columns].tolist():
        word, _, waited = timeline.kernels[kernel].partition(" ") if keeps else ("", "", timeline.kernels[kernel])
        key = op & OP_MASK, waited
        if not keeps:
            begun[key] = op
        if op in seen:
            continue
        seen[op] = len(seen)
        cause = begun.get(key) if keeps and word.endswith(("sync", "validate")) else None
        after = (seen[cause],) if cause is not None and cause in seen and cause != op else ()
        yield ScheduledOp(seen[op], op, f"q::{waited}".replace("q::@", "@"), place, after)
