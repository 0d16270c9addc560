"""Architecture, Target → Points: prefill and decode at every batch, prompt and context that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..core.errors import UsageError
from ..core.meaning import Carries
from ..core.provenance import Provenance
from ..core.units import format_bytes
from ..estimate.machines import use_machine
from ..estimate.price import Machine, Sharing
from ..estimate.work import DEQUANTIZE
from ..graph.graph import DType
from ..machine.catalogue import for_language_models
from ..machine.language_models import LanguageModels
from ..machine.target import ANY, Holds, Target
from .architecture import Architecture
from .decoder import DecoderStep, decode, prefill
from .decoder_graph import Storage
from .estimated_step import StepCost, crossing_cost, estimated_step, weighted
from .memory import Deployment, Parallel, cache_bytes, weight_bytes
from .point import Phase, Point, Spread

AUTO, TENSOR, PIPELINE = "auto", "tensor", "pipeline"
_MOST_CARDS = 16  # of a server, whose devices reach each other over one switch
_NODES = 4  # of a long prompt's chunks, that are priced: cost grows evenly with what is cached

Progress = Callable[[int, int], None]  # done, of so many
Way = Callable[["Estimator"], StepCost]  # to run a step on several devices


@dataclass(frozen=True, slots=True)
class Serving:
    """How a model is held and served.

    Args:
        chunk: tokens of a prompt that are read at once; None: as the target's runtime does, or all.
    """

    storage: Storage
    devices: int = 1
    parallel: str = AUTO  # tensor: devices share every product; pipeline: each has some of the layers
    chunk: int | None = None
    simulate: bool = False  # steps run on the simulated device, where a target can be compiled for; else by formulas


class Estimator:
    """Prices steps of one model on one target, each of them once."""

    def __init__(self, model: Architecture, target: Target, serving: Serving) -> None:
        self.model = model
        self.serving = serving
        self.target = for_language_models(target)
        self.machine = _machine(self.target, serving.devices)
        self.held = as_held(serving.storage, target)
        self.storage = as_run(self.held, self.target)
        if serving.simulate and not self.target.is_compilable:
            raise UsageError(
                f"{target.name}: cannot be compiled for; expected a target that is simulated, or an estimate"
            )
        self.steps: dict[tuple[DecoderStep, int], StepCost] = {}
        runtime = target.language_models or LanguageModels()
        told = None if runtime.chunk_tokens is None else round(runtime.chunk_tokens.value)
        chunk = serving.chunk or told
        self.chunk = None if chunk is None else min(chunk, model.longest_context)
        self.fixed = runtime.fixed_context
        self.watts = runtime.device_watts
        self.unheld = self._why_unheld()
        self.formulas = Estimator(model, target, replace(serving, simulate=False)) if serving.simulate else self

    def _why_unheld(self) -> str:
        """Why a step has no time: a chip whose own memory is all there is for weights, and has no room for them."""
        memory, size = self.target.home(Holds.CONSTANTS), weight_bytes(self.model, self.held)
        room = memory.bytes.value * self.target.instances(
            memory, devices=self.machine.devices, cores=self.machine.cores
        )
        if memory.is_outer or size <= room:
            return ""
        has, takes = format_bytes(round(room)), format_bytes(size)
        return f"{self.target.name} has {has} for weights, and no memory beside; they take {takes}"

    @property
    def provenance(self) -> Provenance:
        if self.serving.simulate:
            return Provenance.SIMULATED
        return Provenance.ESTIMATED if self.target.calibration is None else Provenance.CALIBRATED

    def step(self, step: DecoderStep, devices: int) -> StepCost:
        """The cost of one step on devices that share every product."""
        if self.unheld:
            return StepCost(None, withheld=self.unheld)
        if (step, devices) not in self.steps:
            machine = self.shared_machine(devices)
            cost = estimated_step(self.model, step, self.storage, machine)
            if self.serving.simulate:
                from .simulated_step import simulated_step

                cost = simulated_step(self.model, step, self.storage, machine, cost)
            self.steps[step, devices] = cost
        return self.steps[step, devices]

    def shared_machine(self, devices: int) -> Machine:
        """Devices that share every product, and meet behind each pair of them: that is a cost of its own."""
        return replace(self.machine, devices=devices, sharing=Sharing.PAIRS)

    def prefill(self, batch: int, prompt: int, context: int) -> StepCost:
        """All tokens of the prompts of a batch, with room for a context."""
        return self._faster(
            lambda steps: steps._shared_prefill(batch, prompt, context),
            lambda steps: steps._staged_prefill(batch, prompt, context),
        )

    def decode(self, batch: int, context: int) -> StepCost:
        """One further token of each user."""
        return self._faster(
            lambda steps: steps.step(decode(batch, context), steps.machine.devices),
            lambda steps: steps._staged_decode(batch, context),
        )

    def _faster(self, shared: Way, staged: Way) -> StepCost:
        """What the choice of `parallel` comes to; where it is free, the faster of both by formulas."""
        chosen = self.serving.parallel
        if self.machine.devices == 1 or chosen == TENSOR:
            return self._with_power(shared(self))
        if chosen == PIPELINE:
            return self._with_power(staged(self))
        costs = {way: way(self.formulas) for way in (shared, staged)}
        known = [way for way, cost in costs.items() if cost.seconds is not None] or list(costs)
        best = min(known, key=lambda way: found.value if (found := costs[way].seconds) else 0.0)
        return self._with_power(best(self) if self.serving.simulate else costs[best])

    def _with_power(self, cost: StepCost) -> StepCost:
        """Energy by what devices draw while they serve, where that is known."""
        if self.watts is None or cost.seconds is None:
            return cost
        watts = Spread(self.watts.value, self.watts.smallest, self.watts.largest)
        ends = ("value", "low", "high")
        joules = (getattr(watts, end) * getattr(cost.seconds, end) * self.machine.devices for end in ends)
        return replace(cost, joules=Spread(*joules))

    def _shared_prefill(self, batch: int, prompt: int, context: int) -> StepCost:
        steps = self.chunks(batch, prompt, context)
        return weighted([(self.step(step, self.machine.devices), times) for step, times in steps])

    def _staged_prefill(self, batch: int, prompt: int, context: int) -> StepCost:
        """Devices one behind the other: while one has a chunk, the one before it has the next.

        With N stages and n pieces of work, each stage taking 1 / N of a piece's time, the last piece leaves after
        (n + N - 1) / N times that of one.
        """
        stages = self.machine.devices
        groups = min(stages, batch)
        steps = self.chunks(ceil(batch / groups), prompt, context)
        pieces = groups * sum(times for _, times in steps)
        work = weighted([(self.step(step, 1), groups * times) for step, times in steps])
        hops = self._hops(max(step.batch * step.tokens for step, _ in steps), pieces + stages - 1)
        cost = weighted([(work, (pieces + stages - 1) / (stages * pieces)), (hops, 1 / stages)])
        return replace(cost, moved_bytes=work.moved_bytes, joules=work.joules)

    def _staged_decode(self, batch: int, context: int) -> StepCost:
        """Users in as many groups as there are stages: a group waits for its own token alone, and all stages work."""
        stages = self.machine.devices
        users = ceil(batch / min(stages, batch))
        return weighted([(self.step(decode(users, context), 1), 1), (self._hops(users, stages), 1)])

    def _hops(self, tokens: int, count: float) -> StepCost:
        """What it takes values of so many tokens to cross from device to device, so often."""
        size = self.storage.weights.flows.size_bytes(tokens * self.model.hidden)
        return crossing_cost(self.machine, size, count)

    def chunks(self, batch: int, prompt: int, context: int) -> list[tuple[DecoderStep, float]]:
        """Steps that a prompt takes, with how often each counts.

        Of many chunks some are priced: what the others take lies on the line between their neighbours. Where a runtime
        has graphs of a fixed context, all chunks are alike.
        """
        size = prompt if self.chunk is None else self.chunk
        if self.fixed:
            return [(prefill(batch, size, max(0, context - size)), float(ceil(prompt / size)))]
        if size >= prompt:
            return [(prefill(batch, size), 1.0)]
        count = ceil(prompt / size)
        steps = [prefill(batch, size, number * size) for number in range(count)]
        if count <= _NODES + 1:
            return [(step, 1.0) for step in steps]
        places = sorted({1 + round(node * (count - 2) / (_NODES - 1)) for node in range(_NODES)})
        weights = {0: 1.0, **dict.fromkeys(places, 0.0)}
        for number in range(1, count):
            after = next(place for place in places if place >= number)
            before = max(place for place in places if place <= number)
            share = 0.0 if after == before else (number - before) / (after - before)
            weights[before] += 1 - share
            weights[after] += share
        return [(steps[place], times) for place, times in weights.items()]


def _machine(target: Target, devices: int) -> Machine:
    """So many devices of a target, which may be those of several cards: where devices are linked, cards are alike."""
    have = round(target.topology.devices.value)
    linked = any(route.carries is Carries.LINK for route in target.routes)
    if not linked or devices <= have:
        return use_machine(target, devices=devices)
    if devices > have * _MOST_CARDS:
        raise UsageError(
            f"--devices {devices}: {target.name} has {have} on a card; expected 1 to {have * _MOST_CARDS}, of "
            f"{_MOST_CARDS} cards"
        )
    return replace(use_machine(target), devices=devices)


def find_points(
    model: Architecture,
    target: Target,
    serving: Serving,
    wanted: Sequence[tuple[int, int, int]],
    *,
    progress: Progress = lambda done, of: None,
) -> tuple[Point, ...]:
    """What every (batch, prompt, context) takes."""
    check_takes(target, serving.storage)
    steps = Estimator(model, target, serving)
    found = []
    for number, (batch, prompt, context) in enumerate(wanted):
        for word, tokens in (("prompt", prompt), ("context", context)):
            if tokens > model.longest_context:
                raise UsageError(f"{word} {tokens}: {model.name} has {model.longest_context:,} positions at the most")
        found.append(_point(steps, batch, prompt, context))
        progress(number + 1, len(wanted))
    return tuple(found)


def check_takes(target: Target, storage: Storage) -> None:
    """Refuse storage in blocks that no engine of the target converts."""
    for option, form in (("--weights", storage.weights), ("--kv", storage.cache)):
        kernel = DEQUANTIZE.get(form.dtype)
        if kernel is not None and not any(kernel in engine.kernels for engine in target.engines):
            raise UsageError(
                f"{option} {form.word}: {target.name} has no kernel that converts it; expected another type"
            )


def as_held(storage: Storage, target: Target) -> Storage:
    """The storage as a target's runtime has it: a head whose weights have more bits than the others."""
    bits = None if target.language_models is None else target.language_models.head_bits
    form = storage.weights
    if bits is None or form.dtype.is_float or form.dtype.has_blocks or form.dtype.bits >= bits.value:
        return storage
    return replace(storage, head=replace(form, dtype=DType.I8))


