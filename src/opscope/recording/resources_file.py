"""`resources.json` of a Run, both ways: what a resource report found out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import msgspec

from ..core.errors import UsageError
from ..core.json_files import PRODUCER, json_bytes
from .head_file import read_json
from .resources import Resources

SCHEMA = "opscope.resources/1"
RESOURCES_FILE = "resources.json"
_DECODER = msgspec.json.Decoder(Resources)  # made here, not at first use: see head_file


def encode_resources(resources: Resources) -> bytes:
    return json_bytes({"schema": SCHEMA, "producer": PRODUCER, **asdict(resources)})


def read_resources(folder: Path, ops: int) -> Resources | None:
    """What a run of so many ops takes of its target; None where nobody made a resource report of it."""
    path = folder / RESOURCES_FILE
    if not path.exists():
        return None
    found = read_json(path, _DECODER, SCHEMA)
    layers = [layer.op for layer in found.layers]
    advised = [advice.layer for advice in (*found.heavy_memory, *found.heavy_macs)]
    peak = [] if found.memory.peak_layer is None else [found.memory.peak_layer]
    for numbers, most in ((layers, ops), ((*advised, *peak), len(layers))):
        wrong = next((number for number in numbers if not 0 <= number < most), None)
        if wrong is not None:
            raise UsageError(f"{path}: layer {wrong}; expected 0 to {most - 1}")
    return found
