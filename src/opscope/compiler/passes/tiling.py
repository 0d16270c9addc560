"""Tiling: try what `split` proposes in some numbers of tiles of the batch, and keep what is done first.

How tightly tensors pack is known only after they have addresses. So tiles are searched for three times: assuming no
fragmentation of local memory, assuming the worst, and for half of local memory, so that a tile can be loaded while the
one before it is computed. Proposals are ranked by price, with these tiles; the best few are lowered to commands, and
the one that is done first is taken. How many are tried depends on how far prices can be relied on: what takes no longer
than its price, and spills next to nothing, is beaten by no other that is priced some percent higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, starmap
from math import inf, log1p, prod

from ...core.errors import UsageError
from ...core.meaning import Carries
from ...estimate.traffic.routes import FILLED, READ_AHEAD
from ...program.program import Commands
from ...simulation import total_cycles
from ..codegen.context import channels, memories
from ..codegen.lower import Lowering, lower
from ..plan import Part, Plan, Schedule, spans
from .batch import batch_axes, for_images
from .depth_first import depth_first
from .footprint import PartFootprints, part_footprints
from .residency import is_resident, kept_weights
from .schedule import schedule
from .split_prices import OpPrice, Prices, parts_done_after
from .tile_search import TilingSearch, divisors, useful_tiles

MOST_PROPOSALS = 3  # that are tried, each in up to four tilings
_ALIKE = 0.001  # of a price: two tilings that differ by less are one
_CLOSE = 1.02  # times the price of the best so far: what is tried
_PROMISING = 1.25  # times the lowest price: the same where prices say little
_VARIANT = 1.1  # times the price of the best: the same of its parts in another order, or joined
_HOPELESS = 2.0  # times the cycles of the best: no price is so far above what its commands take
_WEIGHTS_GAIN = 1.4  # times the cycles of the best: what weights that stay may make up for
_NEXT_TO_NOTHING = 0.01  # of the time of a proposal, that what it spills takes
_MOST_SLOTS = 16  # for weight tiles: 3 MB of them hide what vectors take between two products
_SHORT_CYCLES = 1e6  # of a program that is mostly latencies
_FEW_COMMANDS = 24_000  # for a device, of all proposals so far
_MOST_COMMANDS = 100_000  # the same; beyond, each is tried in one tiling


@dataclass(frozen=True, slots=True)
class Tiling:
    """Parts of the batch with a number of tiles for every op; times are in core cycles."""

    parts: tuple[Part, ...]
    price: float = 0.0
    loading: float = 0.0  # that reading its weights takes at the least, however many of them stay
    interleaved: bool = False  # parts run op by op, instead of one after the other


def tile(plan: Plan) -> Plan:
    """The plan with the number of tiles of every op, of the proposal that is done first, and with its commands."""
    proposed = proposals(plan)
    trials = _Trials(plan, proposed[0][0].price)
    for number, tilings in enumerate(proposed):
        if number < MOST_PROPOSALS or trials.best is None or trials.are_cheap:
            trials.run(tilings)
    trials.give_weights_what_is_left()
    if trials.best is None:
        raise trials.problem or UsageError(f"{plan.graph.name}: nothing to compile; expected ops")
    return trials.best.plan


@dataclass(frozen=True, slots=True)
class _Trial:
    """A tiling that has been lowered."""

    plan: Plan  # with its parts and commands
    lowering: Lowering
    price: float
    cycles: float
    spills: bool  # more than next to nothing


class _Trials:
    """Lowers tilings one after the other, and keeps the one that is done first."""

    def __init__(self, plan: Plan, lowest_price: float) -> None:
        self.plan, self.axes, self.lowest_price = plan, batch_axes(plan.graph), lowest_price
        self.best: _Trial | None = None
        self.others: list[_Trial] = []  # that were tried while that was cheap, and may be as good in the end
        self.problem: UsageError | None = None  # of the first that does not fit
        self.commands = 0  # for each device, of all that were lowered

    @property
    def are_cheap(self) -> bool:
        return self.commands < _FEW_COMMANDS

    @property
    def are_short(self) -> bool:
        """Whether they are mostly latencies, and cheap to try."""
        return self.lowest_price < _SHORT_CYCLES and self.are_cheap

    @property
    def least(self) -> float:
        """Cycles of the best."""
        return inf if self.best is None else self.best.cycles

    def run(self, tilings: Sequence[Tiling]) -> None:
        """Try the tilings of one proposal that may be better; while one spills, also the next."""
        spills = self.best is None
        for tiling in tilings:
            if max(tiling.loading, tiling.price / _HOPELESS) > self.least:
                continue
            if not (spills or self._may_be_better(tiling)):
                continue
            written = depth_first(schedule(self.plan, tiling.parts, axes=self.axes, interleaved=tiling.interleaved))
            written = replace(written, resident=is_resident(written, self.plan.graph))
            try:
                spills = self._lower(tiling.parts, written, price=tiling.price).spills
            except UsageError as error:  # an op does not fit in any number of slices
                self.problem = self.problem or error
                continue
            if self.commands > _MOST_COMMANDS:
                return

    def _may_be_better(self, tiling: Tiling) -> bool:
        """Whether a tiling may be done before the best so far.

        Prices know least of short programs, which are mostly latencies, and of what holds up one that spills or takes
        longer than its price. Others take about the same share of their prices; but the same parts one after the other
        take less of it than op by op, where pieces of ops that overlap have been counted.
        """
        best = self.best
        if best is not None and _are_variants(tiling.parts, best.plan.parts):
            return tiling.price < _VARIANT * best.price
        if best is None or self.are_short or best.spills or best.cycles > best.price:
            return tiling.price < max(_PROMISING * self.lowest_price, self.least)
        return tiling.price < _CLOSE * best.price

    def give_weights_what_is_left(self) -> None:
        """Lower the best again, with the local memory that its activations never filled given to weights.

        Of short programs also others: what weights that stay gain may make one of them the best; where many have been
        lowered, only what is close to it. And the same parts in another order, or joined, which may leave more memory.
        """
        best = self.best
        if best is None:
            return
        others = sorted((each for each in self.others if each is not best), key=lambda each: each.cycles)
        self._give_weights_more(best)
        for trial in others:
            is_variant = _are_variants(trial.plan.parts, best.plan.parts) and not trial.spills
            gain = _WEIGHTS_GAIN if self.are_short else _VARIANT if is_variant else _CLOSE
            if trial.cycles <= gain * self.least:
                self._give_weights_more(trial)

    def _give_weights_more(self, trial: _Trial) -> None:
        free = min(memory.capacity - memory.peak for memory in trial.lowering.tensors.memory)
        stayed: list[frozenset[int]] = []  # that fit: with less room beside them they are the same
        for share in (FILLED, 0.75 * FILLED, FILLED / 2):  # less, where activations need more gaps: as takes least
            wider = _with_more_weights(trial.lowering.plan, share * free)
            if wider is None:
                return
            if wider.kept in stayed:
                continue
            try:
                found = self._lower(trial.plan.parts, wider, price=trial.price, gain=1.0)
            except UsageError:  # an op needs the room that was free between others
                continue
            if not found.spills:
                stayed.append(wider.kept)
                if share == FILLED and found.cycles < trial.cycles:
                    return

    def _lower(self, parts: tuple[Part, ...], written: Schedule, *, price: float, gain: float = 0.995) -> _Trial:
        """Keep a schedule if it takes no more than a share of the best."""
        lowering = lower(written)
        cycles = total_cycles(commands_of(lowering))
        spills = _spilling_cycles(lowering) > _NEXT_TO_NOTHING * cycles
        trial = _Trial(replace(self.plan, parts=parts, lowered=lowering), lowering, price, cycles, spills)
        if cycles <= gain * self.least:
            self.best = trial
        if self.are_short or (self.are_cheap and len(parts) > 1):
            self.others.append(trial)
        self.commands += len(lowering.context.emitter.rows) // self.plan.machine.devices
        return trial


def _are_variants(parts: Sequence[Part], others: Sequence[Part]) -> bool:
    """Whether a batch is in the same parts, which may be in another order, or joined."""
    first, other = parts[0], others[0]
    return len(parts) > 1 and first.splits is other.splits and first.tiles == other.tiles


def commands_of(lowering: Lowering) -> Commands:
    """What has been emitted so far."""
    context = lowering.context
    machine, columns = context.plan.machine, context.emitter.columns()
    return Commands(
        devices=machine.devices,
        cores=machine.cores,
        groups=context.groups,
        routes=channels(context.plan),
        memories=memories(machine.target),
        commands=columns.commands,
        dependency_offsets=columns.offsets,
        dependency_sources=columns.sources,
    )


def _spilling_cycles(lowering: Lowering) -> float:
    """Cycles that writing takes, beside the results of the graph."""
    context = lowering.context
    left = sum(context.tensor_bytes(t) for t in context.graph.outputs)
    cycles = 0.0
    for number, channel in enumerate(channels(context.plan)):
        if channel.carries is Carries.WRITE:
            cycles += (context.emitter.moved[number] - left) / channel.bytes_per_cycle
            left = 0.0
    return cycles / context.plan.machine.devices


def proposals(plan: Plan) -> list[list[Tiling]]:
    """What `split` left, each in its tilings, those first whose best tiling is priced lowest.

    Splits for fewer cores, or for fewer images at a time, are often the same ones: of what is priced alike, to a
    thousandth, one is enough.
    """
    found, seen, pricing = [], set[tuple[object, ...]](), _TilingPrices(plan)
    for parts in (plan.parts, *plan.alternatives):
        tilings = []
        joined = parts[-1].joined is not None  # in one tile each
        for chosen in product(*([part.tiles] if joined else _tilings(pricing, part) for part in parts)):
            tiled = tuple(replace(part, tiles=tiles) for part, tiles in zip(parts, chosen, strict=True))
            for tiling in pricing.tilings(tiled):
                key = (round(log1p(tiling.price) / _ALIKE), *((part.images, part.tiles) for part in tiled))
                if key not in seen:
                    seen.add(key)
                    tilings.append(tiling)
        if tilings:
            found.append(sorted(tilings, key=lambda tiling: tiling.price))
    return sorted(found, key=lambda tilings: tilings[0].price)


class _TilingPrices:
    """What tilings would take, by the prices of ops and the bytes that they move."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.axes = plan, batch_axes(plan.graph)
        self._footprints: dict[int, PartFootprints] = {}
        self._prices: dict[tuple[int, bool], Prices] = {}  # of so many images; whether constants stay
        self._cycles: dict[tuple[int, int], list[OpPrice]] = {}  # of a part's ops in so many tiles
        self._vector = ""

    def footprints(self, part: Part) -> PartFootprints:
        key = id(part.splits)
        if key not in self._footprints:
            self._footprints[key] = part_footprints(self.plan, part, self.axes)
        return self._footprints[key]

    def tilings(self, parts: tuple[Part, ...]) -> Iterator[Tiling]:
        """Parts op by op, and one after the other."""
        loading = sum(starmap(self.loading, zip(parts, spans(parts), strict=True)))
        fit = self._may_be_interleaved(parts)
        if fit:
            yield Tiling(parts, self.price(parts, interleaved=True), loading, interleaved=True)
        if fit or parts[-1].joined is None:
            yield Tiling(parts, self.price(parts, interleaved=False), loading)

    def _may_be_interleaved(self, parts: Sequence[Part]) -> bool:
        """Whether all parts, with one tile each, fit local memory together: then the rest of a batch hides what its
        cores wait for behind what the others compute.
        """
        if len(parts) == 1 or any(set(part.tiles) != {1} for part in parts):
            return False
        found = [self.footprints(part) for part in parts]
        needs = [0.0] * (len(self.plan.placed) + 1)
        for each, span in zip(found, spans(parts), strict=True):
            for index in span if each.steps else ():
                needs[index] += each.steps[index].need
        return max(needs) <= min(each.room for each in found)

    def price(self, parts: Sequence[Part], *, interleaved: bool) -> float:
        """Cycles until the ops of parts are done, that run op by op or one part after the other."""
        found = [self._by_op(part) for part in parts]
        return parts_done_after(self.plan.placed, parts, found, self._vector, interleaved=interleaved)

    def _by_op(self, part: Part) -> list[OpPrice]:
        """What every op takes: its tiles with all their commands, or the bytes that it moves."""
        found = self.footprints(part)
        search = TilingSearch(part.tiles, found.room, gaps=False)
        moved = search.moved(found.steps, part.tiles) if found.steps else [0.0] * len(part.tiles)
        rate, prices = self._rate(part), []
        for index, (tiles, size) in enumerate(zip(part.tiles, moved, strict=False)):
            price = self._of_ops(part, tiles)[index]
            prices.append(price._replace(own=max(price.own, size / rate - price.exchange - price.converting)))
        return prices

    def loading(self, part: Part, span: range) -> float:
        """Cycles until all weights have been read, once for every tile, that cannot stay in local memory."""
        found, tiling = self.footprints(part), self.plan.machine.target.tiling
        read = sum(found.steps[index].weights * part.tiles[index] for index in span if found.steps)
        if tiling is not None and tiling.keeps_constants:
            read -= found.room * prod(self._lanes(part)) * max(part.tiles, default=1)
        return max(0.0, read) / self._rate(part)

    def _of_ops(self, part: Part, tiles: int) -> list[OpPrice]:
        key = id(part.splits), tiles
        if key not in self._cycles:
            images, resident = part.images // tiles, self.footprints(part).resident
            if (images, resident) not in self._prices:
                some = for_images(self.plan, self.axes, images)
                prices = Prices(some.graph, some.placed, self.plan.machine, resident=resident)
                self._prices[images, resident], self._vector = prices, prices.vector
            found = self._prices[images, resident].by_op(part.splits)
            self._cycles[key] = [OpPrice(*(tiles * cycles for cycles in each)) for each in found]
        return self._cycles[key]

    def _rate(self, part: Part) -> float:
        """Bytes in a cycle that the devices and cores read which take part: all together, or each over its queue."""
        devices, cores = self._lanes(part)
        read = [channel for channel in channels(self.plan) if channel.carries is Carries.READ]
        return devices * sum(min(each.bytes_per_cycle, cores * each.core_bytes_per_cycle) for each in read) or inf

    def _lanes(self, part: Part) -> tuple[int, int]:
        """Devices, and cores of each, that take part."""
        splits = [split.sharding for split in part.splits]
        devices = max((len(each.devices) for each in splits), default=1)
        return devices, max((each.cores for each in splits), default=1)


