"""Ops → lanes: along which axis each op is cut over devices and cores, whichever is cheaper.

Greedy in execution order: for every axis of the output, the time of the largest portion, plus the time to hand
around the inputs that lanes hold in parts but need whole, plus the weights that must be streamed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..graph import ABSENT, Role
from .axes import WHOLE, input_axes
from .place import has_weights
from .plan import Placed, Plan, Split, channel_axis


def split(plan: Plan) -> Plan:
    """Choose an axis for every op."""
    groups = pipeline_devices(plan)
    splitter = _Splitter(plan)
    splits = tuple(splitter.choose(placed, devices) for placed, devices in zip(plan.placed, groups, strict=True))
    return replace(plan, splits=splits)


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
class _Rates:
    """Bytes per core cycle of what lanes exchange through."""

    gather: float
    weights: float
    meeting: float  # cycles until lanes that exchange data have met: the longest launch of an engine


class _Splitter:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cut: dict[int, int | None] = {}  # tensor → axis it is cut along; None: whole on every lane
        self.on: dict[int, tuple[int, ...]] = {}  # tensor → devices that hold it
        self.rates = self._rates()

    def _rates(self) -> _Rates:
        clock = self.plan.machine.clock_hz
        routes = {route.carries: route.bytes_per_second.value / clock for route in self.plan.machine.target.routes}
        gather = routes.get("multicast", 1.0)
        if self.plan.machine.devices > 1:
            gather = min(gather, routes.get("link", gather))
        launches = [e.launch_cycles.value for e in self.plan.machine.target.engines if e.launch_cycles is not None]
        return _Rates(gather, routes.get("read", 1.0), max(launches, default=0.0))

    def choose(self, placed: Placed, devices: tuple[int, ...]) -> Split:
        graph = self.plan.graph
        op = placed.op
        shape = graph.tensors[op.outputs[0]].shape if op.outputs else None
        best = self._option(placed, None, devices)
        for axis, extent in enumerate(shape or ()):
            if extent > 1:
                option = self._option(placed, axis, devices)
                if option is not None and (best is None or option[0] < best[0]):
                    best = option
        chosen = best[1] if best is not None else Split(None, 1, devices, self._incomplete(placed, None, devices))
        for t in op.outputs:
            self.cut[t] = chosen.axis
            self.on[t] = devices
        for t in chosen.gathers:
            self.cut[t] = None  # it has been handed around
            self.on[t] = devices
        return chosen

    def _option(self, placed: Placed, axis: int | None, devices: tuple[int, ...]) -> tuple[float, Split] | None:
        graph = self.plan.graph
        op = placed.op
        lanes = len(devices) * self.plan.machine.cores
        shape = graph.tensors[op.outputs[0]].shape if op.outputs else None
        if axis is not None and (shape is None or input_axes(op, graph, axis) is None):
            return None
        extent = shape[axis] if axis is not None and shape else 1
        largest = -(-extent // lanes) / extent if axis is not None else 1.0
        gathers = self._incomplete(placed, axis, devices)
        exchanged = sum(graph.tensors[t].bytes or 0 for t in gathers)
        exchange = exchanged / self.rates.gather + self.rates.meeting * len(gathers) if lanes > 1 else 0.0
        busy = max(placed.cycles * largest, self._weight_cycles(placed, axis, largest, len(devices)))
        return busy + exchange, Split(axis, extent, devices, gathers)

    def _weight_cycles(self, placed: Placed, axis: int | None, largest: float, devices: int) -> float:
        """Until the weights are there: from outer memory to the cores, and from a core's memory into its engine."""
        if not has_weights(placed.op, self.plan.graph):
            return 0.0
        weights = self.plan.graph.tensors[placed.op.inputs[1]].bytes or 0
        own_part = axis is not None and axis == channel_axis(placed.op, self.plan.graph)
        streaming = weights / self.rates.weights / (devices if own_part else 1)
        engine = placed.task.placement.engine
        if engine is None or engine.weight_bytes_per_cycle is None:
            return streaming
        return max(streaming, weights * (largest if own_part else 1.0) / engine.weight_bytes_per_cycle.value)

    def _incomplete(self, placed: Placed, axis: int | None, devices: tuple[int, ...]) -> tuple[int, ...]:
        """Inputs that lanes hold otherwise than this cut needs them. Constants and graph inputs are read as needed."""
        graph = self.plan.graph
        op = placed.op
        needed = input_axes(op, graph, axis) if axis is not None else (WHOLE,) * len(op.inputs)
        missing = []
        for t, wanted in zip(op.inputs, needed or (), strict=True):
            if t == ABSENT or graph.tensors[t].role in (Role.CONSTANT, Role.INPUT) or t not in self.cut:
                continue
            held = self.cut[t]
            elsewhere = self.on[t] != devices
            if elsewhere or (held is not None and held != wanted):
                missing.append(t)
        return tuple(dict.fromkeys(missing))
