"""Every rewrite that is known: our own, as data, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from ..core.errors import UsageError, did_you_mean
from ..core.manifest import RewriteEntry
from ..core.plugins import load_place, manifests

# A row is `name | module:rule | word of --allow that it needs, if any`; the line below it says what is put in place of
# what. Rewrites are tried in this order where nothing speaks for another.
_ONNX = """
# products, attention, norms, and how values lie in memory
merge-transposes | moves:merge_transposes
  two transposes, one after the other, as one, or as none where they undo each other
split-packed-qkv | attention:split_packed_projections
  one projection of query, key and value, or of any parts that are then cut from it, as one for each part
merge-layouts | reshapes:merge_layouts
  a chain of reshapes, squeezes and transposes as one of each at most, of as few axes as there can be
merge-reshapes | reshapes:merge_reshapes
  two reshapes, one after the other, as one, where extents are not known either
plain-reshapes | reshapes:plain_reshape
  a Reshape that is marked to take a 0 for an extent, and has none, without the mark that PyTorch writes
drop-no-ops | reshapes:drop_no_ops
  an op whose result is its input, such as a cast to the type that is there or a pad by nothing, gone
name-activations | activations:name_activation
  GELU, SiLU, HardSwish, Mish and others that are spelled out, as the op that they are, or in fewer ops
spell-activations | activations:spell_activation
  Gelu, HardSwish and Mish, each one op, in ops that every target has
gelu-to-tanh | activations:gelu_to_tanh | approximate
  GELU by erf, in its tanh form: up to 5e-4 off
gelu-to-sigmoid | activations:gelu_to_sigmoid | approximate
  GELU by erf, in its sigmoid form: up to 0.021 off
erf-to-tanh | activations:erf_to_tanh | approximate
  Erf by Tanh of a cubic: up to 4e-4 off
name-layer-norms | norms:name_layer_norm
  a layer norm that is spelled out in means, products and a root, as LayerNormalization
raise-for-layer-norms | norms:raise_for_layer_norm
  a model of a version without LayerNormalization in the first that has it, with its layer norms named
name-rms-norms | norms:name_rms_norm
  an RMS norm that is spelled out in a mean, products and a root, as RMSNormalization
spell-norms | norms:spell_layer_norm
  LayerNormalization and RMSNormalization in means, products and a root
name-softmax | norms:name_softmax
  Exp over its own sum, as Softmax
gemm-to-matmul | matmuls:gemm_to_matmul
  Gemm with constant weights as MatMul and Add
matmul-to-gemm | matmuls:matmul_to_gemm
  MatMul with constant weights, and its bias, as Gemm of two axes
flatten-matmul | matmuls:flatten_matmul
  MatMul of more than two axes with constant weights, as one of two axes between reshapes
unflatten-matmul | matmuls:unflatten_matmul
  MatMul between two reshapes that leave the last axis alone, without them
matmul-to-conv | matmuls:matmul_to_conv
  MatMul with constant weights, and its bias, as a 1×1 convolution between transposes
conv-to-matmul | matmuls:conv_to_matmul
  a 1×1 convolution as MatMul and Add between transposes
turn-product | matmuls:turn_product
  a projection whose result is turned, as keys are, with its weights on the left of the turned input
fold-scale | matmuls:fold_scale
  a constant factor after a product, as the scale of attention, in the weights of a projection
fold-scale-ahead | matmuls:fold_scale_ahead
  a constant factor on the input of a product, in its weights
fold-norm-past-moves | matmuls:fold_norm
  BatchNormalization of a product that was reshaped or transposed, in the product's weights and bias
cuts-to-split | slices:cuts_to_split
  Slices and Gathers that take a value apart along an axis, as one Split
split-to-slices | slices:split_to_slices
  Split as a Slice for each part
gather-to-slice | slices:gather_to_slice
  Gather of one index, or of neighbours, as Slice, and Squeeze where the axis goes
slice-to-gather | slices:slice_to_gather
  Slice of one element whose axis is then squeezed away, as Gather
cancel-transposes | moves:cancel_transposes
  transposes that undo each other, with ops between them that do not mind, gone
cancel-reshapes | moves:cancel_reshapes
  reshapes that undo each other, with ops between them that do not mind, gone
join-transposes | moves:join_transposes
  an op whose inputs are all transposed alike, with one transpose after it
transpose-before-split | moves:transpose_before_split
  parts that are all transposed alike, with one transpose before they are cut
# convolutions, pools, and what stands between them
focus-to-strided-conv | focus:focus_to_strided_conv
  strided slices and a Concat, or SpaceToDepth, read by a Conv, as one Conv of a larger kernel and stride
focus-to-space-to-depth | focus:focus_to_space_to_depth
  strided slices of rows and columns and their Concat as SpaceToDepth
focus-to-reshapes | focus:focus_to_reshapes
  strided slices of rows and columns and their Concat as a Transpose between two Reshapes
