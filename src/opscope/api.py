"""One function per user verb: the only place that wires stages together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import targets
from .compatibility import Compatibility
from .errors import UsageError
from .estimate.build_report import build_report
from .estimate.compatible import check_compatibility
from .estimate.flat import flat_report as count_flat
from .estimate.price import Machine
from .graph import DType, Graph
from .program import Program
from .readers import read_model
from .report import Report
from .target import Target

if TYPE_CHECKING:
    from .compiler.plan import Plan
    from .compiler.warn import PerformanceWarning

PROGRAM_FILE = "programqpc.bin"

_CHUNK_BYTES = 1 << 20


def report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """Estimate what a model takes on a target.

    Args:
        model: path of an ONNX or TensorFlow Lite file.
        target: name from the catalogue, path of a target TOML file, or a Target.
        shapes: graph input name → shape, for dimensions the model leaves open.
        batch: leading dimension of every input.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        advise: try changes to the graph and suggest those that help.
        fingerprint: put the SHA-256 of the model file into the report, which means reading all of it.
    """
    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    return build_report(graph, machine, sha256=sha256_of(path) if fingerprint else None, advise=advise)


def flat_report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """The report by flat counting: every operation priced like a MAC. Arguments as for `report`."""
    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    flat = count_flat(graph, machine, sha256=sha256_of(path) if fingerprint else None)
    return flat if advise else replace(flat, suggestions=(), heavy_memory=(), heavy_macs=())


def compatibility(model: str | Path, target: str | Path | Target) -> tuple[Graph, Compatibility]:
    """What of a model a target cannot take, with the graph it was found in."""
    graph = read_model(Path(model))
    return graph, check_compatibility(graph, use_machine(target))


def read(model: str | Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> Graph:
    """Read a model file."""
    return read_model(Path(model), shapes=shapes, batch=batch)


def use_machine(target: str | Path | Target, *, cores: int | None = None, devices: int = 1) -> Machine:
    """So many cores and devices of a target."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    have_cores, have_devices = round(chosen.topology.cores.value), round(chosen.topology.devices.value)
    for word, asked, have in (("cores", cores, have_cores), ("devices", devices, have_devices)):
        if asked is not None and not 1 <= asked <= have:
            raise UsageError(f"--{word} {asked}: {chosen.name} has {have}; expected 1 to {have}")
    return Machine(chosen, devices=devices, cores=have_cores if cores is None else cores)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program with what the compiler has to say about it."""

    program: Program
    warnings: tuple[PerformanceWarning, ...]

    def forecast(self) -> tuple[list[float], list[float]]:
        """Estimated start and end of every command, in core cycles."""
        from .compiler.forecast import forecast

        start, end = forecast(self.program)
        return start.tolist(), end.tolist()


def compile_model(
    model: str | Path,
    target: str | Path | Target,
    output: str | Path | None = None,
    *,
    cores: int | None = None,
    devices: int = 1,
    batch: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    precision: str | None = None,
    stats_level: int = 40,
    ddr_stats: bool = False,
    pmu_recipe: str | None = None,
    pmu_events: str | None = None,
    stats_batchsize: int | None = None,
    parallel: str = "tensor",
    network: str | None = None,
    phases: Path | None = None,
) -> Compiled:
    """Compile a model for the simulated device.

    Args:
        model: path of an ONNX or TensorFlow Lite file.
        target: name from the catalogue, path of a target TOML file, or a Target.
        output: folder that gets `programqpc.bin`; None writes nothing.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        batch: leading dimension of every input.
        shapes: graph input name → shape, for dimensions the model leaves open.
        precision: data type that float tensors run as; None: as the target says.
        stats_level: 0, 40, 50, 70 or 100.
        ddr_stats: count DDR traffic per core.
        pmu_recipe: name of a set of PMU events.
        pmu_events: comma list of PMU event numbers, hexadecimal.
        stats_batchsize: inferences in one batch; the model's batch when not given.
        parallel: how devices share the work: tensor or pipeline.
        network: name of the network in file names and traces; the target's own when not given.
        phases: folder that gets one readable file per pass.
    """
    from .compiler import compile_graph
    from .compiler.phases import phase_text
    from .compiler.plan import CompileOptions
    from .compiler.stats_options import stats_options
    from .compiler.warn import performance_warnings
    from .program_file import encode_program

    machine = use_machine(with_precision(target, precision), cores=cores, devices=devices)
    graph = read_model(Path(model), shapes=shapes, batch=batch)
    lead = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    options = CompileOptions(
        stats=stats_options(
            machine.target, level=stats_level, ddr=ddr_stats, recipe=pmu_recipe, events=pmu_events,
            batch_size=stats_batchsize or (lead[0] if lead else 1),
        ),
        parallel=parallel,
        network=network or machine.target.runtime.network,
    )  # fmt: skip
    plans: list[Plan] = []

    def after_pass(name: str, plan: Plan) -> None:
        plans.append(plan)
        if phases is not None:
            write_bytes(phases / f"{len(plans)}.{name}.txt", phase_text(name, plan).encode())

    program = compile_graph(graph, machine, options, after_pass=after_pass)
    if output is not None:
        folder = Path(output)
        located = replace(program, model=os.path.relpath(Path(model).resolve(), folder.resolve()))
        write_bytes(folder / PROGRAM_FILE, encode_program(located))
        program = located
    return Compiled(program, tuple(performance_warnings(plans[-1], program)))


def with_precision(target: str | Path | Target, precision: str | None) -> Target:
    """The target, running float tensors as another type."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    if precision is None:
        return chosen
    known = {dtype.label for dtype in DType if dtype.bits}
    if precision not in known:
        raise UsageError(f"precision {precision!r}: not known; expected one of {', '.join(sorted(known))}")
    floats = [dtype.label for dtype in DType if dtype.is_float and dtype.bits]
    return replace(chosen, precision={label: precision for label in floats if label != precision})


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path}: cannot be written ({reason}); expected a writable place") from error
