"""A folder as `compile` and `run` leave it: a program file and raw stats buffers of some inferences."""

from __future__ import annotations

from pathlib import Path

from opscope import api
from opscope.compiler import compile_graph
from opscope.device import Inference, collect
from opscope.estimate.machines import use_machine
from opscope.options import CompileOptions
from opscope.program.capture import encode_capture
from opscope.program.program import Program
from opscope.program.program_file import encode_program, program_id
from opscope.simulation import simulate
from opscope.zoo import Recipe, make

START_TICK = 9_803_252_406_782


def compiled(
    folder: Path, recipe: Recipe, *, level: int = 70, cores: int = 2, devices: int = 1, target: str = "aic100-std"
) -> Program:
    """Compile a model of the zoo, with its program file in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"model.{recipe.format}"
    make(recipe, model)
    options = CompileOptions(stats_level=level, stats_batchsize=4, network="QAicGraph")
    program = compile_graph(api.read(model), use_machine(target, cores=cores, devices=devices), options)
    (folder / "programqpc.bin").write_bytes(encode_program(program))
    return program


def run(folder: Path, program: Program, *, inferences: int = 2) -> Path:
    """Raw stats buffers of some inferences, one after the other on the timer."""
    identity = program_id((folder / "programqpc.bin").read_bytes())
    stats = folder / "stats"
    stats.mkdir(exist_ok=True)
    for inference in range(inferences):
        timeline = simulate(program, seed=1, inference=inference)
        ran = Inference(identity, 0, inference, START_TICK + inference * 1_000_000, 700, 3)
        for device in range(program.devices):
            capture = collect(program, timeline, ran, device=device)
            part = "" if program.devices == 1 else f"_slice{device:02d}"
            name = f"aic-profiling-program-0-activation-0-inf-{inference}-{program.name}{part}-aiccyclecounts.bin"
            (stats / name).write_bytes(encode_capture(capture))
    return stats


def keyword_spotter(folder: Path, **options: int) -> Path:
    run(folder, compiled(folder, Recipe("kws-cnn"), **options))  # type: ignore[arg-type]
    return folder


def bert(folder: Path, *, devices: int = 1, cores: int = 2) -> Path:
    """Two layers of BERT: enough for every kind of command and for transfers in flight at once."""
    recipe = Recipe("bert-base", precision="f16", sequence=64, weights=False, options={"layers": 2})
    target = "aic100-ultra" if devices > 1 else "aic100-std"
    program = compiled(folder, recipe, cores=cores, devices=devices, target=target)
    run(folder, program, inferences=1)
    return folder
