"""TensorFlow Lite files with open extents → a copy whose extents are fixed: the compiler takes no others."""

from __future__ import annotations

from ....readers.tflite.flatbuffer import INT32S, Flatbuffer
from ....readers.tflite.model import StoredModel
from ....readers.tflite.schema import SubgraphField, TensorField


def with_fixed_extents(content: bytes, source: str) -> tuple[bytes, int]:
    """The file with `shape` written over every `shape_signature` that leaves an extent open; how many those are."""
    fixed, count = bytearray(content), 0
    model = StoredModel(Flatbuffer(content, source))
    for subgraph in model.subgraph_tables:
        for tensor in subgraph.tables(SubgraphField.TENSORS):
            shape, signature = (tensor.int32s(field) for field in (TensorField.SHAPE, TensorField.SIGNATURE))
            if min(signature, default=0) < 0 and len(shape) == len(signature) < len(INT32S):
                position, _ = tensor.span(TensorField.SIGNATURE)
                INT32S[len(shape)].pack_into(fixed, position, *shape)
                count += 1
    return bytes(fixed), count
