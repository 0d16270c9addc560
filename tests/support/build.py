"""Graphs and targets by hand: the least that a test needs, and nothing read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from opscope.estimate.price import Machine
from opscope.estimate.work import work_of
from opscope.graph.graph import Attribute, DType, Graph, Op, Role, Tensor
from opscope.machine import catalogue as targets
from opscope.machine.target import Clocks, Engine, Figure, Holds, Memory, Runtime, Scope, Support, Target, Topology


class Sketch:
    """A graph drawn op by op. Methods return the id of the tensor they make; images are NHWC."""

    def __init__(self, name: str = "net", *, dtype: DType = DType.F32) -> None:
        self.name = name
        self.dtype = dtype
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.inputs: list[int] = []

    def tensor(
        self, shape: Sequence[int] | None, *, role: Role = Role.ACTIVATION, dtype: DType | None = None, name: str = ""
    ) -> int:
        known = None if shape is None else tuple(shape)
        self.tensors.append(Tensor(name or f"t{len(self.tensors)}", known, dtype or self.dtype, role))
        return len(self.tensors) - 1

    def input(self, *shape: int, dtype: DType | None = None, name: str = "") -> int:
        self.inputs.append(self.tensor(shape, role=Role.INPUT, dtype=dtype, name=name))
        return self.inputs[-1]

    def constant(self, *shape: int, dtype: DType | None = None, name: str = "") -> int:
        return self.tensor(shape, role=Role.CONSTANT, dtype=dtype, name=name)

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int] | None,
        *,
        dtype: DType | None = None,
        name: str = "",
        type: str = "",  # noqa: A002 - the field of Op
        scope: str = "",
        trips: int | None = 1,
        **attributes: Attribute,
    ) -> int:
        """Append an op with one output of that shape."""
        out = self.tensor(shape, dtype=dtype, name=f"{name}:out" if name else "")
        name = name or f"{kind}{len(self.ops)}"
        self.ops.append(
            Op(kind, type or kind.upper(), name, tuple(inputs), (out,), attributes, scope=scope, trips=trips)
        )
        return out

    def same(self, kind: str, *inputs: int, name: str = "", **attributes: Attribute) -> int:
        """An op whose output looks like its first input."""
        first = self.tensors[inputs[0]]
        return self.op(kind, inputs, first.shape, dtype=first.dtype, name=name, **attributes)

    def conv(
        self,
        data: int,
        channels: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
        bias: bool | int = True,
        name: str = "",
        type: str = "CONV_2D",  # noqa: A002 - the field of Op
        **attributes: Attribute,
    ) -> int:
        """A padded convolution. `bias` may be a constant that is there already."""
        shape = self.tensors[data].shape
        assert shape is not None
        batch, height, width, depth = shape
        operands = [data, self.constant(channels, kernel, kernel, depth // groups)]
        if bias is True:
            operands.append(self.constant(channels))
        elif bias is not False:
            operands.append(bias)
        return self.op(
            "conv",
            operands,
            (batch, ceil(height / stride), ceil(width / stride), channels),
            name=name,
            type=type,
            kernel=(kernel, kernel),
            strides=(stride, stride),
            groups=groups,
            channel_axis=3,
            **attributes,
        )

    def depthwise(self, data: int, *, stride: int = 1, kernel: int = 3) -> int:
        channels = (self.tensors[data].shape or ())[-1]
        return self.conv(data, channels, kernel=kernel, stride=stride, groups=channels, type="DEPTHWISE_CONV_2D")

    def dense(self, data: int, units: int, *, bias: bool = True, name: str = "", **attributes: Attribute) -> int:
        shape = self.tensors[data].shape
        assert shape is not None
        operands = [data, self.constant(units, shape[-1]), *([self.constant(units)] if bias else [])]
        out = (*shape[:-1], units)
        return self.op("matmul", operands, out, name=name, type="FULLY_CONNECTED", k=shape[-1], n=units, **attributes)

    def graph(self, *outputs: int, annotated: bool = False) -> Graph:
        return Graph(
            name=self.name,
            source=f"{self.name}.tflite",
            framework="TensorFlow Lite",
            ops=tuple(self.ops),
            tensors=tuple(self.tensors),
            inputs=tuple(self.inputs),
            outputs=outputs,
            quantize_ops_annotate=annotated,
        )


def figure(value: float, low: float | None = None, high: float | None = None) -> Figure:
    return Figure(value, "by hand", low, high)


def engine(
    name: str = "cpu",
    *,
    ops: tuple[str, ...] = ("*",),
    accelerator: bool = False,
    macs: dict[str, float] | None = None,
    elements: dict[str, float] | None = None,
    **fields: object,
) -> Engine:
    """An engine with rates by data type; one operation of any type a cycle where nothing is said."""
    return Engine(
        name,
        ops,
        accelerator,
        macs_per_cycle={key: figure(value) for key, value in (macs or {"*": 1.0}).items()},
        element_ops_per_cycle={key: figure(value) for key, value in (elements or {"*": 1.0}).items()},
        **fields,  # type: ignore[arg-type]
    )


def memory(
    name: str, *holds: Holds, size: int = 1 << 20, scope: Scope = Scope.DEVICE, **fields: Figure | None
) -> Memory:
    return Memory(name, scope, figure(size), holds, **fields)


def target(
    *engines: Engine,
    memories: tuple[Memory, ...] = (),
    clock: Figure | None = None,
    cores: int = 1,
    devices: int = 1,
    fuses: tuple[str, ...] = (),
    runtime: Runtime | None = None,
    support: Support | None = None,
    precision: dict[str, str] | None = None,
    idle_watts: Figure | None = None,
) -> Target:
    """A 1 MHz processor with 1 MB of RAM and of flash, where nothing else is said."""
    return Target(
        schema=targets.SCHEMA,
        name="by-hand",
        title="A target by hand",
        sources={"by hand": "this test"},
        clocks=Clocks(clock or figure(1e6)),
        topology=Topology(figure(cores), figure(devices)),
        engines=engines or (engine(),),
        memories=memories or (memory("RAM", Holds.ACTIVATIONS), memory("flash", Holds.CONSTANTS)),
        runtime=replace(runtime or Runtime(), fuses=fuses) if fuses else runtime or Runtime(),
        support=support or Support(),
        precision=precision or {},
        idle_watts=idle_watts,
    )


def machine(*engines: Engine, **fields: object) -> Machine:
    """All of a target by hand."""
    chosen = target(*engines, **fields)  # type: ignore[arg-type]
    return Machine(chosen, devices=round(chosen.topology.devices.value), cores=round(chosen.topology.cores.value))


def resnet() -> Graph:
    """The network behind the tables of the vendor's sample report, worked out from the figures they print."""
    draw = Sketch("resnet")
    data = draw.conv(draw.input(1, 32, 32, 3), 16)
    zeros = {channels: draw.constant(channels) for channels in (48, 128)}  # the bias that shortcuts do not have
    for channels, strides in ((48, (1, 1, 1, 1)), (48, (2, 2, 2, 2)), (128, (2, 1, 1, 1))):
        for stride in strides:
            inner = draw.conv(draw.conv(data, channels, stride=stride), channels)
            shortcut = draw.conv(data, channels, kernel=1, stride=stride, bias=zeros[channels])
            data = draw.same("add", inner, shortcut)
    for kind in ("mul", "add"):
        data = draw.same(kind, data, draw.constant(128))
    axes = draw.constant(2, dtype=DType.I32)
    data = draw.op("reduce", (data, axes), (1, 128), type="MEAN", axes=(1, 2))
    data = draw.same("softmax", draw.dense(data, 10))
    return draw.graph(data)


