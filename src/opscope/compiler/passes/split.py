"""Split: choose how the lanes (cores of all devices) share every op, by price.

An op can be cut along any axis that its inputs can follow: batch, rows, heads, produced channels; along two at once, as
a grid; along the axis that a product sums over, with partial sums; or every lane, or one of them, does all of it. An
option costs the time of the largest part, of loading its weights and of changing layouts; plus an exchange of every
input that lanes hold otherwise; plus what its readers pay for how it leaves the result.

Three passes over the ops, each linear in their number: backward, what readers would pay for every way to leave a
tensor; forward, the cheapest option given how the inputs are held; and again, each op once more between neighbours
that are known by now.

Example: `H = X·W1`, `Y = H·W2` on 4 cores. `Y` costs 100 cycles split by rows (each core needs its rows of H) and 80
split by channels (each core needs all of H); an exchange of H costs 30.

    H is           Y by rows    Y by channels    cheapest    penalty
    whole          100          80               80          0
    split by row   100          80 + 30          100         20
    by channel     100 + 30     80 + 30          110         30

So `X·W1` is split by rows if that is at most 10 cycles slower than by channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, lcm
from typing import NamedTuple

from ...estimate.kernels import has_weights
from ...estimate.work import number
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Engine
from ..plan import Placed, Split, channel_axis
from ..sharding import REDUCED, Cut, Sharding, sharding, whole
from .axes import WHOLE, input_axes, needs, reduced_axes
from .split_prices import InputPrices, Prices

MOST_OPTIONS = 28  # of an op, so that a search takes time in proportion to the ops
_SWEEPS = 2
_CHOOSES = (Family.CONTRACTION, Family.RECURRENT)  # without regard to how its inputs are made


@dataclass(frozen=True, slots=True)
class _Option:
    """One way to split an op."""

    sharding: Sharding
    made: Sharding
    cycles: float
    needs: tuple[Sharding, ...]  # of every input; empty where the op's cost is not known: it then takes them anyhow


class _Input(NamedTuple):
    """An input of an op that may have to be exchanged."""

    position: int
    tensor: int
    prices: InputPrices


def even_parts(extent: int, lanes: int) -> int:
    """The fewest parts whose largest is as small as with all lanes: 24 units for 14 lanes are 12 parts of 2."""
    return -(-extent // -(-extent // lanes))


def grid_parts(lanes: int) -> list[int]:
    """Numbers of parts along the outer axis of a grid that are tried: at most five."""
    tried = {2, 4, *(parts for parts in range(2, lanes // 2 + 1) if lanes % parts == 0)}
    return sorted(parts for parts in tried if lanes // parts > 1)[:5]


class Splitter:
    """Chooses a split for every op of a graph."""

    def __init__(
        self,
        graph: Graph,
        placed: Sequence[Placed],
        prices: Prices,
        devices: Sequence[Sequence[tuple[int, ...]]],
        *,
        channel_parts: int | None = None,
    ) -> None:
        """`devices` lists for every op the groups of devices that may do it; cores of each cut the channels of a
        product into `channel_parts` at the most, or into any number.
        """
        self.channel_parts = channel_parts
        self.graph, self.placed, self.prices, self.devices = graph, placed, prices, devices
        self.maker = {t: index for index, each in enumerate(placed) for t in each.op.outputs}
        self.readers: dict[int, list[tuple[int, int]]] = {}
        for index, each in enumerate(placed):
            for position, t in enumerate(each.op.inputs):
                self.readers.setdefault(t, []).append((index, position))
        self.read_anew = self._views_of_what_is_stored()
        self.inputs = [self._moved_inputs(each) for each in placed]
        self.options: list[list[_Option]] = []
        self._options_of: dict[tuple[object, ...], list[_Option]] = {}  # of ops that are alike
        self.chosen: list[int] = []
        self.costs: dict[int, list[float]] = {}  # of the options, when the last choice was made
        self.penalty: dict[int, dict[Sharding, float]] = {}

    def run(self) -> tuple[Split, ...]:
        for index in range(len(self.placed)):
            alike = self._likeness(index)
            if alike not in self._options_of:
                self._options_of[alike] = self._options(index)
            self.options.append(self._options_of[alike])
        for index in reversed(range(len(self.placed))):
            self._propagate_back(index)
        for index in range(len(self.placed)):
            self.chosen.append(self._choose(index, self._forward_prices(index)))
        open_ = set(range(len(self.placed)))  # whose neighbours have chosen otherwise since they have
        for _ in range(_SWEEPS):
            for index in range(len(self.placed)):
                if index in open_:
                    self._choose_again(index, open_)
        return tuple(self._split(index) for index in range(len(self.placed)))

    # ---- options --------------------------------------------------------------------------------------------------

    def _likeness(self, index: int) -> tuple[object, ...]:
        """All that the options of an op and their prices depend on: layers that are alike have the same."""
        placed = self.placed[index]
        op, engine = placed.op, placed.task.placement.engine
        return (
            (op.kind, op.trips, *op.attributes.items()),
            (placed.engine, engine and engine.name, placed.cycles, placed.task.work, bool(placed.unknown)),
            tuple(self.devices[index]),
            tuple(self._tensor_likeness(t) for t in op.inputs),
            tuple(self._tensor_likeness(t) for t in op.outputs),
            () if op.family in _CHOOSES else tuple(self._made(t) for t in op.inputs),
        )

    def _tensor_likeness(self, t: int) -> tuple[object, ...]:
        if t == ABSENT:
            return ()
        tensor = self.graph.tensors[t]
        return tensor.shape, tensor.dtype, tensor.role, t in self.maker, self.prices.size_and_layout(t)

    def _made(self, t: int) -> tuple[Sharding, ...]:
        """In which ways the op that makes a tensor may leave it."""
        maker = self.maker.get(t, len(self.options))
        return tuple(option.made for option in self.options[maker]) if maker < len(self.options) else ()

    def _options(self, index: int) -> list[_Option]:
        placed = self.placed[index]
        if placed.unknown:  # how it would read its inputs is not known either: whatever was assumed could be too much
            anyhow = self._whole(self.devices[index][0])
            return [_Option(anyhow, anyhow, 0.0, ())]
        found: dict[Sharding, None] = {}
        for devices in self.devices[index]:
            found[self._whole(devices)] = None
            if len(devices) * self.prices.using > 1:
                found[whole(devices[:1], 1, self.prices.cores)] = None
            found.update(dict.fromkeys(self._cut(placed.op, devices)))
        if placed.op.family not in _CHOOSES:
            found.update(dict.fromkeys(self._inherited(placed.op)))
        options = []
        for each in list(found)[:MOST_OPTIONS]:
            needed = needs(placed.op, self.graph, each)
            if needed is not None:
                options.append(_Option(each, each.made, self.prices.op(placed, each, needed), needed))
        return options

    def _whole(self, devices: tuple[int, ...]) -> Sharding:
        return whole(devices, self.prices.using, self.prices.cores)

    def _cut(self, op: Op, devices: tuple[int, ...]) -> Iterable[Sharding]:
        """Yield the ways to cut an op along one axis, along two, and along the reduced one."""
        lanes = len(devices) * self.prices.using
        if lanes == 1 or not op.outputs or op.is_looped:  # a loop's body would exchange its parts in every trip
            return
        axes = [
            (axis, self._units(op, axis, extent))
            for axis, extent in enumerate(self.graph.tensors[op.outputs[0]].shape or ())
            if extent > 1 and self._is_common(op, axis, extent) and input_axes(op, self.graph, axis) is not None
        ]
        if op.family is Family.RECURRENT and len(devices) > 1:  # a state crosses no link in every step
            axes = [each for each in axes if each[0] != channel_axis(op, self.graph)]
        for axis, extent in axes:
            yield self._grid(devices, [(axis, extent, self._parts(op, axis, extent, lanes, len(devices)))])
        if len(devices) == 1 and reduced_axes(op, self.graph) is not None and self.prices.has_room_for_sums(op):
            extent = -(-number(op, "k") // self._tile(op))
            yield self._grid(devices, [(REDUCED, extent, even_parts(extent, lanes))])
        if len(devices) == 1 and (both := self._images_and_rows(op, axes, lanes)):
            yield self._grid(devices, both)
        product = op.family in (Family.CONTRACTION, Family.RECURRENT)
        if product or (len(devices) > 1 and op.family is not Family.VIEW):
            for outer, inner in self._pairs(op, axes):
                for parts in grid_parts(lanes) if product else (len(devices),):
                    first, second = outer[1], inner[1]
                    if parts <= first and second > 1 and (first % parts == 0 or first > 4 * parts):
                        rest = self._parts(op, *inner, lanes // parts, len(devices))
                        yield self._grid(devices, [(*outer, parts), (*inner, rest)])

    def _parts(self, op: Op, axis: int, extent: int, lanes: int, devices: int) -> int:
        """Parts that so many lanes cut an axis into; of the channels of a product no more than are allowed."""
        channels = axis == channel_axis(op, self.graph) and has_weights(op, self.graph)
        limited = self.channel_parts is not None and channels
        return even_parts(extent, min(lanes, (self.channel_parts or 1) * devices) if limited else lanes)

    def _pairs(self, op: Op, axes: list[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Pairs of axes that may form a grid: images or rows with channels; without weights, the first two axes."""
        channel = channel_axis(op, self.graph)
        inner = next(((axis, extent) for axis, extent in axes if axis == channel), None)
        if inner is not None and has_weights(op, self.graph):
            return [(outer, inner) for outer in axes if outer[0] != channel][:2]
        return [(axes[0], axes[1])] if len(axes) > 1 else []

    def _images_and_rows(self, op: Op, axes: list[tuple[int, int]], lanes: int) -> list[tuple[int, int, int]]:
        """Axes, extents and parts of images with rows, where lanes cannot have as many images each: of 16 images on 14
        lanes some would have two. In 2 parts of 8 and rows in 7, all have as much; of all such grids the most even one,
        and of those the one with fewest parts. A prime number of lanes has none that all of them take part in.
        """
        outer = [each for each in axes if each[0] != channel_axis(op, self.graph)][:2]
        if len(outer) < 2 or outer[0][1] % lanes == 0 or not has_weights(op, self.graph):
            return []
        (images, count), (rows, extent) = outer
        tried = [(parts, even_parts(extent, lanes // parts)) for parts in range(2, min(count, lanes // 2) + 1)]
        largest = [
            (-(-count // first) * -(-extent // second), first * second, first, second) for first, second in tried
        ]
        _, _, first, second = min(largest, default=(0, 1, 1, 1))
        return [(images, count, first), (rows, extent, second)] if second > 1 else []

    def _grid(self, devices: tuple[int, ...], axes: list[tuple[int, int, int]]) -> Sharding:
        cuts: list[Cut] = []
        places = 1
        for axis, extent, parts in reversed(axes):
            cuts.insert(0, Cut(axis, extent, parts, places))
            places *= parts
        return sharding(tuple(cuts), places, devices, self.prices.using, self.prices.cores)

    def _units(self, op: Op, axis: int, extent: int) -> int:
        """What an axis is cut in: heads, tiles of channels on an engine that computes whole tiles, or elements.

        Channels that are convolved in groups need what their group reads: tiles are of whole groups, if there are any.
        """
        if op.kind == "attention" and axis:
            return number(op, "heads")
        if axis != channel_axis(op, self.graph):
            return extent
        tile, groups = self._tile(op), number(op, "groups", 1)
        if 1 < groups < extent and op.family is Family.CONTRACTION:
            tile = lcm(tile, extent // groups)
            return extent // tile if extent % tile == 0 else 1
        return -(-extent // tile)

    def _tile(self, op: Op) -> int:
        engine = self._engine(op) if op.family in (Family.CONTRACTION, Family.RECURRENT) else None
        return round(engine.tile_extent.value) if engine is not None and engine.tile_extent is not None else 1

    def _engine(self, op: Op) -> Engine | None:
        return self.placed[self.maker[op.outputs[0]]].task.placement.engine

    def _is_common(self, op: Op, axis: int, extent: int) -> bool:
        """Whether all outputs have the axis that the first one has."""
        shapes = [self.graph.tensors[t].shape or () for t in op.outputs]
        return all(len(shape) > axis and shape[axis] == extent for shape in shapes)

    def _inherited(self, op: Op) -> Iterable[Sharding]:
        """Yield the shardings of the inputs, carried over to the output where no cut would go through an element."""
        out = self.graph.tensors[op.outputs[0]].shape or () if op.outputs else ()
        for position, t in enumerate(op.inputs):
            if t not in self.maker or op.is_looped:
                continue
            back = {}
            for axis, extent in enumerate(out):
                axes = input_axes(op, self.graph, axis) if extent > 1 and self._is_common(op, axis, extent) else None
                if axes is not None and axes[position] != WHOLE:
                    back[axes[position]] = axis
            for option in self.options[self.maker[t]]:
                cuts = [self._carry(cut, back, out) for cut in option.made.cuts]
                kept = tuple(cut for cut in cuts if cut is not None)
                if cuts and len(kept) == len(cuts):
                    yield option.made.only(kept)

    def _carry(self, cut: Cut, back: dict[int, int], out: tuple[int, ...]) -> Cut | None:
        axis = back.get(cut.axis)
        if axis is None:
            return None
        extent = out[axis]
        edges = (place * cut.extent // cut.parts for place in range(1, cut.parts))
        if any(edge * extent % cut.extent for edge in edges):
            return None
        return Cut(axis, cut.extent, cut.parts, cut.inner)

    # ---- choosing -------------------------------------------------------------------------------------------------

    def _moved_inputs(self, placed: Placed) -> list[_Input]:
        """The inputs that may have to be exchanged; of constants and graph inputs every lane reads what it needs."""
        return [
            _Input(position, t, self.prices.of_input(placed, position))
            for position, t in enumerate(placed.op.inputs)
            if t in self.maker and t not in self.read_anew
        ]

    def _views_of_what_is_stored(self) -> set[int]:
        """Constants and graph inputs, which outer memory holds whole, and the views of them."""
        found = {t for t, tensor in enumerate(self.graph.tensors) if tensor.role in (Role.CONSTANT, Role.INPUT)}
        for each in self.placed:
            if each.op.family is Family.VIEW and each.op.inputs and each.op.inputs[0] in found:
                found.update(each.op.outputs)
        return found

    def _propagate_back(self, index: int) -> None:
        """Add to the penalty of an op's inputs, for every way in which they may be held; the last op comes first.

        An op has penalties for its own outputs by then, so what it passes on covers everything behind it.
        """
        op, options = self.placed[index].op, self.options[index]
        ahead = sorted(((option.cycles + self._penalty(op, option), k) for k, option in enumerate(options)))
        for each in self.inputs[index] if options[0].needs else ():
            cheapest: dict[Sharding, float] = {}  # of the options that need the input so; in order of price
            for cost, k in ahead:
                cheapest.setdefault(options[k].needs[each.position], cost)
            made = dict.fromkeys(option.made for option in self.options[self.maker[each.tensor]])
            costs = {held: _least_with_exchange(held, cheapest, each.prices) for held in made}
            least = min(costs.values())
            known = self.penalty.setdefault(each.tensor, {})
            for held, cost in costs.items():
                known[held] = known.get(held, 0.0) + cost - least

    def _penalty(self, op: Op, option: _Option) -> float:
        return sum(self.penalty[t].get(option.made, 0.0) for t in op.outputs if t in self.penalty)

    def _choose(self, index: int, costs: list[float]) -> int:
        self.costs[index] = costs
        return self.best(index, costs)

    def _choose_again(self, index: int, open_: set[int]) -> None:
        """Choose between neighbours as they are now; where that changes the choice, they have to choose again too."""
        open_.discard(index)
        found = self._choose(index, self._local_prices(index))
        if found != self.chosen[index]:
            self.chosen[index] = found
            open_.update(self.maker[each.tensor] for each in self.inputs[index])
            open_.update(reader for t in self.placed[index].op.outputs for reader, _ in self.readers.get(t, ()))

    def best(self, index: int, costs: Sequence[float]) -> int:
        """The number of the option with the lowest price; of a view, of those that need no exchange.

        Of equal prices that where lanes have least to do: where weights take longer to arrive, they may have come
        ahead, or stay in local memory.
        """
        tried: Sequence[int] = range(len(costs))
        if self.placed[index].op.family is Family.VIEW:  # nothing is gained by an exchange before its reader
            tried = [k for k in tried if not self._exchanged(index, self.options[index][k])] or tried
        return min(tried, key=lambda k: (round(costs[k]), self.options[index][k].sharding.largest, k))

    def _forward_prices(self, index: int) -> list[float]:
        """Of every option its own time, its exchanges, and what the readers may have to pay."""
        op = self.placed[index].op
        return [
            option.cycles + self._exchanged(index, option) + self._penalty(op, option) for option in self.options[index]
        ]

    def _local_prices(self, index: int) -> list[float]:
        """Of every option its own time and the exchanges before and behind it, between neighbours as chosen now."""
        costs = [option.cycles + self._exchanged(index, option) for option in self.options[index]]
        for t in self.placed[index].op.outputs:
            needed: dict[Sharding, InputPrices] = {}
            for reader, position in self.readers.get(t, ()):
                other = self.options[reader][self.chosen[reader]]
                if other.needs:
                    needed[other.needs[position]] = self.prices.of_input(self.placed[reader], position)
            for need, prices in needed.items():
                for k, option in enumerate(self.options[index]):
                    costs[k] += prices.cycles(option.made, need)
        return costs

    def _exchanged(self, index: int, option: _Option) -> float:
        if not option.needs:
            return 0.0
        wanted = {(each.tensor, option.needs[each.position]): each.prices for each in self.inputs[index]}
        return sum([prices.cycles(self._held(t), need) for (t, need), prices in wanted.items()])

    def _held(self, tensor: int) -> Sharding:
        maker = self.maker[tensor]
        return self.options[maker][self.chosen[maker]].made

    def _split(self, index: int) -> Split:
        options = self.options[index]
        option = options[self.chosen[index]]
        missing = tuple(
            each.position
            for each in self.inputs[index]
            if option.needs and not self.prices.is_there(self._held(each.tensor), option.needs[each.position])
        )
        prices = tuple((o.sharding, cycles) for o, cycles in zip(options, self.costs[index], strict=True))
        return Split(option.sharding, option.needs, missing, prices)


def _least_with_exchange(held: Sharding, cheapest: dict[Sharding, float], prices: InputPrices) -> float:
    """The lowest price of an op and of the exchange before it; `cheapest` has prices by need, the lowest first.

    What needs no exchange comes first, for it most often ends the search: an exchange makes nothing cheaper.
    """
    least = sum(prices.converting(held))
    best = cheapest[held] + least if held in cheapest else inf
    for need, cost in cheapest.items():
        if cost + least >= best:
            break
        best = min(best, cost + prices.cycles(held, need))
    return best


def describe(found: Sharding) -> str:
    """A sharding in a few words: `axis 0 in 2 × axis 2 in 7`, `all`, `one`."""
    if not found.cuts:
        return "one" if found.places == 1 else "all"
    cuts = (f"{'sum' if cut.axis == REDUCED else f'axis {cut.axis}'} in {cut.parts}" for cut in found.cuts)
    where = f" on {len(found.devices)} devices" if len(found.devices) > 1 else ""
    return " × ".join(cuts) + where
