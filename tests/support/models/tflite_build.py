"""Small TensorFlow Lite models for tests, written with LiteRT's own schema classes: not with our tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import flatbuffers
from ai_edge_litert import schema_py_generated as schema

from opscope.graph.graph import Graph, Op, Tensor
from opscope.readers.tflite import read_tflite

Operator = schema.BuiltinOperator
Type = schema.TensorType


# RELU of one tensor, typed from the flatbuffer format: a writer and a reader wrong in the same way would not see it.
BY_HAND = bytes.fromhex(
    "14000000 54464c33"  # 00 root at 14; "TFL3"
    "0a00 1000 0400 0800 0c00 0000"  # 08 vtable: Model of 16 bytes: version, operator codes, subgraphs
    "0c000000 03000000 08000000 1c000000"  # 14 Model: vtable 0c back; 3; codes at 24; subgraphs at 3c
    "01000000 0c000000"  # 24 one operator code, at 34
    "0600 0800 0400 0000"  # 2c vtable: OperatorCode of 8 bytes: deprecated code
    "08000000 13000000"  # 34 OperatorCode: 19 is RELU
    "01000000 10000000"  # 3c one subgraph, at 50
    "0c00 1400 0400 0800 0c00 1000"  # 44 vtable: SubGraph of 20 bytes: tensors, inputs, outputs, operators
    "0c000000 10000000 58000000 5c000000 60000000"  # 50 SubGraph: at 64, b0, b8, c0
    "02000000 14000000 1c000000"  # 64 two tensors, at 7c and 88
    "0c00 0c00 0400 0000 0000 0800"  # 70 vtable: Tensor of 12 bytes: shape, (type), (buffer), name
    "0c000000 14000000 1c000000"  # 7c Tensor: shape at 94, name at a0
    "18000000 08000000 18000000"  # 88 Tensor: shape at 94, name at a8
    "02000000 01000000 04000000"  # 94 shape [1, 4], shared by both
    "01000000 78000000"  # a0 "x"
    "01000000 79000000"  # a8 "y"
    "01000000 00000000"  # b0 inputs [0]
    "01000000 01000000"  # b8 outputs [1]
    "01000000 10000000"  # c0 one operator, at d4
    "0a00 0c00 0000 0400 0800 0000"  # c8 vtable: Operator of 12 bytes: (code), inputs, outputs
    "0c000000 08000000 0c000000"  # d4 Operator: inputs at e0, outputs at e8
    "01000000 00000000"  # e0 inputs [0]
    "01000000 01000000"  # e8 outputs [1]
)


@dataclass
class SubgraphBuilder:
    """One subgraph: tensors and operators in the order they are added."""

    model: ModelBuilder
    name: str = "main"
    tensors: list[schema.TensorT] = field(default_factory=list)
    operators: list[schema.OperatorT] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...] | None,
        dtype: int = Type.FLOAT32,
        *,
        data: bytes | None = None,
        buffer: int | None = None,
        signature: tuple[int, ...] | None = None,
        has_rank: bool = True,
        is_variable: bool = False,
    ) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.hasRank, tensor.isVariable = name.encode(), dtype, has_rank, is_variable
        tensor.shape = None if shape is None else list(shape)
        tensor.shapeSignature = None if signature is None else list(signature)
        tensor.buffer = self.model.buffer(data) if data is not None else (buffer or 0)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def constant(self, name: str, values: tuple[int, ...]) -> int:
        data = b"".join(value.to_bytes(4, "little", signed=True) for value in values)
        return self.tensor(name, (len(values),), Type.INT32, data=data)

    def input(self, name: str, shape: tuple[int, ...], dtype: int = Type.FLOAT32, **more: tuple[int, ...]) -> int:
        self.inputs.append(self.tensor(name, shape, dtype, **more))  # type: ignore[arg-type]
        return self.inputs[-1]

    def op(
        self, code: int | str, inputs: list[int], outputs: list[int], options: object = None, options_2: object = None
    ) -> None:
        """An operator; a text for `code` makes it a custom one. Options carry their own union member."""
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = self.model.code(code), inputs, outputs
        if options is not None:
            member = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, member)
            operator.builtinOptions = options
        if options_2 is not None:
            member = type(options_2).__name__.removesuffix("T")
            operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, member)
            operator.builtinOptions2 = options_2
        self.operators.append(operator)


class ModelBuilder:
    """A whole file; `main` is its first subgraph."""

    def __init__(self) -> None:
        self.table = schema.ModelT()
        self.table.version = 3
        self.table.buffers = [schema.BufferT()]
        self.table.operatorCodes = []
        self.subgraphs: list[SubgraphBuilder] = []
        self._codes: dict[int | str, int] = {}
        self.main = self.subgraph()

    def subgraph(self, name: str = "main") -> SubgraphBuilder:
        self.subgraphs.append(SubgraphBuilder(self, name))
        return self.subgraphs[-1]

    def buffer(self, data: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = list(data)
        self.table.buffers.append(buffer)
        return len(self.table.buffers) - 1

    def code(self, code: int | str) -> int:
        if code not in self._codes:
            entry = schema.OperatorCodeT()
            number = Operator.CUSTOM if isinstance(code, str) else code
            entry.customCode = code.encode() if isinstance(code, str) else None
            entry.builtinCode, entry.deprecatedBuiltinCode = number, min(number, 127)
            self.table.operatorCodes.append(entry)
            self._codes[code] = len(self.table.operatorCodes) - 1
        return self._codes[code]

    def metadata(self, name: str, data: bytes) -> None:
        entry = schema.MetadataT()
        entry.name, entry.buffer = name.encode(), self.buffer(data)
        self.table.metadata = [*(self.table.metadata or []), entry]

    def signature(self, key: str, subgraph: int, inputs: dict[str, int]) -> None:
        entry = schema.SignatureDefT()
        entry.signatureKey, entry.subgraphIndex, entry.inputs = key.encode(), subgraph, []
        for name, tensor in inputs.items():
            pair = schema.TensorMapT()
            pair.name, pair.tensorIndex = name.encode(), tensor
            entry.inputs.append(pair)
        self.table.signatureDefs = [*(self.table.signatureDefs or []), entry]

    def build(self) -> bytes:
        self.table.subgraphs = []
        for builder in self.subgraphs:
            subgraph = schema.SubGraphT()
            subgraph.name, subgraph.tensors, subgraph.operators = (
                builder.name.encode(),
                builder.tensors,
                builder.operators,
            )
            subgraph.inputs, subgraph.outputs = builder.inputs, builder.outputs
            self.table.subgraphs.append(subgraph)
        packer = flatbuffers.Builder(1024)
        packer.Finish(self.table.Pack(packer), file_identifier=b"TFL3")
        return bytes(packer.Output())

    def graph(self, folder: Path, **options: object) -> Graph:
        path = folder / "model.tflite"
        path.write_bytes(self.build())
        return read_tflite(path, **options)  # type: ignore[arg-type]


def options(name: str, /, **values: object) -> object:
    """`options("Conv2DOptions", strideW=2)` → a Conv2DOptionsT with that field set."""
    table = getattr(schema, name + "T")()
    for key, value in values.items():
        assert hasattr(table, key), f"{name} has no {key}"
        setattr(table, key, value)
    return table


def tensors_of(graph: Graph, ids: tuple[int, ...]) -> list[Tensor | None]:
    return [None if id_ < 0 else graph.tensors[id_] for id_ in ids]


def only_op(graph: Graph) -> Op:
    assert len(graph.ops) == 1
    return graph.ops[0]


def small_cnn(*, signature: bool = False, batch: int = 1) -> ModelBuilder:
    """conv 3x3 + relu6 → depthwise → mean → fully connected → softmax; runs in LiteRT."""
    model = ModelBuilder()
    main = model.main

    def activation(name: str, shape: tuple[int, ...]) -> int:
        return main.tensor(name, (batch, *shape), signature=(-1, *shape) if signature else None)

    x = activation("image", (8, 8, 3))
    w1 = main.tensor("w1", (4, 3, 3, 3), data=bytes(4 * 4 * 27))
    b1 = main.tensor("b1", (4,), data=bytes(16))
    y1 = activation("conv", (4, 4, 4))
    w2 = main.tensor("w2", (1, 3, 3, 4), data=bytes(4 * 36))
    y2 = activation("depthwise", (4, 4, 4))
    axes = main.constant("axes", (1, 2))
    y3 = activation("mean", (4,))
    w3 = main.tensor("w3", (10, 4), data=bytes(160))
    b3 = main.tensor("b3", (10,), data=bytes(40))
    y4 = activation("dense", (10,))
    y5 = activation("probabilities", (10,))
    conv = options(
        "Conv2DOptions", strideW=2, strideH=2, fusedActivationFunction=3, dilationWFactor=1, dilationHFactor=1
    )
    depthwise = options(
        "DepthwiseConv2DOptions", strideW=1, strideH=1, depthMultiplier=1, dilationWFactor=1, dilationHFactor=1
    )
    main.op(Operator.CONV_2D, [x, w1, b1], [y1], conv)
    main.op(Operator.DEPTHWISE_CONV_2D, [y1, w2, b1], [y2], depthwise)
    main.op(Operator.MEAN, [y2, axes], [y3], options("ReducerOptions"))
    main.op(Operator.FULLY_CONNECTED, [y3, w3, b3], [y4], options("FullyConnectedOptions"))
    main.op(Operator.SOFTMAX, [y4], [y5], options("SoftmaxOptions", beta=1.0))
    main.inputs, main.outputs = [x], [y5]
    return model
