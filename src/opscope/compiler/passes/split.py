"""Split: choose along which axis every op is divided between the lanes (cores of all devices).

An option costs the time of the largest portion, or of loading its weights; plus an all-gather of every input that
lanes hold otherwise than the option needs it; plus the penalty that its sharding of the output puts on the readers.
A backward pass over the ops computes the penalties, a forward pass then takes the cheapest option of each op.

Example: `H = X·W1`, `Y = H·W2` on 4 cores. `Y` costs 100 cycles split by rows (each core needs its rows of H) and 80
split by channels (each core needs all of H); an all-gather of H costs 30.

    H is           Y by rows    Y by channels    cheapest    penalty
    whole          100          80               80          0
    split by row   100          80 + 30          100         20
    by channel     100 + 30     80 + 30          110         30

So `X·W1` is split by rows if that is at most 10 cycles slower than by channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf

from ...graph.graph import ABSENT, Op, Role
from ...graph.kinds import Family
from ..plan import Placed, Plan, Split, channel_axis
from .axes import WHOLE, input_axes
from .place import has_weights

_ANYHOW = -2  # beside WHOLE, instead of an axis: the input may be cut along any


def split(plan: Plan) -> Plan:
    """The plan with a split for every op."""
    return replace(plan, splits=_Splitter(plan).run())


def pipeline_devices(plan: Plan) -> list[tuple[int, ...]]:
    """Devices that work on each op: all of them or, in a pipeline, one per op in stages of about equal cycles."""
    devices = plan.machine.devices
    everybody = tuple(range(devices))
    if plan.options.parallel != "pipeline" or devices == 1:
        return [everybody] * len(plan.placed)
    total = sum(placed.cycles for placed in plan.placed) or 1.0
    stages: list[tuple[int, ...]] = []
    done = 0.0
    for placed in plan.placed:
        stages.append((min(devices - 1, int(devices * done / total)),))
        done += placed.cycles
    return stages


@dataclass(frozen=True, slots=True)
class _Option:
    """One way to split an op."""

    axis: int | None  # of its first output; None: every lane does all of it
    extent: int
    cycles: float  # of the lane with the largest portion
    needs: tuple[int, ...]  # axis that each input must be cut along, or WHOLE, or _ANYHOW


@dataclass(frozen=True, slots=True)
class _Sharding:
    """How a tensor is distributed over the lanes."""

    axis: int | None  # None: whole on every lane
    extent: int  # of that axis
    devices: tuple[int, ...]


@lru_cache(maxsize=4096)
def same_portions(extent: int, other: int, lanes: int) -> bool:
    """Whether splitting either extent between the lanes gives every lane the same share.

    12 heads and 768 channels over 4 lanes do: 3 of 12 are 192 of 768. Over 5 lanes the boundaries differ.
    """
    return extent == other or all(
        (lane * extent // lanes) * other == (lane * other // lanes) * extent for lane in range(lanes)
    )


class _Splitter:
    """The two passes over the ops; `run` returns a split for every op."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.devices = pipeline_devices(plan)
        self.options = [self._options(*pair) for pair in zip(plan.placed, self.devices, strict=True)]
        self.shardings: dict[int, _Sharding] = {}
        self.views: dict[int, list[int]] = {}  # tensor → all tensors that are the same bytes, in one list
        self.penalty: dict[int, dict[int | None, float]] = {}  # tensor → axis → cycles that readers pay for that cut

    def run(self) -> tuple[Split, ...]:
        for index in reversed(range(len(self.options))):
            self._propagate_back(index)
        return tuple(self._choose(index) for index in range(len(self.options)))

    # ---- options --------------------------------------------------------------------------------------------------

    def _options(self, placed: Placed, devices: tuple[int, ...]) -> list[_Option]:
        op = placed.op
        if placed.unknown:  # how it would read them is not known either: whatever was assumed could be too much
            return [_Option(None, 1, 0.0, (_ANYHOW,) * len(op.inputs))]
        options = [_Option(None, 1, self._cycles(placed, None, 1, devices), (WHOLE,) * len(op.inputs))]
        for axis, extent in enumerate(self.graph.tensors[op.outputs[0]].shape or ()):
            needs = input_axes(op, self.graph, axis) if extent > 1 and self._is_common(op, axis, extent) else None
            if needs is not None:
                options.append(_Option(axis, extent, self._cycles(placed, axis, extent, devices), needs))
        return options

    def _is_common(self, op: Op, axis: int, extent: int) -> bool:
        """Whether all outputs have the axis that the first one has."""
        shapes = [self.graph.tensors[t].shape or () for t in op.outputs]
        return all(len(shape) > axis and shape[axis] == extent for shape in shapes)

    def _cycles(self, placed: Placed, axis: int | None, extent: int, devices: tuple[int, ...]) -> float:
        lanes = len(devices) * self.plan.machine.cores
        largest = -(-extent // lanes) / extent if axis is not None else 1.0
        return max(placed.cycles * largest, self._weight_cycles(placed, axis, largest, len(devices)))

    def _weight_cycles(self, placed: Placed, axis: int | None, largest: float, devices: int) -> float:
        """Until the weights are there: from outer memory to the cores, and from a core's memory into its engine."""
        if not has_weights(placed.op, self.graph):
            return 0.0
        weights = self.graph.tensors[placed.op.inputs[1]].bytes or 0
        own_part = axis is not None and axis == channel_axis(placed.op, self.graph)
        streaming = weights / self.rates["read"] / (devices if own_part else 1)
        engine = placed.task.placement.engine
        if engine is None or engine.weight_bytes_per_cycle is None:
            return streaming
        return max(streaming, weights * (largest if own_part else 1.0) / engine.weight_bytes_per_cycle.value)

    # ---- what it costs --------------------------------------------------------------------------------------------

    @cached_property
    def rates(self) -> dict[str, float]:
        """Bytes per core cycle of the routes that an all-gather uses; infinite where the target has none."""
        machine = self.plan.machine
        found = {route.carries: route.peak(machine.clock_hz) for route in machine.target.routes}
        return dict.fromkeys(("read", "write", "multicast", "link"), inf) | found

    @cached_property
    def barrier_cycles(self) -> float:
        """Cycles that lanes take to synchronise before a gather: the longest launch of an engine."""
        engines = self.plan.machine.target.engines
        return max((e.launch_cycles.value for e in engines if e.launch_cycles is not None), default=0.0)

    @cached_property
    def gather_limit(self) -> float:
        """Largest tensor, in bytes, that is gathered through local memories; a larger one goes through outer memory."""
        local = self.plan.machine.target.local
        return local.bytes.value / 2 if local is not None else 0.0

    def _gather_cycles(self, tensor: int) -> float:
        """Cycles of an all-gather: after it, every lane holds the whole tensor."""
        machine, size = self.plan.machine, self.graph.tensors[tensor].bytes or 0
        if machine.lanes == 1:
            return 0.0
        rate = self.rates["multicast"] if machine.devices == 1 else min(self.rates["multicast"], self.rates["link"])
        detour = (
            size / self.rates["write"] + machine.cores * size / self.rates["read"] if size > self.gather_limit else 0.0
        )
        return size / rate + detour + self.barrier_cycles

    def _is_gatherable(self, tensor: int) -> bool:
        """Whether a tensor may need gathering; of constants and graph inputs every lane reads what it needs."""
        return tensor != ABSENT and self.graph.tensors[tensor].role not in (Role.CONSTANT, Role.INPUT)

    def _matches(self, axis: int | None, extent: int, option: _Option, wanted: int, lanes: int) -> bool:
        """Whether a tensor that is split along `axis` (None: whole) gives an option what it needs without a gather."""
        return axis is None or wanted == _ANYHOW or (axis == wanted and same_portions(extent, option.extent, lanes))

    # ---- choosing -------------------------------------------------------------------------------------------------

    def _propagate_back(self, index: int) -> None:
        """Add to the penalty of an op's inputs, for every axis; called for the last op first.

        An op has penalties for its own outputs by then, so what it passes on covers everything behind it.
        """
        op, options = self.plan.placed[index].op, self.options[index]
        lanes = len(self.devices[index]) * self.plan.machine.cores
        ahead = [option.cycles + self._penalty(op, option.axis) for option in options]
        for position, t in enumerate(op.inputs):
            if not self._is_gatherable(t):
                continue
            gather = self._gather_cycles(t)
            costs: dict[int | None, float] = {None: min(ahead)}
            for axis, extent in enumerate(self.graph.tensors[t].shape or ()):
                costs[axis] = min(
                    cost + (0.0 if self._matches(axis, extent, option, option.needs[position], lanes) else gather)
                    for cost, option in zip(ahead, options, strict=True)
                )
            known = self.penalty.setdefault(t, {})
            for axis_or_none, cost in costs.items():
                known[axis_or_none] = known.get(axis_or_none, 0.0) + cost - costs[None]

    def _penalty(self, op: Op, axis: int | None) -> float:
        """Penalty of splitting an op's outputs along an axis: at most one all-gather each, which serves all readers."""
        return sum(min(self.penalty[t].get(axis, 0.0), self._gather_cycles(t)) for t in op.outputs if t in self.penalty)

    def _choose(self, index: int) -> Split:
        """The cheapest option of an op, given how its inputs are distributed; called for the first op first."""
        op, devices = self.plan.placed[index].op, self.devices[index]
        best, chosen = inf, Split(None, 1, devices)
        for option in self.options[index]:
            gathers = self._inputs_to_gather(op, option, devices)
            cost = option.cycles + sum(map(self._gather_cycles, gathers)) + self._penalty(op, option.axis)
            if cost < best:
                best, chosen = cost, Split(option.axis, option.extent, devices, gathers)
        for t in op.outputs:
            self.shardings[t] = _Sharding(chosen.axis, chosen.extent, devices)
            self._alias(op.inputs[0] if op.family is Family.VIEW and op.inputs else ABSENT, t)
        for t in chosen.gathers:
            for same in self.views.get(t, [t]):
                self.shardings[same] = _Sharding(None, 1, devices)  # gathered: whole for later readers too
        return chosen

    def _alias(self, source: int, result: int) -> None:
        """Note that a view has the same bytes as its source: gathering one gathers the other."""
        if source != ABSENT:
            together = self.views.setdefault(source, [source])
            together.append(result)
            self.views[result] = together

    def _inputs_to_gather(self, op: Op, option: _Option, devices: tuple[int, ...]) -> tuple[int, ...]:
        """Inputs that are distributed otherwise than an option needs them."""
        lanes = len(devices) * self.plan.machine.cores
        missing = []
        for t, wanted in zip(op.inputs, option.needs, strict=True):
            held = self.shardings.get(t) if self._is_gatherable(t) else None
            if held is None or wanted == _ANYHOW:
                continue
            if held.devices != devices or not self._matches(held.axis, held.extent, option, wanted, lanes):
                missing.append(t)
        return tuple(dict.fromkeys(missing))
