"""Ops → lanes: along which axis each op is cut over devices and cores, whichever is cheaper.

An option costs the time of the largest portion or of its weights, plus the time to hand around the inputs that lanes
hold in parts but need otherwise, plus what it makes later ops pay: a walk back over the ops finds out how much more
each tensor costs its readers cut along one axis than along the best one. The walk forward then takes the cheapest.
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


def split(plan: Plan) -> Plan:
    """Choose an axis for every op."""
    return replace(plan, splits=_Splitter(plan).run())


def pipeline_devices(plan: Plan) -> list[tuple[int, ...]]:
    """Devices that work on each op: all of them, or one stage of a pipeline each, of about equal cycles."""
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
    """One way to share an op."""

    axis: int | None  # of its first output; None: every lane does all of it
    extent: int
    cycles: float  # of the lane with the largest portion
    needs: tuple[int, ...]  # axis that each input must be cut along, or WHOLE


@dataclass(frozen=True, slots=True)
class _Cut:
    """How lanes hold a tensor."""

    axis: int | None  # None: whole on every lane
    extent: int  # of that axis
    devices: tuple[int, ...]


@lru_cache(maxsize=4096)
def same_portions(extent: int, other: int, lanes: int) -> bool:
    """Whether lanes get the same shares when either extent is cut into whole parts."""
    return extent == other or all(
        (lane * extent // lanes) * other == (lane * other // lanes) * extent for lane in range(lanes)
    )


class _Splitter:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.devices = pipeline_devices(plan)
        self.options = [self._options(*pair) for pair in zip(plan.placed, self.devices, strict=True)]
        self.cuts: dict[int, _Cut] = {}
        self.views: dict[int, list[int]] = {}  # tensor → all tensors that are the same bytes, in one list
        self.regret: dict[int, dict[int | None, float]] = {}  # tensor → axis → cycles that readers pay for that cut

    def run(self) -> tuple[Split, ...]:
        for index in reversed(range(len(self.options))):
            self._look_back(index)
        return tuple(self._choose(index) for index in range(len(self.options)))

    # ---- what is possible -----------------------------------------------------------------------------------------

    def _options(self, placed: Placed, devices: tuple[int, ...]) -> list[_Option]:
        op = placed.op
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
        """Bytes per core cycle of what lanes exchange through."""
        machine = self.plan.machine
        found = {route.carries: route.peak(machine.clock_hz) for route in machine.target.routes}
        return dict.fromkeys(("read", "write", "multicast", "link"), inf) | found

    @cached_property
    def meeting(self) -> float:
        """Cycles until lanes that exchange data have met: the longest launch of an engine."""
        engines = self.plan.machine.target.engines
        return max((e.launch_cycles.value for e in engines if e.launch_cycles is not None), default=0.0)

    @cached_property
    def room(self) -> float:
        """Bytes that a tensor may take on every lane, to be handed around through local memories."""
        local = self.plan.machine.target.local
        return local.bytes.value / 2 if local is not None else 0.0

    def _exchange_cycles(self, tensor: int) -> float:
        """To make a tensor whole on every lane; through outer memory if it is too large."""
        machine, size = self.plan.machine, self.graph.tensors[tensor].bytes or 0
        if machine.lanes == 1:
            return 0.0
        rate = self.rates["multicast"] if machine.devices == 1 else min(self.rates["multicast"], self.rates["link"])
        aside = size / self.rates["write"] + machine.cores * size / self.rates["read"] if size > self.room else 0.0
        return size / rate + aside + self.meeting

    def _is_exchanged(self, tensor: int) -> bool:
        """Constants and graph inputs are not: lanes read of them what they need."""
        return tensor != ABSENT and self.graph.tensors[tensor].role not in (Role.CONSTANT, Role.INPUT)

    def _fits(self, axis: int | None, extent: int, option: _Option, wanted: int, lanes: int) -> bool:
        """Whether lanes that hold a tensor cut along an axis have what an op needs of it."""
        return axis is None or (axis == wanted and same_portions(extent, option.extent, lanes))

    # ---- choosing -------------------------------------------------------------------------------------------------

    def _look_back(self, index: int) -> None:
        """Add what an op would pay for every way to cut its inputs. Op after op, from the last to the first."""
        op, options = self.plan.placed[index].op, self.options[index]
        lanes = len(self.devices[index]) * self.plan.machine.cores
        ahead = [option.cycles + self._regret(op, option.axis) for option in options]
        for position, t in enumerate(op.inputs):
            if not self._is_exchanged(t):
                continue
            exchange = self._exchange_cycles(t)
            costs: dict[int | None, float] = {None: min(ahead)}
            for axis, extent in enumerate(self.graph.tensors[t].shape or ()):
                costs[axis] = min(
                    cost + (0.0 if self._fits(axis, extent, option, option.needs[position], lanes) else exchange)
                    for cost, option in zip(ahead, options, strict=True)
                )
            known = self.regret.setdefault(t, {})
            for axis_or_none, cost in costs.items():
                known[axis_or_none] = known.get(axis_or_none, 0.0) + cost - costs[None]

    def _regret(self, op: Op, axis: int | None) -> float:
        """What readers pay for a cut of an op's outputs: no more than handing them around once, for all readers."""
        return sum(min(self.regret[t].get(axis, 0.0), self._exchange_cycles(t)) for t in op.outputs if t in self.regret)

    def _choose(self, index: int) -> Split:
        op, devices = self.plan.placed[index].op, self.devices[index]
        best, chosen = inf, Split(None, 1, devices)
        for option in self.options[index]:
            gathers = self._incomplete(op, option, devices)
            cost = option.cycles + sum(map(self._exchange_cycles, gathers)) + self._regret(op, option.axis)
            if cost < best:
                best, chosen = cost, Split(option.axis, option.extent, devices, gathers)
        for t in op.outputs:
            self.cuts[t] = _Cut(chosen.axis, chosen.extent, devices)
            self._join(op.inputs[0] if op.family is Family.VIEW and op.inputs else ABSENT, t)
        for t in chosen.gathers:
            for same in self.views.get(t, [t]):
                self.cuts[same] = _Cut(None, 1, devices)  # it has been handed around
        return chosen

    def _join(self, source: int, result: int) -> None:
        """Note that a view is the same bytes as what it is a view of."""
        if source != ABSENT:
            together = self.views.setdefault(source, [source])
            together.append(result)
            self.views[result] = together

    def _incomplete(self, op: Op, option: _Option, devices: tuple[int, ...]) -> tuple[int, ...]:
        """Inputs that lanes hold otherwise than this option needs them."""
        lanes = len(devices) * self.plan.machine.cores
        missing = []
        for t, wanted in zip(op.inputs, option.needs, strict=True):
            held = self.cuts.get(t) if self._is_exchanged(t) else None
            if held is None:
                continue
            if held.devices != devices or not self._fits(held.axis, held.extent, option, wanted, lanes):
                missing.append(t)
        return tuple(dict.fromkeys(missing))
