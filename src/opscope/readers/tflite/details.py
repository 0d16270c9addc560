"""What a TensorFlow Lite file says about itself: description, metadata, signatures."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.errors import printable
from .flatbuffer import UINT32, Table
from .model import StoredModel
from .schema import VERSION, MetadataField, ModelField, SignatureField, TensorMapField

LONGEST = 200  # characters of any one detail
MOST_NAMES = 32
LONGEST_VERSION = 32  # bytes: converters pad "1.14.0" with zeros to 16


def details(model: StoredModel) -> Mapping[str, str]:
    found = {
        "schema version": str(VERSION),
        "subgraphs": str(len(model.subgraph_tables)),
        "description": model.root.string(ModelField.DESCRIPTION),
        "signatures": ", ".join(signature_keys(model).values()),
    }
    metadata = model.root.tables(ModelField.METADATA)[:MOST_NAMES]
    found["metadata"] = ", ".join(table.string(MetadataField.NAME) for table in metadata)
    for table in metadata:
        if table.string(MetadataField.NAME) == "min_runtime_version":
            found["min runtime version"] = _text(model, table)
    return {key: printable(text, LONGEST) for key, text in found.items() if text}


def signature_keys(model: StoredModel) -> Mapping[int, str]:
    """The key of each subgraph that is an entry point by name."""
    tables = model.root.tables(ModelField.SIGNATURES)[:MOST_NAMES]
    return {t.number(SignatureField.SUBGRAPH, UINT32): t.string(SignatureField.KEY) for t in tables}


def signature_inputs(model: StoredModel) -> Mapping[str, int]:
    """The first signature's names for the inputs of subgraph 0, and the tensors they stand for."""
    for table in model.root.tables(ModelField.SIGNATURES)[:MOST_NAMES]:
        if table.number(SignatureField.SUBGRAPH, UINT32) == 0:
            inputs = table.tables(SignatureField.INPUTS)
            return {t.string(TensorMapField.NAME): t.number(TensorMapField.TENSOR, UINT32) for t in inputs}
    return {}


def _text(model: StoredModel, table: Table) -> str:
    place = model.buffer(table.number(MetadataField.BUFFER, UINT32))
    return model.bytes_at(place, LONGEST_VERSION).rstrip(b"\0").decode("utf-8", "replace")
