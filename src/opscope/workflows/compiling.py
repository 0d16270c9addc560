"""`opscope compile` behind `api.compile_model`: wires reader, compiler, its phases and the program file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..compiler import compile_graph
from ..compiler.performance_warnings import PerformanceWarning, performance_warnings
from ..compiler.phases import phase_text
from ..compiler.plan import CompileOptions, Plan
from ..compiler.stats_options import stats_options
from ..core.files import PROGRAM_FILE, write_bytes
from ..estimate.machines import use_machine
from ..graph.graph import Graph
from ..machine.target import Target
from ..program.program import Program
from ..program.program_file import encode_program
from ..readers import read_model


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program with what the compiler has to say about it."""

    program: Program
    warnings: tuple[PerformanceWarning, ...]
    graph: Graph  # what the program's ops are of, in their order
    target: Target

    def forecast(self) -> tuple[list[float], list[float]]:
        """Estimated start and end of every command, in core cycles."""
        from ..compiler.forecast import forecast

        start, end = forecast(self.program)
        return start.tolist(), end.tolist()


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile, and how; fields as the arguments of `api.compile_model`."""

    model: Path
    target: Target
    cores: int | None
    devices: int
    batch: int | None
    shapes: Mapping[str, tuple[int, ...]] | None
    stats_level: int
    ddr_stats: bool
    pmu_recipe: str | None
    pmu_events: str | None
    stats_batchsize: int | None
    parallel: str
    network: str | None

    def options(self, graph: Graph) -> CompileOptions:
        lead = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
        stats = stats_options(
            self.target,
            level=self.stats_level,
            ddr=self.ddr_stats,
            recipe=self.pmu_recipe,
            events=self.pmu_events,
            batch_size=self.stats_batchsize or (lead[0] if lead else 1),
        )
        return CompileOptions(stats, self.parallel, self.network or self.target.runtime.network)


def compile_request(request: Request, output: Path | None, phases: Path | None) -> Compiled:
    """The program, in a folder where one is given; and a readable file after every pass where one is given."""
    machine = use_machine(request.target, cores=request.cores, devices=request.devices)
    graph = read_model(request.model, shapes=request.shapes, batch=request.batch)
    plans: list[Plan] = []

    def after_pass(name: str, plan: Plan) -> None:
        plans.append(plan)
        if phases is not None:
            write_bytes(phases / f"{len(plans)}.{name}.txt", phase_text(name, plan).encode())

    program = compile_graph(graph, machine, request.options(graph), after_pass=after_pass)
    if output is not None:
        program = replace(program, model=os.path.relpath(request.model.resolve(), output.resolve()))
        write_bytes(output / PROGRAM_FILE, encode_program(program))
    return Compiled(program, tuple(performance_warnings(plans[-1], program)), plans[-1].graph, request.target)
