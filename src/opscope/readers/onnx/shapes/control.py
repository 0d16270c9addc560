"""Branches and loops: which body runs, how often, and with which shapes.

A Loop whose body keeps the shapes of what it carries runs one body N times. A loop that grows a tensor, or ends by a
condition, is followed trip by trip: trips of equal shapes are one body with a count, and every other group of trips
gets a body of its own. For example, a decoder that appends a token to a cache of 2 in three trips has the bodies
`body` (3 keys, once), `body@1` (4 keys, once), `body@2` (5 keys, once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..model import Argument, Body, Element, Node
from .call import Call, Open, Operand, Shape
from .frame import Frame

if TYPE_CHECKING:
    from .call import Array
    from .interpret import Interpreter

MAX_GROUPS = 256  # bodies of one loop with different shapes


def run_control(interpreter: Interpreter, call: Call, frame: Frame) -> tuple[Node, list[Operand]]:
    """Return a node with its bodies resolved, and its outputs."""
    if call.node.op_type == "If":
        return _run_if(interpreter, call, frame)
    if call.node.op_type == "Loop":
        return _Loop(interpreter, call, frame).run()
    if call.node.op_type == "Scan":
        return _run_scan(interpreter, call, frame)
    if call.node.op_type == "SequenceMap":
        return _run_map(interpreter, call, frame)
    return call.node, interpreter.outputs(call, {})  # such as FlexAttention: its bodies change scores, no shapes


def _with_bodies(node: Node, bodies: dict[str, Body]) -> Node:
    """Return the node with these bodies in place of its own."""
    own = dict(node.bodies())
    rest = {name: argument for name, argument in node.arguments.items() if name not in own}
    return node._replace(arguments={**rest, **{name: Argument(body) for name, body in bodies.items()}})


def _inner(frame: Frame, body: Body, *, is_certain: bool = False) -> Frame:
    return Frame(frame.wire, frame.limits, body.constants, frame, is_certain)


def _outputs(body: Body, inner: Frame) -> list[Operand]:
    return [inner.operand(value.name) for value in body.outputs]


# -- If


def _run_if(interpreter: Interpreter, call: Call, frame: Frame) -> tuple[Node, list[Operand]]:
    """On a known condition only the branch that is taken stays."""
    bodies = dict(call.node.bodies())
    try:
        taken = "then_branch" if call.integer(0) else "else_branch"
    except Open:
        seen = _seen_branch(interpreter, call, bodies)
        if seen is None:
            return _run_both(interpreter, call, frame, bodies)
        taken = seen
    if taken not in bodies:
        raise call.mismatch(f"has no {taken}")
    inner = _inner(frame, bodies[taken], is_certain=True)
    body = interpreter.run_body(bodies[taken], inner)
    return _take(call, frame, taken, body, inner)


def _take(call: Call, frame: Frame, taken: str, body: Body, inner: Frame) -> tuple[Node, list[Operand]]:
    """Return a branch as the only one."""
    for name, value in zip(call.node.outputs, body.outputs, strict=False):
        frame.aliases[name] = (inner, value.name)
    return _with_bodies(call.node, {taken: replace(body, trips=1)}), _outputs(body, inner)


def _seen_branch(interpreter: Interpreter, call: Call, bodies: dict[str, Body]) -> str | None:
    """The branch that a run of the model took every time; None if there was no run, or it took both."""
    runs = interpreter.observed.get(call.node.location)
    if runs is None:
        return None
    counts = {name: _seen_count(interpreter, body) for name, body in bodies.items()}
    never = [name for name, count in counts.items() if count == 0]
    rest = [name for name in bodies if name not in never]
    return rest[0] if len(rest) == 1 and counts[rest[0]] in (None, runs.count) else None


def _seen_count(interpreter: Interpreter, body: Body) -> int | None:
    """How often a body ran; None if it has no node that could tell."""
    if not body.nodes:
        return None
    counts = [runs.count for node in body.nodes if (runs := interpreter.observed.get(node.location)) is not None]
    return max(counts, default=0)


def _run_both(
    interpreter: Interpreter, call: Call, frame: Frame, bodies: dict[str, Body]
) -> tuple[Node, list[Operand]]:
    """Count both branches, but for one that cannot run: no run of the model with these shapes takes it."""
    frames = {name: _inner(frame, body) for name, body in bodies.items()}
    found = {name: replace(interpreter.run_body(body, frames[name]), trips=1) for name, body in bodies.items()}
    able = [name for name, inner in frames.items() if inner.contradiction is None]
    if len(able) == 1:
        return _take(call, frame, able[0], found[able[0]], frames[able[0]])
    if not able:
        interpreter.contradict(next(inner.contradiction for inner in frames.values() if inner.contradiction), frame)
    outputs = [_outputs(body, frames[name]) for name, body in bodies.items()]
    undecided = f"decided at run time by {call.place}"
    merged = [_either(alternatives, undecided) for alternatives in zip(*outputs, strict=False)]
    return _with_bodies(call.node, found), merged


def _either(alternatives: Sequence[Operand], undecided: str) -> Operand:
    first = alternatives[0]
    if all(
        (other.element, other.shape, other.items) == (first.element, first.shape, first.items) for other in alternatives
    ):
        return first._replace(is_constant=False)
    known = next((operand.because for operand in alternatives if operand.because), undecided)
    return Operand(first.element, None, known)


# -- Loop


@dataclass(slots=True)
class _Trip:
    """One run of a loop's body."""

    body: Body
    goes_on: bool | Open  # the condition it returns, or why that is unknown
    carried: list[Operand]
    arrays: list[Array | None]  # of what it carries, where known
    scanned: list[Operand]  # one slice of every scan output


