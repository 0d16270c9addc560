"""Networks of the zoo through the compiler and the simulated device; and `opscope compile` as a user meets it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from opscope import api
from opscope.machine import catalogue as targets
from opscope.program.program import Program
from opscope.program.program_file import decode_program, encode_program
from opscope.simulation import Timeline, simulate
from opscope.zoo import Recipe, make
from support.cli.command_line import Outcome, called
from support.compiler.build import Built, build, with_bandwidth
from support.compiler.laws import Order, data_arrives_before_it_is_read, places_in_use_never_overlap, work_is_conserved

RESNET_F16 = Recipe("resnet50", precision="f16", weights=False)
RESNET_INT8 = Recipe("resnet50", precision="int8", weights=False)
DECODE = Recipe("llm-decoder", precision="f16", weights=False, options={"layers": 2, "kv_length": 1024})
SMALL_BERT = Recipe("bert-base", batch=8, sequence=128, precision="f16", weights=False, options={"layers": 2})
VIT = Recipe("vit-b16", precision="f16", weights=False, options={"layers": 2})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Recipe], Path]:
    """A network of the zoo as a file, made once."""
    folder, made = tmp_path_factory.mktemp("zoo"), {}

    def get(recipe: Recipe) -> Path:
        key = repr(recipe)
        if key not in made:
            made[key] = folder / f"{len(made)}.onnx"
            make(recipe, made[key])
        return made[key]

    return get


@cache
def run_program(path: Path, target: str, **options: object) -> tuple[Program, Timeline]:
    """A network on a machine, compiled and simulated once."""
    program = api.compile_model(path, target, **options).program  # type: ignore[arg-type]
    return program, simulate(program)


def utilisation(program: Program, timeline: Timeline) -> np.ndarray:
    """Busy share of every lane: cores × thread groups."""
    busy = np.bincount(program.lane_of_commands(), timeline.issue_end - timeline.start, minlength=program.lanes)
    return busy.reshape(-1, len(program.groups)) / timeline.total_cycles


def least_seconds(program: Program, target: str) -> tuple[float, float]:
    """No machine is faster than its peak: seconds to compute, and to read outer memory."""
    chosen = targets.load(target)
    best = max(rate.value for engine in chosen.engines for rate in engine.macs_per_cycle.values())
    computing = program.metrics.macs / (best * program.clock_hz * program.cores * program.devices)
    bandwidth = next(route.bytes_per_second.value for route in chosen.routes if route.carries == "read")
    reading = max(
        sum(row.read for row in program.metrics.traffic if row.device == device) for device in range(program.devices)
    )
    return computing, reading / bandwidth


# ---- networks that the figures were not taken from


@pytest.mark.parametrize(
    ("recipe", "target", "options"),
    [
        (RESNET_F16, "aic100-std", {}),
        (RESNET_INT8, "aic100-std", {}),
        (DECODE, "aic100-std", {}),
        (DECODE, "aic100-ultra", {"devices": 4}),
        (DECODE, "aic100-ultra", {"devices": 4, "parallel": "pipeline"}),
        (VIT, "aic100-pro", {}),
    ],
    ids=["resnet-f16-14", "resnet-int8-14", "llm-14", "llm-4x16", "llm-4x16-pipeline", "vit-16"],
)
def test_nothing_is_faster_than_the_machine(model, recipe: Recipe, target: str, options: dict[str, object]) -> None:
    program, timeline = run_program(model(recipe), target, **options)
    seconds = timeline.total_cycles / program.clock_hz
    assert seconds >= max(least_seconds(program, target))
    shares = utilisation(program, timeline)
    assert shares.max() <= 1 + 1e-9
    assert int(program.commands["macs"].sum()) >= program.metrics.macs * 0.999  # replicated work counts again


@pytest.mark.parametrize(("target", "options"), [("aic100-std", {}), ("aic100-ultra", {"devices": 4})])
def test_decoding_with_a_large_model_is_bound_by_outer_memory(model, target: str, options: dict[str, int]) -> None:
    program, timeline = run_program(model(DECODE), target, **options)
    computing, reading = least_seconds(program, target)
    seconds = timeline.total_cycles / program.clock_hz
    assert reading > 3 * computing
    assert reading <= seconds <= 1.5 * reading
    constants = sum(row.read_constant for row in program.metrics.traffic) + program.metrics.first_read
    embedding = 32000 * 4096 * 2
    assert constants == pytest.approx(program.metrics.constants_bytes - embedding, rel=0.05)  # once, or they stay


def test_more_cores_share_the_work_of_resnet(model) -> None:
    one, many = (run_program(model(RESNET_F16), "aic100-std", cores=cores)[1].total_cycles for cores in (1, 14))
    assert 4 < one / many < 14


def test_integers_are_faster_than_floats(model) -> None:
    floats, integers = (run_program(model(r), "aic100-std", cores=4)[1].total_cycles for r in (RESNET_F16, RESNET_INT8))
    assert 1.5 < floats / integers < 2.5


def test_weights_that_fit_all_cores_stay_there(model) -> None:
    program, _ = run_program(model(RESNET_INT8), "aic100-std", cores=14)
    assert sum(row.read_constant for row in program.metrics.traffic) == 0
    assert program.metrics.first_read == program.metrics.constants_bytes


NOISE = 1.10


# BERT, ResNet and, among the slow tests, ViT are held to this by `test_laws_grid.py`.
@pytest.mark.parametrize("recipe", [DECODE], ids=lambda recipe: recipe.name)
def test_more_cores_are_not_slower(model, recipe: Recipe) -> None:
    times = [run_program(model(recipe), "aic100-std", cores=cores)[1].total_cycles for cores in (1, 2, 4, 8, 14)]
    assert all(more <= NOISE * fewer for fewer, more in pairwise(times)), times


@pytest.mark.parametrize(
    "recipe",
    [SMALL_BERT, RESNET_F16, pytest.param(DECODE, marks=pytest.mark.slow)],
    ids=["bert-base", "resnet50", "llm-decoder"],
)
def test_more_bandwidth_is_not_slower(model, recipe: Recipe) -> None:
    path, slow = model(recipe), targets.load("aic100-std")
    times = []
    for factor in (0.5, 1.0, 2.0, 4.0):
        program = api.compile_model(path, with_bandwidth(slow, factor), cores=4).program
        times.append(simulate(program).total_cycles)
    assert all(more <= NOISE * less for less, more in pairwise(times)), times


@pytest.mark.parametrize(
    ("recipe", "cores", "devices"),
    [(RESNET_F16, 14, 1), (SMALL_BERT, 1, 1), (SMALL_BERT, 2, 1), (DECODE, 4, 2)],
    ids=["resnet-14", "bert-1", "bert-2", "llm-2x4"],
)
def test_real_networks_obey_the_laws_of_memory(model, recipe: Recipe, cores: int, devices: int) -> None:
    built: Built = build(api.read(model(recipe)), targets.load("aic100-ultra"), cores=cores, devices=devices)
    order = Order(built)
    places_in_use_never_overlap(built, order)
    data_arrives_before_it_is_read(built, order)
    work_is_conserved(built)


# ---- the command line


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    return partial(called, capsys)


@pytest.fixture(scope="module")
def keywords(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "kws.onnx"
    make(Recipe("kws-cnn"), path)
    return path


def test_compile_writes_a_program_and_says_where(run, keywords: Path, tmp_path: Path) -> None:
    found = run("compile", keywords, "--target", "aic100-std", "--cores", 2, "-o", tmp_path / "build")
    written = tmp_path / "build" / "programqpc.bin"
    assert (found.code, found.err) == (0, f"wrote {written}\n")
    assert "commands on 1 × 2 cores; constants " in found.out
    assert found.out.count("\n") == 1
    program = decode_program(written.read_bytes(), source=str(written))
    assert (program.target, program.cores, program.stats.level) == ("aic100-std", 2, 40)
    assert (tmp_path / "build" / program.model).resolve() == keywords.resolve()
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == ["programqpc.bin"]


def test_the_same_model_compiles_to_the_same_bytes(run, keywords: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "again"]
    for folder in folders:
        assert run("compile", keywords, "--target", "aic100-std", "--stats-level", 70, "-o", folder).code == 0
    first, again = ((folder / "programqpc.bin").read_bytes() for folder in folders)
    assert first == again == encode_program(decode_program(first, source="first"))


def test_everything_that_can_be_asked_for_comes(run, keywords: Path, tmp_path: Path) -> None:
    timeline, phases = tmp_path / "timeline.csv", tmp_path / "phases"
    found = run(
        "compile",
        keywords,
        "--target",
        "aic100-std",
        "-o",
        tmp_path / "build",
        "--batch",
        4,
        "--precision",
        "i8",
        "--stats-level",
        100,
        "--ddr-stats",
        "--pmu-events",
        "3F,70,200",
        "--stats-batchsize",
        4,
        "--perf-metrics",
        "--perf-warnings",
        "--timeline",
        timeline,
        "--dump-phases-to",
        phases,
    )
    assert found.code == 0
    assert "Compiler estimated memory traffic:" in found.out
    assert "warning: " in found.out
    assert timeline.read_text(encoding="utf-8").startswith("ID,Start,End,Location,Op Type\n")
    names = sorted(path.name for path in phases.iterdir())
    assert names == ["1.canonicalise.txt", "2.place.txt", "3.split.txt", "4.tile.txt"]
    program = decode_program((tmp_path / "build" / "programqpc.bin").read_bytes(), source="build")
    assert (program.batch, program.stats.level, program.stats.batch_size) == (4, 100, 4)
    assert program.stats.events == (0x3F, 0x70, 0x200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stats-level", "0", "--ddr-stats"], "ddr stats need a stats level of at least 40; found 0"),
        (["--stats-level=-1"], "stats level -1: negative; expected 0 or more, such as 40, 50, 70 or 100"),
        (["--pmu-recipe", "AxiRd", "--pmu-events", "3F"], "a PMU recipe and PMU events exclude each other"),
        (["--pmu-events", "2,3F,70,100,101,110,111,200,201"], "9 PMU events: a core counts 8 at once"),
        (["--pmu-events", "99999"], "PMU event 99999: expected 0 to FFFF, 16 bits"),
        (["--stats-level", "0", "--pmu-recipe", "AxiRd"], "PMU counters need a stats level of at least 40; found 0"),
        (["--pmu-recipe", "Cycles"], "PMU recipe 'Cycles': not known; expected one of AxiRd"),
        (["--cores", "15"], "--cores 15: aic100-std has 14; expected 1 to 14"),
        (["--devices", "2"], "--devices 2: aic100-std has 1; expected 1 to 1"),
        (["--precision", "f12"], "--precision f12: not known; did you mean f16? expected one of"),
        (["--precision", "bool"], "--precision bool: not known"),
        (["--precision", "c64"], "--precision c64: not known"),
        (["--precision", "i4"], "--precision i4: aic100-std has no rate for it; expected one of f16, i8, u8, w8a8,"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    run, keywords, tmp_path, arguments: list[str], message: str
) -> None:
    found = run("compile", keywords, "--target", "aic100-std", "-o", tmp_path / "build", *arguments)
    assert message in found.one_line()
    assert not (tmp_path / "build").exists()


def test_a_target_that_is_not_described_for_it_cannot_be_compiled_for(run, keywords: Path, tmp_path: Path) -> None:
    found = run("compile", keywords, "--target", "max32690-cm4", "-o", tmp_path / "build")
    assert found.one_line() == (
        "opscope: max32690-cm4: cannot be compiled for; its file has no [tiling], [[routes]] or local memory\n"
    )


def test_a_damaged_model_is_refused(run, keywords: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(keywords.read_bytes()[:1000])
    found = run("compile", damaged, "--target", "aic100-std", "-o", tmp_path / "build")
    assert str(damaged) in found.one_line()
    assert not (tmp_path / "build").exists()


def test_a_place_that_cannot_be_written_is_refused(run, keywords: Path, tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a folder", encoding="utf-8")
    found = run("compile", keywords, "--target", "aic100-std", "-o", taken / "build")
    assert "cannot be written (Not a directory); expected a writable place" in found.one_line()
    assert taken.read_text(encoding="utf-8") == "not a folder"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(run, keywords: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert (
        "cannot be written (Permission denied)"
        in run("compile", keywords, "--target", "aic100-std", "-o", locked / "build").one_line()
    )


def test_a_model_that_is_not_there_is_refused(run, tmp_path: Path) -> None:
    found = run("compile", tmp_path / "none.onnx", "--target", "aic100-std", "-o", tmp_path / "build")
    assert "none.onnx" in found.one_line()
