"""What a rule for ONNX is given and gives back, and the questions that most rules ask.

A rule is a function (node) → Match or None. It is asked about every node, in execution order, and answers None unless
the node is the anchor of its pattern (its last op, as a rule) and everything that it relies on holds: shapes that must
be known are, constants are constants, values inside the pattern that others read are dealt with. Asking changes
nothing: new nodes are made by the match's `build`, when the rewrite is applied.

A rule that works on a model as a whole is a function (model, context) → the model that takes its place, marked
`@whole`; where it cannot, it raises `RewriteError` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnx_ir.tape import Tape

from ..rewrite import RewriteContext

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
# A batch that the file leaves open, as an extent: a prime, so that it is a factor of those extents alone that grow with
# it, and all that is true of products of extents is true for every batch.
OPEN = 1_000_003
_EXTENTS = "opscope.extents"  # of a value with an open axis, in its metadata


@dataclass(slots=True)
class Maker:
    """Makes the nodes and constants of a replacement."""

    tape: Tape = field(default_factory=Tape)

    def op(
        self,
        kind: str,
        *inputs: ir.Value | None,
        shape: Shape | None = None,
        dtype: ir.DataType | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> ir.Value:
        """Add a node with one result; its type, where not given, is that of its first input."""
        made = self.tape.op(kind, inputs, attributes or None, domain=domain)
        first = next((value for value in inputs if value is not None), None)
        made.type = ir.TensorType(dtype) if dtype is not None else (first.type if first is not None else None)
        set_extents(made, shape)
        return made

    def ops(
        self, kind: str, *inputs: ir.Value | None, shapes: Sequence[Shape], domain: str = "", **attributes: Any
    ) -> Sequence[ir.Value]:
        """Add a node with a result for each of the shapes, all of its first input's type."""
        made = self.tape.op_multi_out(kind, inputs, attributes or None, num_outputs=len(shapes), domain=domain)
        for value, shape in zip(made, shapes, strict=True):
            value.type = None if inputs[0] is None else inputs[0].type
            set_extents(value, shape)
        return made

    def constant(self, array: Array | Sequence[int], like: str = "constant") -> ir.Value:
        """Add an initializer; `like` is a name that its own is made from. A list becomes int64."""
        values = array if isinstance(array, np.ndarray) else np.asarray(array, np.int64)
        return self.tape.initializer(ir.tensor(np.ascontiguousarray(values).reshape(values.shape)), name=like)


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that was found, and what to put in its place."""

    pattern: Sequence[ir.Node]  # nodes that go, the anchor first; one whose result is still read by others stays
    build: Callable[[Maker], Mapping[ir.Value, ir.Value]]  # value of the pattern → what is read instead
    group: str = ""  # what sites that look alike have in common; empty: types and shapes of the pattern


Rule = Callable[[ir.Node], Match | None]
WholeRule = Callable[[ir.Model, RewriteContext], ir.Model]


def whole(rule: WholeRule) -> WholeRule:
    """Mark a rule that takes the model as a whole; the model that it is given is its own to change."""
    rule.is_whole = True  # type: ignore[attr-defined]
    return rule


def is_op(node: ir.Node | None, *kinds: str) -> bool:
    """Whether a node is one of these operators of ONNX itself."""
    return node is not None and node.domain in ("", "ai.onnx") and node.op_type in kinds


def producer(value: ir.Value | None, *kinds: str) -> ir.Node | None:
    """The node that computes a value, if it is one of these operators; with no kinds, whatever it is."""
    node = None if value is None else value.producer()
    return node if node is not None and (not kinds or is_op(node, *kinds)) else None


def only_reader(value: ir.Value, *kinds: str) -> ir.Node | None:
    """The one node that reads a value, if there is no other and it is one of these; None for an output of the model."""
    readers, source = value.consumers(), value.producer()
    if len(readers) != 1 or value.is_graph_output() or (source is not None and readers[0].graph is not source.graph):
        return None
    return readers[0] if not kinds or is_op(readers[0], *kinds) else None


def reads_as(old: ir.Value, new: ir.Value) -> bool:
    """Whether readers of one value can read the other instead: an output of the model needs an op that makes it."""
    return not (old.is_graph_output() and (new.is_graph_input() or new.is_graph_output() or new.is_initializer()))


def shape_of(value: ir.Value | None) -> Shape | None:
    """The shape of a value where all of it is known."""
    if value is None or value.shape is None or not all(isinstance(extent, int) for extent in value.shape):
        return None
    return cast("Shape", tuple(value.shape))


def extents_of(value: ir.Value | None) -> Shape | None:
    """The shape of a value, with a multiple of OPEN where it grows with a batch that the file leaves open.

    A rule that asks for it holds for every batch: it writes such an extent nowhere but by `set_extents` and `reshape`.
    """
    known = shape_of(value)
    return known if known is not None or value is None else value.meta.get(_EXTENTS)


def set_extents(value: ir.Value, shape: Shape | None) -> None:
    """Let a value have a shape; an open extent is open in the file."""
    value.shape = None if shape is None else ir.Shape([None if is_open(extent) else extent for extent in shape])
    if shape is not None and any(map(is_open, shape)):
        value.meta[_EXTENTS] = tuple(shape)


def copy_extents(value: ir.Value, other: ir.Value) -> None:
    """Let a value have the shape of another, as far as it is known."""
    value.shape = other.shape
    if _EXTENTS in other.meta:
        value.meta[_EXTENTS] = other.meta[_EXTENTS]


def is_open(extent: int) -> bool:
    return extent > 0 and extent % OPEN == 0


def array_of(value: ir.Value | None) -> Array | None:
    """The elements of a constant: an initializer that is no input of the graph, or what a Constant node holds."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    try:
        return None if tensor is None else tensor.numpy()
    except OSError:  # weights in a file that is not there
        return None


def numbers_of(value: ir.Value | None) -> list[int] | None:
    """A constant list of whole numbers: axes, a shape, where to cut."""
    array = array_of(value)
    return None if array is None or array.dtype.kind not in "iu" else [int(each) for each in array.ravel()]


def gives_more(node: ir.Node) -> bool:
    """Whether anything reads more than its first output, such as the indices of a MaxPool."""
    return any(output.uses() or output.is_graph_output() for output in node.outputs[1:])


def attribute(node: ir.Node, name: str, otherwise: Any = None) -> Any:
    """The value of an attribute, or what it is by default."""
    found = node.attributes.get(name)
    return otherwise if found is None else found.value


def opset_of(node: ir.Node) -> int:
    """The version of ONNX's own operators that the model uses."""
    graph = node.graph
    imports: Mapping[str, int] = {} if graph is None else graph.opset_imports
    return imports.get("", imports.get("ai.onnx", 0))