class _Loop:
    """Loop: inputs are the trip limit, the start condition and what is carried; each may be absent.

    The body reads (trip, condition, carried …) and returns (condition, carried …, slices of scan outputs …).
    """

    def __init__(self, interpreter: Interpreter, call: Call, frame: Frame) -> None:
        self.interpreter = interpreter
        self.call = call
        self.frame = frame
        bodies = dict(call.node.bodies())
        if "body" not in bodies or len(bodies["body"].inputs) < 2:
            raise call.mismatch("has no body that takes a trip and a condition")
        self.body = bodies["body"]
        self.start = [operand if operand is not None else Operand() for operand in call.operands[2:]]
        self.names = call.node.inputs[2:]

    def run(self) -> tuple[Node, list[Operand]]:
        limit = self._limit()
        any_trip = self._trip(None, self.start, [])
        seen = self._seen_trips()
        if seen is not None:
            return self._follow_seen(seen, any_trip)
        if limit == 0:
            return self._result([(any_trip.body, 0)], self.start, any_trip.scanned, 0)
        is_open = _openness(any_trip.body) > 0 and self._is_clearer_by_value(any_trip)
        is_stable = not is_open and [_type(one) for one in any_trip.carried] == [_type(one) for one in self.start]
        if is_stable and any_trip.goes_on is True and isinstance(limit, int):
            self._defer(limit)
            return self._result([(any_trip.body, limit)], any_trip.carried, any_trip.scanned, limit)
        return self._step(limit, any_trip, is_stable)

    def _is_clearer_by_value(self, any_trip: _Trip) -> bool:
        """Whether less is open in a trip whose number is known, as where a slice is taken at the loop's counter."""
        arrays = [_small_array(self.frame, name) for name in self.names]
        return _openness(self._trip(0, self.start, arrays).body) < _openness(any_trip.body)

    def _seen_trips(self) -> int | None:
        """The trips that each run of the loop took when the model ran; None if there was no run, or they differ."""
        runs = self.interpreter.observed.get(self.call.node.location)
        total = None if runs is None else _seen_count(self.interpreter, self.body)
        if runs is None or total is None or total % runs.count:
            return None
        return total // runs.count

    def _follow_seen(self, trips: int, any_trip: _Trip) -> tuple[Node, list[Operand]]:
        """Give the body the shapes that it had in each trip; if those are always the same, once for all trips."""
        interpreter = self.interpreter
        found = [interpreter.observed.get(node.location) for node in self.body.nodes]
        if trips == 0 or interpreter.trip is not None or all(runs is None or runs.same is not None for runs in found):
            return self._result([(any_trip.body, trips)], any_trip.carried, any_trip.scanned, trips)
        groups: list[tuple[Body, int]] = []
        carried, scanned = list(self.start), any_trip.scanned
        for number in range(trips):
            interpreter.trip = number
            trip = self._trip(number, carried, [])
            _add(groups, trip.body)
            carried, scanned = trip.carried, trip.scanned
            if len(groups) > MAX_GROUPS:
                break
        interpreter.trip = None
        if len(groups) > MAX_GROUPS:
            return self._unknown(any_trip, False, f"it has more than {MAX_GROUPS} trips of different shapes")
        return self._result(groups, carried, scanned, trips)

    def _limit(self) -> int | Open | None:
        """The number of trips at most; None: no limit. 0 if the loop does not start."""
        try:
            if self.call.has(1) and not self.call.integer(1):
                return 0
            return max(0, self.call.integer(0)) if self.call.has(0) else None
        except Open as reason:
            return reason

    def _trip(self, number: int | None, carried: Sequence[Operand], arrays: Sequence[Array | None]) -> _Trip:
        """Run the body once; `number` None: any trip, so that nothing that changes has a value."""
        import numpy as np

        inner = _inner(self.frame, self.body)
        counter, condition, *states = (value.name for value in self.body.inputs)
        inner.operands[counter] = Operand(Element.INT64, ())
        inner.operands[condition] = Operand(Element.BOOL, ())
        inner.arrays[condition] = np.array(True)  # else the body would not run
        if number is not None:
            inner.arrays[counter] = np.array(number, np.int64)
        for index, name in enumerate(states):
            given = carried[index] if index < len(carried) else Operand(because=f"{self.call.place} does not give it")
            inner.operands[name] = given._replace(is_constant=False)
            array = arrays[index] if index < len(arrays) else None
            if array is not None:
                inner.arrays[name] = array
        body = self.interpreter.run_body(self.body, inner)
        outputs = _outputs(body, inner)
        goes_on: bool | Open
        names = [value.name for value in body.outputs]
        try:
            goes_on = bool(inner.array(names[0]).ravel()[0]) if names else True
        except Open as reason:
            goes_on = reason
        ends = 1 + len(states)
        following = [] if number is None else [_small_array(inner, name) for name in names[1:ends]]
        return _Trip(body, goes_on, outputs[1:ends], following, outputs[ends:])

    def _step(self, limit: int | Open | None, any_trip: _Trip, is_stable: bool) -> tuple[Node, list[Operand]]:
        """Follow the loop trip by trip, with values as far as they are known."""
        carried, arrays = list(self.start), [_small_array(self.frame, name) for name in self.names]
        groups: list[tuple[Body, int]] = []
        scanned: list[Operand] = []
        count = 0
        try:
            if isinstance(limit, Open) and any_trip.goes_on is True:
                raise limit
            while not isinstance(limit, int) or count < limit:
                trip = self._trip(count, carried, arrays)
                count += 1
                if isinstance(trip.goes_on, Open) and count != limit:  # behind the last trip nobody asks
                    raise trip.goes_on
                scanned = _common(scanned, trip.scanned) if count > 1 else trip.scanned
                _add(groups, trip.body)
                if len(groups) > MAX_GROUPS:
                    raise Open(f"{self.call.place} has more than {MAX_GROUPS} trips of different shapes")
                carried, arrays = trip.carried, trip.arrays
                if not trip.goes_on:
                    break
                if isinstance(limit, Open):
                    raise limit
        except Open as reason:
            return self._unknown(any_trip, is_stable, str(reason))
        for name, array in zip(self.call.node.outputs, arrays, strict=False):
            if name and array is not None:
                self.frame.arrays[name] = array
        return self._result(groups, carried, scanned, count)

    def _defer(self, limit: int) -> None:
        """Have the values that a loop ends with computed if something asks for them."""

        def compute() -> None:
            for name in self.call.node.outputs:
                self.frame.deferred.pop(name, None)
            carried, arrays = list(self.start), [_small_array(self.frame, name) for name in self.names]
            for number in range(limit):
                if not any(array is not None for array in arrays):
                    return
                trip = self._trip(number, carried, arrays)
                carried, arrays = trip.carried, trip.arrays
            for name, array in zip(self.call.node.outputs, arrays, strict=False):
                if name and array is not None:
                    self.frame.arrays[name] = array

        for name in filter(None, self.call.node.outputs):
            self.frame.deferred[name] = compute

    def _result(
        self, groups: list[tuple[Body, int]], carried: list[Operand], scanned: list[Operand], trips: int
    ) -> tuple[Node, list[Operand]]:
        bodies = {
            "body" if not place else f"body@{place}": replace(body, trips=n) for place, (body, n) in enumerate(groups)
        }
        stacked = [
            operand if operand.shape is None else operand._replace(shape=(trips, *operand.shape)) for operand in scanned
        ]
        outputs = [operand._replace(is_constant=False) for operand in (*carried, *stacked)]
        return _with_bodies(self.call.node, bodies), outputs

    def _unknown(self, any_trip: _Trip, is_stable: bool, reason: str) -> tuple[Node, list[Operand]]:
        """How often the body runs is not known; what it carries keeps its shape if every trip keeps it."""
        decided = f"decided at run time by {self.call.place}: {reason}"
        carried = any_trip.carried if is_stable else [Operand(operand.element, None, decided) for operand in self.start]
        scanned = [Operand(operand.element, None, decided) for operand in any_trip.scanned]
        outputs = [operand._replace(is_constant=False) for operand in (*carried, *scanned)]
        body = any_trip.body if is_stable else self._open_body(decided)
        return _with_bodies(self.call.node, {"body": body}), outputs

    def _open_body(self, decided: str) -> Body:
        """The body with nothing known of what changes from trip to trip."""
        start = [Operand(operand.element, None, decided) for operand in self.start]
        return self._trip(None, start, []).body


