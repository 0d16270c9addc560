"""`run.json`, the head of a Run, both ways: what was run, on what, and how its numbers were obtained."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import msgspec

from ..core.errors import UsageError
from ..core.files import read_whole
from ..core.json_files import PRODUCER, json_bytes
from .run import RunInfo
from .schema import HEAD_FILE, RUN_SCHEMA

T = TypeVar("T")

# made here, not at first use: where two threads at once have a class looked into, msgspec crashes
INFO = msgspec.json.Decoder(RunInfo)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, of this version or of another."""
    try:
        head = msgspec.json.decode((folder / HEAD_FILE).read_bytes())
    except (OSError, ValueError):
        return False
    family = RUN_SCHEMA.partition("/")[0]
    return isinstance(head, dict) and str(head.get("schema", "")).startswith(f"{family}/")


def encode_head(info: RunInfo) -> bytes:
    return json_bytes({"schema": RUN_SCHEMA, "producer": PRODUCER, **asdict(info)})


def read_info(folder: Path) -> RunInfo:
    """The head of the run in a folder."""
    return read_json(folder / HEAD_FILE, INFO, RUN_SCHEMA)


def read_json(path: Path, decoder: msgspec.json.Decoder[T], schema: str) -> T:
    """A file of a run that says which schema it has."""
    data = read_whole(path, "the folder of a run")
    try:
        fields = msgspec.json.decode(data)
    except ValueError as error:
        raise UsageError(f"{path}: is no JSON ({error}); expected schema {schema}") from error
    if not isinstance(fields, dict) or fields.get("schema") != schema:
        raise UsageError(f"{path}: has another schema; expected {schema}")
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; expected schema {schema}") from error
