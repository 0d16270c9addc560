"""Expands stored subgraphs into the ops and tensors of a Graph: roles, order, shared constants, subgraph calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct

from ...core.errors import ModelError, printable
from ...core.units import Bytes
from ...graph.graph import ABSENT, DType, Note, Op, Role, Tensor
from ...graph.kinds import KINDS, Family
from .bodies import Bodies, Runs, bodies, scalar_body
from .model import StoredModel, StoredOperator, StoredTensor, Subgraph
from .ops import Operator, Shape, attributes, canonical_inputs
from .shapes import Batch, open_extents

MAX_DEPTH = 32  # nested subgraph calls
MAX_OPS = 1 << 18  # a subgraph is expanded at every call, so a small file can expand to very many ops
MAX_TENSORS = 1 << 19
MAX_NOTES = 100
MAX_INTEGERS = 64  # a longer constant is data, not a parameter such as axes

_FAMILIES_WITHOUT_OPERAND_RULES = (Family.CONTROL, Family.OPAQUE)
_INTEGERS = {DType.I64: ("q", 8), DType.I32: ("i", 4), DType.I16: ("h", 2), DType.I8: ("b", 1)}


class Expansion:
    """Collects the Graph by walking subgraph 0 and every subgraph it calls, once per call."""

    def __init__(self, model: StoredModel, batch: Batch | None) -> None:
        self.ops: list[Op] = []
        self.tensors: list[Tensor] = []
        self._model = model
        self._batch = batch
        self._constants: dict[tuple[int, int, int, Shape | None, str], int] = {}
        self._notes: dict[tuple[str, str], Note] = {}
        self._reached: set[int] = set()

    def run(self, signatures: Mapping[int, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Walk from subgraph 0; return the tensor ids of its inputs and outputs."""
        main = self._model.subgraph(0)
        ids = self._walk(main, "", 1, (0,))
        self._note_shapes(main)
        self._note_other_entries(signatures)
        inputs = tuple(ids[index] for index in main.inputs if index != ABSENT)
        return inputs, tuple(ids[index] for index in main.outputs if index != ABSENT)

    def notes(self) -> tuple[Note, ...]:
        """Return the notes, cut to MAX_NOTES."""
        if types := sorted(self._model.unknown_types):
            listed = ", ".join(map(str, types))
            self._note("unknown-type", f"element type {listed} is newer than opscope's schema; its size is unknown")
        found = tuple(self._notes.values())
        if len(found) <= MAX_NOTES:
            return found
        return (*found[:MAX_NOTES], Note("more-notes", f"{len(found) - MAX_NOTES} more notes are left out"))

    def _walk(self, subgraph: Subgraph, scope: str, trips: int | None, path: tuple[int, ...]) -> Sequence[int]:
        """Add the tensors and ops of one call of a subgraph; return the tensor ids by tensor number.

        `path` holds the subgraphs being called, outermost first; it detects recursion.
        """
        self._reached.add(subgraph.index)
        ids = self._add_tensors(subgraph, is_main=len(path) == 1)
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
            self._walk_bodies(stored, op, path)
        return ids

    def _walk_bodies(self, stored: StoredOperator, op: Op, path: tuple[int, ...]) -> None:
        """Walk the subgraphs that an operator calls, with the trip count they have there."""
        if (scalar := scalar_body(stored)) is not None:
            self._reached.add(scalar)
        if (run := bodies(stored)) is None:
            return
        for index in run.subgraphs:
            self._check_body(index, op, path)
            self._walk(self._model.subgraph(index), op.name, _trips(op.trips, run), (*path, index))
        if run.runs.value:
            code = run.runs.name.lower().replace("_", "-")
            self._note(code, f"{op.type} {printable(op.name)!r}: {run.runs.value}", op.name)

    def _check_body(self, index: int, op: Op, path: tuple[int, ...]) -> None:
        """Refuse a call of a missing subgraph, recursion, and calls that are nested too deep."""
        count = len(self._model.subgraph_tables)
        problem = ""
        if not 0 <= index < count:
            problem = f"runs subgraph {index}; the file has {count}"
        elif index in path:
            problem = f"runs subgraph {index} from within subgraph {index}; recursion has no end"
        elif len(path) >= MAX_DEPTH:
            problem = f"runs a body within {MAX_DEPTH} others; deeper nesting is not followed"
        if problem:
            raise ModelError(self._model.file.source, op.location, f"{op.type} {problem}")

    def _add_tensors(self, subgraph: Subgraph, *, is_main: bool) -> list[int]:
        """Add the subgraph's tensors to the Graph; return their ids in order.

        Called once per call of the subgraph: activations are new each time, constants are shared (`_constant`).
        """
        if len(self.tensors) + len(subgraph.tensors) > MAX_TENSORS:
            place = f"subgraph {subgraph.index}"
            raise ModelError(self._model.file.source, place, f"more than {MAX_TENSORS} tensors to count")
        roles = _roles(subgraph, is_main)
        ids = []
        for stored, role in zip(subgraph.tensors, roles, strict=True):
            if role is Role.CONSTANT:
                ids.append(self._constant(stored))
            else:
                ids.append(len(self.tensors))
                shape = stored.shape if self._batch is None else self._batch.shape(stored)
                if shape is not None and 0 in shape:
                    shape = None  # an extent known only at run time; no computed tensor is empty by design
                self.tensors.append(Tensor(stored.name, shape, stored.dtype, role))
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

    def _note(self, code: str, text: str, op: str = "") -> None:
        self._notes.setdefault((code, text), Note(code, text, op))

    def _note_op(self, stored: StoredOperator, op: Op) -> None:
        if stored.code.compiler:
            what = f"{printable(op.type)} was compiled by {stored.code.compiler}"
            self._note("compiled-model", f"{what}; what it costs cannot be known from the file", op.name)
        elif stored.code.is_unknown:
            self._note("unknown-operator", f"{op.type} is newer than opscope's schema; its cost is unknown", op.name)
        elif op.kind == "custom":
            self._note("custom-operator", f"{printable(op.type)}: its cost is not known from the file", op.name)
        elif op.kind == "fft":
            self._note("transform", f"{op.type}: its work is not a count of multiply-accumulates", op.name)
        elif op.type == "SVDF":
            self._note("svdf", "SVDF: its two products are counted as one matmul of equal work", op.name)

    def _note_shapes(self, main: Subgraph) -> None:
        if self._batch is not None:
            how = "whose batch the file leaves open" if self._batch.is_open else f"that lead with {self._batch.old}"
            self._note("batch", f"batch {self._batch.new} instead of {self._batch.old}: set in all tensors {how}")
        if extents := open_extents(main):
            listed = ", ".join(extents[:4]) + (f" and {len(extents) - 4} more" if len(extents) > 4 else "")
            self._note("open-shape", f"the file leaves open {listed}")

    def _note_other_entries(self, signatures: Mapping[int, str]) -> None:
        others = [i for i in range(len(self._model.subgraph_tables)) if i not in self._reached]
        if others:
            named = [f"{i} ({printable(signatures[i])})" if i in signatures else str(i) for i in others[:8]]
            more = f" and {len(others) - 8} more" if len(others) > 8 else ""
            self._note(
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
        known, stored = self._tensors[tensor], self._subgraph.tensors[tensor]
        if known.role is not Role.CONSTANT or known.dtype not in _INTEGERS or stored.data.file:
            return None
        code, width = _INTEGERS[known.dtype]
        count = stored.data.size // width
        if count > MAX_INTEGERS:
            return None
        return Struct(f"<{count}{code}").unpack(self._model.bytes_at(stored.data, count * width))


def _written_tensors(subgraph: Subgraph) -> set[int]:
    """Return the tensors that some operator writes; variables may be read and written in any order."""
    written = {tensor for operator in subgraph.operators for tensor in operator.outputs if tensor != ABSENT}
    return {tensor for tensor in written if not subgraph.tensors[tensor].is_variable}


def _roles(subgraph: Subgraph, is_main: bool) -> list[Role]:
    """Return each tensor's role: variable, input, constant (has data and no writer) or activation."""
    written = {tensor for operator in subgraph.operators for tensor in operator.outputs}
    inputs = set(subgraph.inputs)
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
        else:
            roles.append(Role.ACTIVATION)
    return roles


def _trips(outer: int | None, run: Bodies) -> int | None:
    """Return the trips of a called subgraph; 0 at load time only, None in a loop of unknown length."""
    if run.runs is Runs.AT_START or outer == 0:
        return 0
    return None if run.runs is Runs.REPEATEDLY else outer