strided-conv-to-space-to-depth | focus:strided_conv_to_space_to_depth
  a Conv of stride 2 on a picture of up to 8 channels as SpaceToDepth and a Conv of stride 1
global-pool-to-reduce | pooling:global_pool_to_reduce
  GlobalAveragePool and GlobalMaxPool as ReduceMean and ReduceMax
reduce-to-global-pool | pooling:reduce_to_global_pool
  ReduceMean and ReduceMax of all spatial axes as GlobalAveragePool and GlobalMaxPool
global-pool-to-window | pooling:global_pool_to_window
  GlobalAveragePool and GlobalMaxPool as AveragePool and MaxPool of a window as large as the picture
window-to-global-pool | pooling:window_to_global_pool
  AveragePool and MaxPool of a window as large as the picture as GlobalAveragePool and GlobalMaxPool
global-average-to-matmul | pooling:global_average_to_matmul
  GlobalAveragePool as a MatMul with a column of equal parts
reduce-max-by-axis | pooling:global_max_by_axis
  GlobalMaxPool and ReduceMax of several axes as ReduceMax of one axis after the other
share-max-pools | pooling:share_max_pools
  MaxPools of stride 1 of one value, as in spatial pyramids, as a chain from the smallest on
split-large-max-pool | pooling:split_large_max_pool
  a MaxPool of more than 5 taps along an axis as a chain of smaller ones
average-pool-to-conv | pooling:average_pool_to_conv
  AveragePool that counts its padding or has none as a depthwise Conv of equal weights
conv-1d-to-2d | convolutions:conv_1d_to_2d
  convolutions and pooling along one axis as such along two, the first of one element
sink-squeeze | convolutions:sink_squeeze
  elementwise ops on squeezed values as the same before the Squeeze
dilation-to-blocks | convolutions:dilation_to_blocks
  a dilated Conv as SpaceToDepth, a Conv in groups without dilation, and DepthToSpace
dilation-to-zeros | convolutions:dilation_to_zeros
  a dilated Conv as one of a larger kernel with zeros between its taps
split-large-kernel | convolutions:split_large_kernel
  a Conv of more than 7 taps along an axis as a sum of smaller ones
grouped-conv-to-convs | convolutions:grouped_conv_to_convs
  a Conv in up to 32 groups as one for each
grouped-conv-to-dense | convolutions:grouped_conv_to_dense
  a Conv in up to 64 groups as one of all channels with zeros between them
convs-to-grouped-conv | convolutions:convs_to_grouped_conv
  Convs of the parts of a Split and their Concat as one in groups
conv-transpose-to-depth-to-space | convolutions:conv_transpose_to_blocks
  a ConvTranspose that enlarges by its stride as a Conv and DepthToSpace
fold-into-previous | folding:fold_into_previous
  BatchNormalization, or a product or sum by channel, taken into the Conv, Gemm or MatMul before it
fold-into-next | folding:fold_into_next
  BatchNormalization, or a product or sum by channel, taken into the Conv, Gemm or MatMul after it
batch-norm-to-mul-add | folding:batch_norm_to_mul_add
  BatchNormalization as a product and a sum by channel
fold-pad | padding:fold_pad
  a Pad as padding of the Conv, AveragePool or MaxPool that reads it
pad-apart | padding:pad_apart
  padding that differs from side to side, or that an average counts, as a Pad before the op
reshapes-to-blocks | blocks:reshapes_to_blocks
  Reshape, Transpose and Reshape that move pixels into channels or back as SpaceToDepth or DepthToSpace
resize-to-depth-to-space | blocks:resize_to_depth_to_space
  a Resize that repeats pixels as a Concat of copies and DepthToSpace
resize-to-conv-transpose | blocks:resize_to_conv_transpose
  a Resize that repeats pixels as a depthwise ConvTranspose of ones
resize-to-expand | blocks:resize_to_expand
  a Resize that repeats pixels as Reshape, Expand and Reshape
expand-to-resize | blocks:expand_to_resize
  Reshape, Expand or Tile, and Reshape that repeat pixels as a Resize
shuffle-to-gather | channels:shuffle_to_gather
  channels shuffled by Reshape, Transpose and Reshape as a Gather
gather-to-conv | channels:gather_to_conv
  a Gather of channels as a 1x1 Conv that picks them
gather-into-conv | channels:gather_into_conv
  a Gather of channels taken into the weights of the Conv after or before it
flatten-concats | channels:flatten_concats
  Concats of Concats along one axis as one
undo-slices | channels:undo_slices
  a Concat of all the parts of a value in their order as the value
pairs-around-moves | quantization:pairs_around_moves
  a pair of QuantizeLinear and DequantizeLinear put after an op that moves what one has dequantised
pairs-off-moves | quantization:pairs_off_moves
  a pair of QuantizeLinear and DequantizeLinear on the grid of what was moved before it, gone
pairs-before-moves | quantization:pairs_before_moves
  what is moved and then quantised, quantised before it is moved
dynamic-to-float | quantization:dynamic_to_float | approximate
  products in integers whose scale is found at run time as products in floats
