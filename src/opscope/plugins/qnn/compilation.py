"""One compilation in a process and a folder of its own → the files that the library left, read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from ...backends.process import run_worker, work_folder
from ...core.errors import ModelError, UsageError, printable
from ...estimate.work import Work, work_of
from ...graph.graph import ABSENT, Graph
from ...quantization.samples import FileSamples
from ...readers import ModelFormat, model_format, read_model
from ...recording.run import graph_edges
from .causes import REPLACEMENTS, refusals, replacements
from .importers.events import FINALIZE, QUANTISERS, Message, made_of
from .importers.log import Log, read_log
from .importers.op_trace import OpTrace, read_op_trace
from .importers.schematic import Schematic, read_schematic
from .importers.timeline import Timeline, read_timeline
from .options import INSTALL, PACKAGE, HtpOptions
from .socs import SOCS

RANDOM_SAMPLES = 2  # that a copy is calibrated with where no data are given: times do not depend on them
_LONGEST_S = 3600
_GAVE_UP = "was not selected by that EP"
_OTHER_MODELS = {
    ModelFormat.TFLITE: (
        "a TensorFlow Lite model, and the vendor's compiler takes ONNX here; expected its conversion: "
        "`python -m tf2onnx.convert --tflite MODEL.tflite --output MODEL.onnx`, or a profile of the device for "
        "`opscope import`"
    ),
    ModelFormat.MLIR: (
        "an MLIR module, and the vendor's compiler takes ONNX here; expected the ONNX model that it was made from, or "
        "--target of a part that takes MLIR (see `opscope targets`)"
    ),
}
_UNKNOWN_OP = re.compile(r"([\w.]+):(\w+)\(-?\d+\) is not a registered function/op")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"\[E:[^\]]*\]\s*(.*)")


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """One graph that the accelerator got, and everything the library says of it."""

    name: str
    prepared: Message | None
    schematic: Schematic
    timeline: Timeline | None  # None: the vendor has no model for this part


@dataclass(frozen=True, slots=True)
class NodeWork:
    """What the model says of one of its nodes."""

    kind: str  # in the words of our graphs
    work: Work
    element_bits: int  # of what it writes, in the file


@dataclass(frozen=True, slots=True)
class Compilation:
    """All that one compilation left."""

    graphs: tuple[CompiledGraph, ...]  # in the order in which they run
    op_trace: OpTrace
    nodes: tuple[tuple[str, str], ...]  # of the model as compiled: name, type
    notes: tuple[str, ...]
    producer: dict[str, str]
    work: Mapping[str, NodeWork] = field(default_factory=dict)  # by name of the node; empty: the model was not read
    flow: tuple[tuple[str, str], ...] = ()  # names of nodes: the second reads what the first writes
    copy: bytes | None = None  # of another precision, that was compiled in place of the model
    quantized: Mapping[str, object] | None = None  # what it was calibrated with, and how far its outputs are off


def compile_model(model: Path, options: HtpOptions, graph: Graph, *, fixes: bool = False) -> Compilation:
    """Compile, read everything back, and refuse results for another part than the one asked for.

    Args:
        graph: the model, read (`graph_of_model`).
        fixes: whether the user fixed shapes of inputs.
    """
    with _worked(model, options, graph, fixes=fixes, execute=False) as (folder, result, errors):
        op_trace = _op_trace(folder, model, options, errors)
        _check_target(op_trace, options)
        _check_taken(op_trace, model)
        log = read_log(_read(folder / "profile_qnn.log", model), source="profile_qnn.log")
        nodes = tuple((str(name), str(kind)) for name, kind in result["nodes"])  # type: ignore[attr-defined]
        return Compilation(
            graphs=tuple(read_graphs(folder, log, op_trace)),
            op_trace=op_trace,
            nodes=nodes,
            notes=(*graph.assumptions, *map(str, result["notes"])),  # type: ignore[call-overload]
            producer={str(k): str(v) for k, v in result["producer"].items()},  # type: ignore[attr-defined]
            work=_work(graph, nodes),
            flow=_flow(graph),
            copy=Path(str(result["copy"])).read_bytes() if "copy" in result else None,
            quantized=result.get("quantized"),  # type: ignore[arg-type]
        )


def execute_model(
    model: Path, options: HtpOptions, *, shapes: Mapping[str, tuple[int, ...]], inputs: Path | None, output: Path
) -> None:
    """Run once in emulation and keep the outputs."""
    graph = graph_of_model(model, shapes)
    with _worked(model, options, graph, fixes=bool(shapes), execute=True, inputs=inputs) as (_, result, _errors):
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_bytes(Path(str(result["outputs"])).read_bytes())
        except OSError as error:
            raise UsageError(f"{output}: cannot be written ({error.strerror}); expected a writable place") from error


@contextmanager
def _worked(
    model: Path,
    options: HtpOptions,
    graph: Graph,
    *,
    fixes: bool,
    execute: bool,
    inputs: Path | None = None,
) -> Iterator[tuple[Path, Mapping[str, object], str]]:
    """The folder, the answer and the errors of one worker; all gone afterwards.

    Args:
        fixes: whether the user fixed shapes of inputs.
    """
    if find_spec(PACKAGE) is None:
        raise UsageError(f"backend htp: the package onnxruntime-qnn is not installed; install it: {INSTALL}")
    ports = [(tensor.name, tensor.dtype.label, tensor.shape) for tensor in (graph.tensors[n] for n in graph.inputs)]
    if options.data is not None and options.precision != "as-is":
        FileSamples(Path(options.data), [(name, label, shape or ()) for name, label, shape in ports])  # or says why not
    request = {
        "model": str(model.resolve()),
        "provider": options.provider_options(),
        "precision": options.precision,
        # the compiler takes fixed shapes only
        "shapes": {name: shape for name, _, shape in ports} if fixes or graph.assumptions else {},
        "ports": ports,
        "data": None if options.data is None else str(Path(options.data).resolve()),
        "random": RANDOM_SAMPLES,
        "seed": 0,
        "execute": execute,
        "inputs": str(inputs.resolve()) if inputs else None,
    }
    with work_folder("htp") as folder:
        result, ended = run_worker("opscope.plugins.qnn.worker", request, folder, longest_s=_LONGEST_S)
        errors = _ESCAPE.sub("", ended.errors)
        if result is None:
            raise ModelError(str(model), "", f"the vendor's compiler {ended.how}; {_cause(errors)}")
        if not result["ok"]:
            raise ModelError(str(model), "", _explained(printable(str(result["problem"]), 1000), options))
        yield folder, result, errors


def graph_of_model(model: Path, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The model, read; a file that the vendor's compiler does not take is refused."""
    if not model.is_file():
        raise ModelError(str(model), "", "no such file; expected an ONNX model")
    if (form := model_format(model)) is not ModelFormat.ONNX:
        raise ModelError(str(model), "", _OTHER_MODELS[form])
    return read_model(model, shapes=shapes)


