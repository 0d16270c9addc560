"""ViT with patches of 16, as timm's `vit_base_patch16_224` exports: one product for query, key and value.

The form that packs them in front is how torchvision's `vit_b_16` exports, by way of `torch.nn.MultiheadAttention`; the
one that is split in three is how Hugging Face's `ViTModel` does.
"""

from __future__ import annotations

from math import sqrt

from ..blueprint import Blueprint, OperandRole, Value, ValueKind, Weight
from ..image_layers import conv, dense
from ..network import Network, Option, Settings, image_input
from ..tensor_layers import (
    add,
    attend,
    binary,
    concat,
    expand,
    gelu,
    layer_norm,
    linear,
    matmul,
    packed_in_front,
    query_key_value,
    reshape,
    select,
    softmax,
    transpose,
)

_EPSILON = 1e-6
_MLP_RATIO = 4
_QKV = Option(
    "qkv",
    "timm",
    "query, key and value as one product, taken apart as timm or (packed) PyTorch does, or as three",
    choices=("timm", "packed", "split"),
)


def build(plan: Blueprint, settings: Settings) -> None:
    size, patch, hidden, heads = (settings.number(name) for name in ("size", "patch", "hidden", "heads"))
    settings.require(size % patch == 0, f"size {size} over patches of {patch}", "a multiple of patch")
    settings.require(hidden % heads == 0, f"hidden {hidden} over {heads} heads", "a multiple of heads")
    image = image_input(plan, settings)
    x = _tokens(plan, image, patch, hidden)
    for layer in range(settings.number("layers")):
        at = f"blocks/blocks.{layer}"
        normal = layer_norm(plan, f"{at}/norm1", x, epsilon=_EPSILON)
        x = add(plan, at, x, _attention(plan, f"{at}/attn", normal, heads, settings.word(_QKV.name)))
        normal = layer_norm(plan, f"{at}/norm2", x, epsilon=_EPSILON)
        x = add(plan, at, x, _mlp(plan, f"{at}/mlp", normal))
    first = select(plan, "", layer_norm(plan, "norm", x, epsilon=_EPSILON), 0, axis=1)
    plan.output("output", dense(plan, "head", first, settings.number("classes")))


def _tokens(plan: Blueprint, image: Value, patch: int, hidden: int) -> Value:
    """Return one token per patch after the class token, with positions added."""
    x = conv(plan, "patch_embed/proj", image, hidden, (patch, patch), stride=(patch, patch), padding=0)
    batch, _, rows, columns = x.shape
    x = reshape(plan, "patch_embed", x, (batch, hidden, rows * columns))
    x = transpose(plan, "patch_embed", x, (0, 2, 1))
    token = expand(plan, "", Weight("cls_token", (1, 1, hidden), OperandRole.TENSOR, 1.0), (batch, 1, hidden))
    x = concat(plan, "", [token, x], axis=1)
    return add(plan, "", x, Weight("pos_embed", (1, *x.shape[1:]), OperandRole.TENSOR, 1.0))


def _attention(plan: Blueprint, at: str, x: Value, heads: int, form: str) -> Value:
    batch, length, hidden = x.shape
    if form == "packed":
        query, key, value = packed_in_front(plan, at, x, heads)
    else:
        query, key, value = query_key_value(plan, at, x, heads, packed=form == "timm")
    scale = 1 / sqrt(hidden // heads)
    query = binary(plan, "Mul", at, query, plan.literal(at, scale, ValueKind.FLOAT), rms=scale)
    scores = matmul(plan, at, query, transpose(plan, at, key, (0, 1, 3, 2)), rms=1.0)
    mixed = attend(plan, at, softmax(plan, at, scores, keys=length), value)
    mixed = reshape(plan, at, transpose(plan, at, mixed, (0, 2, 1, 3)), (batch, length, hidden))
    return linear(plan, f"{at}/proj", mixed, hidden)


def _mlp(plan: Blueprint, at: str, x: Value) -> Value:
    wide = gelu(plan, f"{at}/act", linear(plan, f"{at}/fc1", x, _MLP_RATIO * x.shape[-1]))
    return linear(plan, f"{at}/fc2", wide, x.shape[-1])


def _network(name: str, description: str, hidden: int, heads: int) -> Network:
    options = (
        Option("size", 224, "height and width of the image", largest=8192),
        Option("patch", 16, "height and width of a patch", largest=8192),
        Option("layers", 12, "encoder layers", largest=1000),
        Option("hidden", hidden, "features of a token"),
        Option("heads", heads, "attention heads"),
        Option("classes", 1000, "classes told apart"),
        _QKV,
    )
    return Network(name, f"{description} at 224×224", build, options, ("onnx", "tflite"))


NETWORKS = (
    _network("vit-tiny", "ViT tiny, DeiT tiny, patch 16, 5.72 M parameters, 1.25 G MACs", 192, 3),
    _network("vit-small", "ViT small, DeiT small, patch 16, 22.1 M parameters, 4.6 G MACs", 384, 6),
    _network("vit-b16", "ViT-B/16, DeiT base, 86.6 M parameters, 17.6 G MACs", 768, 12),
)
