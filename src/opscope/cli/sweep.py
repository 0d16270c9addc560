"""The verb `sweep`."""

from __future__ import annotations

import json
import logging
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ..commands.backend_options import add_option, all_options, attribute
from ..commands.command import listed, write_result
from ..commands.options import add_options, add_shape, options_from
from ..core.errors import UsageError, printable
from ..options import SweepOptions
from ..options.shared import shapes

if TYPE_CHECKING:
    from typing import TextIO

    from ..core.manifest import Option
    from ..fleet.cell import Outcome
    from ..fleet.spec import Spec, Value
    from ..fleet.sweep import Progress, Started, SweepPlan

_MOST_NOTES = 20  # on cells without figures
_LINE_S = 10.0  # between two lines where there is no terminal


class SweepCommand:
    """Profile every combination of models, targets and options, each in its own process, and keep the results as rows
    of a store. Rows that the store has are not run again: a stopped sweep continues."""

    examples = """\
examples:
  opscope sweep --models 'models/*.onnx' --target aic100-std,aic100-pro --cores 1,2,4 -o fleet.store
  opscope sweep sweep.toml -o fleet.store --dry-run
  opscope sweep sweep.toml -o fleet.store --scheduler tcp://scheduler:8786
  opscope sweep sweep.toml -o fleet.store --cluster slurm --jobs 32
  opscope sweep sweep.toml -o fleet.store --retry-failed

Exit codes: 0 fine, 1 a cell crashed, took too long or too much memory, 2 wrong usage or unreadable input, 130
interrupted: finished cells are kept.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "opscope sweep SPEC.toml | --models GLOB … [--AXIS V,V,…] -o STORE [OPTION …]"
        parser.add_argument("spec", type=Path, nargs="?", metavar="SPEC.toml", help="file with models and axes")
        parser.add_argument("-o", "--output", required=True, metavar="STORE", help="folder, or address of a store")
        parser.add_argument("--models", nargs="+", default=[], metavar="GLOB", help="model files, or patterns of them")
        parser.add_argument("--target", metavar="T,T,…", help="names (see `opscope targets`) or TOML files")
        parser.add_argument(
            "--backend", metavar="B,B,…", help="what measures or predicts the times (default: the best for each target)"
        )
        parser.add_argument(
            "--zip",
            action="append",
            default=[],
            metavar="AXIS,AXIS",
            help="take the values of these axes in pairs, not in all combinations",
        )
        add_shape(parser, shapes("of every model"))
        add_options(parser, SweepOptions)
        parser.add_argument(
            "--dry-run", action="store_true", help="print the cells and an estimate of the time, run nothing"
        )
        parser.add_argument(
            "--commit", metavar="C", help="commit to keep with every row (default: that of git in this folder)"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        group = parser.add_argument_group("axes, each a comma list, for the backends that have them")
        for option in _known():
            add_option(group, option, several=True)

    def run(self, args: Namespace) -> int:
        from ..fleet import verbs

        spec, options = _spec(args), options_from(args, SweepOptions)
        if args.dry_run:
            plan = verbs.plan_sweep(spec, args.output, options)
            write_result(lambda out: _print_plan(plan, options.jobs, out, as_json=args.json), None)
            return 0
        if args.scheduler is not None or args.cluster is not None:
            logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our one line says what is wrong
        display = ProgressDisplay(args.output)
        try:
            state = verbs.sweep(
                spec, args.output, options, commit=args.commit, started=display.start, progress=display.show
            )
        except KeyboardInterrupt:
            display.end()
            print(
                f"opscope: interrupted; {display.ended} cells are in {args.output}, the same command goes on",
                file=sys.stderr,
            )
            return 130
        display.end()
        result = {"store": args.output, "cells": display.cells, "run": state.ended, "ok": state.done}
        result |= {"failed": state.failed, "refused": state.refused, "seconds": round(state.seconds, 3)}
        words = f"{state.done} ok, {state.failed} failed, {state.refused} refused of {display.cells} cells"
        before = display.cells - state.ended
        words += f"; {before} were in the store before" if before else ""
        write_result(lambda out: print(json.dumps(result) if args.json else words, file=out), None)
        print(f"wrote {args.output}", file=sys.stderr)
        return 1 if state.failed else 0


def _spec(args: Namespace) -> Spec:
    """Of the file, or of the command line; both at once would hide which of them counts."""
    from ..fleet.spec import Pattern, Spec, read_spec

    axes: dict[str, tuple[Value, ...]] = {}
    for name in ("target", "backend", *_axis_names()):
        value = getattr(args, attribute(name))
        if value is True:
            axes[name] = (True,)
        elif value is not None and value is not False:
            axes[name] = listed(name, value)
    if args.spec is not None:
        if args.models or axes or args.zip or args.shape:
            raise UsageError(f"{args.spec}: says what to sweep; expected no --models and no axes beside it")
        return read_spec(args.spec)
    zipped = tuple(listed("zip", text) for text in args.zip)
    shapes = ((Pattern({}), dict(args.shape)),) if args.shape else ()
    return Spec(tuple(args.models), Path(), axes, zipped, shapes=shapes)


def _axis_names() -> list[str]:
    return [option.name for option in _known()]


class ProgressDisplay:
    """Progress: a line that is drawn again on a terminal, a line every few seconds elsewhere."""

    def __init__(self, store: str, *, reasons: bool = True) -> None:
        self.store = store
        self.reasons = reasons  # of cells without figures, as they end
        self.cells = self.ended = 0
        self._last = monotonic()
        self._drawn = False
        self._notes = 0

    def start(self, started: Started) -> None:
        plan = started.plan
        self.cells = len(plan.cells)
        words = f"{len(plan.todo)} of {self.cells} cells to run, {started.at_once} at once"
        words += f"; {len(plan.failed)} without figures are left as they are (--retry-failed)" if plan.failed else ""
        print(words, file=sys.stderr)
        if started.dashboard:
            print(f"dashboard {started.dashboard}", file=sys.stderr)

    def show(self, state: Progress) -> None:
        self.ended = state.ended
        if self.reasons and state.last is not None and state.last.reason:
            self._note(state.last)
        if sys.stderr.isatty():
            print(f"\r\033[K{progress_line(state)}", end="", file=sys.stderr, flush=True)
            self._drawn = True
        elif monotonic() - self._last >= _LINE_S:
            self._last = monotonic()
            print(progress_line(state), file=sys.stderr, flush=True)

    def _note(self, outcome: Outcome) -> None:
        """Why a cell has no figures; of many, the first."""
        self._notes += 1
        self.end()
        if self._notes <= _MOST_NOTES:
            reason = printable(outcome.reason, 200)
            print(f"note: cell {outcome.id[:12]} {outcome.status}: {reason}", file=sys.stderr)
        elif self._notes == _MOST_NOTES + 1:
            print("note: further reasons are in the store: SELECT model, reason FROM cells", file=sys.stderr)

    def end(self) -> None:
        if self._drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._drawn = False


def progress_line(state: Progress) -> str:
    """`120 of 400 cells, 2 failed, 2 running, 35 s left`"""
    left = "" if state.left_s is None else f", {duration(state.left_s)} left"
    running = min(state.jobs, state.total - state.ended)
    bad = state.failed + state.refused
    without = f", {bad} without figures" if bad else ""
    return f"{state.ended} of {state.total} cells{without}, {running} running{left}"


def duration(seconds: float) -> str:
    """`2 h 05 min`, `3 min 20 s`, `12 s`"""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


def _known() -> list[Option]:
    """Options of every backend that cells may have."""
    from ..language_models.cell import OPTIONS

    return all_options(OPTIONS)


def _print_plan(plan: SweepPlan, jobs: int | None, out: TextIO, *, as_json: bool) -> None:
    from os import cpu_count

    from ..core.json_files import write_json
    from ..views.text.columns import columns

    at_once = jobs or cpu_count() or 1
    time_s = None if plan.seconds is None else plan.seconds / at_once
    if as_json:
        todo = {cell.id for cell in plan.todo}
        rows = [
            {
                "id": c.id,
                "model": c.model,
                "target": c.target_name,
                "backend": c.backend,
                "options": c.options,
                "run": c.id in todo,
            }
            for c in plan.cells
        ]
        write_json({"cells": rows, "seconds": time_s}, out)
        return
    shown = [
        [cell.model, cell.target_name or "—", cell.backend, " ".join(f"{k}={v}" for k, v in cell.options.items())]
        for cell in plan.todo
    ]
    for line in columns(["model", "target", "backend", "options"], shown, align="<<<<", limits={0: 40, 1: 30, 3: 60}):
        print(line, file=out)
    guess = "nothing like them was run before: the time is not known" if time_s is None else f"about {duration(time_s)}"
    print(f"{len(plan.todo)} of {len(plan.cells)} cells to run, {at_once} at once; {guess}", file=out)


COMMANDS = {"sweep": SweepCommand()}
