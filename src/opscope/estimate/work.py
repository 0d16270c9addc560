"""How much work an op is, on any hardware: multiply-accumulates, element operations and bytes.

A MAC is one multiply and one add into an accumulator, counted over the dense iteration space; padding is counted as
if it were data, as every published count does. Everything else is counted in *element operations*: one arithmetic
operation, comparison or copy of one element. Transcendental functions are counted as the polynomial a kernel
evaluates (`graph/kinds.py`); they are a scale for comparing ops, not a cycle count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log2, prod

from ..graph.graph import ABSENT, DType, Graph, Op, Role, Tensor
from ..graph.kinds import KINDS, Family, Touches
from ..graph.work_families import kinds_of

MAC_DEFINITION = "1 MAC = one multiply and one accumulate, dense, padding included; other work is element operations"

# Kernels that turn what is stored in blocks into floats; their cost is per KB of floats.
DEQUANTIZE: Mapping[DType, str] = {DType.MXFP6: "dequantize_mxfp6", DType.MXINT8: "dequantize_mxint8"}

DEQUANTIZE_INTEGERS = "dequantize"

_COMPLEX = (DType.C64, DType.C128)  # one element is a real and an imaginary number

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass(frozen=True, slots=True)
class Work:
    """What one trip of an op does. Where the model cannot tell, the counts are lower bounds, and it says why."""

    macs: int = 0
    element_ops: int = 0
    read_bytes: int = 0  # activations and graph inputs
    constant_bytes: int = 0
    write_bytes: int = 0
    unpacked_bytes: int = 0  # of weights stored in blocks or as integers: what converting them to floats writes
    packed_bytes: int = 0  # of the same constants, as they are stored; part of `constant_bytes`
    unpacked_by: str = ""  # the kernel that converts them
    steps: int = 1  # of a recurrent op, one behind the other
    state_weight_bytes: int = 0  # of weights that meet its state, which enter an engine in every step
    unknown_because: str = ""  # why the model cannot tell how much work it is; empty: it can

    @property
    def known(self) -> bool:
        return not self.unknown_because

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.constant_bytes + self.write_bytes

    @property
    def weight_bytes(self) -> int:
        """Bytes of constants as an engine takes them: those that meet a state as often as there are steps."""
        again = (self.steps - 1) * self.state_weight_bytes
        return self.constant_bytes - self.packed_bytes + self.unpacked_bytes + again


def work_of(op: Op, graph: Graph) -> Work:
    """Count one op. Unknown shapes, trips and opaque ops give a reason, never a silent zero."""
    inputs = [graph.tensors[t] for t in op.inputs if t != ABSENT]
    outputs = [graph.tensors[t] for t in op.outputs if t != ABSENT]
    if op.family in (Family.VIEW, Family.CONTROL):
        return Work()
    traffic = (*_traffic(op, inputs, outputs), *_unpacking(op, inputs))
    because = _why_uncounted(op, inputs, outputs)
    if because:
        return Work(0, 0, *traffic, unknown_because=because)
    macs, element_ops, because = _COUNTERS[op.family](op, inputs, outputs)
    activation = op.attributes.get("activation")
    if isinstance(activation, str):
        element_ops += _elements(outputs) * _per_element(activation)
    if op.trips is None:
        because = because or f"how often {op.scope or 'its loop'} runs its body is not known"
    work = Work(macs, element_ops, *traffic, unknown_because=because)
    if op.family is Family.RECURRENT and not because:
        return replace(work, steps=number(op, "steps"), state_weight_bytes=_state_weight_bytes(op, inputs))
    return work


def most_parts(op: Op, graph: Graph) -> int:
    """Parts that an op can be cut into where each must not need what others find: its rows; 0: any number.

    The best 1,000 of one row of a million scores are one part, a softmax of 8 × 16 rows is 128.
    """
    shape = graph.tensors[op.outputs[0]].shape if op.outputs else None
    if op.family not in (Family.REDUCE, Family.NORMALISE) or shape is None or "axes" not in op.attributes:
        return 0
    along = {axis % max(1, len(shape)) for axis in numbers(op, "axes")}
    kept = op.family is Family.NORMALISE or op.kind in ("topk", "cumsum")  # results have the axes that are gone through
    return max(1, prod(extent for axis, extent in enumerate(shape) if not kept or axis not in along))


def state_bytes(op: Op, graph: Graph) -> int:
    """Bytes of what a recurrent op hands from one step to the next, beside what each unit keeps for itself."""
    values = number(op, "projection_size", 0) or number(op, "hidden_size")
    cells = number(op, "directions", 1) * number(op, "batch", 1)
    return graph.tensors[op.outputs[0]].dtype.size_bytes(cells * values)


def _state_weight_bytes(op: Op, inputs: list[Tensor]) -> int:
    hidden, projection = number(op, "hidden_size"), number(op, "projection_size", 0)
    gates = number(op, "gates", _GATES[op.kind])
    own = gates * hidden * (projection or hidden) + hidden * projection
    return inputs[1].dtype.size_bytes(number(op, "directions", 1) * own) if len(inputs) > 1 else 0


def _why_uncounted(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> str:
    """Why nothing can be counted: what the op does, or the size of an operand, is not in the model."""
    if op.family is Family.OPAQUE:
        return f"{op.type} is a custom operator: its work is not in the file"
    tensor = next((t for t in (*inputs, *outputs) if t.elements is None), None)
    if tensor is None:
        return ""
    return tensor.unknown_because or f"the model does not give the shape of {tensor.name}"


def _traffic(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, int]:
    """Bytes of activations read, constants read, and activations written."""
    written = sum(t.bytes or 0 for t in outputs)
    touches = KINDS[op.kind].touches
    if touches is Touches.OUTPUT:
        constant = bool(inputs) and inputs[0].role is Role.CONSTANT
        return (0, written, written) if constant else (written, 0, written)
    if touches is Touches.UPDATE and inputs:
        changed = min((t.bytes or 0 for t in inputs[1:] if t.dtype is inputs[0].dtype), default=written)
        return changed, 0, changed
    constants = sum(t.bytes or 0 for t in inputs if t.role is Role.CONSTANT)
    return sum(t.bytes or 0 for t in inputs if t.role is not Role.CONSTANT), constants, written


def unpacked_bytes(tensor: Tensor, dtype: DType) -> int:
    """Bytes of a tensor that is stored in blocks once it is converted to `dtype`; 0 for any other tensor."""
    return dtype.size_bytes(tensor.elements or 0) if tensor.dtype.has_blocks else 0


def _unpacking(op: Op, inputs: list[Tensor]) -> tuple[int, int, str]:
    """Bytes that stored constants have as operands of the first input's type, and as they are stored; and the kernel.

    Weights of a product of floats may be integers of few bits: they become floats on their way to it, as blocks do.
    """
    blocks = [t for t in inputs if t.role is Role.CONSTANT and t.dtype.has_blocks]
    floats = op.family is Family.CONTRACTION and bool(inputs) and inputs[0].dtype.is_float
    packed = blocks or [t for t in inputs[1:2] if floats and t.role is Role.CONSTANT and _is_integer(t.dtype)]
    if not packed:
        return 0, 0, ""
    kernel = DEQUANTIZE.get(packed[0].dtype, DEQUANTIZE_INTEGERS)
    unpacked = sum(inputs[0].dtype.size_bytes(t.elements or 0) for t in packed)
    return unpacked, sum(t.bytes or 0 for t in packed), kernel


def _is_integer(dtype: DType) -> bool:
    return dtype.is_number and not dtype.is_float


def _per_element(kind: str) -> int:
    """Element operations per element, of a kind whose row has them."""
    found = KINDS[kind].element_ops
    if found is None:
        raise KeyError(f"kind {kind}: graph/kinds.py has no element operations for it")
    return found


def _elements(tensors: list[Tensor]) -> int:
    return sum(t.elements or 0 for t in tensors)


def _contraction(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    if op.kind == "einsum" and len(inputs) == 1:  # sums, diagonals and transpositions multiply nothing
        return 0, _elements(inputs), ""
    if op.kind == "einsum":
        multiplications, sums = _einsum(op, inputs)
        return (multiplications, 0, "") if sums else (0, multiplications, "")
    return _MACS[op.kind](op, inputs, outputs), 0, ""


def _conv(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    return _elements(outputs[:1]) * prod(numbers(op, "kernel")) * channels_per_group(op, inputs[0])


def _conv_transpose(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    return _elements(inputs[:1]) * prod(numbers(op, "kernel")) * channels_per_group(op, outputs[0])


def _matmul(op: Op, _inputs: list[Tensor], outputs: list[Tensor]) -> int:
    return _elements(outputs[:1]) * number(op, "k")


def _attention(op: Op, _inputs: list[Tensor], _outputs: list[Tensor]) -> int:
    scores = number(op, "batch") * number(op, "heads") * number(op, "query_length") * number(op, "key_length")
    return scores * (number(op, "head_size") + number(op, "value_size")) + number(op, "projection_macs", 0)


def _einsum(op: Op, inputs: list[Tensor]) -> tuple[int, bool]:
    """Return the multiplications, and whether any of them are added up: an outer product accumulates nothing.

    Operands are contracted two at a time from the left; each step costs the product of the extents it runs over.
    """
    terms, arrow, result = str(op.attributes.get("equation", "")).replace(" ", "").partition("->")
    words = [_labels(word, len(t.shape or ())) for word, t in zip(terms.split(","), inputs, strict=False)]
    extents: dict[str, int] = {}
    for word, tensor in zip(words, inputs, strict=False):
        for label, extent in zip(word, tensor.shape or (), strict=False):
            extents[label] = max(extent, extents.get(label, 1))
    once = {label for label in extents if sum(word.count(label) for word in words) == 1}
    shared = {label for label in extents if len(label) > 1}  # what an ellipsis stands for is always kept
    kept = shared | (set(result) if arrow else once)
    multiplications, held = 0, set(words[0]) if words else set()
    for position, word in enumerate(words[1:], start=2):
        touched = held.union(word)
        multiplications += prod(extents[label] for label in touched)
        held = touched & kept.union(*words[position:])
    return multiplications, not kept.issuperset(extents)


def _labels(word: str, rank: int) -> list[str]:
    """One label per axis; those behind an ellipsis are numbered from the right, where broadcasting aligns them."""
    before, dots, after = word.partition("...")
    hidden = rank - len(before) - len(after) if dots else 0
    return [*before, *(f"...{hidden - axis}" for axis in range(hidden)), *after]


def _recurrent(op: Op, _inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    if "hidden_size" not in op.attributes:  # the model leaves the weights out
        return 0, 0, "the model leaves its weights out"
    hidden, steps = number(op, "hidden_size"), number(op, "steps")
    cells = number(op, "directions", 1) * number(op, "batch", 1) * steps
    projection = number(op, "projection_size", 0)
    gates = number(op, "gates", _GATES[op.kind])
    macs = cells * (gates * hidden * (number(op, "input_size") + (projection or hidden)) + hidden * projection)
    return macs, cells * hidden * 10 * gates, ""


def _fft(op: Op, _inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    """The classic operation count of fast transforms of n elements: 5 n log2 n each; half where one end is real.

    1,000 frames of 512 real samples leave 257 complex numbers each: 1,000 × 257 × 5 × log2 512.
    """
    if "lengths" not in op.attributes:
        return 0, 0, "how many elements it transforms at a time is not known"
    length = max(1, prod(numbers(op, "lengths")))
    complex_numbers = sum(_elements([each]) / (1 if each.dtype in _COMPLEX else 2) for each in outputs)
    return 0, round(5 * complex_numbers * log2(length)), ""


def _pool(op: Op, _inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    per_element = KINDS[op.kind].element_ops or prod(numbers(op, "kernel")) or 1
    return 0, _elements(outputs) * per_element, ""


def _over_input(op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    if op.kind == "non_max_suppression":
        return 0, _elements(inputs), "how many boxes it compares depends on the data"
    per_element = _comparisons(op, outputs[:1]) if op.kind == "topk" else _per_element(op.kind)
    return 0, _elements(inputs[:1]) * per_element, ""


def _comparisons(op: Op, outputs: list[Tensor]) -> int:
    """Of an element with those of a heap, which holds what is kept of a row: two where 5 of 1,000 are."""
    shapes, axes = [tensor.shape or () for tensor in outputs], numbers(op, "axes")
    kept = prod(extent for shape in shapes for axis, extent in enumerate(shape) if axis in axes or not axes)
    return round(log2(max(2, kept)))


def _over_output(op: Op, _inputs: list[Tensor], outputs: list[Tensor]) -> tuple[int, int, str]:
    return 0, _elements(outputs) * sum(_per_element(kind) for kind in kinds_of(op)), ""


def channels_per_group(op: Op, tensor: Tensor) -> int:
    """Channels of a convolution's operand that one group sees."""
    shape = tensor.shape or ()
    axis = number(op, "channel_axis")
    return shape[axis] // max(1, number(op, "groups", 1)) if axis < len(shape) else 0


def number(op: Op, key: str, default: int | None = None) -> int:
    """An integer attribute that the vocabulary promises for this kind."""
    value = op.attributes.get(key, default)
    if not isinstance(value, int):
        raise KeyError(f"op {op.name}: kind {op.kind} needs the integer attribute {key!r}")
    return value


def numbers(op: Op, key: str) -> tuple[int, ...]:
    value = op.attributes.get(key, ())
    return value if isinstance(value, tuple) else ()


_MACS: dict[str, Callable[[Op, list[Tensor], list[Tensor]], int]] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "matmul": _matmul,
    "attention": _attention,
}

_COUNTERS: dict[Family, Callable[[Op, list[Tensor], list[Tensor]], tuple[int, int, str]]] = {
    Family.CONTRACTION: _contraction,
    Family.RECURRENT: _recurrent,
    Family.TRANSFORM: _fft,
    Family.POOL: _pool,
    Family.NORMALISE: _over_input,
    Family.REDUCE: _over_input,
    Family.ELEMENTWISE: _over_output,
    Family.CONVERT: _over_output,
    Family.MOVE: _over_output,
}
