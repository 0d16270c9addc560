"""What our errors and notes call options, as the vendor's command lines spell them: our words → theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...commands.vendor_flags import spelt_as
from ...core.errors import OpenDimensionsError
from .configs import PARTITION_FLAG

_COMPILED = {"`opscope compile`": "`opscope qaic-compile`"}
_COMPILER = {
    "--cores": "-aic-num-cores",
    "--devices N": f"{PARTITION_FLAG}=FILE",
    "--batch": "-batchsize",
    "--shape": "-shape",
    "--precision f16": "-convert-to-fp16",
    "--precision mxfp6": "-mxfp6-matmul",
    "--precision": "-convert-to-fp16, -mxfp6-matmul",
    "--kv-cache mxint8": "-mxint8-kv-cache",
    "--kv-cache": "-mxint8-kv-cache",
    "--channel-parts": "-mos",
    "--overlap-parts": "-ols",
    "channel-parts": "-mos",
    "overlap-parts": "-ols",
}
RUNNER = {
    **_COMPILED,
    "activations": "-a",
    "set-size": "-S",
    "threads": "-T",
    "num-iter": "--num-iter",
    "time": "--time",
    "num-samples": "--aic-profiling-num-samples",
    "start-iter": "--aic-profiling-start-iter",
    "start-delay": "--aic-profiling-start-delay",
    "seed": "--seed",
}
SESSION = {
    **{ours: theirs.lstrip("-").replace("-", "_") for ours, theirs in _COMPILER.items()},
    "--precision f16": "convert_to_fp16",
    "--precision": "precision",
    "--kv-cache": "kv_cache",
    "--batch": "batch_size",
    "--shape": "shapes",
}


def compiler_words(partition: Path | None = None) -> dict[str, str]:
    """Our words → those of `qaic-compile`; cores and devices are those of a partition file, where there is one."""
    file = {} if partition is None else {"--cores": f"{partition}: numCores", "--devices": f"{partition}: devices"}
    return _COMPILED | _COMPILER | file


@contextmanager
def spelt_for_compiler(words: Mapping[str, str]) -> Iterator[None]:
    """Errors name the compiler's flags, and ask for dimensions with names by `-onnx-define-symbol`."""
    with spelt_as(words):
        try:
            yield
        except OpenDimensionsError as error:
            symbols = " ".join(f"-onnx-define-symbol={name},{size}" for name, size in error.symbols.items())
            error.args = (str(error).replace(error.flags, symbols or error.flags),)
            raise
