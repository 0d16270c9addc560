"""Descriptive parts of a TensorFlow Lite file: description, metadata, signatures."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.errors import printable
from .flatbuffer import INT32, UINT32, Table
from .model import StoredModel
from .schema import VERSION, MetadataField, ModelField, SignatureField, TensorMapField

MAX_CHARACTERS = 200  # characters of any one detail
MAX_ENTRIES = 32
OFFLINE_PLAN = "OfflineMemoryAllocation"  # as TensorFlow Lite Micro reads it
MAX_VERSION_BYTES = 32  # bytes: converters pad "1.14.0" with zeros to 16


def details(model: StoredModel) -> Mapping[str, str]:
    """Return the descriptive entries that are not empty, cut to a printable length."""
    found = {
        "schema version": str(VERSION),
        "subgraphs": str(len(model.subgraph_tables)),
        "description": model.root.string(ModelField.DESCRIPTION),
        "signatures": ", ".join(signature_keys(model).values()),
    }
    metadata = model.root.tables(ModelField.METADATA)[:MAX_ENTRIES]
    found["metadata"] = ", ".join(table.string(MetadataField.NAME) for table in metadata)
    for table in metadata:
        if table.string(MetadataField.NAME) == "min_runtime_version":
            found["min runtime version"] = _text(model, table)
    return {key: printable(text, MAX_CHARACTERS) for key, text in found.items() if text}


def signature_keys(model: StoredModel) -> Mapping[int, str]:
    """Return the signature key of each subgraph that is a named entry point."""
    tables = model.root.tables(ModelField.SIGNATURES)[:MAX_ENTRIES]
    return {t.number(SignatureField.SUBGRAPH, UINT32): t.string(SignatureField.KEY) for t in tables}


def signature_inputs(model: StoredModel) -> Mapping[str, int]:
    """Return the tensor of each input name in the first signature of subgraph 0."""
    for table in model.root.tables(ModelField.SIGNATURES)[:MAX_ENTRIES]:
        if table.number(SignatureField.SUBGRAPH, UINT32) == 0:
            inputs = table.tables(SignatureField.INPUTS)
            return {t.string(TensorMapField.NAME): t.number(TensorMapField.TENSOR, UINT32) for t in inputs}
    return {}


def placed_offsets(model: StoredModel) -> Mapping[int, int]:
    """Return the arena offset of each tensor of subgraph 0 that the compiler of the file has placed.

    The metadata are numbers of 32 bits: version, subgraph, number of tensors, then an offset for each, -1 for none.
    """
    for table in model.root.tables(ModelField.METADATA)[:MAX_ENTRIES]:
        if table.string(MetadataField.NAME) == OFFLINE_PLAN:
            place = model.buffer(table.number(MetadataField.BUFFER, UINT32))
            count = min(place.size // INT32.size - 3, len(model.subgraph(0).tensors))
            content = model.bytes_at(place, (3 + max(count, 0)) * INT32.size)
            offsets = [number for (number,) in INT32.iter_unpack(content[: len(content) // 4 * 4])][3:]
            return {tensor: offset for tensor, offset in enumerate(offsets) if offset >= 0}
    return {}


def _text(model: StoredModel, table: Table) -> str:
    """Decode a short metadata buffer."""
    place = model.buffer(table.number(MetadataField.BUFFER, UINT32))
    return model.bytes_at(place, MAX_VERSION_BYTES).rstrip(b"\0").decode("utf-8", "replace")
