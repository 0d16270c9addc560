"""Outputs as `qaic-runner` writes them: `NAME-activation-0-inf-0.bin`, the values of one output and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.files import write_bytes
from ...device.host.outputs import Output
from ...program.file_names import output_names


def write_raw(folder: Path, outputs: Mapping[str, Output], *, inference: int) -> list[Path]:
    """Write every output that is a tensor of numbers; others have no raw form, and are saved as arrays alone."""
    written = []
    for file, value in zip(output_names(list(outputs)), outputs.values(), strict=True):
        if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
            name = file.removeprefix("output-").removesuffix(".npy")
            written.append(folder / f"{name}-activation-0-inf-{inference}.bin")
            write_bytes(written[-1], np.ascontiguousarray(value).tobytes())
    return written
