"""Shapes of every tensor for given shapes of the inputs, operator by operator, as the runtime prepares them.

A file stores every shape, but an extent that was open at export is stored as 1, and the stored shapes hold for the
stored inputs only. Where inputs keep their stored shapes, a tensor whose signature leaves nothing open is taken as
stored; everything else follows from the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ....core.errors import ModelError, printable
from ....graph.graph import ABSENT
from ..bodies import check_body
from ..model import MAX_RANK, MAX_TENSOR_ELEMENTS, StoredModel, StoredOperator, StoredTensor, Subgraph
from ..observe import Seen
from ..ops import Shape
from .contractions import STATES
from .control import CONTROL, MAX_LOOP_OPERATORS, Argument, run_bodies
from .evaluate import Evaluator
from .frame import Frame, Unknown, Wiring
from .layout import rebatched
from .rules import RULES, Rule
from .site import Site, UndecidedError, UnknownValueError

OPEN = -1
MAX_OPERATORS = 1 << 18  # shaped in all: a subgraph is shaped at every call


class Inference:
    """Shapes the calls of a model's subgraphs."""

    def __init__(self, model: StoredModel, *, is_resized: bool, observed: Mapping[int, Seen]) -> None:
        self.model = model
        self.observed = observed  # tensors of subgraph 0 in a run of the model
        self.evaluator = Evaluator(model)
        self.is_resized = is_resized  # inputs have other shapes than the file stores
        self.fixed_batches: list[str] = []  # operators with a constant that holds for the stored batch only
        self.operators = 0  # shaped so far
        self.loop_operators_left = MAX_LOOP_OPERATORS
        self._wirings: dict[int, Wiring] = {}
        self._variables: dict[str, tuple[Frame, int]] = {}  # what was assigned last
        self._values_last = _variables_are_constant(model)

    def run(self, inputs: Mapping[int, Shape]) -> Frame:
        """Return the call of subgraph 0 with inputs of these shapes."""
        main = self.model.subgraph(0)
        arguments = [Argument(inputs.get(tensor)) for tensor in main.inputs]
        return self.call(main, arguments, (0,))

    def call(self, subgraph: Subgraph, arguments: Sequence[Argument], path: tuple[int, ...]) -> Frame:
        """Shape one call of a subgraph, and the calls that it makes."""
        frame = self.frame(subgraph, arguments)
        for number, stored in enumerate(subgraph.operators):
            self.operators += 1
            if self.operators > MAX_OPERATORS:
                place = f"subgraph {subgraph.index} operator {number}"
                raise ModelError(self.model.file.source, place, f"more than {MAX_OPERATORS} operators to shape")
            self._operator(frame, number, stored, path)
            if len(path) == 1:
                self._observe(frame, stored)
        return frame

    def _observe(self, frame: Frame, stored: StoredOperator) -> None:
        """Set the output shapes to those that a run had."""
        for tensor in stored.outputs:
            if (seen := self.observed.get(tensor)) is not None:
                frame.shapes[tensor] = seen.shape
                frame.reasons.pop(tensor, None)
                if seen.value is not None:
                    frame.values[tensor] = seen.value

    def frame(self, subgraph: Subgraph, arguments: Sequence[Argument]) -> Frame:
        """Return a call before its operators run."""
        wiring = self._wirings.get(subgraph.index)
        if wiring is None:
            wiring = self._wirings[subgraph.index] = Wiring.of(subgraph)
        written = wiring.producers
        frame = Frame(subgraph, wiring, [None if i in written else t.shape for i, t in enumerate(subgraph.tensors)])
        for tensor, argument in zip(subgraph.inputs, arguments, strict=False):
            if tensor == ABSENT:
                continue
            frame.shapes[tensor] = argument.shape
            if argument.shape is None:
                frame.reasons[tensor] = argument.reason
            if argument.reference is not None:
                frame.references[tensor] = argument.reference
        return frame

    def body(self, index: int, frame: Frame, number: int, path: tuple[int, ...]) -> Subgraph:
        """Return a subgraph that an operator runs."""
        stored = frame.subgraph.operators[number]
        location = f"subgraph {frame.subgraph.index} operator {number}"
        check_body(self.model, index, stored.code.type, location, path)
        return self.model.subgraph(index)

    def set_shapes(self, frame: Frame, stored: StoredOperator, shapes: Sequence[Shape | None], reason: str) -> None:
        """Set the shapes of an operator's outputs; those that are not known take the stored one if that holds."""
        for place, tensor in enumerate(stored.outputs):
            if tensor == ABSENT:
                continue
            shape = shapes[place] if place < len(shapes) else None
            if shape is None:
                shape = self._stored(frame.subgraph.tensors[tensor])
            frame.shapes[tensor] = shape
            if shape is None:
                frame.reasons[tensor] = reason

    def _operator(self, frame: Frame, number: int, stored: StoredOperator, path: tuple[int, ...]) -> None:
        kind = stored.code.type
        try:
            if kind in CONTROL:
                run_bodies(self, frame, number, path)
            elif kind in VARIABLES:
                self._variable(frame, number, stored)
            elif all(self._stored(frame.subgraph.tensors[tensor]) for tensor in stored.outputs):
                self.set_shapes(frame, stored, (), "")  # not scalars: older files store unknown shapes like theirs
            else:
                self._apply_rule(frame, number, stored)
        except IndexError as error:
            raise self._refused(frame, number, "an operand has fewer dimensions than the operator needs") from error
        except (ValueError, OverflowError) as error:
            raise self._refused(frame, number, str(error)) from error

    def _refused(self, frame: Frame, number: int, problem: str) -> ModelError:
        kind = printable(frame.subgraph.operators[number].code.type)
        place = f"subgraph {frame.subgraph.index} operator {number}"
        return ModelError(self.model.file.source, place, f"{kind}: {printable(problem, 300)}")

    def _apply_rule(self, frame: Frame, number: int, stored: StoredOperator) -> None:
        """Set the output shapes by the operator's rule."""
        rule = RULES.get(stored.code.type)
        shapes: Sequence[Shape | None] = ()
        reason = ""
        if rule is None:
            shapes = self._unchanged(frame, stored)
            reason = "" if shapes else f"no rule is known for the shapes that {_what(frame, number)} writes"
        else:
            try:
                shapes = self._checked(self._by_rule(rule, Site(frame, number, stored, self.evaluator)))
            except UnknownValueError as error:
                reason = f"decided at run time by {_what(frame, number)}, from {error}"
            except UndecidedError as error:
                reason = str(error)
        self.set_shapes(frame, stored, shapes, reason)

    def _by_rule(self, rule: Rule, site: Site) -> list[Shape]:
        """Apply a rule; constants and states that hold for the stored batch only give way to another batch.

        The runtime refuses such a model; exported for that batch, it has these shapes.
        """
        batch_of = STATES.get(site.type) if self.is_resized else None
        if batch_of is not None and self._set_states(site, batch_of(site)):
            self.fixed_batches.append(_what(site.frame, site.number))
        try:
            return rule(site)
        except ValueError:
            if self.is_resized and site.type == "RESHAPE" and (shape := rebatched(site)) is not None:
                self.fixed_batches.append(_what(site.frame, site.number))
                return [shape]
            raise

    def _set_states(self, site: Site, batch: int) -> bool:
        """Set the leading extent of an operator's variables; return whether one had another."""
        frame, changed = site.frame, False
        for tensor in site.stored.inputs:
            shape = frame.shapes[tensor] if tensor != ABSENT else None
            if shape and frame.subgraph.tensors[tensor].is_variable and shape[0] != batch:
                frame.shapes[tensor], changed = (batch, *shape[1:]), True
        return changed

    def _checked(self, shapes: list[Shape]) -> list[Shape]:
        for shape in shapes:
            if len(shape) > MAX_RANK or min(shape, default=0) < 0 or prod(shape) > MAX_TENSOR_ELEMENTS:
                expectation = f"at most {MAX_RANK} extents from 0, and at most {MAX_TENSOR_ELEMENTS} elements"
                raise ValueError(f"an output of shape {list(shape[:MAX_RANK])}; expected {expectation}")
        return shapes

    def _stored(self, tensor: StoredTensor) -> Shape | None:
        """Return the stored shape if it holds: nothing in it is open, and the inputs are as stored."""
        if self.is_resized or tensor.shape is None or 0 in tensor.shape or OPEN in tensor.signature:
            return None
        return tensor.shape

    def _unchanged(self, frame: Frame, stored: StoredOperator) -> Sequence[Shape | None]:
        """Return the stored shapes of the outputs if all inputs have theirs."""
        tensors, shapes = frame.subgraph.tensors, frame.shapes
        for tensor in stored.inputs:
            if tensor != ABSENT and (shapes[tensor] is None or shapes[tensor] != tensors[tensor].shape):
                return ()
        outputs = [tensors[tensor] for tensor in stored.outputs if tensor != ABSENT]
        if any(OPEN in t.signature or t.shape is None or 0 in t.shape for t in outputs):
            return ()
        return [t.shape for t in outputs]

    def _variable(self, frame: Frame, number: int, stored: StoredOperator) -> None:
        """Follow a handle, a read or an assignment of a variable."""
        kind = stored.code.type
        if kind == "VAR_HANDLE":
            options = stored.options
            name = "" if options is None else f"{options.string(0)}/{options.string(1)}"
            self.set_shapes(frame, stored, [(1,)], "")
            frame.handles.update(dict.fromkeys(stored.outputs, name))
            return
        handle = stored.inputs[0] if stored.inputs else ABSENT
        place, tensor = frame.reference(handle)
        name = place.handles.get(tensor, "")
        if kind == "ASSIGN_VARIABLE":
            if len(stored.inputs) > 1 and stored.inputs[1] != ABSENT:
                self._variables[name] = frame.reference(stored.inputs[1])
            return
        known = self._variables.get(name)
        where = f"subgraph {frame.subgraph.index} operator {number}"
        if known is None:
            self.set_shapes(frame, stored, (), f"nothing is assigned to the variable that {kind} reads at {where}")
            return
        source, origin = known
        self.set_shapes(frame, stored, [source.shapes[origin]], source.reasons.get(origin, ""))
        for output in stored.outputs:
            if self._values_last:
                frame.references[output] = known
            else:
                frame.values[output] = Unknown(f"a variable that {kind} reads at {where}")


VARIABLES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")


def _what(frame: Frame, number: int) -> str:
    kind = printable(frame.subgraph.operators[number].code.type)
    return f"{kind} at subgraph {frame.subgraph.index} operator {number}"


def _variables_are_constant(model: StoredModel) -> bool:
    """Whether variables are assigned only when the model is loaded, so that each inference reads the same."""
    if all(code.type != "ASSIGN_VARIABLE" for code in model.codes):
        return True
    subgraphs = [model.subgraph(index) for index in range(len(model.subgraph_tables))]
    at_start = {
        operator.options.int32(0)
        for subgraph in subgraphs
        for operator in subgraph.operators
        if operator.code.type == "CALL_ONCE" and operator.options is not None
    }
    return all(
        operator.code.type != "ASSIGN_VARIABLE"
        for subgraph in subgraphs
        if subgraph.index not in at_start
        for operator in subgraph.operators
    )
