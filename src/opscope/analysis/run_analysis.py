"""RunAnalysis: a Run with all that is derived from it – activities, dependencies, critical path –, computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Does
from ..recording.finding import EngineUse, WaitFor
from ..recording.run import Run
from ..recording.summary import OpTotal, Share, Summary
from ..recording.trace import NONE, SpanKind
from .causes import COMPUTE, LAUNCH, LAYOUT, LINK, MEMORY, does_of
from .op_bounds import memory_bound_commands, memory_bound_ops
from .outer_memory import TensorTraffic, tensor_traffic
from .structure import Structure, structure_of
from .timeline.activities import Activities, activities_of
from .timeline.breakdown import breakdown
from .timeline.critical_path import Path, critical_path
from .timeline.dependencies import Dependencies, dependencies_of
from .timeline.gaps import Stalls, engine_uses, waits_for
from .timeline.intervals import largest, total
from .timeline.replay import Replay, slack_of

UNNAMED = OpTotal("", "", None, None, None, None, None, None, None, None, "", "")


@dataclass(frozen=True)
class RunAnalysis:
    """A Run with what rules, laws and rollups ask of it; each part is computed at its first use."""

    run: Run

    def with_totals(self, totals: Summary) -> RunAnalysis:
        """Of the same run with a breakdown and waits in its totals: nothing depends on those, and all else stays."""
        other = RunAnalysis(replace(self.run, summary=totals))
        vars(other).update(vars(self) | {"run": other.run})
        return other

    @cached_property
    def work(self) -> Activities:
        found = activities_of(self.run)
        commands = np.append(memory_bound_commands(self.run), False)
        known = (found.command >= 0) & (found.command < len(commands) - 1)
        slow_bytes = np.append(memory_bound_ops(self.run), False)[found.op]
        slow_bytes = (slow_bytes | commands[np.where(known, found.command, -1)]) & (found.cause == COMPUTE)
        return replace(found, cause=np.where(slow_bytes, MEMORY, found.cause)) if slow_bytes.any() else found

    @cached_property
    def order(self) -> Dependencies:
        return dependencies_of(self.work)

    @cached_property
    def path(self) -> Path:
        return critical_path(self.order)

    @cached_property
    def replay(self) -> Replay:
        return Replay(self.order)

    @cached_property
    def slack(self) -> Numbers:
        return slack_of(self.order)

    @cached_property
    def traffic(self) -> tuple[TensorTraffic, ...]:
        return tensor_traffic(self.run)

    @cached_property
    def stalls(self) -> Stalls:
        return Stalls.of(self)

    @cached_property
    def breakdown(self) -> tuple[Share, ...]:
        return breakdown(self)

    @cached_property
    def waits(self) -> tuple[WaitFor, ...]:
        return waits_for(self)

    @cached_property
    def engines(self) -> tuple[EngineUse, ...]:
        return engine_uses(self)

    @cached_property
    def path_ns(self) -> Numbers:
        """Per activity, how much of the critical path it is."""
        return self.path.of_activities(len(self.work))

    @cached_property
    def caused_ns(self) -> Numbers:
        """Per activity, what the breakdown counts of it as its cause: its part of the path without its launch."""
        return self.path.of_causes(self.work.cause)

    @cached_property
    def gap_ns(self) -> Numbers:
        """Per activity, how much of the critical path is the gap before it."""
        gaps = (self.path.is_gap == 1) & (self.path.activity != NONE)
        found = np.bincount(self.path.activity[gaps], self.path.ns[gaps], minlength=len(self.work))
        return found.astype(np.int64)

    @cached_property
    def ops(self) -> tuple[OpTotal, ...]:
        """The total of every op of the run, in the order of its ops; UNNAMED where the summary has none."""
        found = [UNNAMED] * len(self.run.ops)
        for row in self.run.summary.ops:
            if row.op is not None:
                found[row.op] = row
        return tuple(found)

    @cached_property
    def structure(self) -> Structure:
        return structure_of(self.run.ops)

    @cached_property
    def op_busy_ns(self) -> Numbers:
        """Per op, its activities added up."""
        return self.per_op(self.work.ns)

    @cached_property
    def op_path_ns(self) -> Numbers:
        return self.per_op(self.path_ns)

    @cached_property
    def around_ns(self) -> Numbers:
        """Per op, what starting it, handing over and, where it does more than that, changing layouts takes."""
        changes_layout = np.array([does_of(op) is Does.LAYOUT for op in self.ops] + [False])[self.work.op]
        around = np.isin(self.work.cause, (LAUNCH, LINK)) | ((self.work.cause == LAYOUT) & ~changes_layout)
        return self.per_op(np.where(around, self.work.ns, 0))

    def per_op(self, values: Numbers) -> Numbers:
        """A column of activities, added up per op."""
        known = self.work.op != NONE
        return total(self.work.op[known], values[known], len(self.run.ops))

    def of_ops(self, chosen: npt.NDArray[np.bool_]) -> Numbers:
        """Positions of the activities of some ops; `chosen` has one entry per op."""
        return np.flatnonzero(np.append(chosen, False)[self.work.op])

    @cached_property
    def on_host(self) -> npt.NDArray[np.bool_]:
        """Per activity, whether it is a call or a stage of the host."""
        return np.asarray(self.run.trace.spans["kind"][self.work.row] == SpanKind.HOST, np.bool_)

    @cached_property
    def moves(self) -> npt.NDArray[np.bool_]:
        """Per activity, whether it is bytes on their way, and not work that waits for them."""
        spans = self.run.trace.spans[self.work.row]
        return np.asarray((spans["kind"] == SpanKind.TRANSFER) | (spans["does"] == Does.MOVE), np.bool_)

    @cached_property
    def device_ns(self) -> int:
        """From the first to the last work that is not the host's."""
        device = np.flatnonzero(~self.on_host)
        return int(self.work.end[device].max() - self.work.start[device].min()) if len(device) else 0

    @property
    def has_timeline(self) -> bool:
        return len(self.work) > 0

    @cached_property
    def wall_ns(self) -> int | None:
        """Of the inference: of its timeline, else as the summary has it, with the host's stages where it has them."""
        if self.has_timeline:
            return self.work.wall_ns
        return sum(stage.ns for stage in self.run.summary.host) or self.run.summary.latency.value_ns

    def costliest_ops(self, positions: Numbers, weights: Numbers, most: int = 5) -> tuple[str, ...]:
        """Names of the ops that most of the weight belongs to; no name twice."""
        op = self.work.op[positions]
        sums = np.bincount(op[op != NONE], weights[positions][op != NONE], minlength=len(self.run.ops))
        best = np.argsort(-sums, kind="stable")
        names = dict.fromkeys(self.run.ops[place].name for place in best[: 4 * most].tolist() if sums[place] > 0)
        return tuple(names)[:most]

    def rows(self, positions: Numbers, weights: Numbers, most: int = 10) -> tuple[int, ...]:
        """Rows of the spans table, the weightiest first."""
        best = positions[largest(weights[positions], 4 * most)]
        return tuple(dict.fromkeys(self.work.row[best].tolist()))[:most]
