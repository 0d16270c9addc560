"""Names are for people: whatever parts of a target or nodes of a file are called, a run says the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest

from opscope.changes.changes import Baseline, with_predictions
from opscope.compiler import compile_graph
from opscope.compiler.performance_warnings import performance_warnings
from opscope.core.meaning import Does
from opscope.estimate.build_report import report_model
from opscope.estimate.price import Machine
from opscope.gate.run_figures import of_run
from opscope.graph.graph import DType, Graph
from opscope.graph.kinds import KINDS, Family
from opscope.importers.formats import read_profile
from opscope.machine import catalogue as targets
from opscope.machine.target import Target
from opscope.options import CompileOptions, ProfileOptions, ReportOptions
from opscope.program.program import NO_OP, NO_ROUTE, OP_LEVEL, Group, Program
from opscope.recording.finding import Finding, Findings
from opscope.recording.run import Run
from opscope.workflows.estimating import analysed_run
from opscope.workflows.record import analysis_of
from opscope.workflows.simulated_run import run_program
from support.build import Sketch, mobilenet
from support.compiler.build import build
from support.plugins.importer_samples import SAMPLES
from support.recording.analyse_build import analyse

ALL = list(targets.catalogue())
SIMULATED = [name for name in ALL if targets.load(name).is_compilable]
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


def renamed(target: Target, words: tuple[str, ...]) -> Target:
    """The same target with every name another, and every reference to one following."""
    route, memory, engine, command, issuer, name = words
    memories = {part.name: f"{memory} {n}" for n, part in enumerate(target.memories)} | {"": ""}
    engines = {part.name: f"{engine} {n}" for n, part in enumerate(target.engines)}
    layout, sequencer, pmu = target.layout, target.sequencer, target.pmu
    counted = {n: replace(e, counts=_counts(e.counts, engines)) for n, e in pmu.events.items()} if pmu else {}
    return replace(
        target,
        name=name,
        title=name,
        memories=tuple(replace(part, name=memories[part.name]) for part in target.memories),
        engines=tuple(replace(part, name=engines[part.name], memory=memories[part.memory]) for part in target.engines),
        routes=tuple(
            replace(part, name=f"{route} {n}", memory=memories[part.memory]) for n, part in enumerate(target.routes)
        ),
        layout=layout and replace(layout, engines=tuple(engines[name] for name in layout.engines)),
        sequencer=sequencer and replace(sequencer, name=issuer),
        pmu=pmu and replace(pmu, events=counted),
        commands={kind: f"{command} {n}" for n, kind in enumerate(target.commands)},
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


def told(target: Target, graph: Graph) -> Told:
    program = program_of(target, graph)
    recording = run_program(program, ProfileOptions(cores=program.cores, num_iter=1), step=lambda _: None)
    run = analysis_of(recording, command=(), created="", sha256=None).run
    assert not run.info.classified  # our own device says what everything does
    found = analyse(run)
    return _told(_predicted(run, found, program), run, target, numbered(target, program.groups))


def estimated(target: Target, graph: Graph) -> Told:
    made = analysed_run(report_model(graph, target, ReportOptions(advise=False)), command=(), created="")
    assert not made.run.info.classified
    return _told(made.findings, made.run, target, numbered(target, ()))


def numbered(target: Target, groups: Sequence[Group]) -> dict[str, str]:
    """Name of every thread group, memory and engine → one that is the same whatever these are called."""
    parts = (("group", groups), ("memory", target.memories), ("engine", target.engines))
    return {part.name: f"{word} {n}" for word, found in parts for n, part in enumerate(found)}


def _predicted(run: Run, found: Findings, program: Program) -> Findings:
    """Nothing is predicted of a run with an op of unknown cost: some data types have no rate on some targets."""
    device_ns = run.summary.latency.value_ns
    return found if device_ns is None else with_predictions(found, Baseline.of(program, device_ns))


def _told(found: Findings, run: Run, target: Target, numbers: Mapping[str, str]) -> Told:
    figures = of_run(run, label="")
    return Told(
        found.bound,
        tuple((part.cause, part.ns) for part in found.breakdown),
        tuple(map(_finding, found.findings)),
        tuple((_nameless(law.name, target), law.holds) for law in found.checks),
        tuple((use.lanes, use.busy_ns, use.wait_ns, use.idle_ns) for use in sorted(found.engines, key=_size)),
        {_numbered(metric.name, numbers): metric.value for metric in figures.metrics},
        tuple((op.name, numbers.get(op.engine, op.engine), op.wall_ns, op.own_ns) for op in figures.ops),
    )


def _numbered(metric: str, numbers: Mapping[str, str]) -> str:
    name, colon, selector = metric.partition(":")
    is_named = name not in ("cause", "occupancy")  # words of ours
    return f"{name}{colon}{numbers.get(selector, selector) if is_named else selector}"


def _nameless(law: str, target: Target) -> str:
    """A law with a mark for the name of the memory, route or engine that it is about."""
    names = {part.name for part in (*target.memories, *target.routes, *target.engines)}
    for name in sorted(names, key=len, reverse=True):
        law = law.replace(name, "#")
    return law


def _size(use: object) -> tuple[int, int]:
    return (use.busy_ns, use.lanes)  # type: ignore[attr-defined]


def _finding(finding: Finding) -> tuple[object, ...]:
    gain = finding.predicted and (finding.predicted.gain_ns, finding.predicted.basis)
    return finding.id, finding.cost_ns, finding.share, finding.ops, finding.bytes, finding.spans, gain


@pytest.mark.parametrize("words", [PLAIN, MISLEADING], ids=["plain", "misleading"])
@pytest.mark.parametrize("quantised", [False, True], ids=["attention", "mobilenet"])
@pytest.mark.parametrize("name", SIMULATED)
def test_whatever_parts_of_a_target_are_called_a_run_says_the_same(
    name: str, quantised: bool, words: tuple[str, ...]
) -> None:
    target, graph = targets.load(name), network(quantised)
    known = told(target, graph)
    assert known.findings
    assert any(name.startswith("busy:") for name in known.metrics)
    assert told(renamed(target, words), graph) == known


@pytest.mark.parametrize("name", ALL)
def test_whatever_parts_of_a_target_are_called_an_estimate_says_the_same(name: str) -> None:
    target, graph = targets.load(name), network(quantised=True)
    assert estimated(renamed(target, MISLEADING), graph) == estimated(target, graph)


@pytest.mark.slow
@pytest.mark.parametrize("words", [PLAIN, MISLEADING, TAKEN], ids=["plain", "misleading", "taken"])
@pytest.mark.parametrize("quantised", [False, True], ids=["attention", "mobilenet"])
def test_whatever_parts_of_any_target_are_called_an_estimate_says_the_same(
    quantised: bool, words: tuple[str, ...]
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