def _tilings(pricing: _TilingPrices, part: Part) -> list[tuple[int, ...]]:
    """Numbers of tiles for the ops of a part: as found with tensors packed without gaps, in all of the room and in half
    of it, and with the worst gaps; and every unit on its own, where all ops can be cut so: it reads weights most often
    and needs least room.
    """
    undivided, choices = (1,) * len(part.splits), divisors(part.units)
    if len(choices) == 1:
        return [undivided]
    found = pricing.footprints(part)
    if found.room <= 0:
        return [undivided]
    choices = useful_tiles(choices, found.steps, found.room / 2)
    searches = [
        TilingSearch(choices, found.room, gaps=False),
        TilingSearch(choices, found.room / 2, gaps=False),  # a tile is loaded while the one before it is computed
        TilingSearch(choices, found.room, gaps=True),
    ]
    tilings = [search.search(found.steps) for search in searches]
    if all(step.divisible % part.units == 0 for step in found.steps[:-1]):
        tilings.append((part.units,) * len(part.splits))
    return list(dict.fromkeys(tilings))


def _with_more_weights(schedule: Schedule, free: float) -> Schedule | None:
    """The schedule with so many bytes of local memory given to weights; None: they are of no use.

    A part is for weight tiles that are read ahead while vectors are computed, the rest for weights that stay.
    """
    tiling = schedule.machine.target.tiling
    if tiling is None or tiling.whole_weights or schedule.resident:
        return None
    least, size = round(tiling.buffers.value), tiling.weight_bytes.value
    slots = min(_MOST_SLOTS, least + int(READ_AHEAD * free / size))
    kept = kept_weights(schedule, free - (slots - least) * size) if tiling.keeps_constants else frozenset[int]()
    return replace(schedule, slots=slots, kept=kept) if slots > least or kept else None