def mobilenet() -> Graph:
    """MobileNetV1-0.25 on 96×96, int8: `vww_96_int8` of MLPerf Tiny."""
    draw = Sketch("vww_96", dtype=DType.I8)
    data = draw.conv(draw.input(1, 96, 96, 3), 8, stride=2)
    widths = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1))
    for channels, stride in widths:
        data = draw.conv(draw.depthwise(data, stride=stride), channels, kernel=1)
    return _classifier(draw, data, 2)


def keyword_spotter() -> Graph:
    """DS-CNN, int8: `kws_ref_model` of MLPerf Tiny."""
    draw = Sketch("kws_ref_model", dtype=DType.I8)
    operands = (draw.input(1, 49, 10, 1), draw.constant(64, 10, 4, 1), draw.constant(64))
    data = draw.op("conv", operands, (1, 25, 5, 64), kernel=(10, 4), strides=(2, 2), groups=1, channel_axis=3)
    for _ in range(4):
        data = draw.conv(draw.depthwise(data), 64, kernel=1)
    return _classifier(draw, data, 12)


def resnet8() -> Graph:
    """ResNet-8 on CIFAR, int8: `pretrainedResnet_quant` of MLPerf Tiny."""
    draw = Sketch("pretrainedResnet_quant", dtype=DType.I8)
    data = draw.conv(draw.input(1, 32, 32, 3), 16)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        inner = draw.conv(draw.conv(data, channels, stride=stride), channels)
        shortcut = data if stride == 1 else draw.conv(data, channels, kernel=1, stride=stride)
        data = draw.same("add", shortcut, inner)
    return _classifier(draw, data, 10)


def autoencoder() -> Graph:
    """The dense autoencoder, int8: `ad01_int8` of MLPerf Tiny."""
    draw = Sketch("ad01_int8", dtype=DType.I8)
    data = draw.input(1, 640)
    for units in (*(128,) * 4, 8, *(128,) * 4, 640):
        data = draw.dense(data, units)
    return draw.graph(data)


def _classifier(draw: Sketch, data: int, classes: int) -> Graph:
    """Average over the image, flatten, dense, softmax."""
    _, height, width, channels = draw.tensors[data].shape or ()
    data = draw.op("average_pool", (data,), (1, 1, 1, channels), kernel=(height, width))
    data = draw.op("reshape", (data,), (1, channels))
    return draw.graph(draw.same("softmax", draw.dense(data, classes)))


def macs_of(graph: Graph) -> int:
    """Of all ops, as often as each runs; 0 where that is not known."""
    return sum(work_of(op, graph).macs * (op.trips or 0) for op in graph.ops)
