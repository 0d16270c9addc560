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
| fft                      | data, …                         | axes, lengths (elements of a transform along each) |
| transpose                | data                            | permutation                                        |
| concat, split, …         | operands                        | axis                                               |
| any                      |                                 | activation (name of a fused activation kind)       |
| any within an attention  |                                 | slices (parts that are computed each on their own) |
| any elementwise          |                                 | chain (kinds of the ops that run as this one)      |

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
from .kinds import KINDS, Family

Attribute = int | float | str | bool | tuple[int, ...]

ABSENT = -1

# Codes of notes that every figure rests on: what a reader assumed where a file is open, or took from a run.
ASSUMING = frozenset(
    {"open-batch", "repeated-symbol", "fixed-batch", "shapes-from-run", "both-branches", "runs-as"}
    | {"nothing-stored"}
    | {"random-calibration", "random-weights", "example-inputs"}
)


BLOCK_ELEMENTS = 32  # of a block that shares a scale, in every MX format
_SHARING_EXPONENT = 16  # elements, in every BFP format
_BLOCK_SCALE_BITS = 8  # E8M0


class DType(Enum):
    """An element type: its short name and its size in bits (0: no fixed size).

    The MX formats (OCP Microscaling Formats specification 1.0) are for storage: blocks of 32 elements with one scale
    of 8 bits, so that an element of `mxfp6` takes 6.25 bits in all. Nothing computes in them. The BFP formats (block
    floating point) have 16 elements that share an exponent of 8 bits, and engines compute in them.
    """

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
    MXFP6 = ("mxfp6", 6)
    MXINT8 = ("mxint8", 8)
    BFP8 = ("bfp8", 8)
    BFP4 = ("bfp4", 4)
    STRING = ("string", 0)
    UNKNOWN = ("unknown", 0)

    def __init__(self, label: str, bits: int) -> None:
        self.label = label
        self.bits = bits

    @property
    def has_blocks(self) -> bool:
        """Whether elements share scales in blocks: they are converted before anything is computed with them."""
        return self.label.startswith("mx")

    def size_bytes(self, elements: int) -> Bytes:
        """Bytes of so many elements, with the scales of their blocks, rounded up."""
        block = BLOCK_ELEMENTS if self.has_blocks else _SHARING_EXPONENT if self.label.startswith("bfp") else 0
        scales = -(-elements // block) * _BLOCK_SCALE_BITS if block else 0
        return Bytes((elements * self.bits + scales + 7) // 8)

    @property
    def is_number(self) -> bool:
        """Whether this is a real number of fixed size, a type that a network can be computed in."""
        return self.bits > 0 and self.label[0] in "fbiu" and self is not DType.BOOL

    @property
    def is_float(self) -> bool:
        return self.label[0] in "fbc" and self is not DType.BOOL


_BY_LABEL = {dtype.label: dtype for dtype in DType}


def bytes_of(label: str, shape: Sequence[int]) -> Bytes:
    """Bytes of a tensor of the type with that label; 0 where the type is not known, or has no size."""
    return _BY_LABEL.get(label, DType.UNKNOWN).size_bytes(prod(max(0, extent) for extent in shape))


class Role(Enum):
    """How a tensor is used in the graph."""

    INPUT = "input"
    CONSTANT = "constant"
    ACTIVATION = "activation"
    VARIABLE = "variable"  # state that outlives one inference
    SCRATCH = "scratch"  # memory that an op asks for by name; it holds nothing before and after


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that ops read or write. `shape` is None if the model does not give it."""

    name: str
    shape: tuple[int, ...] | None
    dtype: DType
    role: Role
    stored_bytes: Bytes | None = None  # of constants: bytes in the file (packed, sparse); of sequences: of all elements
    unknown_because: str = ""  # why there is no shape: which op decides it at run time, what could not be evaluated

    @property
    def elements(self) -> int | None:
        return None if self.shape is None else prod(self.shape)

    @property
    def bytes(self) -> Bytes | None:
        """Size in memory: the stored size of a constant, else elements times width, rounded up to bytes."""
        if self.stored_bytes is not None:
            return self.stored_bytes
        if self.shape is None or self.dtype.bits == 0:
            return None
        return self.dtype.size_bytes(prod(self.shape))


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
    module: str = ""  # path of the Python module that it was exported from: "layers.0.attention"
    line: str = ""  # of the user's code that called for it: "model.py:12"

    @property
    def is_looped(self) -> bool:
        """Runs in every trip of a loop, with the same constants. Layers that are alike and written once, the op of a
        `layer` as often as there are such layers, have constants of their own each."""
        return self.trips != 1 and "layer" not in self.attributes

    @property
    def family(self) -> Family:
        return KINDS[self.kind].family

    @property
    def does(self) -> Does:
        return KINDS[self.kind].does

    @property
    def called(self) -> tuple[str, ...]:
        """Words by which a target may name it: its kind, one that this is a case of, its family."""
        return KINDS[self.kind].called

    def beside(self, kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Op:
        """An op of a stage's own, which belongs to this one: from the same place in file and code."""
        place = (self.location, self.scope)
        return Op(kind, kind, f"{self.name}/{kind}", inputs, outputs, {}, *place, module=self.module, line=self.line)


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of a reader about the graph, shown to the user."""

    code: str
    text: str
    op: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A model file in memory, with ops in execution order."""

    name: str
    source: str  # the path as given
    framework: str  # "ONNX", "TensorFlow Lite"
    ops: Sequence[Op]
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    file_bytes: int = 0
    notes: tuple[Note, ...] = ()
    quantize_ops_annotate: bool = (
        False  # quantize/dequantize pairs mark the ops between them as quantised and are not run
    )
    details: Mapping[str, str] = field(default_factory=dict)  # producer, opset, schema version, metadata
    placed_in: Mapping[int, int] = field(default_factory=dict)  # tensors whose bytes lie within a scratch tensor

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

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the reader assumed; every figure rests on it, so that every verb repeats it."""
        return tuple(note.text for note in self.notes if note.code in ASSUMING)
