"""Graph: a model file, read. Ops in execution order, tensors, and where each came from.

Readers translate every framework's operators into one vocabulary of *kinds*, so that nothing after them knows
ONNX from TensorFlow Lite. `KINDS` lists the vocabulary; the attributes each kind carries are in the table below.
An operator with no kind of its own keeps its `type` and becomes `custom`: its cost is unknown, never zero.

| kind                     | inputs (canonical order)        | attributes                                         |
|--------------------------|---------------------------------|----------------------------------------------------|
| conv, conv_transpose     | data, weights, [bias]           | kernel, strides, dilations, groups, channel_axis   |
| matmul                   | a, b, [bias]                    | k, n (the reduced and the produced extent)         |
| einsum                   | operands                        | equation                                           |
| attention                | operands                        | batch, heads, query_length, key_length, head_size, |
|                          |                                 | value_size, projection_macs                        |
| lstm, gru, rnn           | data, weights, [recurrent, …]   | steps, batch, input_size, hidden_size, directions, |
|                          |                                 | gates and projection_size where they are unusual   |
| max_pool, average_pool   | data                            | kernel, strides, channel_axis                      |
| softmax, *_norm, reduce  | data, [scale, bias]             | axes                                               |
| transpose                | data                            | permutation                                        |
| concat, split, …         | operands                        | axis                                               |
| any                      |                                 | activation (name of a fused activation kind)       |

`channel_axis` and `axes` are non-negative. An absent optional input is `ABSENT`. Quantisation scales and zero
points follow the canonical inputs. Ops inside control-flow bodies stand in `ops` after the op that runs them, with
`scope` naming it and `trips` saying how often they run (`None`: unknown, counted once and noted).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod

from ..core.meaning import Does
from ..core.units import Bytes

Attribute = int | float | str | bool | tuple[int, ...]

ABSENT = -1


class DType(Enum):
    """An element type: its short name and its size in bits (0: no fixed size)."""

    F64 = ("f64", 64)
    F32 = ("f32", 32)
    F16 = ("f16", 16)
    BF16 = ("bf16", 16)
    F8E4M3 = ("f8e4m3", 8)
    F8E5M2 = ("f8e5m2", 8)
    F8E8M0 = ("f8e8m0", 8)
    F4E2M1 = ("f4e2m1", 4)
    I64 = ("i64", 64)
    I32 = ("i32", 32)
    I16 = ("i16", 16)
    I8 = ("i8", 8)
    I4 = ("i4", 4)
    I2 = ("i2", 2)
    U64 = ("u64", 64)
    U32 = ("u32", 32)
    U16 = ("u16", 16)
    U8 = ("u8", 8)
    U4 = ("u4", 4)
    U2 = ("u2", 2)
    BOOL = ("bool", 8)
    C64 = ("c64", 64)
    C128 = ("c128", 128)
    STRING = ("string", 0)
    UNKNOWN = ("unknown", 0)

    def __init__(self, label: str, bits: int) -> None:
        self.label = label
        self.bits = bits

    @property
    def is_number(self) -> bool:
        """A real number of a fixed size: what a network can be computed in."""
        return self.bits > 0 and self.label[0] in "fbiu" and self is not DType.BOOL

    @property
    def is_float(self) -> bool:
        return self.label[0] in "fbc" and self is not DType.BOOL


class Role(Enum):
    """What a tensor is to the graph."""

    INPUT = "input"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    VARIABLE = "variable"  # state that outlives one inference


class Family(Enum):
    """Kinds that are costed alike."""

    CONTRACTION = "contraction"  # multiply-accumulates
    RECURRENT = "recurrent"  # multiply-accumulates, step after step
    TRANSFORM = "transform"  # FFT-like: work is not a multiply-accumulate count
    POOL = "pool"
    NORMALISE = "normalise"
    REDUCE = "reduce"
    ELEMENTWISE = "elementwise"
    CONVERT = "convert"
    MOVE = "move"  # copies bytes, computes nothing
    VIEW = "view"  # renames bytes, copies nothing
    CONTROL = "control"
    OPAQUE = "opaque"  # cost unknown

    @property
    def does(self) -> Does:
        """What the commands of such an op do: whatever only moves, renames or converts data computes nothing."""
        return _DOES.get(self, Does.COMPUTE)


_DOES = {
    Family.CONVERT: Does.LAYOUT,
    Family.MOVE: Does.LAYOUT,
    Family.VIEW: Does.LAYOUT,
    Family.CONTROL: Does.SYNC,
    Family.OPAQUE: Does.UNKNOWN,
}


def _kinds(family: Family, names: str) -> dict[str, Family]:
    return dict.fromkeys(names.split(), family)


KINDS: Mapping[str, Family] = (
    _kinds(Family.CONTRACTION, "conv conv_transpose matmul einsum attention")
    | _kinds(Family.RECURRENT, "lstm gru rnn")
    | _kinds(Family.TRANSFORM, "fft")
    | _kinds(Family.POOL, "max_pool average_pool resize roi_pool")
    | _kinds(
        Family.NORMALISE, "softmax log_softmax layer_norm rms_norm group_norm instance_norm batch_norm l2_norm lrn"
    )
    | _kinds(Family.REDUCE, "reduce argmax topk cumsum non_max_suppression")
    | _kinds(
        Family.ELEMENTWISE,
        "add sub mul div pow minimum maximum compare logical select prelu rotary "
        "relu clip leaky_relu elu gelu erf exp log sqrt rsqrt tanh sigmoid silu hard_swish hard_sigmoid softplus "
        "negate abs round sign trigonometric reciprocal unary binary random",
    )
    | _kinds(Family.CONVERT, "quantize dequantize cast")
    | _kinds(
        Family.MOVE,
        "transpose concat split slice gather scatter pad tile expand space_to_depth depth_to_space reverse one_hot "
        "fill range dynamic_update",
    )
    | _kinds(Family.VIEW, "reshape identity shape join divide")  # the last two: parts of a batch, made by compilers
    | _kinds(Family.CONTROL, "if loop scan call variable sequence")
    | _kinds(Family.OPAQUE, "custom compiled")
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that ops read or write. `shape` is None where the model does not tell."""

    name: str
    shape: tuple[int, ...] | None
    dtype: DType
    role: Role
    stored_bytes: Bytes | None = None  # constants: what the file holds (packed, sparse), where it differs or is known

    @property
    def elements(self) -> int | None:
        return None if self.shape is None else prod(self.shape)

    @property
    def bytes(self) -> Bytes | None:
        """Size in memory: what is stored for constants, else elements at their width."""
        if self.stored_bytes is not None:
            return self.stored_bytes
        if self.shape is None or self.dtype.bits == 0:
            return None
        return Bytes((prod(self.shape) * self.dtype.bits + 7) // 8)


@dataclass(frozen=True, slots=True)
class Op:
    """One operator of the model, in the vocabulary of `KINDS`."""

    kind: str
    type: str  # as the model file names it: "Conv", "CONV_2D", "com.microsoft:Attention"
    name: str
    inputs: tuple[int, ...]  # tensor ids; ABSENT where an optional input is missing
    outputs: tuple[int, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    location: str = ""  # where in the file: "node 12", "subgraph 1 operator 3"
    scope: str = ""  # name of the control-flow op whose body this op is in
    trips: int | None = 1
    sources: tuple[str, ...] = ()  # names of the model's ops that were fused into this one

    @property
    def family(self) -> Family:
        return KINDS[self.kind]


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader must tell the user about the graph."""

    code: str
    text: str
    op: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A model file, read: ops in execution order."""

    name: str
    source: str  # the path as given
    framework: str  # "ONNX", "TensorFlow Lite"
    ops: Sequence[Op]
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    file_bytes: int = 0
    notes: tuple[Note, ...] = ()
    quantize_ops_annotate: bool = False  # quantize/dequantize pairs say how ops between them run, and do not run
    details: Mapping[str, str] = field(default_factory=dict)  # producer, opset, schema version, metadata

    def __post_init__(self) -> None:
        count = len(self.tensors)
        written: set[int] = set()
        for op in self.ops:
            if op.kind not in KINDS:
                raise ValueError(f"op {op.name}: kind {op.kind!r} is not in the vocabulary")
            for tensor in (*op.inputs, *op.outputs):
                if not ABSENT <= tensor < count:
                    raise ValueError(f"op {op.name}: tensor {tensor} does not exist; the graph has {count}")
            for tensor in op.outputs:
                if tensor in written and self.tensors[tensor].role is not Role.VARIABLE:
                    raise ValueError(f"op {op.name}: tensor {self.tensors[tensor].name!r} is written twice")
                written.add(tensor)
