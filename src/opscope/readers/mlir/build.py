"""Builds the Graph of a function: every operation on tensors becomes an op, in order, with its MLIR location."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...core.errors import ModelError, printable
from ...graph.graph import ABSENT, Attribute, Note, Op, Role, Tensor
from . import linalg, stablehlo, torch_aten, tosa
from .parse import MAX_NESTING
from .rules import CUSTOM, Rule
from .site import Site, attribute_of, small_integers, tensor_of
from .torch_onnx import onnx_rule, operator_name, opset_of

if TYPE_CHECKING:
    from iree.compiler import ir

MAX_OPS = 1_000_000  # functions that call functions can stand for more than any model has

_CONSTANTS = {  # operation → attribute that holds the elements
    "tosa.const": "values",
    "tosa.const_shape": "values",
    "arith.constant": "value",
    "torch.vtensor.literal": "value",
    "flow.tensor.constant": "value",
    "onnx.Constant": "torch.onnx.value",
    "stablehlo.constant": "value",
    "util.global.load": "",
    "ml_program.global_load": "",
    "ml_program.global_load_const": "",
}
_RETURNS = {
    "func.return",
    "util.return",
    "scf.yield",
    "tosa.yield",
    "stablehlo.return",
    "torch.operator_terminator",
    "scf.condition",
}
_CALLS = {"func.call", "util.call"}
_SAME_BYTES = {
    "hal.tensor.import",
    "hal.tensor.export",
    "hal.tensor.barrier",
    "flow.tensor.reshape",
    "tensor.bitcast",
    "torch.copy.to_vtensor",
    "torch_c.from_builtin_tensor",
    "torch_c.to_builtin_tensor",
}
_CONTROL = {"scf.if": "if", "scf.for": "loop", "scf.while": "loop", "scf.forall": "loop", "scf.index_switch": "if"}
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]')
_MOST_LOCATION = 4000  # characters


@dataclass(frozen=True, slots=True)
class _Place:
    """Position of the walk in nested regions and calls."""

    scope: str = ""  # name of the enclosing control-flow op
    trips: int | None = 1
    depth: int = 0
    calls: tuple[str, ...] = ()  # functions that are being inlined


@dataclass(slots=True)
class Builder:
    """Walks blocks and collects ops, tensors and notes."""

    module: ir.Module
    source: str
    ops: list[Op] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    dialects: set[str] = field(default_factory=set)
    _ids: dict[ir.Value, int] = field(default_factory=dict)
    _inits: dict[ir.Value, ir.Operation] = field(
        default_factory=dict
    )  # destination tensors: tensor.empty and linalg.fill, not yet read
    _integers: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by tensor id
    _names: dict[str, int] = field(default_factory=dict)
    _counts: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (code, text) → op names
    _functions: dict[str, ir.Operation] = field(default_factory=dict)
    _opset: int = 17

    def run(self, function: ir.Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Read a function; return the tensor ids of its inputs and outputs."""
        self._functions = {
            op.attributes["sym_name"].value: op.operation
            for op in self.module.body.operations
            if "sym_name" in op.attributes
        }
        self._opset = opset_of(function)
        entry = function.regions[0].blocks[0]
        for number, argument in enumerate(entry.arguments):
            found = tensor_of(argument.type)
            if found is not None:
                self._ids[argument] = self._add(Tensor(f"arg{number}", *found, Role.INPUT))
        inputs = tuple(self._ids[argument] for argument in entry.arguments if argument in self._ids)
        outputs = self._region(function.regions[0], _Place(calls=(function.attributes["sym_name"].value,)))
        return inputs, tuple(t for t in outputs if t != ABSENT)

    # -- walking

    def _region(self, region: ir.Region, place: _Place) -> tuple[int, ...]:
        """Walk all blocks of a region; return the tensors that the last terminator returns."""
        if place.depth > MAX_NESTING:
            raise ModelError(self.source, "", f"regions within regions; expected at most {MAX_NESTING}")
        returned: tuple[int, ...] = ()
        for block in region.blocks:
            for operation in block.operations:
                op = operation.operation
                if str(op.name) in _RETURNS:
                    returned = tuple(self._use(value) for value in op.operands)
                else:
                    self._operation(op, place)
        return returned

    def _operation(self, op: ir.Operation, place: _Place) -> None:
        """Handle one operation: constant, destination, call, or an op on tensors; anything else is skipped."""
        name = operator_name(op) or str(op.name)
        self.dialects.add(name.partition(".")[0])
        if name in _CONSTANTS:
            self._constant(op, _CONSTANTS[name])
        elif name in ("tensor.empty", "linalg.fill", "linalg.init_tensor"):
            self._inits.update(dict.fromkeys(op.results, op))
        elif name in _CALLS:
            self._call(op, place)
        elif (source := stablehlo.renamed(op)) is not None:
            self._ids[op.results[0]] = self._use(source)
        elif any(tensor_of(result.type) is not None for result in op.results):
            self._add_op(op, name, place)

    def _call(self, op: ir.Operation, place: _Place) -> None:
        """Inline the called function; an external or recursive one becomes an op of unknown cost."""
        callee = str(op.attributes["callee"]).lstrip("@").strip('"')
        function = self._functions.get(callee)
        if function is None or callee in place.calls or not len(function.regions[0].blocks):
            self._add_op(op, str(op.name), place)
            return
        for argument, value in zip(function.regions[0].blocks[0].arguments, op.operands, strict=True):
            self._ids[argument] = self._use(value)
        inside = replace(place, depth=place.depth + 1, calls=(*place.calls, callee))
        results = self._region(function.regions[0], inside)
        self._ids.update(zip(op.results, results, strict=False))

    def _constant(self, op: ir.Operation, attribute: str) -> None:
        for result in op.results:
            found = tensor_of(result.type)
            if found is None:
                continue
            number = self._add(Tensor(self._unique("constant"), *found, Role.CONSTANT))
            self._ids[result] = number
            held = attribute_of(op, attribute)
            elements = small_integers(held) if held is not None else None
            if elements is not None:
                self._integers[number] = elements

    # -- ops

    def _add_op(self, op: ir.Operation, name: str, place: _Place) -> None:
        if len(self.ops) >= MAX_OPS:
            raise ModelError(self.source, "", f"more than {MAX_OPS} ops; expected a model")
        operands = self._operands(op)
        own = self._name(op, name)
        outputs = self._outputs(op, own)
        kind, attributes, inputs = self._translate(op, name, own, operands, outputs)
        self.ops.append(Op(kind, name, own, inputs, outputs, attributes, _location(op), place.scope, place.trips))
        if kind in ("if", "loop"):
            self._bodies(op, own, kind, place)

    def _translate(
        self, op: ir.Operation, name: str, own: str, operands: tuple[int, ...], outputs: tuple[int, ...]
    ) -> tuple[str, dict[str, Attribute], tuple[int, ...]]:
        """Return kind, attributes and canonical inputs of an operation."""
        site = self._site(op, operands, outputs)
        if name.startswith("onnx."):
            rule, attributes = onnx_rule(op, site, self._opset)
            if rule is not None and rule.kind != "custom":
                return rule.kind_with(attributes), attributes, rule.canonical_inputs(operands)
            return self._unknown(name, own, operands)
        found = tosa.DENSE if name == "tosa.conv2d" and tosa.is_dense(site) else self._rule(op, name)
        if found is None or found is CUSTOM:
            return self._unknown(name, own, operands)
        if name == "tosa.rescale":
            found = replace(found, operands=tosa.rescale_operands(site))
        if name == "tosa.resize" and tosa.is_nearest(op):
            found = replace(found, kind="resize_nearest")
        return found.kind, found.describe(site), found.chosen(operands)

    def _rule(self, op: ir.Operation, name: str) -> Rule | None:
        if name.startswith("tosa."):
            return tosa.RULES.get(name.removeprefix("tosa."))
        if name.startswith(stablehlo.DIALECTS):
            return stablehlo.rule_of(op)
        if name.startswith(torch_aten.PREFIX):
            return torch_aten.rule_of(op)
        if name in _SAME_BYTES:
            return Rule("identity")
        if name in _CONTROL:
            return Rule(_CONTROL[name])
        return linalg.rule_of(op)

    def _unknown(
        self, name: str, own: str, operands: tuple[int, ...]
    ) -> tuple[str, dict[str, Attribute], tuple[int, ...]]:
        self._note("unknown-op", f"operation {printable(name)} has no known cost", own)
        return "custom", {}, operands

    def _bodies(self, op: ir.Operation, own: str, kind: str, place: _Place) -> None:
        """Walk the regions of control flow; trip counts of loops are not analysed."""
        if kind == "if":
            self._note("both-branches", "both branches of a condition are counted, so its cost is an upper bound", own)
        else:
            self._note("unknown-trips", "how often a loop runs its body is not known; it is counted once", own)
        inside = replace(place, scope=own, trips=place.trips if kind == "if" else None, depth=place.depth + 1)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    found = tensor_of(argument.type)
                    if found is not None:
                        self._ids[argument] = self._add(Tensor(self._unique("carried"), *found, Role.ACTIVATION))
            self._region(region, inside)

    # -- tensors

    def _operands(self, op: ir.Operation) -> tuple[int, ...]:
        """Return the tensors an operation reads.

        linalg names its output buffers as operands too (destination passing): `linalg.matmul ins(%a, %b) outs(%init)`.
        A destination counts as read only if it holds data, that is, if it is not in `_inits`.
        """
        reads = linalg.input_count(op)
        positional = str(op.name) == "torch.operator"
        found = []
        for place, value in enumerate(torch_aten.listed(op.operands)):
            if reads is not None and place >= reads and value in self._inits:
                continue
            if tensor_of(value.type) is not None:
                found.append(self._use(value))
            elif positional:
                found.append(ABSENT)  # torch.constant.none
        return tuple(found)

    def _use(self, value: ir.Value) -> int:
        """Return the tensor of a value that is read; a fill that nothing has read yet becomes an op now."""
        if value in self._inits and value not in self._ids:
            op = self._inits[value]
            own = self._name(op, str(op.name))
            (self._ids[value],) = self._outputs(op, own)
            self.ops.append(Op("fill", str(op.name), own, (), (self._ids[value],), {}, _location(op)))
        return self._ids.get(value, ABSENT)

    def _outputs(self, op: ir.Operation, own: str) -> tuple[int, ...]:
        made = []
        for number, result in enumerate(op.results):
            found = tensor_of(result.type)
            if found is not None:
                name = own if len(op.results) == 1 else f"{own}:{number}"
                self._ids[result] = self._add(Tensor(name, *found, Role.ACTIVATION))
                made.append(self._ids[result])
        return tuple(made)

    def _site(self, op: ir.Operation, operands: tuple[int, ...], outputs: tuple[int, ...]) -> Site:
        shapes = [None if t == ABSENT else self.tensors[t].shape for t in operands]
        if str(op.name).startswith("linalg.pooling"):  # its window is the shape of an uninitialised tensor
            shapes = [found[0] for value in op.operands if (found := tensor_of(value.type)) is not None]
        made = [self.tensors[t].shape for t in outputs]
        return Site(op, shapes, made, [self._integers.get(t) for t in operands])

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    # -- names and notes

    def _name(self, op: ir.Operation, name: str) -> str:
        """Return the name in the operation's location, or the operation's name with a number."""
        found = _NAME.match(_location(op))
        if found is None:
            words = name.removeprefix(torch_aten.PREFIX).split(".")  # PyTorch's have an overload behind: softmax.int
            return self._unique(words[0 if name.startswith(torch_aten.PREFIX) else -1])
        count = self._names.get(found[1], 0)
        self._names[found[1]] = count + 1
        return f"{found[1]}_{count}" if count else found[1]

    def _unique(self, word: str) -> str:
        count = self._names.get(word, 0)
        self._names[word] = count + 1
        return f"{word}_{count}"

    def _note(self, code: str, text: str, op: str) -> None:
        self._counts.setdefault((code, text), []).append(op)

    def notes(self) -> Iterator[Note]:
        """Yield one note per distinct text, with the number of ops it applies to."""
        for (code, text), ops in self._counts.items():
            times = f" ({len(ops)} ops)" if len(ops) > 1 else ""
            yield Note(code, f"{text}{times}", ops[0])
        unknown = [tensor for tensor in self.tensors if tensor.shape is None]
        if unknown:
            text = f"no fixed shape is known for {len(unknown)} tensor(s), first {printable(unknown[0].name)!r}"
            yield Note("unknown-shape", f"{text}; their size is unknown")


def _location(op: ir.Operation) -> str:
    """Return the location as MLIR prints it: `loc("model.mlir":5:10)`."""
    text = str(op.location)
    return text if len(text) <= _MOST_LOCATION and text.isprintable() else "loc(unknown)"
