"""What must hold of every compiled program. Each law takes a build, and raises AssertionError where it is broken.

Order is proved from dependencies, not read off one timeline: no device may run the program in an order that breaks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from compiler_build import Built, Place
from opscope.compiler.passes.axes import WHOLE, input_axes
from opscope.compiler.passes.place import has_weights
from opscope.compiler.passes.split import same_portions
from opscope.device import Timeline
from opscope.graph.graph import ABSENT, Role
from opscope.graph.kinds import Family
from opscope.program.program import NO_OP, NO_ROUTE

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

    def all_hold(self, first: Iterable[int], second: int) -> bool:
        return all(self.holds(row, second) for row in first)


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
                assert all(order.all_hold(users, row) for row in rows), (other, place)
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
    table = built.program.commands
    for place in built.places:
        users = [built.row_of[command] for command in sorted(set(place.users))]
        writers: list[tuple[int, int, list[int]]] = []  # low, high, writer and its readers
        for row in users:
            low, high = _range(table[row])
            if high == low:  # it only reads: what was written last
                if writers:
                    writers[-1][2].append(row)
                continue
            for other_low, other_high, rows in writers:
                if low + 1 < other_high and other_low + 1 < high:  # neighbours may share a byte that was rounded
                    assert order.all_hold([r for r in rows if r != row], row), (place, row)
            writers.append((low, high, [row]))


def weight_slots_are_not_overwritten(built: Built, order: Order) -> None:
    slots = built.lowering.weights.slots
    for lane in range(built.lowering.context.lane_count):
        tiles = [tile for tile in built.weight_tiles if tile.lane == lane]
        for old, new in zip(tiles, tiles[slots:], strict=False):
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
    for index, (placed, split) in enumerate(zip(built.plan.placed, built.plan.splits, strict=True)):
        if not placed.engine:
            continue
        portions = context.portions(split)
        assert set(commands[index]) == set(portions), placed.op.name
        assert abs(sum(portions.values()) - (1 if split.axis is not None else len(context.all_lanes(split)))) < CLOSE
        for lane, portion in portions.items():
            here = commands[index][lane]
            assert abs(int(table["macs"][here].sum()) - placed.task.work.macs * placed.task.trips * portion) <= 1
            assert abs(int(table["out_bytes"][here].sum()) - context.out_bytes(placed.op) * portion) <= 1


def compute_rows(built: Built) -> dict[int, dict[int, list[int]]]:
    """Op → lane → rows of the commands that compute it, in the order of their tiles, whichever unit has them."""
    table, lanes, context = built.program.commands, built.lanes().tolist(), built.lowering.context
    computing = (table["route"] == NO_ROUTE) & (built.ops != NO_OP)
    found: dict[int, dict[int, list[int]]] = {}
    for row in (row for row in built.row_of if computing[row]):
        index = int(built.ops[row])
        placed = built.plan.placed[index]
        if placed.engine and built.program.kinds[table["kind"][row]] == context.command_name(placed.form):
            found.setdefault(index, {}).setdefault(lanes[row], []).append(row)
    return found


def data_arrives_before_it_is_read(built: Built, order: Order) -> None:
    """Follow every operand back to the op that computes it; views and ops of unknown cost hand on what they read."""
    makers, commands, context = _makers(built), compute_rows(built), built.lowering.context
    for index, placed in enumerate(built.plan.placed):
        for position, t in enumerate(placed.op.inputs):
            for maker in makers.get(t, ()) if t != ABSENT else ():
                by_lane, everywhere = commands.get(maker, {}), _gathered(built, maker, index, t)
                for lane, rows in commands.get(index, {}).items():
                    made = [row for rows in by_lane.values() for row in rows] if everywhere else by_lane.get(lane, [])
                    assert order.all_hold(made, rows[-1]), (placed.op.name, lane)
                    if (
                        len(rows) > 1
                        and not context.common_rows(index, position, lane) > 1
                        and not _is_piecewise(built, index)
                    ):
                        assert order.all_hold(made, rows[0]), (placed.op.name, lane)


def _is_piecewise(built: Built, index: int) -> bool:
    return built.plan.placed[index].op.family in (Family.ELEMENTWISE, Family.CONVERT)


def _makers(built: Built) -> dict[int, set[int]]:
    """Tensor → ops that compute it."""
    makers: dict[int, set[int]] = {}
    for index, placed in enumerate(built.plan.placed):
        handed_on = set().union(*(makers.get(t, set()) for t in placed.op.inputs if t != ABSENT))
        for t in placed.op.outputs:
            makers[t] = {index} if placed.engine else handed_on
    return makers


def _gathered(built: Built, maker: int, reader: int, tensor: int) -> bool:
    """Whether a tensor was cut, and has been gathered when an op reads it: then it comes from every lane."""
    handed_around = any(tensor in split.gathers for split in built.plan.splits[: reader + 1])
    return built.plan.splits[maker].axis is not None and handed_around


def rings_are_read_as_they_turn(built: Built) -> None:
    """Tiles that share a place one after the other: each is read, or written out, before the next but one is made."""
    table, context, commands = built.program.commands, built.lowering.context, compute_rows(built)
    emitted = {row: number for number, row in enumerate(built.row_of)}
    readers: dict[int, list[int]] = {}
    for index, placed in enumerate(built.plan.placed):
        for t in placed.op.inputs:
            readers.setdefault(t, []).append(index)
    for index, placed in enumerate(built.plan.placed):
        for lane, rows in commands.get(index, {}).items():
            ranges = [_range(table[row]) for row in rows]
            if len(rows) < 3 or len(set(ranges)) == len(rows) or ranges[0][0] == ranges[0][1]:
                continue
            if _writes_of(built, index, lane) >= len(rows):
                continue
            assert placed.op.outputs[0] not in built.plan.graph.outputs
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
    """Once per device, or once in total where channels are cut; again for every slice of rows that they pass."""
    table, program, context = built.program.commands, built.program, built.lowering.context
    reads = [number for number, route in enumerate(program.routes) if route.carries == "read"]
    moves, commands = np.isin(table["route"], reads), compute_rows(built)
    for index, (placed, split) in enumerate(zip(built.plan.placed, built.plan.splits, strict=True)):
        if not has_weights(placed.op, built.plan.graph) or not placed.engine:
            continue
        tensor = built.plan.graph.tensors[placed.op.inputs[1]]
        named = [i for i, detail in enumerate(program.details) if any(tensor.name == o.tensor for o in detail.operands)]
        mine = moves & (built.ops == index) & np.isin(table["detail"], named)
        times = 0.0
        for lanes in context.lanes_by_device(split):
            tiles = [built.lowering.weights.tiles(placed, split, lane) for lane in lanes]
            slices = [len(commands[index][lane]) // count for lane, count in zip(lanes, tiles, strict=True)]
            if context.splits_channels(placed.op, split):
                times += sum(context.portion(split, lane) * count for lane, count in zip(lanes, slices, strict=True))
            else:
                times += max(slices)
        expected = 0.0 if built.plan.resident else times * (tensor.bytes or 0)
        assert abs(int(table["moved_bytes"][mine].sum()) - expected) <= mine.sum(), placed.op.name


def what_is_moved_out_is_read_again(built: Built) -> None:
    """Activations in outer memory: nothing is read that was not written there, nothing written that nobody reads."""
    table, program, graph = built.program.commands, built.program, built.plan.graph
    carries = [route.carries for route in program.routes]
    root = _bytes_of(built)
    roots = {graph.tensors[t].name: root[t] for t in range(len(root)) if graph.tensors[root[t]].role is Role.ACTIVATION}
    moved: dict[str, set[int]] = {"read": set(), "write": set()}
    for command in table[(table["route"] != NO_ROUTE) & (built.ops != NO_OP)]:
        for operand in program.details[int(command["detail"])].operands:
            name, way = operand.tensor, carries[command["route"]]
            if name in roots and way in moved:
                moved[way].add(roots[name])
    unknown = [p.op for p in built.plan.placed if not p.engine and p.op.family is not Family.VIEW]
    elsewhere = {root[t] for op in unknown for t in (*op.inputs, *op.outputs) if t != ABSENT}  # read, written by them
    assert moved["write"] - {root[t] for t in graph.outputs} <= moved["read"] | elsewhere
    assert moved["read"] <= moved["write"] | elsewhere


def outer_memory_is_read_after_it_is_written(built: Built, order: Order) -> None:
    """Before a core reads an activation, all that it has sent of it to outer memory has arrived there."""
    program, graph, lanes = built.program, built.plan.graph, built.lanes()
    roots = {tensor.name: built.lowering.tensors.root(t) for t, tensor in enumerate(graph.tensors)}
    sent: dict[tuple[int, int], list[int]] = {}
    for row in built.row_of:
        command = program.commands[row]
        carries = program.routes[command["route"]].carries if command["route"] != NO_ROUTE else ""
        for operand in program.details[int(command["detail"])].operands if carries in ("read", "write") else ():
            key = int(lanes[row]), roots[operand.tensor]
            if carries == "write":
                sent.setdefault(key, []).append(row)
            else:
                assert order.all_hold(sent.get(key, ()), row)


def _bytes_of(built: Built) -> list[int]:
    """Tensor → one that stands for its bytes: a view is what it is a view of, parts are the whole."""
    root = [built.lowering.tensors.root(t) for t in range(len(built.plan.graph.tensors))]
    same = list(range(len(root)))

    def find(t: int) -> int:
        while same[t] != t:
            t = same[t]
        return t

    for op in built.plan.graph.ops:
        if op.kind in ("join", "divide"):
            for t in (*op.inputs, *op.outputs):
                same[find(root[t])] = find(root[op.outputs[0]])
    return [find(t) for t in root]


def outputs_are_written_once(built: Built) -> None:
    """Every graph output leaves for outer memory, all of it, and no part of it twice."""
    table, program, graph = built.program.commands, built.program, built.plan.graph
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


def cuts_fit_together(built: Built) -> None:
    """Every operand that is not gathered is cut where its reader cuts it; an op of unknown cost reads nothing."""
    graph, whole = built.plan.graph, set()
    cut: dict[int, tuple[int, int]] = {}
    for placed, split in zip(built.plan.placed, built.plan.splits, strict=True):
        if placed.unknown:
            assert (split.axis, split.gathers) == (None, ()), placed.op.name
            continue
        roots = {built.lowering.tensors.root(t) for t in split.gathers}
        whole |= {t for t in cut if built.lowering.tensors.root(t) in roots}
        lanes = len(built.lowering.context.all_lanes(split))
        axes = input_axes(placed.op, graph, split.axis) if split.axis is not None else None
        for t, wanted in zip(placed.op.inputs, axes or (WHOLE,) * len(placed.op.inputs), strict=True):
            if t in cut and t not in whole:
                axis, extent = cut[t]
                assert axis == wanted, placed.op.name
                assert same_portions(extent, split.extent, lanes), placed.op.name
        cut.update({t: (split.axis, split.extent) for t in placed.op.outputs if split.axis is not None})


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
    ):
        law(built)
    if built.plan.options.parallel == "tensor":
        cuts_fit_together(built)