def as_run(storage: Storage, target: Target) -> Storage:
    """The storage with the types that a target computes in.

    Where no engine multiplies the type that activations would have, they have the other one: a chip of integers alone
    has no floats between its products, and one without 16-bit integers takes floats of 16 bits for them.
    """

    def computed(*wanted: DType | None) -> DType | None:
        rates = [engine.macs_per_cycle for engine in target.engines]
        listed = target.support.dtypes
        able = (t for t in wanted if t is not None and any(t.label in table or ANY in table for table in rates))
        return next((dtype for dtype in able if not listed or dtype.label in listed), wanted[0])

    form = storage.weights
    flows = computed(form.flows, form.operand, DType.F16, DType.I16, DType.I8) or form.flows
    operand = None if form.operand is None else computed(form.operand, DType.F16, DType.I8)
    head = None if storage.head is None else replace(storage.head, flows=flows, operand=operand)
    return replace(storage, weights=replace(form, flows=flows, operand=operand), head=head)


def _point(steps: Estimator, batch: int, prompt: int, context: int) -> Point:
    serving = steps.serving
    parallel = Parallel.PIPELINE if serving.parallel == PIPELINE else Parallel.TENSOR
    fit = Deployment(steps.model, steps.held, steps.target, serving.devices, parallel).fit(
        batch, context, prompt=min(prompt, steps.chunk or prompt)
    )
    return Point(
        batch=batch,
        prompt=prompt,
        context=context,
        prefill=_phase(steps.prefill(batch, prompt, context)),
        decode=_phase(steps.decode(batch, context)),
        weight_bytes=weight_bytes(steps.model, steps.held),
        kv_bytes=cache_bytes(steps.model, steps.held, batch, context),
        capacity_bytes=fit.capacity_bytes * serving.devices,
        fits=fit.fits,
        provenance=steps.provenance,
    )


def _phase(cost: StepCost) -> Phase:
    return Phase(
        time_ms=_scaled(cost.seconds),
        bound=cost.bound,
        shares=cost.shares,
        read_bytes=cost.moved_bytes,
        energy_mj=_scaled(cost.joules),
    )


def _scaled(found: Spread | None) -> Spread | None:
    """Thousandths."""
    return None if found is None else Spread(found.value * 1e3, found.low * 1e3, found.high * 1e3)
