"""What must hold of every compiled program. Each law takes a build, and raises AssertionError where it is broken.

Order is proved from dependencies, not read off one timeline: no device may run the program in an order that breaks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from opscope.compiler.sharding import REDUCED, Box, Sharding, exchange
from opscope.estimate.kernels import has_weights
from opscope.graph.graph import ABSENT, Role
from opscope.graph.kinds import Family
from opscope.program.program import NO_OP, NO_ROUTE
from opscope.simulation import Timeline
from support.compiler.build import Built, Place, WeightTile

CLOSE = 1e-6


class Order:
    """Which commands are surely done before another starts.

    A command starts after its dependencies are done and after the one before it in its lane was issued; what computes
    is done then, what is transferred is not. Transfers of one lane on one route are done in the order of their issue.
    """

    def __init__(self, built: Built) -> None:
        program = built.program
        lanes, table = program.lane_of_commands(), program.commands
        self.stream = lanes * (len(program.routes) + 1) + table["route"] + 1
        streams = int(self.stream.max(initial=0)) + 1
        self.done: npt.NDArray[np.int64] = np.full((len(table), streams), -1, np.int64)
        for row in built.row_of:  # as emitted: what a command waits for comes before it
            known = self.done[row]
            if row and lanes[row - 1] == lanes[row]:
                np.maximum(known, self.done[row - 1], out=known)
                if table["route"][row - 1] == NO_ROUTE:
                    known[self.stream[row - 1]] = max(known[self.stream[row - 1]], row - 1)
            for source in program.dependencies(row):
                np.maximum(known, self.done[source], out=known)
                known[self.stream[source]] = max(known[self.stream[source]], source)

    def holds(self, first: int, second: int) -> bool:
        return bool(self.done[second, self.stream[first]] >= first)

    def all_hold(self, first: Iterable[int], *second: int) -> bool:
        """Whether each of `first` is done before any of `second` starts; of a stream the last one tells of all."""
        rows = np.fromiter(first, np.int64)
        if not len(rows) or not second:
            return True
        last = np.full(self.done.shape[1], -1, np.int64)
        np.maximum.at(last, self.stream[rows], rows)
        return bool((self.done[np.array(second)] >= last).all())


# ---- time -----------------------------------------------------------------------------------------------------------


def dependencies_are_respected(built: Built, timeline: Timeline) -> None:
    program = built.program
    users = np.repeat(np.arange(len(program.commands)), np.diff(program.dependency_offsets.astype(np.int64)))
    assert (timeline.start[users] >= timeline.done[program.dependency_sources] - CLOSE).all()


def lanes_do_one_thing_at_a_time(built: Built, timeline: Timeline) -> None:
    lanes = built.program.lane_of_commands()
    for lane in range(built.program.lanes):
        for first, second in pairwise(np.flatnonzero(lanes == lane).tolist()):
            assert timeline.start[second] >= timeline.issue_end[first] - CLOSE


def no_engine_works_more_than_all_the_time(built: Built, timeline: Timeline) -> None:
    busy = np.bincount(built.program.lane_of_commands(), timeline.issue_end - timeline.start)
    assert (busy <= timeline.total_cycles * (1 + CLOSE)).all()


# ---- local memory ---------------------------------------------------------------------------------------------------


def places_in_use_never_overlap(built: Built, order: Order) -> None:
    """Whoever gets a place starts there when all who had it before are done."""
    capacity = built.lowering.context.capacity - built.lowering.weights.reserved_bytes
    before: dict[int, list[tuple[Place, list[int]]]] = {}
    for place in built.places:
        assert place.address + place.size <= capacity, place
        rows = [built.row_of[command] for command in place.users]
        if not rows:
            continue
        earlier = before.setdefault(place.lane, [])
        for other, users in earlier:
            if not _apart(other, place):
                assert order.all_hold(users, *rows), (other, place)
        low, high = place.address, place.address + place.size
        earlier[:] = [pair for pair in earlier if pair[0].address < low or pair[0].address + pair[0].size > high]
        earlier.append((place, rows))


def _apart(one: Place, other: Place) -> bool:
    return one.address + one.size <= other.address or other.address + other.size <= one.address


def tiles_lie_in_a_place(built: Built) -> None:
    """What a command says of its own place is inside one that was given out for it."""
    lanes = built.lanes()
    limit = built.lowering.context.capacity - built.lowering.weights.reserved_bytes
    places: dict[int, list[Place]] = {}
    for place in built.places:
        for command in place.users:
            places.setdefault(built.row_of[command], []).append(place)
    for row, command in enumerate(built.program.commands):
        low, high = _range(command)
        if high > low and low < limit:
            own = [place for place in places.get(row, ()) if place.lane == lanes[row]]
            assert any(p.address <= low and high <= p.address + p.size for p in own), (command, own)


def _range(command: np.void) -> tuple[int, int]:
    return int(command["local_address"]), int(command["local_address"]) + int(command["local_bytes"])


def tiles_are_read_before_they_are_overwritten(built: Built, order: Order) -> None:
    """Inside a place: a tile is written over when it and those that read it are done."""
    table, lanes = built.program.commands, built.lanes()
    panels = {id(place) for place in built.panels}  # whose slots have a law of their own
    for place in (place for place in built.places if id(place) not in panels):
        users = [built.row_of[command] for command in sorted(set(place.users))]
        writers: list[tuple[int, int, list[int]]] = []  # low, high, writer and its readers
        for row in users:
            low, high = _range(table[row])
            inside = place.address <= low < high <= place.address + place.size
            if lanes[row] != place.lane:  # another core sends here, and says nothing of where
                continue
            if not inside:  # it only reads here: what was written last
                if writers:
                    writers[-1][2].append(row)
                continue
            for other_low, other_high, rows in writers:
                if low + 1 < other_high and other_low + 1 < high:  # neighbours may share a byte that was rounded
                    assert order.all_hold([r for r in rows if r != row], row), (place, row)
            writers[:] = [w for w in writers if w[0] < low or w[1] > high]  # whoever follows this one follows those
            writers.append((low, high, [row]))


def weight_slots_are_not_overwritten(built: Built, order: Order) -> None:
    rings: dict[tuple[int, int], list[WeightTile]] = {}
    for tile in built.weight_tiles:
        rings.setdefault((id(tile.ring), tile.lane), []).append(tile)
    for tiles in rings.values():
        for old, new in zip(tiles, tiles[tiles[0].ring.slots :], strict=False):
            for row in _rows(built, new.arrivals):
                assert order.all_hold(_rows(built, old.users), row)
        for tile in tiles:
            for row in _rows(built, tile.users):
                assert order.all_hold(_rows(built, tile.arrivals), row)


def _rows(built: Built, commands: Iterable[int]) -> list[int]:
    return [built.row_of[command] for command in commands]


# ---- work and data --------------------------------------------------------------------------------------------------


def work_is_conserved(built: Built) -> None:
    """Commands of an op lie on the lanes of its split, and add up to its work there."""
    table, context, commands = built.program.commands, built.lowering.context, compute_rows(built)
    for index, (placed, split) in enumerate(zip(built.schedule.placed, built.schedule.splits, strict=True)):
        if not placed.engine:
            continue
        portions = split.sharding.shares
        assert set(commands[index]) == set(portions), placed.op.name
        _check_boxes(split.sharding)
        made = split.sharding.made
        for lane, portion in portions.items():
            here = commands[index][lane]
            assert abs(int(table["macs"][here].sum()) - placed.task.work.macs * placed.task.trips * portion) <= 1
            assert abs(int(table["out_bytes"][here].sum()) - context.out_bytes(placed.op) * made.share(lane)) <= 1


def _check_boxes(sharding: Sharding) -> None:
    """The boxes of lanes cover everything, and do not overlap unless they are equal."""
    boxes = list(dict.fromkeys(sharding.boxes.values()))
    assert abs(sum(map(_volume, boxes)) - 1) < CLOSE, boxes
    for one, other in combinations(boxes, 2):
        assert _volume(_common(one, other)) < CLOSE, (one, other)


def _volume(box: Box) -> float:
    return prod(max(0.0, high - low) for _, low, high in box)


def _common(one: Box, other: Box) -> Box:
    """What two boxes have in common; empty intervals where that is nothing."""
    limits = {axis: (low, high) for axis, low, high in one}
    for axis, low, high in other:
        own = limits.get(axis, (0.0, 1.0))
        limits[axis] = max(own[0], low), min(own[1], high)
    return tuple((axis, *limits[axis]) for axis in sorted(limits))


def compute_rows(built: Built) -> dict[int, dict[int, list[int]]]:
    """Op → lane → rows of the commands that compute it, in the order of their tiles, whichever unit has them."""
    table, lanes, context = built.program.commands, built.lanes().tolist(), built.lowering.context
    computing = (table["route"] == NO_ROUTE) & (built.ops != NO_OP)
    found: dict[int, dict[int, list[int]]] = {}
    for row in (row for row in built.row_of if computing[row]):
        index = int(built.ops[row])
        placed = built.schedule.placed[index]
        if placed.engine and built.program.kinds[table["kind"][row]] == context.command_name(placed.form):
            found.setdefault(index, {}).setdefault(lanes[row], []).append(row)
    return found


def data_arrives_before_it_is_read(built: Built, order: Order) -> None:
    """Follow every operand back to the commands that compute it, over exchanges, views and ops of unknown cost."""
    commands, context, origins = compute_rows(built), built.lowering.context, _Origins(built)
    for index, placed in enumerate(built.schedule.placed):
        for position, t in enumerate(placed.op.inputs):
            for lane, rows in commands.get(index, {}).items() if t != ABSENT else ():
                made = [row for maker, other in origins.of(t, lane) for row in commands.get(maker, {}).get(other, ())]
                assert order.all_hold(made, rows[-1]), (placed.op.name, lane)
                waits = context.common_rows(index, position, lane) <= 1 and not _is_piecewise(built, index)
                if len(rows) > 1 and waits:
                    assert order.all_hold(made, rows[0]), (placed.op.name, lane)


def _is_piecewise(built: Built, index: int) -> bool:
    return built.schedule.placed[index].op.family in (Family.ELEMENTWISE, Family.CONVERT)


class _Origins:
    """Who computes what a lane has of a tensor."""

    def __init__(self, built: Built) -> None:
        self.schedule = built.schedule
        self.maker = {t: index for index, placed in enumerate(self.schedule.placed) for t in placed.op.outputs}
        self._known: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}

    def of(self, tensor: int, lane: int) -> frozenset[tuple[int, int]]:
        """Op and lane of those that compute it: itself, lanes with other partial sums, those that sent a part."""
        if tensor not in self.maker:
            return frozenset()
        if (tensor, lane) not in self._known:
            self._known[tensor, lane] = frozenset(self._find(self.maker[tensor], lane))
        return self._known[tensor, lane]

    def _find(self, index: int, lane: int) -> Iterator[tuple[int, int]]:
        placed, sharding = self.schedule.placed[index], self.schedule.splits[index].sharding
        if placed.engine:
            made = sharding.made.boxes
            alike = {other for other in sharding.lanes() if made.get(other) == made.get(lane)}
            yield from ((index, other) for other in (alike if sharding.cut_on(REDUCED) else {lane}))
            return
        lanes: Iterable[int] = (lane,)
        if placed.op.kind == "exchange":
            lanes = (lane, *exchange(self.schedule.splits[index].needs[0], sharding).sources.get(lane, ()))
        elif placed.unknown:  # it takes its inputs as they are, wherever they are
            lanes = range(self.schedule.machine.lanes)
        for t in (t for t in placed.op.inputs if t != ABSENT):
            for other in lanes:
                yield from self.of(t, other)


def lanes_have_what_they_need(built: Built) -> None:
    """Every box that a lane reads of a tensor is one that it has made, or that has been exchanged."""
    schedule = built.schedule
    held: dict[int, Sharding] = {}
    for placed, split in zip(schedule.placed, schedule.splits, strict=True):
        if placed.unknown or placed.op.family is Family.CONTROL:
            assert not split.needs or not placed.unknown, placed.op.name
        elif placed.op.kind == "exchange":
            assert split.needs == (held[placed.op.inputs[0]],)
            _check_exchange(*split.needs, split.sharding)
        else:
            for t, need in zip(placed.op.inputs, split.needs, strict=True):
                if t in held:
                    for lane in split.sharding.lanes():
                        own, wanted = held[t].boxes.get(lane), need.boxes[lane]
                        assert own is not None, (placed.op.name, lane)
                        assert _volume(_common(own, wanted)) > _volume(wanted) - CLOSE, (placed.op.name, own, wanted)
        stored = placed.op.family is Family.VIEW and placed.op.inputs[0] not in held  # a view of a graph input, say
        if not stored:
            held.update(dict.fromkeys(placed.op.outputs, split.sharding.made))


def _check_exchange(held: Sharding, needed: Sharding) -> None:
    """What a lane has and what it receives is all that it needs."""
    sources = exchange(held, needed).sources
    for lane, wanted in needed.boxes.items():
        boxes = {held.boxes[other] for other in (lane, *sources.get(lane, ())) if other in held.boxes}
        assert abs(sum(_volume(_common(box, wanted)) for box in boxes) - _volume(wanted)) < CLOSE, (lane, wanted)


def rings_are_read_as_they_turn(built: Built) -> None:
    """Tiles that share a place one after the other: each is read, or written out, before the next but one is made."""
    table, context, commands = built.program.commands, built.lowering.context, compute_rows(built)
    emitted = {row: number for number, row in enumerate(built.row_of)}
    readers: dict[int, list[int]] = {}
    for index, placed in enumerate(built.schedule.placed):
        for t in placed.op.inputs:
            readers.setdefault(t, []).append(index)
    for index, placed in enumerate(built.schedule.placed):
        for lane, rows in commands.get(index, {}).items():
            ranges = [_range(table[row]) for row in rows]
            if len(rows) < 3 or len(set(ranges)) == len(rows) or ranges[0][0] == ranges[0][1]:
                continue
            if _writes_of(built, index, lane) >= len(rows):
                continue
            assert placed.op.outputs[0] not in built.schedule.graph.outputs
            for reader in readers.get(placed.op.outputs[0], ()):
                own = commands[reader][lane]
                assert len(own) == len(rows), (placed.op.name, context.plan.placed[reader].op.name)
                assert all(emitted[own[k]] < emitted[rows[k + 2]] for k in range(len(rows) - 2))


def _writes_of(built: Built, index: int, lane: int) -> int:
    table = built.program.commands
    writes = [number for number, route in enumerate(built.program.routes) if route.carries == "write"]
    return int((np.isin(table["route"], writes) & (built.ops == index) & (built.lanes() == lane)).sum())


# ---- traffic --------------------------------------------------------------------------------------------------------


def weights_are_read_as_often_as_the_plan_says(built: Built) -> None:
    """Once per device, or once in total where channels are cut; again for every slice of rows that they pass.

    Those of a loop's body again in every trip, where no core holds all its constants.
    """
    table, program = built.program.commands, built.program
    reads = [number for number, route in enumerate(program.routes) if route.carries == "read"]
    moves, commands = np.isin(table["route"], reads), compute_rows(built)
    for index, placed in enumerate(built.schedule.placed):
        if not has_weights(placed.op, built.schedule.graph) or not placed.engine:
            continue
        tensor = built.schedule.graph.tensors[placed.op.inputs[1]]
        named = [i for i, detail in enumerate(program.details) if any(tensor.name == o.tensor for o in detail.operands)]
        mine = moves & (built.ops == index) & np.isin(table["detail"], named)
        stays = built.schedule.resident or placed.op.inputs[1] in built.schedule.kept
        expected = 0.0 if stays else _weight_reads(built, index, commands[index]) * (tensor.bytes or 0)
        assert abs(int(table["moved_bytes"][mine].sum()) - expected) <= mine.sum(), placed.op.name


def _weight_reads(built: Built, index: int, rows: dict[int, list[int]]) -> float:
    """How often the weights of an op are read: every part once a device, or once a slice where they do not stay."""
    weights, sharding = built.lowering.weights, built.lowering.context.weight_sharding(index)
    groups: dict[tuple[int, Box], list[int]] = {}
    for lane, box in sharding.boxes.items():
        groups.setdefault((lane // built.program.cores, box), []).append(lane)
    shared = any(tile.ring is weights.ring for tile in built.weight_tiles if tile.op == index)
    stays = not shared or max(weights.tiles(index, lane) for lane in rows) <= weights.slots
    times = 0.0
    for (_, box), lanes in groups.items():
        slices = max(len(rows[lane]) // weights.tiles(index, lane) for lane in lanes)
        times += _volume(box) * (1 if stays else slices)
    return times * _passes(built, index)


def _passes(built: Built, index: int) -> int:
    graph, op = built.schedule.graph, built.schedule.placed[index].op
    if op.trips == 1:
        return 1
    body = {t for each in graph.ops if each.scope == op.scope for t in each.inputs if t != ABSENT}
    size = sum(graph.tensors[t].bytes or 0 for t in body if graph.tensors[t].role is Role.CONSTANT)
    return op.trips or 1 if size > built.lowering.context.capacity else 1


def what_is_moved_out_is_read_again(built: Built) -> None:
    """Activations in outer memory: nothing is read that was not written there, nothing written that nobody reads."""
    graph, root = built.schedule.graph, _bytes_of(built)
    moved: dict[str, set[int]] = {"read": set(), "write": set()}
    for _, way, tensor in _moves(built):
        if graph.tensors[root[tensor]].role is Role.ACTIVATION:
            moved[way].add(root[tensor])
    unknown = [p.op for p in built.schedule.placed if not p.engine and p.op.family is not Family.VIEW]
    unknown = [op for op in unknown if op.kind not in ("join", "divide", "exchange")]
    elsewhere = {root[t] for op in unknown for t in (*op.inputs, *op.outputs) if t != ABSENT}  # read, written by them
    assert moved["write"] - {root[t] for t in graph.outputs} <= moved["read"] | elsewhere
    assert moved["read"] <= moved["write"] | elsewhere


def outer_memory_is_read_after_it_is_written(built: Built, order: Order) -> None:
    """Before a core reads an activation, all that it has sent of it to outer memory has arrived there."""
    lanes, tensors = built.lanes(), built.lowering.tensors
    sent: dict[tuple[int, int], list[int]] = {}
    for row, way, tensor in _moves(built):
        key = int(lanes[row]), tensors.root(tensor)
        if way == "write":
            sent.setdefault(key, []).append(row)
        else:
            assert order.all_hold(sent.get(key, ()), row)


def _moves(built: Built) -> Iterator[tuple[int, str, int]]:
    """Yield row, way and tensor of what ops read from outer memory or write there, as emitted.

    Tensors of different parts of the batch have one name; among the operands of an op it says which.
    """
    program, schedule = built.program, built.schedule
    for row in built.row_of:
        command = program.commands[row]
        way = program.routes[command["route"]].carries if command["route"] != NO_ROUTE else ""
        if way in ("read", "write") and built.ops[row] != NO_OP:
            op = schedule.placed[built.ops[row]].op
            names = {schedule.graph.tensors[t].name: t for t in (*op.inputs, *op.outputs) if t != ABSENT}
            yield from ((row, way, names[o.tensor]) for o in program.details[int(command["detail"])].operands)


def _bytes_of(built: Built) -> list[int]:
    """Tensor → one that stands for its bytes: a view is what it is a view of, parts are the whole."""
    root = [built.lowering.tensors.root(t) for t in range(len(built.schedule.graph.tensors))]
    same = list(range(len(root)))

    def find(t: int) -> int:
        while same[t] != t:
            t = same[t]
        return t

    for op in built.schedule.graph.ops:
        if op.kind in ("join", "divide", "exchange"):
            for t in (*op.inputs, *op.outputs):
                same[find(root[t])] = find(root[op.outputs[0]])
    return [find(t) for t in root]


def outputs_are_written_once(built: Built) -> None:
    """Every graph output leaves for outer memory, all of it, and no part of it twice."""
    table, program, graph = built.program.commands, built.program, built.schedule.graph
    writes = [number for number, route in enumerate(program.routes) if route.carries == "write"]
    leaving = np.isin(table["route"], writes) & (built.ops == NO_OP)
    written = int(table["moved_bytes"][leaving].sum())
    roots = {built.lowering.tensors.root(t) for t in graph.outputs}
    computed = sum(graph.tensors[t].bytes or 0 for t in roots if graph.tensors[t].role is Role.ACTIVATION)
    assert written <= computed + leaving.sum()


def metrics_add_up(built: Built) -> None:
    table, program = built.program.commands, built.program
    rows = program.metrics.traffic
    for carries in ("read", "write", "multicast"):
        routes = [number for number, route in enumerate(program.routes) if route.carries == carries]
        moved = int(table["moved_bytes"][np.isin(table["route"], routes)].sum())
        assert moved == sum(getattr(row, carries) for row in rows)
    assert all(row.read_constant <= row.read and row.multicast_constant <= row.multicast for row in rows)
    assert max(program.metrics.local_bytes, default=0) <= program.metrics.local_capacity


def local_operands_fit_local_memory(built: Built) -> None:
    """An operand that is shown in local memory is shown with the bytes of it that are there at once."""
    program = built.program
    for detail in program.details:
        for operand in detail.operands:
            if operand.bytes is not None and not program.memories[operand.memory].is_outer:
                assert operand.bytes <= program.metrics.local_capacity, operand


def exchanges_move_what_is_missing(built: Built) -> None:
    """Over the bus and the link, no more and no less than lanes need and do not have; or all through outer memory."""
    table, program, schedule = built.program.commands, built.program, built.schedule
    carries = np.array([route.carries for route in program.routes] + [""])
    ways = carries[np.where(table["route"] == NO_ROUTE, len(carries) - 1, table["route"])]
    for index, (placed, split) in enumerate(zip(schedule.placed, schedule.splits, strict=True)):
        if placed.op.kind != "exchange":
            continue
        size, found = schedule.graph.tensors[placed.op.outputs[0]].bytes or 0, exchange(*split.needs, split.sharding)
        moved = {way: int(table["moved_bytes"][(built.ops == index) & (ways == way)].sum()) for way in carries[:-1]}
        rounded = len(found.sent) + len(found.linked)
        assert abs(moved.get("link", 0) - size * sum(found.linked.values())) <= rounded
        if moved.get("multicast", 0):
            assert abs(moved["multicast"] - size * sum(found.sent.values())) <= rounded


def all_laws(built: Built, timeline: Timeline) -> None:
    order = Order(built)
    for timed in (dependencies_are_respected, lanes_do_one_thing_at_a_time, no_engine_works_more_than_all_the_time):
        timed(built, timeline)
    for ordered in (
        places_in_use_never_overlap,
        tiles_are_read_before_they_are_overwritten,
        weight_slots_are_not_overwritten,
        data_arrives_before_it_is_read,
        outer_memory_is_read_after_it_is_written,
    ):
        ordered(built, order)
    for law in (
        tiles_lie_in_a_place,
        work_is_conserved,
        rings_are_read_as_they_turn,
        weights_are_read_as_often_as_the_plan_says,
        what_is_moved_out_is_read_again,
        outputs_are_written_once,
        metrics_add_up,
        lanes_have_what_they_need,
        exchanges_move_what_is_missing,
        local_operands_fit_local_memory,
    ):
        law(built)