def _openness(body: Body) -> int:
    """How many tensors, and bodies of nodes, a body leaves open."""
    inner = [nested for node in body.nodes for _, nested in node.bodies()]
    open_values = sum(value.is_tensor and value.shape is None for value in body.values.values())
    return open_values + sum((nested.trips is None) + _openness(nested) for nested in inner)


def _type(operand: Operand) -> tuple[int, Shape | None, tuple[Operand, ...] | None]:
    return operand.element, operand.shape, operand.items


def _add(groups: list[tuple[Body, int]], body: Body) -> None:
    """Count a trip to the last group if all its tensors have the same shapes."""
    if groups and groups[-1][0].values == body.values and groups[-1][0].constants == body.constants:
        groups[-1] = (groups[-1][0], groups[-1][1] + 1)
    else:
        groups.append((body, 1))


def _common(one: list[Operand], other: list[Operand]) -> list[Operand]:
    """Slices of a scan output have one shape."""
    return [
        a if _type(a) == _type(b) else Operand(a.element, None, "its slices differ in shape")
        for a, b in zip(one, other, strict=False)
    ]


def _small_array(frame: Frame, name: str) -> Array | None:
    try:
        return frame.array(name) if name else None
    except Open:
        return None


# -- Scan and SequenceMap


def _run_scan(interpreter: Interpreter, call: Call, frame: Frame) -> tuple[Node, list[Operand]]:
    """The last `num_scan_inputs` inputs are cut into slices; the body runs once per slice."""
    body = dict(call.node.bodies()).get("body")
    count = call.node.integer("num_scan_inputs", 0)
    first = 1 if call.opset < 9 else 0  # opset 8 has sequence lengths first, and a batch before the scanned axis
    if body is None or not 0 < count <= len(call.operands) - first:
        raise call.mismatch(f"has {count} scan inputs of {len(call.operands)}")
    states = [call.operand(index) for index in range(first, len(call.operands) - count)]
    axes = call.node.integers("scan_input_axes") or (0,) * count
    inner = _inner(frame, body)
    trips = None
    for place, (value, operand) in enumerate(zip(body.inputs, [*states, *call.operands[-count:]], strict=False)):
        given = operand if operand is not None else Operand()
        shape = given.shape
        if shape is not None and first:
            trips = trips if place < len(states) else shape[0] * shape[1]
            shape = shape[1:] if place < len(states) else shape[2:]
        elif shape is not None and place >= len(states):
            axis = call.front_axis(axes[place - len(states)], len(shape))
            trips = shape[axis]
            shape = (*shape[:axis], *shape[axis + 1 :])
        inner.operands[value.name] = given._replace(shape=shape, is_constant=False)
    resolved = replace(interpreter.run_body(body, inner), trips=trips)
    outputs = _outputs(resolved, inner)
    carried = states if first else outputs[: len(states)]
    scanned = [_stacked(call, operand, trips, index) for index, operand in enumerate(outputs[len(states) :])]
    return _with_bodies(call.node, {"body": resolved}), [
        one._replace(is_constant=False) for one in (*carried, *scanned)
    ]


