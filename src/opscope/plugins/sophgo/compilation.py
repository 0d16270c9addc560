"""One compilation with tpu-mlir in a folder of its own → the files that it left, read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from ...backends import environments
from ...backends.environments import Toolchain
from ...backends.process import Ended, run, work_folder
from ...core.errors import ModelError, printable
from ...graph.graph import Graph
from ...quantization.samples import FileSamples, RandomSamples, Samples
from ...recording.recording import StageTime
from .compiled_files import Compiled, merged, read_mlir, read_placements
from .manifest import ENVIRONMENT
from .options import SophgoOptions
from .profile_file import Profile, read_profile

RANDOM_SAMPLES = 1  # where no data are given: times do not depend on them
MOST_SAMPLES = 100
_LONGEST_S = 3600
_NAME = "m"
_SETTINGS = {"OMP_NUM_THREADS": "2"}
_REASONS = (  # where the compiler says why, the best first; it ends with the command that failed, which says nothing
    re.compile(r"ASSERT INFO:\s*(.+)", re.IGNORECASE),
    re.compile(r"((?:Op|Type) not support.*)"),
    re.compile(r"\bloc\(.*?\): error: (.+)|^error: (.+)", re.MULTILINE),
    re.compile(r"what\(\):\s*(.+)"),
    re.compile(r"(\w+Error: (?!\[!Error\]).+)"),
)
_DEVICE_MEMORY = re.compile(r"device mem size: (\d+) \(weight: (\d+), instruct: (\d+), runtime: (\d+)\)")
_HOST_MEMORY = re.compile(r"host mem size: (\d+)")
_VERSION = re.compile(r"TPU-MLIR v?(\S+)")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What the compiled model takes in the memory of the device, as its own tool tells."""

    weight_bytes: int
    instruction_bytes: int
    runtime_bytes: int
    host_bytes: int


@dataclass(frozen=True, slots=True)
class Compilation:
    """All that one compilation left."""

    profiles: tuple[Profile, ...]  # of every core; empty: the compiler has no model of this chip's times
    compiled: Compiled
    memory: DeviceMemory | None
    model_bytes: int  # of the file that the chip is given
    stages: tuple[StageTime, ...]
    calibration: str  # what integers were calibrated with; empty: there are none
    version: str


class _Compiler:
    """The steps, each a program with its time taken."""

    def __init__(self, model: Path, options: SophgoOptions, folder: Path, tools: Toolchain) -> None:
        self.model, self.options, self.folder, self.tools = model, options, folder, tools
        self.stages: list[StageTime] = []

    def step(self, program: str, *words: str) -> Ended:
        """Run a program; what it says when it fails is the error, in one line."""
        start = perf_counter_ns()
        command = [str(self.tools.programs[program]), *words]
        ended = run(command, self.folder, longest_s=_LONGEST_S, variables=_SETTINGS)
        self.stages.append(StageTime(program, (perf_counter_ns() - start) // 1000))
        if ended.code or ended.timed_out:
            where = f"{program} of Sophgo's compiler {ended.how}"
            raise ModelError(str(self.model), "", f"{where}; it says: {reason_of(ended)}")
        return ended

    def transform(self, graph: Graph) -> str:
        """The model in the compiler's own dialect; returns the version of the compiler."""
        shapes = [list(graph.tensors[number].shape or (1,)) for number in graph.inputs]  # it has no scalars
        words = ["--model_name", _NAME, "--model_def", str(self.model.resolve()), "--mlir", f"{_NAME}.mlir"]
        ended = self.step("model_transform", *words, "--input_shapes", str(shapes).replace(" ", ""))
        found = _VERSION.search(ended.output + ended.errors)
        return found[1] if found else ""

    def calibrate(self, samples: Samples) -> list[str]:
        """Ranges of the model's tensors, for integers."""
        place = self.folder / "samples"
        place.mkdir()
        for number, feed in enumerate(samples.feeds(MOST_SAMPLES)):
            np.savez(place / f"{number:05d}.npz", **feed)  # type: ignore[arg-type]
        count = len(list(place.iterdir()))
        self.step("run_calibration", f"{_NAME}.mlir", "--dataset", place.name, "--input_num", str(count), "-o", "table")
        return ["--calibration_table", "table"]

    def deploy(self, calibrated: Sequence[str]) -> Path:
        """Compile for the chip; validation is left out, as it needs inputs and says nothing of times."""
        options = self.options
        file = f"{_NAME}.{options.chip.suffix}"
        words = [
            "--mlir",
            f"{_NAME}.mlir",
            "--chip",
            options.chip.name,
            "--quantize",
            options.quantize,
            "--model",
            file,
        ]
        words += ["--num_core", str(options.cores), "--skip_validation", "--tolerance", "0.0,0.0", *calibrated]
        self.step("model_deploy", *words)
        return self.folder / file


def compile_model(model: Path, graph: Graph, options: SophgoOptions) -> Compilation:
    """Compile, and read everything back."""
    tools = environments.found(ENVIRONMENT.name, options.tool)
    samples = _samples(graph, options) if options.calibrates else None
    with work_folder("sophgo") as folder:
        compiler = _Compiler(model, options, folder, tools)
        version = compiler.transform(graph)
        made = compiler.deploy(compiler.calibrate(samples) if samples else ())
        profiles = tuple(_profiles(folder, model, options))
        finals = sorted(folder.glob("*_final.mlir"))
        if not finals or not made.is_file():
            raise ModelError(str(model), "", f"the compiler left no {made.name if finals else 'final.mlir'}")
        tables = [read_placements(file) for file in sorted(folder.glob("*.bmodel.json"))]
        memory = _memory(compiler, made) if options.chip.suffix == "bmodel" else None
        told = samples.calibration.told if samples else ""
        size = made.stat().st_size
        compiled = merged([read_mlir(finals[0]), *tables])
        return Compilation(profiles, compiled, memory, size, tuple(compiler.stages), told, version)


def _samples(graph: Graph, options: SophgoOptions) -> Samples:
    tensors = [graph.tensors[number] for number in graph.inputs]
    ports = [(tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in tensors]
    if options.data is not None:
        return FileSamples(Path(options.data), ports)
    return RandomSamples(ports, RANDOM_SAMPLES)


def _profiles(folder: Path, model: Path, options: SophgoOptions) -> Iterator[Profile]:
    """Of every core that has commands."""
    if not options.chip.has_model:
        return
    files = sorted(folder.glob("compiler_profile_*.txt"), key=lambda file: (len(file.name), file.name))
    files = [file for file in files if file.stat().st_size]
    if not files:
        raise ModelError(str(model), "", "the compiler left no schedule; expected compiler_profile_0.txt")
    yield from map(read_profile, files)


def _memory(compiler: _Compiler, made: Path) -> DeviceMemory | None:
    ended = compiler.step("model_tool", "--info", made.name)
    compiler.stages.pop()  # it looks at what was compiled
    device, host = _DEVICE_MEMORY.search(ended.output), _HOST_MEMORY.search(ended.output)
    if device is None:
        return None
    weights, instructions, working = (int(device[place]) for place in (2, 3, 4))
    return DeviceMemory(weights, instructions, working, 0 if host is None else int(host[1]))


def reason_of(ended: Ended) -> str:
    """Why the compiler failed, in its own words."""
    said = f"{ended.output}\n{ended.errors}"
    for pattern in _REASONS:
        found = [next(filter(None, match.groups())) for match in pattern.finditer(said)]
        if found:
            return printable(found[-1].strip(), 300)
    return ended.last_words
