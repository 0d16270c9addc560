"""The rewrites of TensorFlow Lite models, as data."""

from __future__ import annotations

from ...core.manifest import RewriteEntry

FLATBUFFERS = tuple(
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
            "split-batch",
            "a batch of up to 32 as so many samples: inputs cut, every op once for each, results joined",
            "batch:split_batch",
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
        (
            "gather-to-slice",
            "GATHER of one index, or of neighbours, as SLICE, and RESHAPE where the axis goes",
            "layout:gather_to_slice",
        ),
        (
            "narrow-transpose",
            "a transpose of more than four axes as one of fewer, where axes stay beside each other",
            "layout:narrow_transpose",
        ),
        ("flatten-mean", "a mean over the last of many axes as one over the last of two", "layout:flatten_mean"),
        ("unit-stride", "the stride of a window that fits once as 1", "windows:unit_stride"),
        (
            "grouped-conv-to-convs",
            "a convolution in up to 32 groups as one for each",
            "windows:grouped_conv_to_convs",
        ),
    )
)