def _stacked(call: Call, operand: Operand, trips: int | None, index: int) -> Operand:
    if operand.shape is None or trips is None:
        return operand._replace(shape=None, because=operand.because or f"decided at run time by {call.place}")
    if call.opset < 9:
        data = call.shape(len(call.operands) - 1)
        return operand._replace(shape=(*data[:2], *operand.shape))
    axes = call.node.integers("scan_output_axes") or ()
    axis = call.front_axis(axes[index] if index < len(axes) else 0, len(operand.shape) + 1)
    return operand._replace(shape=(*operand.shape[:axis], trips, *operand.shape[axis:]))


def _run_map(interpreter: Interpreter, call: Call, frame: Frame) -> tuple[Node, list[Operand]]:
    """SequenceMap: the body runs for every element of the first sequence."""
    body = dict(call.node.bodies()).get("body")
    first = call.operand(0).items
    if body is None or first is None:
        raise Open(call.operand(0).because or f"{call.place} reads a sequence that is decided at run time")
    groups: list[tuple[Body, int]] = []
    outputs: list[list[Operand]] = []
    for place in range(len(first)):
        inner = _inner(frame, body)
        for value, operand in zip(body.inputs, call.operands, strict=False):
            given = operand if operand is not None else Operand()
            inner.operands[value.name] = given.items[min(place, len(given.items) - 1)] if given.items else given
        resolved = interpreter.run_body(body, inner)
        _add(groups, resolved)
        outputs.append(_outputs(resolved, inner))
    bodies = {"body" if not place else f"body@{place}": replace(one, trips=n) for place, (one, n) in enumerate(groups)}
    items = [Operand(items=column) for column in zip(*outputs, strict=False)]
    return _with_bodies(call.node, bodies), items
