"""`bounds.json` of a Run, both ways: peaks and sizes of what it ran on, and work that its graph asks for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import msgspec

from ..core.json_files import PRODUCER, json_bytes
from ..program.bounds import Bounds
from .head_file import read_json

SCHEMA = "opscope.bounds/1"
BOUNDS_FILE = "bounds.json"
_DECODER = msgspec.json.Decoder(Bounds)  # made here, not at first use: see head_file


def encode_bounds(bounds: Bounds) -> bytes:
    return json_bytes({"schema": SCHEMA, "producer": PRODUCER, **asdict(bounds)})


def read_bounds(folder: Path) -> Bounds | None:
    """What the numbers of a run are held to; None where its source does not tell, and in runs of earlier versions."""
    path = folder / BOUNDS_FILE
    return read_json(path, _DECODER, SCHEMA) if path.exists() else None
