"""Every rewrite that is known: our own, as data, and those of plug-ins."""

from __future__ import annotations

from importlib import import_module

from ..core.errors import UsageError, did_you_mean
from ..core.manifest import RewriteEntry
from ..core.plugins import load_place, manifests
from .tflite.entries import FLATBUFFERS

TOKENS: tuple[RewriteEntry, ...] = (  # products, attention, norms, and how values lie in memory
    RewriteEntry(
        "merge-transposes",
        "two transposes, one after the other, as one, or as none where they undo each other",
        "onnx.moves:merge_transposes",
    ),
    RewriteEntry(
        "split-packed-qkv",
        "one projection of query, key and value, or of any parts that are then cut from it, as one for each part",
        "onnx.attention:split_packed_projections",
    ),
    RewriteEntry(
        "merge-layouts",
        "a chain of reshapes, squeezes and transposes as one of each at most, of as few axes as there can be",
        "onnx.reshapes:merge_layouts",
    ),
    RewriteEntry(
        "merge-reshapes",
        "two reshapes, one after the other, as one, where extents are not known either",
        "onnx.reshapes:merge_reshapes",
    ),
    RewriteEntry(
        "plain-reshapes",
        "a Reshape that is marked to take a 0 for an extent, and has none, without the mark that PyTorch writes",
        "onnx.reshapes:plain_reshape",
    ),
    RewriteEntry(
        "drop-no-ops",
        "an op whose result is its input, such as a cast to the type that is there or a pad by nothing, gone",
        "onnx.reshapes:drop_no_ops",
    ),
    RewriteEntry(
        "name-activations",
        "GELU, SiLU, HardSwish, Mish and others that are spelled out, as the op that they are, or in fewer ops",
        "onnx.activations:name_activation",
    ),
    RewriteEntry(
        "spell-activations",
        "Gelu, HardSwish and Mish, each one op, in ops that every target has",
        "onnx.activations:spell_activation",
    ),
    RewriteEntry(
        "gelu-to-tanh",
        "GELU by erf, in its tanh form: up to 5e-4 off",
        "onnx.activations:gelu_to_tanh",
        needs="approximate",
    ),
    RewriteEntry(
        "gelu-to-sigmoid",
        "GELU by erf, in its sigmoid form: up to 0.021 off",
        "onnx.activations:gelu_to_sigmoid",
        needs="approximate",
    ),
    RewriteEntry(
        "erf-to-tanh",
        "Erf by Tanh of a cubic: up to 4e-4 off",
        "onnx.activations:erf_to_tanh",
        needs="approximate",
    ),
    RewriteEntry(
        "name-layer-norms",
        "a layer norm that is spelled out in means, products and a root, as LayerNormalization",
        "onnx.norms:name_layer_norm",
    ),
    RewriteEntry(
        "raise-for-layer-norms",
        "a model of a version without LayerNormalization in the first that has it, with its layer norms named",
        "onnx.norms:raise_for_layer_norm",
    ),
    RewriteEntry(
        "name-rms-norms",
        "an RMS norm that is spelled out in a mean, products and a root, as RMSNormalization",
        "onnx.norms:name_rms_norm",
    ),
    RewriteEntry(
        "spell-norms",
        "LayerNormalization and RMSNormalization in means, products and a root",
        "onnx.norms:spell_layer_norm",
    ),
    RewriteEntry(
        "name-softmax",
        "Exp over its own sum, as Softmax",
        "onnx.norms:name_softmax",
    ),
    RewriteEntry(
        "gemm-to-matmul",
        "Gemm with constant weights as MatMul and Add",
        "onnx.matmuls:gemm_to_matmul",
    ),
    RewriteEntry(
        "matmul-to-gemm",
        "MatMul with constant weights, and its bias, as Gemm of two axes",
        "onnx.matmuls:matmul_to_gemm",
    ),
    RewriteEntry(
        "flatten-matmul",
        "MatMul of more than two axes with constant weights, as one of two axes between reshapes",
        "onnx.matmuls:flatten_matmul",
    ),
    RewriteEntry(
        "unflatten-matmul",
        "MatMul between two reshapes that leave the last axis alone, without them",
        "onnx.matmuls:unflatten_matmul",
    ),
    RewriteEntry(
        "matmul-to-conv",
        "MatMul with constant weights, and its bias, as a 1×1 convolution between transposes",
        "onnx.matmuls:matmul_to_conv",
    ),
    RewriteEntry(
        "conv-to-matmul",
        "a 1×1 convolution as MatMul and Add between transposes",
        "onnx.matmuls:conv_to_matmul",
    ),
    RewriteEntry(
        "turn-product",
        "a projection whose result is turned, as keys are, with its weights on the left of the turned input",
        "onnx.matmuls:turn_product",
    ),
    RewriteEntry(
        "fold-scale",
        "a constant factor after a product, as the scale of attention, in the weights of a projection",
        "onnx.matmuls:fold_scale",
    ),
    RewriteEntry(
        "fold-scale-ahead",
        "a constant factor on the input of a product, in its weights",
        "onnx.matmuls:fold_scale_ahead",
    ),
    RewriteEntry(
        "fold-norm-past-moves",
        "BatchNormalization of a product that was reshaped or transposed, in the product's weights and bias",
        "onnx.matmuls:fold_norm",
    ),
    RewriteEntry(
        "cuts-to-split",
        "Slices and Gathers that take a value apart along an axis, as one Split",
        "onnx.slices:cuts_to_split",
    ),
    RewriteEntry(
        "split-to-slices",
        "Split as a Slice for each part",
        "onnx.slices:split_to_slices",
    ),
    RewriteEntry(
        "gather-to-slice",
        "Gather of one index, or of neighbours, as Slice, and Squeeze where the axis goes",
        "onnx.slices:gather_to_slice",
    ),
    RewriteEntry(
        "slice-to-gather",
        "Slice of one element whose axis is then squeezed away, as Gather",
        "onnx.slices:slice_to_gather",
    ),
    RewriteEntry(
        "cancel-transposes",
        "transposes that undo each other, with ops between them that do not mind, gone",
        "onnx.moves:cancel_transposes",
    ),
    RewriteEntry(
        "cancel-reshapes",
        "reshapes that undo each other, with ops between them that do not mind, gone",
        "onnx.moves:cancel_reshapes",
    ),
    RewriteEntry(
        "join-transposes",
        "an op whose inputs are all transposed alike, with one transpose after it",
        "onnx.moves:join_transposes",
    ),
    RewriteEntry(
        "transpose-before-split",
        "parts that are all transposed alike, with one transpose before they are cut",
        "onnx.moves:transpose_before_split",
    ),
)
PICTURES: tuple[RewriteEntry, ...] = (  # convolutions, pools, and what stands between them
    RewriteEntry(
        "focus-to-strided-conv",
        "strided slices and a Concat, or SpaceToDepth, read by a Conv, as one Conv of a larger kernel and stride",
        "onnx.focus:focus_to_strided_conv",
    ),
    RewriteEntry(
        "focus-to-space-to-depth",
        "strided slices of rows and columns and their Concat as SpaceToDepth",
        "onnx.focus:focus_to_space_to_depth",
    ),
    RewriteEntry(
        "focus-to-reshapes",
        "strided slices of rows and columns and their Concat as a Transpose between two Reshapes",
        "onnx.focus:focus_to_reshapes",
    ),
    RewriteEntry(
        "strided-conv-to-space-to-depth",
        "a Conv of stride 2 on a picture of up to 8 channels as SpaceToDepth and a Conv of stride 1",
        "onnx.focus:strided_conv_to_space_to_depth",
    ),
    RewriteEntry(
        "global-pool-to-reduce",
        "GlobalAveragePool and GlobalMaxPool as ReduceMean and ReduceMax",
        "onnx.pooling:global_pool_to_reduce",
    ),
    RewriteEntry(
        "reduce-to-global-pool",
        "ReduceMean and ReduceMax of all spatial axes as GlobalAveragePool and GlobalMaxPool",
        "onnx.pooling:reduce_to_global_pool",
    ),
    RewriteEntry(
        "global-pool-to-window",
        "GlobalAveragePool and GlobalMaxPool as AveragePool and MaxPool of a window as large as the picture",
        "onnx.pooling:global_pool_to_window",
    ),
    RewriteEntry(
        "window-to-global-pool",
        "AveragePool and MaxPool of a window as large as the picture as GlobalAveragePool and GlobalMaxPool",
        "onnx.pooling:window_to_global_pool",
    ),
    RewriteEntry(
        "global-average-to-matmul",
        "GlobalAveragePool as a MatMul with a column of equal parts",
        "onnx.pooling:global_average_to_matmul",
    ),
    RewriteEntry(
        "reduce-max-by-axis",
        "GlobalMaxPool and ReduceMax of several axes as ReduceMax of one axis after the other",
        "onnx.pooling:global_max_by_axis",
    ),
    RewriteEntry(
        "share-max-pools",
        "MaxPools of stride 1 of one value, as in spatial pyramids, as a chain from the smallest on",
        "onnx.pooling:share_max_pools",
    ),
    RewriteEntry(
        "split-large-max-pool",
        "a MaxPool of more than 5 taps along an axis as a chain of smaller ones",
        "onnx.pooling:split_large_max_pool",
    ),
    RewriteEntry(
        "average-pool-to-conv",
        "AveragePool that counts its padding or has none as a depthwise Conv of equal weights",
        "onnx.pooling:average_pool_to_conv",
    ),
    RewriteEntry(
        "conv-1d-to-2d",
        "convolutions and pooling along one axis as such along two, the first of one element",
        "onnx.convolutions:conv_1d_to_2d",
    ),
    RewriteEntry(
        "sink-squeeze",
        "elementwise ops on squeezed values as the same before the Squeeze",
        "onnx.convolutions:sink_squeeze",
    ),
    RewriteEntry(
        "dilation-to-blocks",
        "a dilated Conv as SpaceToDepth, a Conv in groups without dilation, and DepthToSpace",
        "onnx.convolutions:dilation_to_blocks",
    ),
    RewriteEntry(
        "dilation-to-zeros",
        "a dilated Conv as one of a larger kernel with zeros between its taps",
        "onnx.convolutions:dilation_to_zeros",
    ),
    RewriteEntry(
        "split-large-kernel",
        "a Conv of more than 7 taps along an axis as a sum of smaller ones",
        "onnx.convolutions:split_large_kernel",
    ),
    RewriteEntry(
        "grouped-conv-to-convs",
        "a Conv in up to 32 groups as one for each",
        "onnx.convolutions:grouped_conv_to_convs",
    ),
    RewriteEntry(
        "grouped-conv-to-dense",
        "a Conv in up to 64 groups as one of all channels with zeros between them",
        "onnx.convolutions:grouped_conv_to_dense",
    ),
    RewriteEntry(
        "convs-to-grouped-conv",
        "Convs of the parts of a Split and their Concat as one in groups",
        "onnx.convolutions:convs_to_grouped_conv",
    ),
    RewriteEntry(
        "conv-transpose-to-depth-to-space",
        "a ConvTranspose that enlarges by its stride as a Conv and DepthToSpace",
        "onnx.convolutions:conv_transpose_to_blocks",
    ),
    RewriteEntry(
        "fold-into-previous",
        "BatchNormalization, or a product or sum by channel, taken into the Conv, Gemm or MatMul before it",
        "onnx.folding:fold_into_previous",
    ),
    RewriteEntry(
        "fold-into-next",
        "BatchNormalization, or a product or sum by channel, taken into the Conv, Gemm or MatMul after it",
        "onnx.folding:fold_into_next",
    ),
    RewriteEntry(
        "batch-norm-to-mul-add",
        "BatchNormalization as a product and a sum by channel",
        "onnx.folding:batch_norm_to_mul_add",
    ),
    RewriteEntry(
        "fold-pad",
        "a Pad as padding of the Conv, AveragePool or MaxPool that reads it",
        "onnx.padding:fold_pad",
    ),
    RewriteEntry(
        "pad-apart",
        "padding that differs from side to side, or that an average counts, as a Pad before the op",
        "onnx.padding:pad_apart",
    ),
    RewriteEntry(
        "reshapes-to-blocks",
        "Reshape, Transpose and Reshape that move pixels into channels or back as SpaceToDepth or DepthToSpace",
        "onnx.blocks:reshapes_to_blocks",
    ),
    RewriteEntry(
        "resize-to-depth-to-space",
        "a Resize that repeats pixels as a Concat of copies and DepthToSpace",
        "onnx.blocks:resize_to_depth_to_space",
    ),
    RewriteEntry(
        "resize-to-conv-transpose",
        "a Resize that repeats pixels as a depthwise ConvTranspose of ones",
        "onnx.blocks:resize_to_conv_transpose",
    ),
    RewriteEntry(
        "resize-to-expand",
        "a Resize that repeats pixels as Reshape, Expand and Reshape",
        "onnx.blocks:resize_to_expand",
    ),
    RewriteEntry(
        "expand-to-resize",
        "Reshape, Expand or Tile, and Reshape that repeat pixels as a Resize",
        "onnx.blocks:expand_to_resize",
    ),
    RewriteEntry(
        "shuffle-to-gather",
        "channels shuffled by Reshape, Transpose and Reshape as a Gather",
        "onnx.channels:shuffle_to_gather",
    ),
    RewriteEntry(
        "gather-to-conv",
        "a Gather of channels as a 1x1 Conv that picks them",
        "onnx.channels:gather_to_conv",
    ),
    RewriteEntry(
        "gather-into-conv",
        "a Gather of channels taken into the weights of the Conv after or before it",
        "onnx.channels:gather_into_conv",
    ),
    RewriteEntry(
        "flatten-concats",
        "Concats of Concats along one axis as one",
        "onnx.channels:flatten_concats",
    ),
    RewriteEntry(
        "undo-slices",
        "a Concat of all the parts of a value in their order as the value",
        "onnx.channels:undo_slices",
    ),
    RewriteEntry(
        "pairs-around-moves",
        "a pair of QuantizeLinear and DequantizeLinear put after an op that moves what one has dequantised",
        "onnx.quantization:pairs_around_moves",
    ),
    RewriteEntry(
        "pairs-off-moves",
        "a pair of QuantizeLinear and DequantizeLinear on the grid of what was moved before it, gone",
        "onnx.quantization:pairs_off_moves",
    ),
    RewriteEntry(
        "pairs-before-moves",
        "what is moved and then quantised, quantised before it is moved",
        "onnx.quantization:pairs_before_moves",
    ),
    RewriteEntry(
        "dynamic-to-float",
        "products in integers whose scale is found at run time as products in floats",
        "onnx.quantization:dynamic_to_float",
        needs="approximate",
    ),
    RewriteEntry(
        "quantize-static",
        "the model in 8 bits, calibrated with the data that is given",
        "onnx.quantization:quantize_static",
        needs="quantize",
    ),
    RewriteEntry(
        "shuffle-to-conv",
        "channels shuffled by Reshape, Transpose and Reshape as a 1x1 Conv that picks them",
        "onnx.channels:shuffle_to_conv",
    ),
    RewriteEntry(
        "pad-channels",
        "channels between two Convs filled up with zeros to a multiple of 32",
        "onnx.widths:pad_channels",
    ),
    RewriteEntry(
        "pairs-after-bounded",
        "a pair of QuantizeLinear and DequantizeLinear put after Sigmoid, Tanh or Softmax of what one has dequantised",
        "onnx.quantization:pairs_after_bounded",
        needs="quantize",
    ),
)
BATCHES: tuple[RewriteEntry, ...] = (
    RewriteEntry(
        "split-batch",
        "a model of a batch of up to 32 as one of so many samples: inputs cut, every op once for each, results joined",
        "onnx.batch.split:split_batch",
    ),
    RewriteEntry(
        "join-batch",
        "the same ops on each of some samples, whose results are joined, as one of each on a batch",
        "onnx.batch.join:join_batch",
    ),
)
LIBRARIES: tuple[RewriteEntry, ...] = (
    RewriteEntry(
        "fold-constants",
        "what constants alone decide, computed, by onnxscript's optimiser",
        "onnx.libraries:fold_constants",
    ),
    RewriteEntry(
        "share-equal-ops",
        "ops of one kind on the same values, and equal constants, as one; what nobody reads, gone",
        "onnx.libraries:share_equal_ops",
    ),
    RewriteEntry("onnxslim", "the model as onnxslim simplifies it", "onnx.libraries:slim"),
    RewriteEntry(
        "onnxruntime-basic",
        "the model as ONNX Runtime's basic optimisations leave it",
        "onnx.libraries:runtime_basic",
    ),
    RewriteEntry(
        "onnxruntime-extended",
        "the model as ONNX Runtime's extended optimisations leave it, if in operators of ONNX itself",
        "onnx.libraries:runtime_extended",
    ),
)
OWN = (*TOKENS, *PICTURES, *BATCHES, *LIBRARIES, *FLATBUFFERS)


def known(format_: str) -> tuple[RewriteEntry, ...]:
    """The rewrites of models of a format, in the order in which they are tried where nothing speaks for another."""
    entries = (*OWN, *(entry for manifest in manifests() for entry in manifest.rewrites))
    return tuple(entry for entry in entries if entry.format == format_)


def named(name: str, format_: str) -> RewriteEntry:
    """The rewrite of that name."""
    entries = {entry.name: entry for entry in known(format_)}
    if name not in entries:
        raise UsageError(f"rewrite {name!r}: is not known; expected another{did_you_mean(name, entries)}")
    return entries[name]


def rule_of(entry: RewriteEntry) -> object:
    """The rule of a rewrite, imported when it is first asked for."""
    if entry in OWN:
        module, _, attribute = entry.place.partition(":")
        return getattr(import_module(f".{module}", __package__), attribute)
    return next(load_place(manifest, entry.place) for manifest in manifests() if entry in manifest.rewrites)