quantize-static | quantization:quantize_static | quantize
  the model in 8 bits, calibrated with the data that is given
shuffle-to-conv | channels:shuffle_to_conv
  channels shuffled by Reshape, Transpose and Reshape as a 1x1 Conv that picks them
pad-channels | widths:pad_channels
  channels between two Convs filled up with zeros to a multiple of 32
pairs-after-bounded | quantization:pairs_after_bounded | quantize
  a pair of QuantizeLinear and DequantizeLinear put after Sigmoid, Tanh or Softmax of what one has dequantised
# batches
split-batch | batch.split:split_batch
  a model of a batch of up to 32 as one of so many samples: inputs cut, every op once for each, results joined
join-batch | batch.join:join_batch
  the same ops on each of some samples, whose results are joined, as one of each on a batch
# libraries, on the model as a whole
fold-constants | libraries:fold_constants
  what constants alone decide, computed, by onnxscript's optimiser
share-equal-ops | libraries:share_equal_ops
  ops of one kind on the same values, and equal constants, as one; what nobody reads, gone
onnxslim | libraries:slim
  the model as onnxslim simplifies it
onnxruntime-basic | libraries:runtime_basic
  the model as ONNX Runtime's basic optimisations leave it
onnxruntime-extended | libraries:runtime_extended
  the model as ONNX Runtime's extended optimisations leave it, if in operators of ONNX itself
"""
_TFLITE = """
merge-transposes | layout:merge_transposes
  two transposes, one after the other, as one, or as none where they undo each other
merge-reshapes | layout:merge_reshapes
  reshapes, squeezes and expansions, one after the other, as one, or as none
reshapes-as-one-kind | layout:reshapes_as_one_kind
  SQUEEZE and EXPAND_DIMS as RESHAPE
transpose-to-reshape | layout:transpose_to_reshape
  a transpose that moves only axes of extent 1 as a reshape
drop-no-ops | layout:drop_no_ops
  an operator whose result is its input, such as a QUANTIZE to the scale that is there, gone
fold-dequantized-constants | layout:fold_dequantized_constants
  weights that are stored as f16 and dequantised, stored as f32
fold-pad | windows:fold_pad
  PAD before a convolution or a maximum of padding VALID, as padding SAME
fold-dilation | windows:fold_dilation
  a convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND as one with a dilation
fuse-activation | windows:fuse_activation
  RELU, RELU6 and RELU_N1_TO_1 within the operator before them
focus-to-strided-conv | windows:fold_focus
  strided slices joined, or SPACE_TO_DEPTH, read by a CONV_2D, as one of a larger kernel and stride
mean-to-average-pool | windows:mean_to_average_pool
  MEAN of floats over rows and columns as AVERAGE_POOL_2D
average-pool-to-mean | windows:average_pool_to_mean
  AVERAGE_POOL_2D of floats of a window as large as the picture as MEAN
split-packed-qkv | products:split_packed_projection
  one projection of query, key and value that a transpose takes apart, as one for each
split-batch | batch:split_batch
  a batch of up to 32 as so many samples: inputs cut, every op once for each, results joined
batch-product-to-dense | products:batch_product_to_dense
  BATCH_MATMUL with a constant matrix as FULLY_CONNECTED
fold-scale | products:fold_scale
  a factor or an offset after a product of floats in its weights and bias
dense-to-conv | products:dense_to_conv
  FULLY_CONNECTED of floats as CONV_2D of one pixel
conv-to-dense | products:conv_to_dense
  CONV_2D of floats and one pixel as FULLY_CONNECTED
slices-to-split | parts:slices_to_split
  slices that take a tensor apart in equal parts as SPLIT
split-to-slices | parts:split_to_slices
  SPLIT as a SLICE for each part
focus-to-space-to-depth | parts:slices_to_space_to_depth
  strided slices of rows and columns, joined, as SPACE_TO_DEPTH
hard-swish | parts:hard_swish
  x · relu6(x + 3) / 6 of floats as HARD_SWISH
gather-to-slice | layout:gather_to_slice
  GATHER of one index, or of neighbours, as SLICE, and RESHAPE where the axis goes
narrow-transpose | layout:narrow_transpose
  a transpose of more than four axes as one of fewer, where axes stay beside each other
flatten-mean | layout:flatten_mean
  a mean over the last of many axes as one over the last of two
unit-stride | windows:unit_stride
  the stride of a window that fits once as 1
grouped-conv-to-convs | windows:grouped_conv_to_convs
  a convolution in up to 32 groups as one for each
"""


def _entries(form: str, table: str) -> Iterator[RewriteEntry]:
    lines = [line for line in table.strip().splitlines() if not line.startswith("#")]
    for head, words in zip(lines[::2], lines[1::2], strict=True):
        name, place, *needs = (cell.strip() for cell in head.split("|"))
        yield RewriteEntry(name, words.strip(), f"{form}.{place}", form, *needs)


OWN = (*_entries("onnx", _ONNX), *_entries("tflite", _TFLITE))


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
