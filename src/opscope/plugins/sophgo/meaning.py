"""Kinds of commands and ops of the compiler → what they do. What is not here is unknown."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.meaning import Carries, Does
from ...graph.kinds import what_kind_does
from ...recording.run import RunRoute

DDR, LOCAL = "DDR", "local memory"

_KINDS = {
    Does.COMPUTE: ("CONV", "MM", "MM2", "AR", "PorD", "SFU", "FUSED_CMP", "FUSED_LINEAR", "VC", "CMP", "RAND"),
    # other types, or the same values in other lanes of local memory
    Does.LAYOUT: ("RQDQ", "LANE_COPY", "LANE_BC", "STATIC_BC", "DISTRIBUTE_BC", "TRANS", "TRANS_BC", "SG", "SGL"),
    Does.LAUNCH: ("BD_SYS_TRWR",),  # writes registers that the next command reads
    Does.SYNC: tuple(f"{engine}_{word}_MSG" for engine in ("BD", "GDMA", "SDMA", "HAU") for word in ("SEND", "WAIT")),
}
OF_KIND = {kind: does for does, kinds in _KINDS.items() for kind in kinds}
MATRIX = frozenset({"CONV", "MM", "MM2"})  # kinds that multiply and accumulate; PorD does too, where it is no pooling
POOL_OR_DEPTHWISE = "PorD"

_OPCODES: Mapping[str, str] = {  # kind of ours: ops of the compiler's `tpu` dialect
    "conv": "Conv2D Conv3D",
    "conv_transpose": "Deconv Deconv3D",
    "matmul": "MatMul A16MatMul Correlation",
    "attention": "Attention FAttention ScaleDotProductAttention",
    "lstm": "LSTM",
    "gru": "GRU",
    "max_pool": "MaxPoolWithMask PoolMask",
    "average_pool": "Pool1D Pool2D Pool3D",
    "resize": "Interp InterpLinear GridSampler",
    "resize_nearest": "InterpNearest Upsample",
    "roi_pool": "RoiAlign RoiExtractor ROIPooling",
    "softmax": "Softmax SoftmaxCast",
    "layer_norm": "LayerNorm PixelNorm",
    "rms_norm": "RMSNorm",
    "group_norm": "GroupNorm",
    "instance_norm": "InstanceNorm",
    "batch_norm": "Scale ScaleLut MeanStdScale",
    "lrn": "LRN",
    "reduce": "Reduce ShapeReduce",
    "argmax": "Arg",
    "topk": "TopK Sort",
    "cumsum": "CumSum",
    "non_max_suppression": "Nms DetectionOutput YoloDetection Yolo Proposal",
    "add": "Add AddConst",
    "sub": "Sub SubConst",
    "mul": "Mul MulConst MulShift",
    "div": "Div",
    "pow": "Pow Pow2 Pow3",
    "minimum": "Min MinConst",
    "maximum": "Max MaxConst",
    "compare": "Compare CompareConst",
    "select": "Where MaskedFill Trilu",
    "prelu": "PRelu",
    "rotary": "Rope",
    "relu": "Relu",
    "clip": "Clip",
    "leaky_relu": "LeakyRelu",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "unary": "Active Lut LutBF16",
    "binary": "BinaryConst BinaryShift Mod ShapeArith",
    "random": "RandnLike",
    "cast": "Cast DtypeCast ShapeCast",
    "quantize": "RequantFp RequantFpAxis RequantInt RequantIntAxis",
    "dequantize": "DequantInt DequantIntAxis",
    "transpose": "Permute ShuffleChannel SwapChannel SwapDimInner ShapeTranspose",
    "concat": "Concat Pack ShapePack",
    "split": "Split Unpack",
    "slice": "Slice SliceAxis StridedSlice ShapeSlice",
    "gather": "Gather GatherElements GatherND NonZero DeformGather",
    "scatter": "ScatterElements ScatterND IndexPut MaxUnpool ShapeAssign",
    "pad": "Pad",
    "tile": "Tile ShapeTile",
    "expand": "Expand",
    "space_to_depth": "Space2Depth",
    "depth_to_space": "Depth2Space",
    "reverse": "Reverse",
    "fill": "ConstantFill",
    "range": "Arange Range",
    "reshape": "Reshape Squeeze Unsqueeze ShapeSqueeze ShapeUnsqueeze",
    "identity": "Copy Identity",
    "shape": "Shape",
}
_KIND_OF = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes.split()}


def does_of_op(opcode: str) -> Does:
    """Of an op of the compiler's own dialect."""
    return Does.MOVE if opcode in ("Load", "Store") else what_kind_does(_KIND_OF.get(opcode, ""))


def does_of(kind: str, opcode: str) -> Does:
    """Of a command that moves no bytes to or from DDR: those that compute change the form of data for some ops."""
    found = OF_KIND.get(kind, Does.UNKNOWN)
    moves = does_of_op(opcode) in (Does.MOVE, Does.LAYOUT)
    return Does.LAYOUT if found is Does.COMPUTE and moves else found


ROUTES = (  # by direction, as in profile_file.DIRECTIONS; within local memory bytes take no route
    RunRoute("DDR to local memory", Carries.READ, DDR),
    RunRoute("local memory to DDR", Carries.WRITE, DDR),
    RunRoute("DDR to DDR", Carries.COPY, DDR),
)
