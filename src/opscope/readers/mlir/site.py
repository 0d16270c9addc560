"""One MLIR operation with the shapes and constants of its operands: the input of the translation rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...graph.graph import Attribute, DType

if TYPE_CHECKING:
    from iree.compiler import ir

Shape = tuple[int, ...]
Attributes = dict[str, Attribute]

_FLOATS = {
    "f64": DType.F64,
    "f32": DType.F32,
    "f16": DType.F16,
    "bf16": DType.BF16,
    "f8E4M3FN": DType.F8E4M3,
    "f8E4M3FNUZ": DType.F8E4M3,
    "f8E5M2": DType.F8E5M2,
    "f8E5M2FNUZ": DType.F8E5M2,
    "f8E8M0FNU": DType.F8E8M0,
    "f4E2M1FN": DType.F4E2M1,
    "i1": DType.BOOL,
    "index": DType.I64,
    "complex<f32>": DType.C64,
    "complex<f64>": DType.C128,
}
_BY_LABEL = {dtype.label: dtype for dtype in DType}


def dtype_of(text: str) -> DType:
    """Return the DType of an element type as MLIR prints it: `i8`, `ui8`, `si64`, `f32`, …

    For a quantised type, that is its storage type.
    """
    if text in _FLOATS:
        return _FLOATS[text]
    if text.startswith("!quant."):
        text = text.partition("<")[2].partition(":")[0].partition("<")[0].strip()
    return _BY_LABEL.get(f"u{text[2:]}" if text.startswith("ui") else text.removeprefix("s"), DType.UNKNOWN)


def tensor_of(kind: ir.Type) -> tuple[Shape | None, DType] | None:
    """Return shape and element type of a tensor type; None for other types. A dynamic shape is None."""
    from iree.compiler import ir

    if isinstance(kind, ir.RankedTensorType):
        return (tuple(kind.shape) if kind.has_static_shape else None), dtype_of(str(kind.element_type))
    text = str(kind)
    if isinstance(kind, ir.UnrankedTensorType):
        return None, dtype_of(text[len("tensor<*x") : -1])
    if text.startswith(("!torch.vtensor<", "!torch.tensor<")):
        return _torch_tensor(text)
    return None


def _torch_tensor(text: str) -> tuple[Shape | None, DType]:
    """Parse `!torch.vtensor<[1,?,3],f32>`."""
    extents, _, element = text.partition("<[")[2].partition("],")
    parts = [part for part in extents.split(",") if part]
    shape = tuple(map(int, parts)) if "[" in text and all(part.isdecimal() for part in parts) else None
    return shape, dtype_of(element.rstrip(">"))


@dataclass(frozen=True, slots=True)
class Site:
    """An operation and the shapes of its input and output tensors."""

    op: ir.Operation
    inputs: Sequence[Shape | None]  # of its tensor operands, in order
    outputs: Sequence[Shape | None]
    constants: Sequence[tuple[int, ...] | None]  # elements of operands that are small integer constants

    @property
    def name(self) -> str:
        """The operation's name without its dialect."""
        return str(self.op.name).partition(".")[2] or str(self.op.name)

    def input(self, index: int) -> Shape | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int = 0) -> Shape | None:
        return self.outputs[index] if index < len(self.outputs) else None

    def integer(self, name: str, default: int) -> int:
        value = attribute_value(self.op, name)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        value = attribute_value(self.op, name)
        return value if isinstance(value, tuple) else None


Describe = Callable[[Site], Attributes]


def attribute_value(op: ir.Operation, name: str) -> int | float | str | tuple[int, ...] | None:
    """Return an attribute as a plain value; None if it is absent or of another type."""
    return plain_value(found) if (found := attribute_of(op, name)) is not None else None


def attribute_of(op: ir.Operation, name: str) -> ir.Attribute | None:
    """Return an attribute; None if it is absent, or one that the bindings cannot represent (complex elements)."""
    if name not in op.attributes:
        return None
    try:
        return op.attributes[name]
    except TypeError:
        return None


def plain_value(attribute: ir.Attribute) -> int | float | str | tuple[int, ...] | None:
    """Convert numbers, text and short lists of integers; None for anything else."""
    from iree.compiler import ir

    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        value: int | float | str = attribute.value
        return value
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        return tuple(attribute)
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return small_integers(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        found = [plain_value(item) for item in attribute] if len(attribute) <= MAX_ELEMENTS else []
        return tuple(item for item in found if isinstance(item, int)) if found else None
    return None


MAX_ELEMENTS = 1024  # constants and lists beyond this are weights, not structure


def small_integers(attribute: ir.Attribute) -> tuple[int, ...] | None:
    """Return the elements of a small dense integer constant; others are never expanded."""
    from iree.compiler import ir

    if not isinstance(attribute, ir.DenseIntElementsAttr):
        return None
    elements = 1
    for extent in ir.ShapedType(attribute.type).shape:
        elements *= extent
    return tuple(int(value) for value in attribute) if elements <= MAX_ELEMENTS else None


def no_attributes(_site: Site) -> Attributes:
    return {}
