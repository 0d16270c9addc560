"""Expands stored subgraphs into the ops and tensors of a Graph: roles, order, shared constants, subgraph calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.errors import ModelError, printable
from ...core.units import Bytes
from ...graph.graph import ABSENT, Note, Op, Role, Tensor
from ...graph.kinds import KINDS, Family
from .bodies import Bodies, Runs, bodies, check_body, scalar_body
from .model import StoredModel, StoredOperator, StoredTensor, Subgraph
from .ops import Operator, Shape, attributes, canonical_inputs

if TYPE_CHECKING:
    from .shapes.frame import Call, Frame

MAX_OPS = 1 << 18  # a subgraph is expanded at every call, so a small file can expand to very many ops
MAX_TENSORS = 1 << 19
MAX_NOTES = 100
MAX_INTEGERS = 64  # a longer constant is data, not a parameter such as axes

_FAMILIES_WITHOUT_OPERAND_RULES = (Family.CONTROL, Family.OPAQUE)


class Expansion:
    """Collects the Graph by walking subgraph 0 and every subgraph it calls, once per call."""

    def __init__(self, model: StoredModel) -> None:
        self.ops: list[Op] = []
        self.tensors: list[Tensor] = []
        self._model = model
        self._constants: dict[tuple[int, int, int, Shape | None, str], int] = {}
        self._notes: dict[tuple[str, str], Note] = {}
        self._reached: set[int] = set()
        self._main: Sequence[int] = ()  # ids of the tensors of subgraph 0

    def run(self, signatures: Mapping[int, str], frame: Frame | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Walk from subgraph 0; return the tensor ids of its inputs and outputs.

        `frame` has the shapes of its call; without one, all shapes are as stored.
        """
        main = self._model.subgraph(0)
        ids = self._main = self._walk(main, frame, "", 1, (0,))
        self._note_other_entries(signatures)
        inputs = tuple(ids[index] for index in main.inputs if index != ABSENT)
        return inputs, tuple(ids[index] for index in main.outputs if index != ABSENT)

    def placed_in(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Return the tensors of subgraph 0 that lie within a scratch tensor, by their offsets in the arena."""
        ranges = {
            self._main[number]: (offset, offset + (self.tensors[self._main[number]].bytes or 0))
            for number, offset in offsets.items()
        }
        found: dict[int, int] = {}
        holders: list[int] = []
        roles = (Role.SCRATCH, Role.INPUT, Role.ACTIVATION)
        placed = [id_ for id_ in ranges if self.tensors[id_].role in roles]
        # Scratch first, the largest first: a second scratch at the same place is the same memory by another name.
        for id_ in sorted(placed, key=lambda id_: (self.tensors[id_].role is not Role.SCRATCH, -ranges[id_][1])):
            start, end = ranges[id_]
            holder = next((each for each in holders if ranges[each][0] <= start and end <= ranges[each][1]), None)
            if holder is not None:
                found[id_] = holder
            elif self.tensors[id_].role is Role.SCRATCH:
                holders.append(id_)
        return found

    def notes(self) -> tuple[Note, ...]:
        """Return the notes, cut to MAX_NOTES."""
        if types := sorted(self._model.unknown_types):
            listed = ", ".join(map(str, types))
            self.note("unknown-type", f"element type {listed} is newer than opscope's schema; its size is unknown")
        found = tuple(self._notes.values())
        if len(found) <= MAX_NOTES:
            return found
        return (*found[:MAX_NOTES], Note("more-notes", f"{len(found) - MAX_NOTES} more notes are left out"))

    def _walk(
        self,
        subgraph: Subgraph,
        frame: Frame | None,
        scope: str,
        trips: int | None,
        path: tuple[int, ...],
        *,
        given: Mapping[int, int] | None = None,
    ) -> Sequence[int]:
        """Add the tensors and ops of one call of a subgraph; return the tensor ids by tensor number.

        `path` holds the subgraphs being called, outermost first; it detects recursion. Tensors of the subgraph that are
        `given` are those of the caller.
        """
        self._reached.add(subgraph.index)
        ids = self._add_tensors(subgraph, frame, given or {}, is_main=len(path) == 1)
        translator = _OpTranslator(self._model, subgraph, self.tensors, ids)
        for number, stored in enumerate(subgraph.operators):
            location = f"subgraph {subgraph.index} operator {number}"
            if len(self.ops) >= MAX_OPS:
                raise ModelError(self._model.file.source, location, f"more than {MAX_OPS} operators to count")
            try:
                op = translator.op(stored, number, location, scope, trips)
            except ValueError as error:
                problem = f"{printable(stored.code.type)}: {error}"
                raise ModelError(self._model.file.source, location, problem) from error
            self.ops.append(op)
            self._note_op(stored, op)
            self._walk_bodies(stored, op, None if frame is None else frame.calls.get(number), path)
        return ids

    def _walk_bodies(self, stored: StoredOperator, op: Op, call: Call | None, path: tuple[int, ...]) -> None:
        """Walk the subgraphs that an operator calls, with the trip count they have there."""
        if (scalar := scalar_body(stored)) is not None:
            self._reached.add(scalar)
        if (run := bodies(stored)) is None:
            return
        self._reached.update(run.subgraphs)
        if call is None:
            for index in run.subgraphs:
                check_body(self._model, index, op.type, op.location, path)
                body = self._model.subgraph(index)
                given = self._handed_on(run, op, body)
                self._walk(body, None, op.name, _trips(op.trips, _RUNS.get(run.runs, 1)), (*path, index), given=given)
        else:
            for called in call.bodies:
                body = called.frame.subgraph
                given = self._handed_on(run, op, body)
                self._walk(body, called.frame, op.name, _trips(op.trips, called.runs), (*path, body.index), given=given)
        if run.runs.value and not (call is not None and call.is_settled):
            code = run.runs.name.lower().replace("_", "-")
            self.note(code, f"{op.type} {printable(op.name)!r}: {run.runs.value}", op.name)

    def _handed_on(self, run: Bodies, op: Op, subgraph: Subgraph) -> dict[int, int]:
        """Return the inputs of a loop's condition or body that every trip hands on as they are: the loop's operands.

        Converters carry all that a body reads, weights too; those are constants where the operand is one.
        """
        number = run.subgraphs[-1]
        if run.runs is not Runs.REPEATEDLY or not 0 <= number < len(self._model.subgraph_tables):
            return {}
        body = self._model.subgraph(number)
        same = [own == made for own, made in zip(body.inputs, body.outputs, strict=False)]
        operands = zip(subgraph.inputs, op.inputs, same, strict=False)
        return {own: operand for own, operand, is_same in operands if is_same and ABSENT not in (own, operand)}

    def _add_tensors(
        self, subgraph: Subgraph, frame: Frame | None, given: Mapping[int, int], *, is_main: bool
    ) -> list[int]:
        """Add the subgraph's tensors to the Graph; return their ids in order.

        Called once per call of the subgraph: activations are new each time, constants are shared (`_constant`).
        """
        if len(self.tensors) + len(subgraph.tensors) > MAX_TENSORS:
            place = f"subgraph {subgraph.index}"
            raise ModelError(self._model.file.source, place, f"more than {MAX_TENSORS} tensors to count")
        roles = _roles(subgraph, is_main)
        ids = []
        for number, (stored, role) in enumerate(zip(subgraph.tensors, roles, strict=True)):
            if number in given:
                ids.append(given[number])
            elif role is Role.CONSTANT:
                ids.append(self._constant(stored))
            else:
                ids.append(len(self.tensors))
                shape, reason = stored.shape, ""
                if frame is not None:
                    shape, reason = frame.shapes[number], frame.reasons.get(number, "")
                    reason = "" if shape is not None else reason or "the file does not give it"
                self.tensors.append(Tensor(stored.name, shape, stored.dtype, role, unknown_because=reason))
        return ids

    def _constant(self, stored: StoredTensor) -> int:
        """Return the tensor's id; constants of the same bytes, shape and type are one tensor."""
        data = stored.data
        # Weights shared by two branches are stored twice as tensors but once as a buffer; they must be counted once.
        key = (data.file, data.position, data.size, stored.shape, stored.dtype.label)
        known = self._constants.get(key) if data.size else None
        if known is not None:
            return known
        self._constants[key] = len(self.tensors)
        self.tensors.append(Tensor(stored.name, stored.shape, stored.dtype, Role.CONSTANT, Bytes(data.size)))
        return len(self.tensors) - 1

    def note(self, code: str, text: str, op: str = "") -> None:
        self._notes.setdefault((code, text), Note(code, text, op))

    def _note_op(self, stored: StoredOperator, op: Op) -> None:
        if stored.code.compiler:
            what = f"{printable(op.type)} was compiled by {stored.code.compiler}"
            self.note("compiled-model", f"{what}; what it costs cannot be known from the file", op.name)
        elif stored.code.is_unknown:
            self.note("unknown-operator", f"{op.type} is newer than opscope's schema; its cost is unknown", op.name)
        elif op.kind == "custom":
            self.note("custom-operator", f"{printable(op.type)}: its cost is not known from the file", op.name)
        elif op.kind == "fft":
            self.note("transform", f"{op.type}: its work is not a count of multiply-accumulates", op.name)
        elif op.type == "SVDF":
            self.note("svdf", "SVDF: its two products are counted as one matmul of equal work", op.name)

    def _note_other_entries(self, signatures: Mapping[int, str]) -> None:
        others = [i for i in range(len(self._model.subgraph_tables)) if i not in self._reached]
        if others:
            named = [f"{i} ({printable(signatures[i])})" if i in signatures else str(i) for i in others[:8]]
            more = f" and {len(others) - 8} more" if len(others) > 8 else ""
            self.note(
                "other-entries", f"not counted, as subgraph 0 does not run them: subgraph {', '.join(named)}{more}"
            )


class _OpTranslator:
    """Translates the operators of one subgraph, in order, into ops."""

    def __init__(self, model: StoredModel, subgraph: Subgraph, tensors: Sequence[Tensor], ids: Sequence[int]) -> None:
        self._model = model
        self._subgraph = subgraph
        self._tensors = [tensors[id_] for id_ in ids]
        self._ids = (*ids, ABSENT)  # so that operand -1 gives ABSENT
        self._shapes = [None if tensor.shape is None or 0 in tensor.shape else tensor.shape for tensor in self._tensors]
        self._not_yet_written = _written_tensors(subgraph)

    def op(self, stored: StoredOperator, number: int, location: str, scope: str, trips: int | None) -> Op:
        """Translate one operator; a ValueError says what is wrong with it."""
        self._check_order(stored)
        operator = Operator(stored.code, stored.inputs, stored.outputs, stored.options, self._shapes, self._integers)
        inputs = canonical_inputs(operator)
        self._check_operands(KINDS[stored.code.kind].family, inputs, stored.outputs)
        ids = self._ids
        outputs = tuple([ids[tensor] for tensor in stored.outputs])
        return Op(
            stored.code.kind,
            stored.code.type,
            self._name(stored, number),
            tuple([ids[tensor] for tensor in inputs]),
            outputs,
            attributes(operator),
            location,
            scope,
            trips,
        )

    def _name(self, stored: StoredOperator, number: int) -> str:
        if stored.outputs and stored.outputs[0] != ABSENT:
            name = self._tensors[stored.outputs[0]].name
            if name:
                return name
        return f"{stored.code.type}_{number}"

    def _check_operands(self, family: Family, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """Check that the operands which cost and placement depend on are present and not empty."""
        if family in _FAMILIES_WITHOUT_OPERAND_RULES:
            return
        if not outputs:
            raise ValueError("no output; expected at least one")
        least = 2 if family is Family.CONTRACTION else 1  # data and weights, or data
        if len(inputs) < least or ABSENT in inputs[:least]:
            raise ValueError(f"an input is missing; expected at least {least}")
        for tensor in inputs[:least] if family is Family.CONTRACTION else ():
            shape = self._tensors[tensor].shape
            if shape is not None and 0 in shape:
                raise ValueError(f"input {tensor} of shape {list(shape)}; expected at least one element")

    def _check_order(self, stored: StoredOperator) -> None:
        """Check that inputs are written before and outputs for the first time."""
        pending = self._not_yet_written
        for tensor in stored.inputs:
            if tensor in pending:
                name = printable(self._tensors[tensor].name)
                raise ValueError(f"reads tensor {tensor} {name!r} before the operator that writes it")
        for tensor in stored.outputs:
            if tensor != ABSENT and self._tensors[tensor].role is not Role.VARIABLE:
                if tensor not in pending:
                    name = printable(self._tensors[tensor].name)
                    raise ValueError(f"writes tensor {tensor} {name!r}, which is written already")
                pending.remove(tensor)

    def _integers(self, tensor: int) -> tuple[int, ...] | None:
        """Return the elements of a small integer constant; None for other tensors."""
        if self._tensors[tensor].role is not Role.CONSTANT:
            return None
        return self._model.integers(self._subgraph.tensors[tensor], MAX_INTEGERS)


def _written_tensors(subgraph: Subgraph) -> set[int]:
    """Return the tensors that some operator writes; variables may be read and written in any order."""
    written = {tensor for operator in subgraph.operators for tensor in operator.outputs if tensor != ABSENT}
    return {tensor for tensor in written if not subgraph.tensors[tensor].is_variable}


def _roles(subgraph: Subgraph, is_main: bool) -> list[Role]:
    """Return each tensor's role: variable, input, constant (has data and no writer), scratch or activation."""
    written = {tensor for operator in subgraph.operators for tensor in operator.outputs}
    inputs = set(subgraph.inputs)
    asked_for = _scratch(subgraph)
    roles = []
    for index, tensor in enumerate(subgraph.tensors):
        is_empty = (
            tensor.shape is not None and 0 in tensor.shape
        )  # a constant without data, such as the shape of a scalar
        if tensor.is_variable:
            roles.append(Role.VARIABLE)
        elif index in inputs:
            roles.append(Role.INPUT if is_main else Role.ACTIVATION)
        elif index not in written and (tensor.data.size or is_empty):
            roles.append(Role.CONSTANT)
        elif index not in written and index in asked_for:
            roles.append(Role.SCRATCH)
        else:
            roles.append(Role.ACTIVATION)
    return roles


def _scratch(subgraph: Subgraph) -> set[int]:
    """Return the inputs of operators that a compiler or a vendor made: those that nothing writes are their scratch."""
    opaque = [op for op in subgraph.operators if KINDS[op.code.kind].family is Family.OPAQUE]
    return {tensor for operator in opaque for tensor in operator.inputs}


# Runs of a body each time its operator runs, where the file's tables alone do not say 1.
_RUNS: Mapping[Runs, int | None] = {Runs.AT_START: 0, Runs.REPEATEDLY: None}


def _trips(outer: int | None, runs: int | None) -> int | None:
    """Return the trips of a called subgraph; 0 at load time only, None in a loop of unknown length."""
    if outer == 0 or runs == 0:
        return 0
    return None if outer is None or runs is None else outer * runs
