"""Operators that run subgraphs: which body runs, how often, and what comes out.

A loop is run trip by trip as far as its condition can be evaluated; only what the condition needs is. Shapes that
differ from trip to trip are unknown in the graph, as it holds a body once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....core.errors import printable
from ....graph.graph import ABSENT
from ..bodies import Bodies, Runs, bodies
from ..model import StoredOperator, Subgraph
from ..ops import Shape
from .frame import Call, CalledBody, Frame, Unknown

if TYPE_CHECKING:
    from .infer import Inference

CONTROL = frozenset(("CALL", "CALL_ONCE", "IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE", "WHILE"))
MAX_TRIPS = 1 << 14  # of one loop that are followed
MAX_LOOP_OPERATORS = 1 << 16  # shaped anew in later trips of all loops
ROUNDS = 3  # to find the shapes that a loop of unknown length keeps


class Argument(NamedTuple):
    """What a body is given for one of its inputs."""

    shape: Shape | None
    reason: str = ""  # why there is no shape
    reference: tuple[Frame, int] | None = None  # the tensor that it is; None: its value is unknown


def run_bodies(inference: Inference, frame: Frame, number: int, path: tuple[int, ...]) -> None:
    """Shape the bodies that an operator runs, and set its outputs."""
    stored = frame.subgraph.operators[number]
    found = bodies(stored) or Bodies((), Runs.ONCE)
    subgraphs = [inference.body(index, frame, number, path) for index in found.subgraphs]
    if found.runs is Runs.REPEATEDLY and subgraphs:
        _loop(inference, frame, number, path, subgraphs)
    elif found.runs is Runs.ONE_OF and subgraphs:
        _branch(inference, frame, number, path, subgraphs)
    elif subgraphs:
        is_at_start = found.runs is Runs.AT_START
        arguments = [] if is_at_start else _arguments(frame, stored.inputs)
        inner = inference.call(subgraphs[0], arguments, (*path, subgraphs[0].index))
        frame.calls[number] = Call((CalledBody(inner, 0 if is_at_start else 1),), is_settled=False)
        _set_outputs(inference, frame, stored, _results(inner))
    else:
        inference.set_shapes(
            frame, stored, (), f"{printable(stored.code.type)} at {_place(frame, number)} runs nothing"
        )


def _arguments(frame: Frame, tensors: Sequence[int]) -> list[Argument]:
    found = []
    for tensor in tensors:
        if tensor == ABSENT:
            found.append(Argument(None))
        else:
            found.append(Argument(frame.shapes[tensor], frame.reasons.get(tensor, ""), frame.reference(tensor)))
    return found


def _results(frame: Frame) -> list[Argument]:
    return _arguments(frame, frame.subgraph.outputs)


def _set_outputs(inference: Inference, frame: Frame, stored: StoredOperator, results: Sequence[Argument]) -> None:
    """Make the outputs of an operator what its body returns."""
    reason = next((result.reason for result in results if result.shape is None), "")
    inference.set_shapes(frame, stored, [result.shape for result in results], reason)
    for tensor, result in zip(stored.outputs, results, strict=False):
        if result.reference is not None and tensor != ABSENT:
            frame.references[tensor] = result.reference


def _branch(
    inference: Inference, frame: Frame, number: int, path: tuple[int, ...], subgraphs: Sequence[Subgraph]
) -> None:
    """Take the branch that a known condition chooses; shape all of them if it is unknown."""
    stored = frame.subgraph.operators[number]
    chosen, origin = _choice(inference, frame, stored, subgraphs)
    arguments = _arguments(frame, stored.inputs[1:])
    taken = subgraphs if chosen is None else [chosen]
    frames = [inference.call(subgraph, arguments, (*path, subgraph.index)) for subgraph in taken]
    is_settled = chosen is not None
    frame.calls[number] = Call(tuple(CalledBody(inner, 1) for inner in frames), is_settled)
    results = _results(frames[0])
    if not is_settled:
        reason = f"decided at run time by {printable(stored.code.type)} at {_place(frame, number)}, from {origin}"
        others = [_results(inner) for inner in frames[1:]]
        results = [
            Argument(each.shape if all(_shape_at(other, i) == each.shape for other in others) else None, reason)
            for i, each in enumerate(results)
        ]
    _set_outputs(inference, frame, stored, results)


def _shape_at(results: Sequence[Argument], place: int) -> Shape | None:
    return results[place].shape if place < len(results) else None


def _choice(
    inference: Inference, frame: Frame, stored: StoredOperator, subgraphs: Sequence[Subgraph]
) -> tuple[Subgraph | None, str]:
    """Return the branch that runs, or where the condition comes from."""
    if not stored.inputs or stored.inputs[0] == ABSENT:
        return None, "nothing"
    value = inference.evaluator.find(frame, stored.inputs[0])
    if isinstance(value, Unknown):
        return None, value.origin
    if value.size != 1:
        return None, f"a condition of {value.size} elements"
    number = int(value.item())
    if stored.code.type == "IF":
        return subgraphs[0 if number else 1], ""
    branches = () if stored.options is None else stored.options.int32s(0)
    index = branches[number if 0 <= number < len(branches) else -1]  # as StableHLO has it: out of range is the last
    return next(subgraph for subgraph in subgraphs if subgraph.index == index), ""


def _loop(
    inference: Inference, frame: Frame, number: int, path: tuple[int, ...], subgraphs: Sequence[Subgraph]
) -> None:
    """Count the trips of a loop; without a count, shape what holds in every trip."""
    stored = frame.subgraph.operators[number]
    condition, body = subgraphs
    if not len(body.inputs) == len(body.outputs) == len(stored.inputs) or len(condition.outputs) != 1:
        raise ValueError(
            f"{len(stored.inputs)} inputs for a body of {len(body.inputs)} inputs and {len(body.outputs)} outputs; "
            "expected as many of each, and a condition of one output"
        )
    loop = _Loop(inference, condition, body, path, f"{printable(stored.code.type)} at {_place(frame, number)}")
    start = _arguments(frame, stored.inputs)
    trips = loop.count(start)
    test, work, results = loop.general(start) if trips is None or loop.varies else (*loop.shown(), loop.state)
    if trips is None:
        called = CalledBody(test, None), CalledBody(work, None)
    else:
        called, results = (CalledBody(test, trips + 1), CalledBody(work, trips)), loop.state
    frame.calls[number] = Call(called, trips is not None)
    _set_outputs(inference, frame, stored, results)


class _Loop:
    """One loop, followed trip by trip."""

    def __init__(
        self, inference: Inference, condition: Subgraph, body: Subgraph, path: tuple[int, ...], what: str
    ) -> None:
        self.state: list[Argument] = []  # before the next trip
        self.varies = False  # trips choose different branches
        self._inference = inference
        self._condition, self._body = condition, body
        self._path = path
        self._what = what
        self._first: tuple[Frame, ...] = ()  # condition and body in the first trip
        self._varied: tuple[set[int], set[int]] = (set(), set())  # tensors of condition and body of varying shape
        self._kept = {i for i, tensor in enumerate(body.inputs) if body.outputs[i] == tensor}
        self._is_steady = False

    def count(self, start: list[Argument]) -> int | None:
        """Follow the loop to its end; return the number of trips, None if it cannot be told."""
        self.state = start
        for trip in range(MAX_TRIPS):
            test = self._call(self._condition, 0)
            asked = set(test.asked)
            going = self._inference.evaluator.find(test, self._condition.outputs[0])
            if isinstance(going, Unknown) or going.size != 1:
                return None
            if not going.item() and self._first:
                self._compare(test, self._first[1], asked)
                return trip
            work = self._call(self._body, 1)
            self._compare(test, work, asked)
            if not going.item():
                return trip
            before, self.state = self.state, _results(work)
            if any(a.shape != b.shape for a, b in zip(before, self.state, strict=True)):
                self._is_steady = False
            if self._inference.loop_operators_left <= 0:
                return None
        return None

    def shown(self) -> tuple[Frame, Frame]:
        """Return condition and body with the shapes that they have in every trip."""
        return self._stripped(0), self._stripped(1)

    def general(self, start: Sequence[Argument]) -> tuple[Frame, Frame, list[Argument]]:
        """Return condition, body and results as they are in any trip: only what no trip changes is known."""
        state = [each if i in self._kept else each._replace(reference=None) for i, each in enumerate(start)]
        for turn in range(ROUNDS + 1):
            work = self._full_call(self._body, state)
            after = _results(work)
            changed = [i for i, (a, b) in enumerate(zip(state, after, strict=True)) if a.shape not in (None, b.shape)]
            if not changed:
                break
            if turn == ROUNDS - 1:
                changed = [i for i in range(len(state)) if i not in self._kept]
            for i in changed:
                state[i] = Argument(None, after[i].reason or f"changes from trip to trip of {self._what}")
        return self._full_call(self._condition, state), work, state

    def _call(self, subgraph: Subgraph, place: int) -> Frame:
        """Shape a body for the next trip; in a steady loop its shapes are those of the first."""
        if not self._is_steady:
            before = self._inference.operators
            found = self._full_call(subgraph, self.state)
            if self._first:
                self._inference.loop_operators_left -= self._inference.operators - before + 1
            return found
        first = self._first[place]
        frame = Frame(subgraph, first.wiring, first.shapes)
        for tensor, argument in zip(subgraph.inputs, self.state, strict=False):
            if argument.reference is not None:
                frame.references[tensor] = argument.reference
        return frame

    def _full_call(self, subgraph: Subgraph, state: Sequence[Argument]) -> Frame:
        return self._inference.call(subgraph, state, (*self._path, subgraph.index))

    def _compare(self, test: Frame, work: Frame, asked: set[int]) -> None:
        """Note what differs from the first trip. The first decides whether shapes can differ at all."""
        if not self._first:
            self._first = test, work
            kept = {self._body.inputs[i] for i in self._kept}
            kept_test = {self._condition.inputs[i] for i in self._kept if i < len(self._condition.inputs)}
            plain = not (test.calls or work.calls or test.handles or work.handles or _uses_variables(work))
            self._is_steady = plain and work.asked <= kept and asked <= kept_test
            return
        for frame, first, varied in zip((test, work), self._first, self._varied, strict=True):
            if frame.shapes is not first.shapes:
                varied.update(i for i, shape in enumerate(frame.shapes) if shape != first.shapes[i])
                self.varies = self.varies or frame.choices() != first.choices()

    def _stripped(self, place: int) -> Frame:
        """Return a copy of the first trip without the shapes that vary."""
        first, varied = self._first[place], self._varied[place]
        shapes = [None if i in varied else shape for i, shape in enumerate(first.shapes)]
        reasons = {**first.reasons, **dict.fromkeys(varied, f"changes from trip to trip of {self._what}")}
        return Frame(first.subgraph, first.wiring, shapes, reasons, calls=first.calls)


def _uses_variables(frame: Frame) -> bool:
    return any(operator.code.kind == "variable" for operator in frame.subgraph.operators)


def _place(frame: Frame, number: int) -> str:
    return f"subgraph {frame.subgraph.index} operator {number}"
