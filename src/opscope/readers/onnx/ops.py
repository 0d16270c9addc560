"""Tables that map ONNX's operators to op kinds of graph.py, one table per domain.

A row holds the kind, the rule for its attributes, and the canonical order of its inputs: data, weights, bias, then
scales and zero points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...graph.graph import ABSENT, Attribute
from . import attention, attributes
from .attributes import Describe
from .model import MICROSOFT, Node


@dataclass(frozen=True, slots=True)
class Rule:
    """How one operator is translated."""

    kind: str
    describe: Describe = attributes.no_attributes
    order: tuple[int, ...] | slice = ()  # positions of the canonical inputs (-1: not present); the other inputs follow
    note: str = ""
    narrower: Callable[[Mapping[str, Attribute]], str] | None = (
        None  # the kind, where attributes make it a special case
    )

    def kind_with(self, found: Mapping[str, Attribute]) -> str:
        """The kind of an operator with these attributes."""
        return self.kind if self.narrower is None else self.narrower(found)

    def canonical_inputs(self, inputs: tuple[int, ...]) -> tuple[int, ...]:
        """Return the inputs in canonical order, without absent ones at the end."""
        if self.order:
            # QLinearMatMul has order (0, 3, -1): data is input 0, weights input 3, no bias; scales and zero points
            # follow.
            positions = range(len(inputs))[self.order] if isinstance(self.order, slice) else self.order
            canonical = {
                position: inputs[position] if 0 <= position < len(inputs) else ABSENT for position in positions
            }
            rest = [tensor for position, tensor in enumerate(inputs) if position not in canonical]
            inputs = (*canonical.values(), *rest)
        end = len(inputs)
        while end and inputs[end - 1] == ABSENT:
            end -= 1
        return inputs[:end]


CUSTOM = Rule("custom")


def _resize(found: Mapping[str, Attribute]) -> str:
    return "resize_nearest" if found["mode"] == "nearest" else "resize"


def _einsum(found: Mapping[str, Attribute]) -> str:
    return "transpose" if "permutation" in found else "einsum"


_FFT = "the work of a Fourier transform is not a multiply-accumulate count; it is costed apart"
_MEL = "its matrix depends on constants alone and could be computed before run time"
_LINEAR = "linear attention is costed as softmax attention with as many multiply-accumulates"

# kind: operators that need no attributes
_KINDS_WITHOUT_ATTRIBUTES: Mapping[str, str] = {
    "add": "Add Sum",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "minimum": "Min",
    "maximum": "Max",
    "compare": "Equal Greater GreaterOrEqual Less LessOrEqual IsInf IsNaN",
    "logical": "And Or Xor Not BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor",
    "select": "Where Trilu",
    "prelu": "PRelu",
    "rotary": "RotaryEmbedding",
    "relu": "Relu ThresholdedRelu",
    "clip": "Clip",
    "leaky_relu": "LeakyRelu",
    "elu": "Elu Selu Celu",
    "gelu": "Gelu",
    "erf": "Erf",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "tanh": "Tanh ScaledTanh",
    "sigmoid": "Sigmoid",
    "silu": "Swish SwiGLU",
    "hard_swish": "HardSwish",
    "hard_sigmoid": "HardSigmoid",
    "softplus": "Softplus ParametricSoftplus",
    "mish": "Mish",
    "softsign": "Softsign",
    "negate": "Neg",
    "abs": "Abs",
    "round": "Round Ceil Floor",
    "sign": "Sign",
    "trigonometric": "Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh",
    "reciprocal": "Reciprocal",
    "unary": "Shrink Affine ImageScaler",
    "binary": "Mod Mean",
    "random": "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial",
    "cast": "Cast CastLike",
    "quantize": "DynamicQuantizeLinear",
    "slice": "Slice Crop",
    "gather": "GatherND NonZero",
    "scatter": "ScatterND MaxUnpool Col2Im",
    "pad": "Pad CenterCropPad",
    "tile": "Tile",
    "expand": "Expand",
    "reverse": "ReverseSequence",
    "fill": "ConstantOfShape EyeLike Constant BlackmanWindow HammingWindow HannWindow",
    "range": "Range",
    "reshape": "Reshape Flatten Squeeze Unsqueeze",
    "identity": "Identity Dropout BitCast",
    "shape": "Shape Size",
    "non_max_suppression": "NonMaxSuppression",
    "if": "If",
    "loop": "Loop",
    "scan": "Scan",
    "sequence": "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap "
    "SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement",
}

_REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
)

# Strings, images, determinants: no op kind describes them.
_NO_COST_MODEL = (
    "Det Unique AffineGrid ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"
)

_QLINEAR_CONV_ORDER = (0, 3, 8, 1, 2, 4, 5, 6, 7)


def _without_attributes(table: Mapping[str, str]) -> dict[str, Rule]:
    return {op_type: Rule(kind) for kind, names in table.items() for op_type in names.split()}


DEFAULT: Mapping[str, Rule] = (
    _without_attributes(_KINDS_WITHOUT_ATTRIBUTES)
    | dict.fromkeys(_REDUCE.split(), Rule("reduce", attributes.reduce))
    | dict.fromkeys(_NO_COST_MODEL.split(), CUSTOM)
    | {
        "Conv": Rule("conv", attributes.conv()),
        "ConvTranspose": Rule("conv_transpose", attributes.conv()),
        "DeformConv": Rule("conv", attributes.conv(), order=(0, 1, 3)),
        "CausalConvWithState": Rule("conv", attributes.causal_conv),
        "ConvInteger": Rule("conv", attributes.conv(), order=(0, 1, -1)),
        "QLinearConv": Rule("conv", attributes.conv(0, 3), order=_QLINEAR_CONV_ORDER),
        "MatMul": Rule("matmul", attributes.matmul()),
        "Gemm": Rule("matmul", attributes.matmul()),
        "MatMulInteger": Rule("matmul", attributes.matmul(), order=(0, 1, -1)),
        "QLinearMatMul": Rule("matmul", attributes.matmul(0, 3), order=(0, 3, -1)),
        "Einsum": Rule("einsum", attributes.einsum, narrower=_einsum),
        "Attention": Rule("attention", attention.standard),
        "LinearAttention": Rule("attention", attention.linear, note=_LINEAR),
        "LSTM": Rule("lstm", attributes.recurrent),
        "GRU": Rule("gru", attributes.recurrent),
        "RNN": Rule("rnn", attributes.recurrent),
        "DFT": Rule("fft", attributes.fourier, note=_FFT),
        "STFT": Rule("fft", attributes.short_time_fourier, note=_FFT),
        "MelWeightMatrix": Rule("fill", note=_MEL),
        "MaxPool": Rule("max_pool", attributes.pool),
        "AveragePool": Rule("average_pool", attributes.pool),
        "LpPool": Rule("average_pool", attributes.pool),
        "GlobalMaxPool": Rule("max_pool", attributes.global_pool),
        "GlobalAveragePool": Rule("average_pool", attributes.global_pool),
        "GlobalLpPool": Rule("average_pool", attributes.global_pool),
        "Resize": Rule("resize", attributes.mode("nearest"), narrower=_resize),
        "Upsample": Rule("resize", attributes.mode("nearest"), narrower=_resize),
        "GridSample": Rule("resize", attributes.mode("linear")),
        "MaxRoiPool": Rule("roi_pool", attributes.roi_pool),
        "RoiAlign": Rule("roi_pool", attributes.roi_pool),
        "Softmax": Rule("softmax", attributes.softmax),
        "LogSoftmax": Rule("log_softmax", attributes.softmax),
        "SoftmaxCrossEntropyLoss": Rule("log_softmax", attributes.axes(1)),
        "NegativeLogLikelihoodLoss": Rule("reduce", attributes.axes(1)),
        "LayerNormalization": Rule("layer_norm", attributes.layer_norm),
        "SimplifiedLayerNormalization": Rule("rms_norm", attributes.layer_norm),
        "RMSNormalization": Rule("rms_norm", attributes.layer_norm),
        "GroupNormalization": Rule("group_norm", attributes.group_axes),
        "InstanceNormalization": Rule("instance_norm", attributes.spatial_axes),
        "MeanVarianceNormalization": Rule("instance_norm", attributes.mean_variance_axes),
        "BatchNormalization": Rule("batch_norm", attributes.batch_axes),
        "LpNormalization": Rule("l2_norm", attributes.axes(-1)),
        "LRN": Rule("lrn", attributes.channel_axes),
        "ArgMax": Rule("argmax", attributes.axes()),
        "ArgMin": Rule("argmax", attributes.axes()),
        "Hardmax": Rule("argmax", attributes.softmax),
        "TopK": Rule("topk", attributes.axes(-1)),
        "CumSum": Rule("cumsum", attributes.cumulative),
        "CumProd": Rule("cumsum", attributes.cumulative),
        "QuantizeLinear": Rule("quantize", attributes.quantised_axis),
        "DequantizeLinear": Rule("dequantize", attributes.quantised_axis),
        "Transpose": Rule("transpose", attributes.permutation),
        "Concat": Rule("concat", attributes.axis()),
        "Split": Rule("split", attributes.axis()),
        "Gather": Rule("gather", attributes.axis()),
        "GatherElements": Rule("gather", attributes.axis()),
        "Compress": Rule("gather", attributes.axis()),
        "Scatter": Rule("scatter", attributes.axis()),
        "ScatterElements": Rule("scatter", attributes.axis()),
        "TensorScatter": Rule("dynamic_update", attributes.axis(-2)),
        "OneHot": Rule("one_hot", attributes.axis(-1)),
        "SpaceToDepth": Rule("space_to_depth", attributes.block),
        "DepthToSpace": Rule("depth_to_space", attributes.block),
    }
)

# Trees, vector machines and dictionaries have no kind; their parameters are attributes, not tensors.
_ML_NO_KIND = (
    "CastMap CategoryMapper DictVectorizer LabelEncoder LinearClassifier LinearRegressor SVMClassifier SVMRegressor "
    "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap"
)
ML: Mapping[str, Rule] = dict.fromkeys(_ML_NO_KIND.split(), CUSTOM) | {
    "ArrayFeatureExtractor": Rule("gather"),
    "Binarizer": Rule("compare"),
    "FeatureVectorizer": Rule("concat"),
    "Imputer": Rule("select"),
    "Normalizer": Rule("l2_norm", attributes.last_axis),
    "OneHotEncoder": Rule("one_hot"),
    "Scaler": Rule("mul"),
}

PREVIEW: Mapping[str, Rule] = {"FlexAttention": Rule("attention", attention.standard)}

CONTRIB: Mapping[str, Rule] = {
    "Attention": Rule("attention", attention.projected(4)),
    "QAttention": Rule("attention", attention.projected(8), order=(0, 1, 2)),
    "PackedAttention": Rule("attention", attention.ragged),
    "MultiHeadAttention": Rule("attention", attention.multi_head),
    "GroupQueryAttention": Rule("attention", attention.grouped),
    "SkipLayerNormalization": Rule("layer_norm", attributes.last_axis, order=(0, 2, 3)),
    "SkipSimplifiedLayerNormalization": Rule("rms_norm", attributes.last_axis, order=(0, 2, -1)),
    "SimplifiedLayerNormalization": Rule("rms_norm", attributes.layer_norm),
    "LayerNormalization": Rule("layer_norm", attributes.layer_norm),
    "EmbedLayerNormalization": Rule("layer_norm", attributes.last_axis),
    "GroupNorm": Rule("group_norm", attributes.group_axes),
    "BiasGelu": Rule("gelu"),
    "FastGelu": Rule("gelu"),
    "QuickGelu": Rule("silu"),
    "Gelu": Rule("gelu"),
    "BiasAdd": Rule("add"),
    "BiasSoftmax": Rule("softmax", attributes.axes(1)),
    "RotaryEmbedding": Rule("rotary"),
    "FusedMatMul": Rule("matmul", attributes.matmul()),
    "TransposeMatMul": Rule("matmul", attributes.matmul()),
    "FusedMatMulActivation": Rule("matmul", attributes.matmul()),
    "GemmFastGelu": Rule("matmul", attributes.gemm_fast_gelu),
    "FusedGemm": Rule("matmul", attributes.matmul()),
    "MatMulNBits": Rule("matmul", attributes.matmul_nbits, order=(0, 1, 5)),
    "MatMulInteger": Rule("matmul", attributes.matmul(), order=(0, 1, -1)),
    "MatMulInteger16": Rule("matmul", attributes.matmul()),
    "MatMulIntegerToFloat": Rule("matmul", attributes.matmul(), order=(0, 1, 6)),
    "DynamicQuantizeMatMul": Rule("matmul", attributes.matmul(), order=(0, 1, 4)),
    "QGemm": Rule("matmul", attributes.matmul(0, 3), order=(0, 3, 6)),
    "DynamicQuantizeLSTM": Rule("lstm", attributes.recurrent),
    "FusedConv": Rule("conv", attributes.conv()),
    "NhwcFusedConv": Rule("conv", attributes.conv(channels_last=True)),
    "NhwcConv": Rule("conv", attributes.conv(channels_last=True)),
    "QLinearConv": Rule("conv", attributes.conv(0, 3), order=_QLINEAR_CONV_ORDER),
    "QLinearAdd": Rule("add", order=(0, 3)),
    "QLinearMul": Rule("mul", order=(0, 3)),
    "QLinearSigmoid": Rule("sigmoid"),
    "QLinearLeakyRelu": Rule("leaky_relu"),
    "QLinearSoftmax": Rule("softmax", attributes.quantised_softmax),
    "QLinearConcat": Rule("concat", attributes.axis(0, 2), order=slice(2, None, 3)),
    "QLinearAveragePool": Rule("average_pool", attributes.pool),
    "QLinearGlobalAveragePool": Rule("average_pool", attributes.global_pool),
    "QuantizeLinear": Rule("quantize", attributes.quantised_axis),
    "DequantizeLinear": Rule("dequantize", attributes.quantised_axis),
    "GatherBlockQuantized": Rule("gather", attributes.axis()),
    "Trilu": Rule("select"),
}

DOMAINS: Mapping[str, Mapping[str, Rule]] = {
    "": DEFAULT,
    "ai.onnx.ml": ML,
    "ai.onnx.preview": PREVIEW,
    MICROSOFT: CONTRIB,
}


def kind_of(domain: str, op_type: str) -> str:
    """The kind of an operator, where a table has it; else empty."""
    rule = DOMAINS.get(domain, {}).get(op_type)
    return "" if rule is None else rule.kind


def rule_of(node: Node) -> Rule | None:
    """Return the operator's row; None if no table has it."""
    return DOMAINS.get(node.domain, {}).get(node.op_type)
