"""Names are for people: whatever parts of a target or nodes of a file are called, a run says the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from opscope.analysis.run_analysis import RunAnalysis
from opscope.changes.changes import Baseline, with_predictions
from opscope.compiler import compile_graph
from opscope.compiler.performance_warnings import performance_warnings
from opscope.core.meaning import Carries, Does
from opscope.estimate.build_report import report_model
from opscope.estimate.price import Machine
from opscope.gate.figures import OpFigure
from opscope.gate.op_causes import CYCLES
from opscope.gate.run_figures import of_run
from opscope.graph.graph import DType, Graph
from opscope.graph.kinds import KINDS, Family
from opscope.importers.formats import read_profile
from opscope.machine import catalogue as targets
from opscope.machine.target import Target
from opscope.options import CompileOptions, ProfileOptions, ReportOptions
from opscope.program.program import NO_OP, NO_ROUTE, OP_LEVEL, Group, Program
from opscope.recording.finding import Finding, Findings
from opscope.recording.folder_reader import read_run
from opscope.recording.run import Run
from opscope.workflows.estimating import analysed_run
from opscope.workflows.record import analysis_of
from opscope.workflows.simulated_run import run_program
from support.build import Sketch, mobilenet
from support.compiler.build import build
from support.plugins.importer_samples import SAMPLES
from support.recording.analyse_build import analyse
from support.recording.run_build import write_run

ALL = list(targets.catalogue())
SIMULATED = [name for name in ALL if targets.load(name).is_compilable]
FOLDERS = ["aic100-std", "torq-sl2610"]  # one that exchanges between cores, one with a sequencer
CORES = 4
PLAIN = ("route", "memory", "engine", "word", "issuer", "target")
MISLEADING = (  # every word that a classification of foreign files looks for, each where it does not belong
    "nccl peer htod",
    "read write dma",
    "CPU host dma barrier",
    "transpose copy semaphore endcyclestats wait",
    "Execution conv DDR",
    "htp",
)
RESERVED = ("launch", "transfer", "dispatch", "call", "exchange", "layout", "weight decoder", "CPU", "host", "op")
BARE = (RESERVED, RESERVED, RESERVED, ("launch",), "layout", "CPU")  # routes, memories and engines are called alike
CPU_LIKE = ("DDR read", "flash", "CPU-coupled NPU", "host", "dma", "cpu")
TAKEN = ("DDR", "VTCM", "HVX", "barrier", "DMA", "aic100-std")  # names that other targets have
NODES = [  # imported files, and names of nodes in them that have a type
    ("qnn_timeline.json", ("pre",)),
    ("openvino_average.csv", ("/relu/Relu", "/fc/Gemm")),
    ("tensorrt_layers.json", ("conv1 + relu1",)),
    ("espdl_profile.txt", ("/features/0/Conv", "/classifier/Gemm")),
    ("tflite_profile.csv", ("stem/conv",)),
    ("rknn_board_1_5.txt", ("conv1", "Concat_94")),
    ("stedgeai_v8.txt", ("conv_Conv_output_0", "fc_t")),
]


Words = str | tuple[str, ...]  # one that is numbered, or some that are taken as they are
Numbers = Mapping[tuple[bool, str], str]  # whether it is a memory, and its name → one that is always the same


@dataclass(frozen=True)
class Told:
    """What an analysis says, without the names of the target, and what a gate would compare."""

    bound: str
    breakdown: tuple[tuple[str, float], ...]
    findings: tuple[tuple[object, ...], ...]
    laws: tuple[tuple[str, bool | None], ...]
    engines: tuple[tuple[int, int, int | None, int], ...]
    metrics: dict[str, float | None]  # of the gate, with numbers for names
    ops: tuple[tuple[object, ...], ...]


def called(words: Words, number: int) -> str:
    return f"{words} {number}" if isinstance(words, str) else words[number % len(words)]


def renamed(target: Target, words: tuple[Words, ...]) -> Target:
    """The same target with every name another, and every reference to one following."""
    route, memory, engine, command = words[:4]
    issuer, name = map(str, words[4:])
    memories = {part.name: called(memory, n) for n, part in enumerate(target.memories)} | {"": ""}
    engines = {part.name: called(engine, n) for n, part in enumerate(target.engines)}
    layout, sequencer, pmu = target.layout, target.sequencer, target.pmu
    counted = {n: replace(e, counts=_counts(e.counts, engines)) for n, e in pmu.events.items()} if pmu else {}
    return replace(
        target,
        name=name,
        title=name,
        memories=tuple(replace(part, name=memories[part.name]) for part in target.memories),
        engines=tuple(replace(part, name=engines[part.name], memory=memories[part.memory]) for part in target.engines),
        routes=tuple(
            replace(part, name=called(route, n), memory=memories[part.memory]) for n, part in enumerate(target.routes)
        ),
        layout=layout and replace(layout, engines=tuple(engines[name] for name in layout.engines)),
        sequencer=sequencer and replace(sequencer, name=issuer),
        pmu=pmu and replace(pmu, events=counted),
        commands={kind: called(command, n) for n, kind in enumerate(target.commands)},
    )


def _counts(text: str, engines: Mapping[str, str]) -> str:
    what, colon, group = text.partition(":")
    return f"{what}{colon}{engines.get(group, group)}"


@cache
def network(quantised: bool) -> Graph:
    """Products, changes of layout, gathers, softmax: something of everything, or a small MobileNet in integers."""
    if quantised:
        return mobilenet()
    draw = Sketch(dtype=DType.F16)
    rows = draw.input(4, 128, 256)
    for _ in range(2):
        turned = draw.op("transpose", (draw.dense(rows, 256),), (4, 256, 128), permutation=(0, 2, 1))
        scores = draw.op("matmul", (rows, turned), (4, 128, 128), k=256, n=128)
        weights = draw.same("softmax", scores, axes=(2,))
        mixed = draw.op("matmul", (weights, rows), (4, 128, 256), k=128, n=256)
        rows = draw.same("gelu", draw.same("add", mixed, rows))
    return draw.graph(draw.op("concat", (rows, rows), (4, 128, 512), axis=2))


def program_of(target: Target, graph: Graph) -> Program:
    cores = min(CORES, round(target.topology.cores.value))
    options = CompileOptions(stats_level=OP_LEVEL, network="net")
    return compile_graph(graph, Machine(target, 1, cores), options)


def simulated(program: Program) -> Run:
    recording = run_program(program, ProfileOptions(cores=program.cores, num_iter=1), step=lambda _: None)
    return analysis_of(recording, command=(), created="", sha256=None).run


def told(target: Target, graph: Graph, folder: Path | None = None) -> Told:
    """What is said of a run, of its folder if there is one."""
    program = program_of(target, graph)
    run = _kept(simulated(program), folder)
    assert not run.info.classified  # our own device says what everything does
    found = analyse(run)
    return _told(_predicted(run, found, program), run, target, numbered(target, program.groups))


def estimated(target: Target, graph: Graph, folder: Path | None = None) -> Told:
    made = analysed_run(report_model(graph, target, ReportOptions(advise=False)), command=(), created="")
    run = _kept(made.run, folder)
    assert not run.info.classified
    return _told(analyse(run), run, target, numbered(target, ()))


def _kept(run: Run, folder: Path | None) -> Run:
    if folder is None:
        return run
    write_run(run, folder)
    return read_run(folder)


def numbered(target: Target, groups: Sequence[Group]) -> Numbers:
    """Name of every thread group, engine and memory → one that is the same whatever these are called."""
    parts = (("group", groups), ("engine", target.engines), ("memory", target.memories))
    return {(word == "memory", part.name): f"{word} {n}" for word, found in parts for n, part in enumerate(found)}


def _predicted(run: Run, found: Findings, program: Program) -> Findings:
    """Nothing is predicted of a run with an op of unknown cost: some data types have no rate on some targets."""
    device_ns = run.summary.latency.value_ns
    return found if device_ns is None else with_predictions(found, Baseline.of(program, device_ns))


def _told(found: Findings, run: Run, target: Target, numbers: Numbers) -> Told:
    figures = of_run(run, label="")
    return Told(
        found.bound,
        tuple((part.cause, part.ns) for part in found.breakdown),
        tuple(map(_finding, found.findings)),
        tuple((_nameless(law.name, target), law.holds) for law in found.checks),
        tuple((use.lanes, use.busy_ns, use.wait_ns, use.idle_ns) for use in sorted(found.engines, key=_size)),
        {_numbered(metric.name, numbers): metric.value for metric in figures.metrics},
        tuple(
            (op.name, numbers.get((False, op.engine), op.engine), op.wall_ns, op.own_ns, _binding(op))
            for op in figures.ops
        ),
    )


def _binding(op: OpFigure) -> list[int]:
    """What the op takes by resource, as a gate compares it, without the names of resources."""
    return [amount for name, amount in op.work.items() if name.startswith(CYCLES)]


def _numbered(metric: str, numbers: Numbers) -> str:
    name, colon, selector = metric.partition(":")
    is_named = name not in ("cause", "occupancy", "host_latency")  # words of ours
    return f"{name}{colon}{numbers.get(('memory' in name, selector), selector) if is_named else selector}"


def _nameless(law: str, target: Target) -> str:
    """A law with a mark for the name of the memory, route or engine that it is about."""
    names = {part.name for part in (*target.memories, *target.routes, *target.engines)}
    ranked = sorted(names, key=len, reverse=True)
    return re.sub("|".join(rf"\b{re.escape(name)}\b" for name in ranked), "#", law)


def _size(use: object) -> tuple[int, int]:
    return (use.busy_ns, use.lanes)  # type: ignore[attr-defined]


def _finding(finding: Finding) -> tuple[object, ...]:
    gain = finding.predicted and (finding.predicted.gain_ns, finding.predicted.basis)
    return finding.id, finding.cost_ns, finding.share, finding.ops, finding.bytes, finding.spans, gain


@pytest.mark.parametrize("words", [PLAIN, MISLEADING, BARE], ids=["plain", "misleading", "bare"])
@pytest.mark.parametrize("quantised", [False, True], ids=["attention", "mobilenet"])
@pytest.mark.parametrize("name", SIMULATED)
def test_whatever_parts_of_a_target_are_called_a_run_says_the_same(
    name: str, quantised: bool, words: tuple[Words, ...]
) -> None:
    target, graph = targets.load(name), network(quantised)
    known = told(target, graph)
    assert known.findings
    assert any(name.startswith("busy:") for name in known.metrics)
    assert told(renamed(target, words), graph) == known


@pytest.mark.parametrize("words", [BARE, CPU_LIKE], ids=["bare", "cpu-like"])
@pytest.mark.parametrize("name", FOLDERS)
def test_whatever_parts_of_a_target_are_called_the_folder_of_a_run_says_the_same(
    name: str, words: tuple[Words, ...], tmp_path: Path
) -> None:
    target, graph = targets.load(name), network(quantised=False)
    known = told(target, graph)
    assert told(renamed(target, words), graph, tmp_path / "run") == known


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_tells_routes_of_one_name_apart(name: str, tmp_path: Path) -> None:
    """Target files may not have them; programs and profiles of other tools may."""
    run = simulated(program_of(targets.load(name), network(quantised=False)))
    alike = tuple(replace(route, name="dma") for route in run.commands.routes)
    other = _kept(replace(run, commands=replace(run.commands, routes=alike)), tmp_path / "run")
    assert {route.carries for route in run.commands.routes} > {Carries.READ, Carries.WRITE}
    assert other.commands.routes == alike
    assert other.commands.rows["route"].tolist() == run.commands.rows["route"].tolist()
    assert analyse(other).breakdown == analyse(run).breakdown
    assert _moved(other) == _moved(run)


def _moved(run: Run) -> list[tuple[str, int, int]]:
    return sorted((tensor.tensor, tensor.read_bytes, tensor.write_bytes) for tensor in RunAnalysis(run).traffic)


@pytest.mark.parametrize("name", FOLDERS)
def test_routes_of_a_folder_without_their_numbers_are_found_by_name(name: str, tmp_path: Path) -> None:
    run = simulated(program_of(targets.load(name), network(quantised=False)))
    write_run(run, tmp_path / "run")
    table = tmp_path / "run" / "commands.parquet"
    pq.write_table(pq.read_table(table).drop_columns(["route_number"]), table)
    assert read_run(tmp_path / "run").commands.rows["route"].tolist() == run.commands.rows["route"].tolist()


@pytest.mark.parametrize("words", [MISLEADING, BARE], ids=["misleading", "bare"])
@pytest.mark.parametrize("name", ALL)
def test_whatever_parts_of_a_target_are_called_an_estimate_says_the_same(name: str, words: tuple[Words, ...]) -> None:
    target, graph = targets.load(name), network(quantised=True)
    assert estimated(renamed(target, words), graph) == estimated(target, graph)


@pytest.mark.parametrize("words", [BARE, CPU_LIKE], ids=["bare", "cpu-like"])
def test_whatever_parts_of_a_target_are_called_the_folder_of_an_estimate_says_the_same(
    words: tuple[Words, ...], tmp_path: Path
) -> None:
    target, graph = targets.load("torq-sl2610"), network(quantised=True)
    assert estimated(renamed(target, words), graph, tmp_path / "run") == estimated(target, graph)


@pytest.mark.slow
@pytest.mark.parametrize("words", [PLAIN, MISLEADING, TAKEN, BARE, CPU_LIKE])
@pytest.mark.parametrize("quantised", [False, True], ids=["attention", "mobilenet"])
def test_whatever_parts_of_any_target_are_called_an_estimate_says_the_same(
    quantised: bool, words: tuple[Words, ...]
) -> None:
    graph = network(quantised)
    for target in map(targets.load, ALL):
        assert estimated(renamed(target, words), graph) == estimated(target, graph), target.name


@pytest.mark.parametrize("name", SIMULATED)
def test_one_word_for_all_commands_changes_neither_a_run_nor_a_warning(name: str) -> None:
    target, graph = targets.load(name), network(quantised=False)
    forms = ("to_tiled", "from_tiled", "weights_to_tiled")
    one = replace(target, commands=dict.fromkeys((*target.commands, *forms), "work"))
    assert told(one, graph) == told(target, graph)
    built, plain = (build(graph, each, cores=1) for each in (one, target))
    assert performance_warnings(built.passed, built.program) == performance_warnings(plain.passed, plain.program)


def test_whatever_stages_of_the_host_are_called_a_run_says_the_same() -> None:
    program = program_of(targets.load("aic100-std"), network(quantised=False))
    recording = run_program(program, ProfileOptions(cores=program.cores, num_iter=4), step=lambda _: None)
    run = analysis_of(recording, command=(), created="", sha256=None).run
    words = {stage.name: f"{word} {n}" for n, (stage, word) in enumerate(zip(run.summary.host, cycle(MISLEADING)))}
    assert {"input transfer", "device"} <= set(words)
    host = tuple(replace(stage, name=words[stage.name]) for stage in run.summary.host)
    names = tuple(_renamed_stage(name, words) for name in run.trace.names)
    assert names != run.trace.names
    other = replace(run, summary=replace(run.summary, host=host), trace=replace(run.trace, names=names))
    for one, same in ((run, other), (_without_spans(run), _without_spans(other))):
        known, found = analyse(one), analyse(same)
        assert "host-stages" in {each.id for each in known.findings}
        assert (found.bound, found.breakdown) == (known.bound, known.breakdown)
        assert list(map(_finding, found.findings)) == list(map(_finding, known.findings))
        assert [each.detail for each in found.findings if each.id == "host-stages"] == [
            each.detail for each in known.findings if each.id == "host-stages"
        ]


def _renamed_stage(name: str, words: Mapping[str, str]) -> str:
    stage, mark, number = name.rpartition("-Inf-")
    return f"{words[stage]}{mark}{number}" if stage in words else name


def _without_spans(run: Run) -> Run:
    return replace(run, trace=replace(run.trace, spans=run.trace.spans[:0]))


@pytest.mark.parametrize(("file", "names"), NODES)
def test_nodes_of_an_imported_file_are_what_their_types_say(file: str, names: tuple[str, ...], tmp_path: Path) -> None:
    text = (SAMPLES / file).read_text()
    for number, node in enumerate(names):
        assert node in text
        text = text.replace(node, f"transpose_wait_copy_dma_{number}")
    (tmp_path / file).write_text(text)
    known, other = (
        analysis_of(read_profile(p), command=(), created="", sha256=None).run for p in (SAMPLES / file, tmp_path / file)
    )
    assert analyse(other).breakdown == analyse(known).breakdown
    kept = ["op", "type", "does", "on_cpu", "engine", "placed", "carries", "wall_ns"]
    rows = [sorted([getattr(row, key) for key in kept] for row in run.summary.ops) for run in (known, other)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", SIMULATED)
def test_without_words_for_commands_a_run_says_the_same(name: str) -> None:
    target, graph = targets.load(name), network(quantised=False)
    assert target.commands
    assert told(replace(target, commands={}), graph) == told(target, graph)


def test_what_only_moves_or_reshapes_data_is_never_compute() -> None:
    program = program_of(targets.load("aic100-std"), network(quantised=False))
    found: dict[str, set[Does]] = {}
    for op, route, does in program.commands[["op", "route", "does"]].tolist():
        if op != NO_OP and route == NO_ROUTE:
            found.setdefault(program.ops[op].kind, set()).add(Does(does))
    assert {"transpose", "concat", "matmul", "softmax"} <= set(found)
    for kind, does in found.items():
        computes = KINDS[kind].family not in (Family.MOVE, Family.VIEW, Family.CONVERT)
        assert (Does.COMPUTE in does) is computes, kind
