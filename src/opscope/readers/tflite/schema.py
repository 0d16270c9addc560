"""The TensorFlow Lite schema as tables: field numbers, element types, operators and the kind each one is.

Field numbers are the order of declaration in the schema (version 3, `schema.fbs` of TensorFlow Lite and LiteRT).
A test holds every table here against the reference package.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.graph import DType

IDENTIFIER = b"TFL3"  # bytes 4..8 of every file
VERSION = 3


class ModelField:
    VERSION, OPERATOR_CODES, SUBGRAPHS, DESCRIPTION, BUFFERS = range(5)
    METADATA, SIGNATURES, EXTERNAL_GROUPS, EXTERNAL_BUFFERS = range(6, 10)


class OperatorCodeField:
    DEPRECATED_BUILTIN, CUSTOM, VERSION, BUILTIN = range(4)


class SubgraphField:
    TENSORS, INPUTS, OUTPUTS, OPERATORS, NAME = range(5)


class TensorField:
    SHAPE, TYPE, BUFFER, NAME, QUANTIZATION, IS_VARIABLE, SPARSITY, SIGNATURE, HAS_RANK = range(9)
    EXTERNAL_BUFFER = 10


class OperatorField:
    CODE, INPUTS, OUTPUTS, OPTIONS_TYPE, OPTIONS, CUSTOM_OPTIONS = range(6)
    OPTIONS_2_TYPE, OPTIONS_2 = 11, 12


class QuantizationField:
    SCALE, ZERO_POINT = 2, 3


class BufferField:
    DATA, OFFSET, SIZE = range(3)


class ExternalBufferField:
    ID, GROUP, OFFSET, LENGTH = range(4)


class MetadataField:
    NAME, BUFFER = range(2)


class SignatureField:
    INPUTS, OUTPUTS, KEY = range(3)
    SUBGRAPH = 4


class TensorMapField:
    NAME, TENSOR = range(2)


TENSOR_TYPES: tuple[DType, ...] = (
    DType.F32,
    DType.F16,
    DType.I32,
    DType.U8,
    DType.I64,
    DType.STRING,
    DType.BOOL,
    DType.I16,
    DType.C64,
    DType.I8,
    DType.F64,
    DType.C128,
    DType.U64,
    DType.UNKNOWN,  # RESOURCE: a handle to a variable or a table
    DType.UNKNOWN,  # VARIANT
    DType.U32,
    DType.U16,
    DType.I4,
    DType.BF16,
    DType.I2,
    DType.U4,
    DType.F8E4M3,
    DType.F8E5M2,
)

# ActivationFunctionType: the kind of op that is fused into the one before it.
ACTIVATIONS = ("", "relu", "clip", "clip", "tanh", "sign")

# Members of the unions BuiltinOptions and BuiltinOptions2 that are read. As in the runtime, options of another
# member than the operator's own are taken as absent.
OPTIONS = {
    "Conv2DOptions": 1,
    "DepthwiseConv2DOptions": 2,
    "Pool2DOptions": 5,
    "SVDFOptions": 6,
    "FullyConnectedOptions": 8,
    "ConcatenationOptions": 10,
    "AddOptions": 11,
    "L2NormOptions": 12,
    "LSTMOptions": 14,
    "CallOptions": 16,
    "ReshapeOptions": 17,
    "SpaceToDepthOptions": 19,
    "MulOptions": 21,
    "GatherOptions": 23,
    "ReducerOptions": 27,
    "SubOptions": 28,
    "DivOptions": 29,
    "SqueezeOptions": 30,
    "SequenceRNNOptions": 31,
    "StridedSliceOptions": 32,
    "TransposeConvOptions": 49,
    "PackOptions": 59,
    "OneHotOptions": 61,
    "UnpackOptions": 64,
    "BidirectionalSequenceLSTMOptions": 69,
    "BidirectionalSequenceRNNOptions": 70,
    "UnidirectionalSequenceLSTMOptions": 71,
    "ReverseSequenceOptions": 87,
    "IfOptions": 92,
    "WhileOptions": 93,
    "DepthToSpaceOptions": 94,
    "BatchMatMulOptions": 101,
    "CumsumOptions": 102,
    "CallOnceOptions": 103,
    "Conv3DOptions": 106,
    "VarHandleOptions": 111,
}
OPTIONS_2 = {
    "StablehloConcatenateOptions": 1,
    "StablehloSliceOptions": 3,
    "StablehloConvolutionOptions": 4,
    "StablehloReduceOptions": 6,
    "StablehloScatterOptions": 7,
    "StablehloDynamicSliceOptions": 9,
    "StablehloPadOptions": 10,
    "StablehloDotGeneralOptions": 12,
    "StablehloReduceWindowOptions": 13,
    "StablehloSortOptions": 14,
    "StablehloWhileOptions": 15,
    "StablehloTransposeOptions": 17,
    "StableHLOCompositeOptions": 21,
    "StablehloCaseOptions": 23,
}

# BuiltinOperator in the order of its codes, the kind of each, and its options where they are read.
_BUILTINS = """
ADD add AddOptions
AVERAGE_POOL_2D average_pool Pool2DOptions
CONCATENATION concat ConcatenationOptions
CONV_2D conv Conv2DOptions
DEPTHWISE_CONV_2D conv DepthwiseConv2DOptions
DEPTH_TO_SPACE depth_to_space DepthToSpaceOptions
DEQUANTIZE dequantize
EMBEDDING_LOOKUP gather
FLOOR round
FULLY_CONNECTED matmul FullyConnectedOptions
HASHTABLE_LOOKUP gather
L2_NORMALIZATION l2_norm L2NormOptions
L2_POOL_2D average_pool Pool2DOptions
LOCAL_RESPONSE_NORMALIZATION lrn
LOGISTIC sigmoid
LSH_PROJECTION custom
LSTM lstm LSTMOptions
MAX_POOL_2D max_pool Pool2DOptions
MUL mul MulOptions
RELU relu
RELU_N1_TO_1 clip
RELU6 clip
RESHAPE reshape ReshapeOptions
RESIZE_BILINEAR resize
RNN rnn
SOFTMAX softmax
SPACE_TO_DEPTH space_to_depth SpaceToDepthOptions
SVDF matmul SVDFOptions
TANH tanh
CONCAT_EMBEDDINGS custom
SKIP_GRAM custom
CALL call CallOptions
CUSTOM custom
EMBEDDING_LOOKUP_SPARSE gather
PAD pad
UNIDIRECTIONAL_SEQUENCE_RNN rnn SequenceRNNOptions
GATHER gather GatherOptions
BATCH_TO_SPACE_ND depth_to_space
SPACE_TO_BATCH_ND space_to_depth
TRANSPOSE transpose
MEAN reduce ReducerOptions
SUB sub SubOptions
DIV div DivOptions
SQUEEZE reshape SqueezeOptions
UNIDIRECTIONAL_SEQUENCE_LSTM lstm UnidirectionalSequenceLSTMOptions
STRIDED_SLICE slice StridedSliceOptions
BIDIRECTIONAL_SEQUENCE_RNN rnn BidirectionalSequenceRNNOptions
EXP exp
TOPK_V2 topk
SPLIT split
LOG_SOFTMAX log_softmax
DELEGATE custom
BIDIRECTIONAL_SEQUENCE_LSTM lstm BidirectionalSequenceLSTMOptions
CAST cast
PRELU prelu
MAXIMUM maximum
ARG_MAX argmax
MINIMUM minimum
LESS compare
NEG negate
PADV2 pad
GREATER compare
GREATER_EQUAL compare
LESS_EQUAL compare
SELECT select
SLICE slice
SIN trigonometric
TRANSPOSE_CONV conv_transpose TransposeConvOptions
SPARSE_TO_DENSE scatter
TILE tile
EXPAND_DIMS reshape
EQUAL compare
NOT_EQUAL compare
LOG log
SUM reduce ReducerOptions
SQRT sqrt
RSQRT rsqrt
SHAPE shape
POW pow
ARG_MIN argmax
FAKE_QUANT unary
REDUCE_PROD reduce ReducerOptions
REDUCE_MAX reduce ReducerOptions
PACK concat PackOptions
LOGICAL_OR logical
ONE_HOT one_hot OneHotOptions
LOGICAL_AND logical
LOGICAL_NOT logical
UNPACK split UnpackOptions
REDUCE_MIN reduce ReducerOptions
FLOOR_DIV div
REDUCE_ANY reduce ReducerOptions
SQUARE unary
ZEROS_LIKE fill
FILL fill
FLOOR_MOD binary
RANGE range
RESIZE_NEAREST_NEIGHBOR resize_nearest
LEAKY_RELU leaky_relu
SQUARED_DIFFERENCE binary
MIRROR_PAD pad
ABS abs
SPLIT_V split
UNIQUE reduce
CEIL round
REVERSE_V2 reverse
ADD_N add
GATHER_ND gather
COS trigonometric
WHERE gather
RANK shape
ELU elu
REVERSE_SEQUENCE reverse ReverseSequenceOptions
MATRIX_DIAG scatter
QUANTIZE quantize
MATRIX_SET_DIAG scatter
ROUND round
HARD_SWISH hard_swish
IF if IfOptions
WHILE loop WhileOptions
NON_MAX_SUPPRESSION_V4 non_max_suppression
NON_MAX_SUPPRESSION_V5 non_max_suppression
SCATTER_ND scatter
SELECT_V2 select
DENSIFY scatter
SEGMENT_SUM reduce
BATCH_MATMUL matmul BatchMatMulOptions
PLACEHOLDER_FOR_GREATER_OP_CODES custom
CUMSUM cumsum CumsumOptions
CALL_ONCE call CallOnceOptions
BROADCAST_TO expand
RFFT2D fft
CONV_3D conv Conv3DOptions
IMAG unary
REAL unary
COMPLEX_ABS abs
HASHTABLE variable
HASHTABLE_FIND gather
HASHTABLE_IMPORT variable
HASHTABLE_SIZE shape
REDUCE_ALL reduce ReducerOptions
CONV_3D_TRANSPOSE conv_transpose Conv3DOptions
VAR_HANDLE variable VarHandleOptions
READ_VARIABLE variable
ASSIGN_VARIABLE variable
BROADCAST_ARGS shape
RANDOM_STANDARD_NORMAL random
BUCKETIZE unary
RANDOM_UNIFORM random
MULTINOMIAL random
GELU gelu
DYNAMIC_UPDATE_SLICE dynamic_update
RELU_0_TO_1 clip
UNSORTED_SEGMENT_PROD reduce
UNSORTED_SEGMENT_MAX reduce
UNSORTED_SEGMENT_SUM reduce
ATAN2 trigonometric
UNSORTED_SEGMENT_MIN reduce
SIGN sign
BITCAST reshape
BITWISE_XOR binary
RIGHT_SHIFT binary
STABLEHLO_LOGISTIC sigmoid
STABLEHLO_ADD add
STABLEHLO_DIVIDE div
STABLEHLO_MULTIPLY mul
STABLEHLO_MAXIMUM maximum
STABLEHLO_RESHAPE reshape
STABLEHLO_CLAMP clip
STABLEHLO_CONCATENATE concat StablehloConcatenateOptions
STABLEHLO_BROADCAST_IN_DIM expand
STABLEHLO_CONVOLUTION conv StablehloConvolutionOptions
STABLEHLO_SLICE slice StablehloSliceOptions
STABLEHLO_CUSTOM_CALL custom
STABLEHLO_REDUCE reduce StablehloReduceOptions
STABLEHLO_ABS abs
STABLEHLO_AND logical
STABLEHLO_COSINE trigonometric
STABLEHLO_EXPONENTIAL exp
STABLEHLO_FLOOR round
STABLEHLO_LOG log
STABLEHLO_MINIMUM minimum
STABLEHLO_NEGATE negate
STABLEHLO_OR logical
STABLEHLO_POWER pow
STABLEHLO_REMAINDER binary
STABLEHLO_RSQRT rsqrt
STABLEHLO_SELECT select
STABLEHLO_SUBTRACT sub
STABLEHLO_TANH tanh
STABLEHLO_SCATTER scatter StablehloScatterOptions
STABLEHLO_COMPARE compare
STABLEHLO_CONVERT cast
STABLEHLO_DYNAMIC_SLICE slice StablehloDynamicSliceOptions
STABLEHLO_DYNAMIC_UPDATE_SLICE dynamic_update
STABLEHLO_PAD pad StablehloPadOptions
STABLEHLO_IOTA range
STABLEHLO_DOT_GENERAL matmul StablehloDotGeneralOptions
STABLEHLO_REDUCE_WINDOW max_pool StablehloReduceWindowOptions
STABLEHLO_SORT topk StablehloSortOptions
STABLEHLO_WHILE loop StablehloWhileOptions
STABLEHLO_GATHER gather
STABLEHLO_TRANSPOSE transpose StablehloTransposeOptions
DILATE pad
STABLEHLO_RNG_BIT_GENERATOR random
REDUCE_WINDOW max_pool
STABLEHLO_COMPOSITE call StableHLOCompositeOptions
STABLEHLO_SHIFT_LEFT binary
STABLEHLO_CBRT unary
STABLEHLO_CASE if StablehloCaseOptions
"""

CUSTOM = 32  # the code whose operators are named by the file


@dataclass(frozen=True, slots=True)
class Builtin:
    """One entry of BuiltinOperator: its name, its op kind, and the options table it may carry."""

    name: str
    kind: str
    options: str = ""


BUILTINS: tuple[Builtin, ...] = tuple(Builtin(*line.split()) for line in _BUILTINS.split("\n") if line)

# Custom operators that are whole graphs compiled for one NPU. Names as the runtimes' kernels register them.
COMPILED = {
    "ethos-u": "Arm Vela for the Ethos-U NPU",
    "edgetpu-custom-op": "Google's Edge TPU compiler for the Coral Edge TPU",
    "NeutronGraph": "NXP's neutron-converter for the eIQ Neutron NPU",
    "vsi-npu": "VeriSilicon's toolchain (network binary graph) for the Vivante NPU",
    "DISPATCH_OP": "LiteRT's ahead-of-time compiler for a phone's NPU",
}

# Custom operators whose work is known because the runtime ships them.
KNOWN_CUSTOM = {"TFLite_Detection_PostProcess": "non_max_suppression"}
