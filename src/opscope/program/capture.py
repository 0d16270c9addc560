"""Capture: the raw stats buffer that one inference left on one device, and its bytes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .wire import STATS_HEADER, STATS_MAGIC, STATS_RECORDS, STATS_SECTION, STATS_VERSION, StatsFlag, StatsSection

Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Capture:
    """One inference on one device: per core, the sections that the stats level asked for."""

    program_id: int
    device: int
    cores: int
    threads: int  # per core
    level: int
    flags: StatsFlag
    activation: int
    inference: int
    batch_size: int
    stats_hz: float
    sections: Mapping[tuple[StatsSection, int], Records]  # (section, core) → records


def encode_capture(capture: Capture) -> bytes:
    """The bytes of a stats buffer (docs/formats/stats-buffer.md): header, section table, sections aligned to 8."""
    keys = sorted(capture.sections)
    offset = STATS_HEADER.size + STATS_SECTION.size * len(keys)
    table, bodies = [], []
    for kind, core in keys:
        records = capture.sections[kind, core]
        if records.dtype != STATS_RECORDS[kind]:
            raise ValueError(f"section {kind.name} of core {core} has records of another layout")
        body = records.tobytes()
        body += bytes(-len(body) % 8)  # every section starts at a multiple of 8
        table.append(STATS_SECTION.pack(kind, core, records.dtype.itemsize, len(records), 0, offset))
        bodies.append(body)
        offset += len(body)
    rest = b"".join((*table, *bodies))
    header = STATS_HEADER.pack(
        STATS_MAGIC,
        STATS_VERSION,
        STATS_HEADER.size,
        len(keys),
        capture.program_id,
        capture.device,
        capture.cores,
        capture.threads,
        capture.level,
        capture.flags,
        capture.activation,
        capture.inference,
        capture.batch_size,
        round(capture.stats_hz * 1000),
        offset,
        zlib.crc32(rest),
        0,
    )
    return header + rest
