"""The table of shape rules: operator → rule, by domain. An operator without a row is left to the `onnx` package."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model import MICROSOFT, Element, Node
from . import arithmetic, layout, windows
from .call import Call, Outputs
from .contrib import CONTRIB, ML

Rule = Callable[[Call], Outputs]

_SAME_SHAPE = (
    "Relu LeakyRelu Sigmoid Tanh Clip Elu Selu Softmax LogSoftmax Softplus HardSigmoid HardSwish Hardmax Identity Erf "
    "Exp Log Sqrt Neg Abs Floor Ceil Reciprocal InstanceNormalization GroupNormalization RMSNormalization LRN "
    "MeanVarianceNormalization LpNormalization Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Round Sign "
    "Softsign Celu ThresholdedRelu Mish Gelu Swish Shrink PRelu CumSum CumProd Trilu ReverseSequence BitwiseNot "
    "ImageScaler Affine ParametricSoftplus ScaledTanh "
    "Scatter ScatterElements ScatterND TensorScatter RotaryEmbedding SimplifiedLayerNormalization"
)
_BROADCAST = "Add Sub Mul Div Sum Min Max Mean Pow Mod BitShift BitwiseAnd BitwiseOr BitwiseXor"
_COMPARE = "Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor"
_REDUCE = (
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"
)

DEFAULT: Mapping[str, Rule] = (
    dict.fromkeys(_SAME_SHAPE.split(), arithmetic.same)
    | dict.fromkeys(_BROADCAST.split(), arithmetic.broadcast_all)
    | dict.fromkeys(_COMPARE.split(), arithmetic.broadcast_as(Element.BOOL))
    | dict.fromkeys(("IsInf", "IsNaN", "Not"), arithmetic.as_type(Element.BOOL))
    | dict.fromkeys(_REDUCE.split(), arithmetic.reduce)
    | dict.fromkeys(("ArgMax", "ArgMin"), arithmetic.arg_reduce)
    | dict.fromkeys(("LSTM", "GRU", "RNN"), arithmetic.recurrent)
    | dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), windows.pool)
    | dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), windows.global_pool)
    | dict.fromkeys(("RandomNormal", "RandomUniform"), layout.random)
    | dict.fromkeys(("RandomNormalLike", "RandomUniformLike", "Bernoulli", "EyeLike"), layout.like_input)
    | dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), windows.window)
    | dict.fromkeys(("MaxRoiPool", "RoiAlign"), windows.roi)
    | {
        "AffineGrid": windows.affine_grid,
        "Attention": arithmetic.attention,
        "BatchNormalization": arithmetic.batch_norm,
        "Cast": arithmetic.cast,
        "CastLike": arithmetic.cast_like,
        "CenterCropPad": windows.center_crop_pad,
        "Col2Im": windows.col2im,
        "Compress": layout.compress,
        "Concat": layout.concat,
        "ConstantOfShape": layout.constant_of_shape,
        "Conv": windows.conv(),
        "Crop": windows.crop,
        "ConvInteger": windows.conv_integer,
        "ConvTranspose": windows.conv_transpose,
        "DeformConv": windows.conv(),
        "DepthToSpace": windows.depth_to_space,
        "DequantizeLinear": arithmetic.dequantize,
        "DFT": windows.fourier,
        "Dropout": arithmetic.dropout,
        "DynamicQuantizeLinear": arithmetic.dynamic_quantize,
        "Einsum": arithmetic.einsum,
        "Expand": layout.expand,
        "Flatten": layout.flatten,
        "Gather": layout.gather,
        "GatherElements": layout.gather_elements,
        "GatherND": layout.gather_nd,
        "Gemm": arithmetic.gemm(),
        "GridSample": windows.grid_sample,
        "LayerNormalization": arithmetic.layer_norm,
        "MatMul": arithmetic.matmul(),
        "MatMulInteger": arithmetic.matmul(element=Element.INT32),
        "MaxUnpool": windows.max_unpool,
        "MelWeightMatrix": windows.mel_matrix,
        "Multinomial": layout.multinomial,
        "NonMaxSuppression": layout.decided_at_run_time,
        "NonZero": layout.non_zero,
        "OneHot": layout.one_hot,
        "Pad": layout.pad,
        "QLinearConv": windows.conv(0, 3, element=7),
        "QLinearMatMul": arithmetic.matmul(0, 3, like_input=7),
        "QuantizeLinear": arithmetic.quantize,
        "Range": layout.value_range,
        "Reshape": layout.reshape,
        "Resize": windows.resize,
        "Shape": layout.shape_of,
        "Size": layout.size,
        "Slice": layout.cut,
        "SpaceToDepth": windows.space_to_depth,
        "Split": layout.split,
        "Squeeze": layout.squeeze,
        "STFT": windows.short_time_fourier,
        "Tile": layout.tile,
        "TopK": arithmetic.top_k,
        "Transpose": layout.transpose,
        "Unique": layout.unique,
        "Unsqueeze": layout.unsqueeze,
        "Upsample": windows.upsample,
        "Where": arithmetic.where,
    }
)

# Their elements follow from the shape of their input alone.
OF_SHAPES = frozenset({"Shape", "Size", "EyeLike"})
# Their output is the data of input 0, in the shape that the shape rule has found.
RESHAPED = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"})

_DOMAINS: Mapping[str, Mapping[str, Rule]] = {
    "": DEFAULT,
    "ai.onnx.ml": ML,
    "ai.onnx.preview": {"FlexAttention": arithmetic.attention},
    MICROSOFT: CONTRIB,
}


def shape_rule(node: Node) -> Rule | None:
    return _DOMAINS.get(node.domain, {}).get(node.op_type)
