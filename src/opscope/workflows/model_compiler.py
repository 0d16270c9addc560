"""`opscope compile` behind `api.compile_model`: wires reader, compiler, its phases and the program file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..compiler import Compiler
from ..compiler.plan import Plan
from ..compiler.program_bounds import least_bounds, surely_fits
from ..core.errors import ModelError, printable
from ..core.files import write_bytes
from ..estimate.machines import use_machine
from ..estimate.precision import with_precision
from ..graph.batch import batch_size
from ..graph.graph import Graph
from ..machine.corners import Corner
from ..machine.target import Target
from ..options import CompileOptions
from ..program.bounds import check_capacity
from ..program.file_names import PROGRAM_FILE
from ..program.program import NO_OP, Program
from ..program.program_file import encode_program
from ..readers import graph_of
from .retained_state import with_state

if TYPE_CHECKING:
    from ..compiler.performance_warnings import PerformanceWarning


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program with what the compiler has to say about it."""

    program: Program
    warnings: tuple[PerformanceWarning, ...]
    graph: Graph  # what the program's ops are of, in their order
    target: Target

    def times(self) -> tuple[list[float], list[float]]:
        """Start and end of every command in core cycles, with typical figures and before any device runs them."""
        from ..simulation import simulate

        timeline = simulate(self.program)
        return timeline.start.tolist(), timeline.done.tolist()


class ModelCompiler:
    """A model that is compiled with one choice after the other: it is read once, and no pass does the same twice."""

    def __init__(self, model: Graph | Path) -> None:
        self.model = model
        self._compilers: dict[object, Compiler] = {}  # of what was read, by the shapes that were asked for

    def compile(
        self,
        target: str | Path | Target,
        options: CompileOptions,
        *,
        corner: Corner = Corner.TYPICAL,
        phases: Path | None = None,
        timed_only: bool = False,
    ) -> tuple[Program, Plan]:
        """The program and what the passes decided; a readable file after every pass where a folder is given.

        Args:
            timed_only: the program is simulated and not kept.
        """
        chosen = with_precision(target, options.precision, kv_cache=options.kv_cache)
        machine = use_machine(chosen, cores=options.cores, devices=options.devices)
        plans: list[Plan] = []

        def after_pass(name: str, plan: Plan) -> None:
            plans.append(plan)
            if name == "split" and not surely_fits(plan):  # code for what cannot fit would take long to generate
                check_capacity(least_bounds(plan), target=printable(plan.machine.target.name))
            if phases is not None:
                from ..compiler.phases import phase_text

                write_bytes(phases / f"{len(plans)}.{name}.txt", phase_text(name, plan).encode())

        program = self._compiler(options).compile(
            machine, options, corner=corner, after_pass=after_pass, timed_only=timed_only
        )
        _check_has_work(self._compiler(options).graph, program)
        check_capacity(program.bounds, target=printable(program.target))
        return program, plans[-1]

    def graph(self, options: CompileOptions) -> Graph:
        """The model as it was read for the shapes that the options ask for."""
        return self._compiler(options).graph

    def _compiler(self, options: CompileOptions) -> Compiler:
        key = options.batch, tuple((options.shapes or {}).items()), options.shapes_from_run
        if key not in self._compilers:
            graph = graph_of(
                self.model, shapes=options.shapes, batch=options.batch, shapes_from_run=options.shapes_from_run
            )
            _check_has_data(graph)
            self._compilers[key] = Compiler(graph)
        return self._compilers[key]


def _check_has_data(graph: Graph) -> None:
    """Refuse a batch of nothing: every part of it would be nothing, too."""
    first = next((graph.tensors[t] for t in graph.inputs if graph.tensors[t].shape), None)
    if first is not None and not batch_size(graph):
        shape = "x".join(map(str, first.shape or ()))
        problem = f"input {printable(first.name)!r} is {shape}, a batch of nothing; expected at least 1"
        raise ModelError(printable(graph.source or graph.name, 200), "", problem)


def _check_has_work(graph: Graph, program: Program) -> None:
    """Refuse a program that does nothing: its time would be that of starting it, and say nothing of the model."""
    if (program.commands["op"] != NO_OP).any():
        return
    reasons = dict.fromkeys(op.unknown for op in program.ops if op.unknown)
    why = f" ({'; '.join(list(reasons)[:3])})" if reasons else ""
    problem = f"none of its {len(program.ops)} ops gives a command for {program.target}{why}"
    raise ModelError(printable(graph.source or graph.name, 200), "", f"{problem}; expected one that has work")


def compile_model(
    model: Graph | Path,
    target: str | Path | Target,
    options: CompileOptions,
    *,
    output: Path | None = None,
    phases: Path | None = None,
) -> Compiled:
    """The program, in a folder where one is given."""
    from ..compiler.performance_warnings import performance_warnings

    compiler = ModelCompiler(model)
    program, plan = compiler.compile(target, options, phases=phases)
    program = with_state(compiler.graph(options), program, options)
    if output is not None:
        file = Path(model.source) if isinstance(model, Graph) else model
        program = replace(program, model=os.path.relpath(file.resolve(), output.resolve()))
        write_bytes(output / PROGRAM_FILE, encode_program(program))
    return Compiled(program, tuple(performance_warnings(plan, program)), plan.graph, plan.machine.target)