def _work(graph: Graph, nodes: Sequence[tuple[str, str]]) -> dict[str, NodeWork]:
    """What every node does, by its name; nodes without one are called by their place, as in copies of the model.

    Nodes of a quantised copy may be made of those of the model, with words behind their names.
    """
    found: dict[str, NodeWork] = {}
    for op in graph.ops:
        written = [graph.tensors[number] for number in op.outputs if number != ABSENT]
        bits = max((tensor.dtype.bits for tensor in written), default=0)
        found.setdefault(op.name, NodeWork(op.kind, work_of(op, graph), bits))
    made = {name: made_of(name, found) for name, kind in nodes if name not in found and kind not in QUANTISERS}
    return found | {name: found[base] for name, base in made.items() if base}


def _flow(graph: Graph) -> tuple[tuple[str, str], ...]:
    names = [op.name for op in graph.ops]
    return tuple((names[source], names[target]) for source, target in graph_edges(graph).tolist())


def _explained(problem: str, options: HtpOptions) -> str:
    """The runtime gives up in the middle when a part takes a node only until it has changed the node's layout."""
    if unknown := _UNKNOWN_OP.search(problem):
        instead = REPLACEMENTS.get(unknown[2], "an op of ONNX, or of the runtime's own domains")
        return f"the runtime does not know the op {unknown[2]} of domain {unknown[1]}; expected {instead}"
    if _GAVE_UP not in problem:
        return problem
    hint = (
        "expected a quantised model, or --precision w8a8"
        if options.precision in ("as-is", "f16")
        else "try another part"
    )
    return f"{options.soc.label} does not take one of its nodes in this precision; {hint}; the runtime says: {problem}"


def _cause(errors: str) -> str:
    """The runtime's own words."""
    found = _ERROR.findall(errors)
    last = found[-1] if found else next((line for line in reversed(errors.splitlines()) if line.strip()), "no message")
    return f"it says: {printable(last, 400)}"


def _op_trace(folder: Path, model: Path, options: HtpOptions, errors: str) -> OpTrace:
    file = folder / "qnn_op_trace.json"
    if not file.is_file():
        known = ", ".join(f"{soc.id}" for soc in SOCS)
        raise ModelError(
            str(model),
            "",
            f"the vendor's compiler took nothing for {options.soc.title}; {_cause(errors)}; ids: {known}",
        )
    return read_op_trace(file.read_bytes(), source=file.name)


def _check_target(op_trace: OpTrace, options: HtpOptions) -> None:
    """The library falls back to its default part without a word; we do not."""
    if op_trace.soc_model != options.soc.id:
        raise UsageError(
            f"--soc {options.soc.label}: asked for id {options.soc.id}, but the library compiled for "
            f"{op_trace.soc_model or 'its default part'}; no result is shown, since it would be of another part"
        )


def _check_taken(op_trace: OpTrace, model: Path) -> None:
    if not op_trace.graphs:
        reasons = refusals(op_trace.refused) or "no reason is given"
        instead = "; ".join(replacements(op_trace.refused))
        expected = f"; expected {instead}" if instead else ""
        raise ModelError(str(model), "", f"the accelerator takes none of its nodes: {reasons}{expected}")


def _read(file: Path, model: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelError(
            str(model), "", f"the library left no {file.name}; expected it beside the schematic"
        ) from error


def read_graphs(folder: Path, log: Log, op_trace: OpTrace) -> Iterator[CompiledGraph]:
    """Everything of every graph, in the order in which the runtime lists them."""
    schematics = {}
    for file in sorted(folder.glob("*_schematic.bin")):
        schematic = read_schematic(file.read_bytes(), source=file.name)
        schematics[schematic.graph] = schematic
    prepared = {message.graph: message for message in log.messages if message.method == FINALIZE}
    for name in op_trace.graphs:
        if name not in schematics:
            raise ModelError(name, "", f"the library left no schematic of this graph; it left {len(schematics)} others")
        raw = log.timelines.get(name)
        timeline = read_timeline(raw, source=f"timeline of {name}") if raw else None
        yield CompiledGraph(name, prepared.get(name), schematics[name], timeline)
