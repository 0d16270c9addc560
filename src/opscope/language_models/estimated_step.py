"""Architecture, DecoderStep, Machine → StepCost: what one run of a decoder takes, by formulas.

Layers that are alike cost alike, so each different one is priced once and counted as often as it is there. What a step
keeps for the next one is in outer memory, so that layers share nothing but the values that pass between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.meaning import Carries, Does
from ..estimate.cost import CALL
from ..estimate.estimator import Estimate, estimate
from ..estimate.price import Machine
from ..machine.target import Holds, Route
from .architecture import Architecture, Mixture
from .decoder import DecoderStep, Routing
from .decoder_graph import Storage, repeated_graph
from .point import Spread

LINK = "link"
_BOUND = {Does.LAUNCH: "launch", Does.LAYOUT: "layout", Does.MOVE: LINK}
_SUMS = 2  # of a layer, behind its attention and its feed-forward part: where devices that share products meet


@dataclass(frozen=True, slots=True)
class StepCost:
    """Seconds and bytes of a step, or of several; what is not known is None, with why."""

    seconds: Spread | None
    blocks: Mapping[str, float] = field(default_factory=dict)  # seconds by part of the decoder
    bounds: Mapping[str, float] = field(default_factory=dict)  # seconds by what binds
    moved_bytes: Spread | None = None  # through the memory that holds weights and cache; the range is that of routing
    joules: Spread | None = None
    withheld: str = ""  # why the time is not known
    notes: tuple[str, ...] = ()

    @property
    def bound(self) -> str:
        """What binds most of the time; empty: not known."""
        return max(self.bounds, key=lambda word: self.bounds[word], default="")

    @property
    def shares(self) -> dict[str, float]:
        whole = sum(self.blocks.values())
        return {block: part / whole for block, part in self.blocks.items()} if whole else {}


def weighted(parts: Sequence[tuple[StepCost, float]]) -> StepCost:
    """Steps one after the other, each so often; unknown if one of them is."""
    unknown = next((cost.withheld for cost, _ in parts if cost.seconds is None), None)

    def sums(tables: Sequence[tuple[Mapping[str, float], float]]) -> dict[str, float]:
        found: dict[str, float] = {}
        for table, times in tables:
            for word, part in table.items():
                found[word] = found.get(word, 0.0) + part * times
        return found

    return StepCost(
        seconds=_sum([(cost.seconds, times) for cost, times in parts]),
        blocks=sums([(cost.blocks, times) for cost, times in parts]),
        bounds=sums([(cost.bounds, times) for cost, times in parts]),
        moved_bytes=_sum([(cost.moved_bytes, times) for cost, times in parts]),
        joules=_sum([(cost.joules, times) for cost, times in parts]),
        withheld=unknown or "",
        notes=tuple(dict.fromkeys(note for cost, _ in parts for note in cost.notes)),
    )


def _sum(parts: Sequence[tuple[Spread | None, float]]) -> Spread | None:
    known = [(spread, times) for spread, times in parts if spread is not None]
    if len(known) < len(parts):
        return None
    return Spread(*(sum(getattr(spread, end) * times for spread, times in known) for end in ("value", "low", "high")))


def estimated_step(model: Architecture, step: DecoderStep, storage: Storage, machine: Machine) -> StepCost:
    """The cost of one step on devices that share every product.

    Of a mixture, the range holds the experts that are read where tokens agree on them, and where they do not.
    """
    even = _routed_step(model, step, storage, machine)
    has_experts = any(isinstance(layer.feed_forward, Mixture) for layer in model.repeats)
    if not has_experts or step.batch * step.tokens == 1:
        return even
    ends = [
        _routed_step(model, replace(step, routing=routing), storage, machine)
        for routing in (Routing.ALIKE, Routing.APART)
    ]
    return replace(
        even,
        seconds=_over(even.seconds, [cost.seconds for cost in ends]),
        joules=_over(even.joules, [cost.joules for cost in ends]),
        moved_bytes=_over(even.moved_bytes, [cost.moved_bytes for cost in ends]),
    )


def _over(found: Spread | None, others: Sequence[Spread | None]) -> Spread | None:
    """A number with a range that holds those of others too."""
    if found is None:
        return None
    all_of_them = [found, *(other for other in others if other is not None)]
    return Spread(found.value, min(each.low for each in all_of_them), max(each.high for each in all_of_them))


def _routed_step(model: Architecture, step: DecoderStep, storage: Storage, machine: Machine) -> StepCost:
    found = estimate(repeated_graph(model, step, storage), machine)
    cost = _of_estimate(found)
    return weighted([(cost, 1), (_link_cost(model, step, storage, machine), 1)]) if machine.devices > 1 else cost


def _of_estimate(found: Estimate) -> StepCost:
    machine, latency, energy = found.machine, found.totals.latency_s, found.totals.energy_j
    if latency is None:
        return StepCost(None, withheld=found.totals.withheld)
    clock, blocks = machine.clock_hz, dict[str, float]()
    for layer in found.layers:
        block = str(found.graph.ops[layer.index].attributes.get("block", "other"))
        blocks[block] = blocks.get(block, 0.0) + (layer.latency_s or 0.0)
    if found.call.total:
        blocks[CALL.name] = found.call.total / clock
    memory = machine.target.home(Holds.CONSTANTS).name
    moved = float(sum(layer.traffic.get(memory, 0) for layer in found.layers))
    return StepCost(
        seconds=Spread(latency.value, latency.low, latency.high),
        blocks=blocks,
        bounds=_bounds(found),
        moved_bytes=Spread(moved, moved, moved),
        joules=Spread(energy.value, energy.low, energy.high) if energy is not None and _counts_bytes(machine) else None,
        notes=tuple(note.text for note in found.graph.notes if note.code == "unlike-measured"),
    )


def _counts_bytes(machine: Machine) -> bool:
    """Whether energy is more than that of arithmetic, of which a step that waits for memory has little."""
    target = machine.target
    draws = target.idle_watts is not None or any(engine.busy_watts is not None for engine in target.engines)
    return draws or target.home(Holds.CONSTANTS).picojoules_per_byte is not None


def _bounds(found: Estimate) -> dict[str, float]:
    """Seconds by what binds: parts that nothing hides, and the longest of those that hide behind each other."""
    seconds: dict[str, float] = {}
    for cost, trips in found.costs:
        for part in cost.binding():
            around = part.resource.around
            word = _BOUND[around] if around is not None else "memory" if part.resource.is_outer else "compute"
            seconds[word] = seconds.get(word, 0.0) + part.cycles * trips / found.machine.clock_hz
    return seconds


def _link_cost(model: Architecture, step: DecoderStep, storage: Storage, machine: Machine) -> StepCost:
    """What devices that share products wait for each other: twice in each layer, everybody needs the sum of all parts.

    Each device sends every other its part of the values, and then its part of the sums: of N devices, 2 (N - 1) / N of
    the values leave each of them. That takes two arrivals where all pairs are linked, and 2 (N - 1) in a ring.
    """
    values = storage.weights.flows.size_bytes(step.batch * step.tokens * model.hidden)
    size = 2 * values * (machine.devices - 1) / machine.devices
    return crossing_cost(machine, size, _SUMS * len(model.layers), ring=True)


def crossing_cost(machine: Machine, size_bytes: float, times: float, *, ring: bool = False) -> StepCost:
    """What it takes bytes to cross the link between devices, so often."""
    route = next((route for route in machine.target.routes if route.carries is Carries.LINK), None)
    if route is None:
        return StepCost(None, withheld=f"{machine.target.name} has no link between devices")
    seconds = exchange_seconds(route, size_bytes, machine, ring=ring)
    spread = Spread(*(getattr(seconds, end) * times for end in ("value", "low", "high")))
    return StepCost(spread, {LINK: spread.value}, {LINK: spread.value}, Spread(0.0, 0.0, 0.0))


def exchange_seconds(route: Route, size_bytes: float, machine: Machine, *, ring: bool = False) -> Spread:
    """Seconds for bytes to cross a link; with `ring`, there and back, and at the slow end around all devices."""
    moves = size_bytes / (route.peak(machine.clock_hz) * route.reached * machine.clock_hz)
    latency = route.latency_seconds
    if latency is None:
        return Spread(moves, moves, moves)
    arrivals = 2 if ring else 1
    around = 2 * (machine.devices - 1) if ring else 1
    return Spread(
        moves + arrivals * latency.value, moves + arrivals * latency.smallest, moves + around * latency.largest
    )
