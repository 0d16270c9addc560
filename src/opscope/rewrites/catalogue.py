"""Every rewrite that is known: our own, as data, and those of plug-ins."""

from __future__ import annotations

from importlib import import_module

from ..core.errors import UsageError, did_you_mean
from ..core.manifest import RewriteEntry
from ..core.plugins import load_place, manifests

TOKENS: tuple[RewriteEntry, ...] = (  # products, attention, norms, and how values lie in memory
    RewriteEntry(
        "merge-transposes",
        "two transposes, one after the other, as one, or as none where they undo each other",
        "onnx.transposes:merge_transposes",
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
        "drop-no-ops",
        "an op whose result is its input, such as a cast to the type that is there or a pad by nothing, gone",
        "onnx.reshapes:drop_no_ops",
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
)
FLATBUFFERS = tuple(  # of TensorFlow Lite
    RewriteEntry(name, help_, f"tflite.{place}", "tflite")
    for name, help_, place in (
        (
            "merge-transposes",
            "two transposes, one after the other, as one, or as none where they undo each other",
            "layout:merge_transposes",
        ),
        (
            "merge-reshapes",
            "reshapes, squeezes and expansions, one after the other, as one, or as none",
            "layout:merge_reshapes",
        ),
        ("reshapes-as-one-kind", "SQUEEZE and EXPAND_DIMS as RESHAPE", "layout:reshapes_as_one_kind"),
        (
            "transpose-to-reshape",
            "a transpose that moves only axes of extent 1 as a reshape",
            "layout:transpose_to_reshape",
        ),
        (
            "drop-no-ops",
            "an operator whose result is its input, such as a QUANTIZE to the scale that is there, gone",
            "layout:drop_no_ops",
        ),
        (
            "fold-dequantized-constants",
            "weights that are stored as f16 and dequantised, stored as f32",
            "layout:fold_dequantized_constants",
        ),
        ("fold-pad", "PAD before a convolution or a maximum of padding VALID, as padding SAME", "windows:fold_pad"),
        (
            "fold-dilation",
            "a convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND as one with a dilation",
            "windows:fold_dilation",
        ),
        ("fuse-activation", "RELU, RELU6 and RELU_N1_TO_1 within the operator before them", "windows:fuse_activation"),
        (
            "focus-to-strided-conv",
            "strided slices joined, or SPACE_TO_DEPTH, read by a CONV_2D, as one of a larger kernel and stride",
            "windows:fold_focus",
        ),
        (
            "mean-to-average-pool",
            "MEAN of floats over rows and columns as AVERAGE_POOL_2D",
            "windows:mean_to_average_pool",
        ),
        (
            "average-pool-to-mean",
            "AVERAGE_POOL_2D of floats of a window as large as the picture as MEAN",
            "windows:average_pool_to_mean",
        ),
        (
            "split-packed-qkv",
            "one projection of query, key and value that a transpose takes apart, as one for each",
            "products:split_packed_projection",
        ),
        (
            "batch-product-to-dense",
            "BATCH_MATMUL with a constant matrix as FULLY_CONNECTED",
            "products:batch_product_to_dense",
        ),
        (
            "fold-scale",
            "a factor or an offset after a product of floats in its weights and bias",
            "products:fold_scale",
        ),
        ("dense-to-conv", "FULLY_CONNECTED of floats as CONV_2D of one pixel", "products:dense_to_conv"),
        ("conv-to-dense", "CONV_2D of floats and one pixel as FULLY_CONNECTED", "products:conv_to_dense"),
        ("slices-to-split", "slices that take a tensor apart in equal parts as SPLIT", "parts:slices_to_split"),
        ("split-to-slices", "SPLIT as a SLICE for each part", "parts:split_to_slices"),
        (
            "focus-to-space-to-depth",
            "strided slices of rows and columns, joined, as SPACE_TO_DEPTH",
            "parts:slices_to_space_to_depth",
        ),
        ("hard-swish", "x · relu6(x + 3) / 6 of floats as HARD_SWISH", "parts:hard_swish"),
    )
)
OWN = (*TOKENS, *PICTURES, *FLATBUFFERS)


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
