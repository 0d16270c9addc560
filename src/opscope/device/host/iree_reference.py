"""Reference outputs of an MLIR module: compiled by IREE for this machine's processor and run there."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ...core.errors import ModelError, UsageError, printable
from .inputs import Array
from .outputs import Output

INSTALL = "pip install 'opscope[mlir]'"
MOST_SECONDS = 600  # limit for a compiler that hangs
_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",  # the same results on every machine
)


class IreeReference:
    """The entry function of a module, compiled and ready to run."""

    def __init__(self, model: Path, outputs: Sequence[str], *, function: str = "") -> None:
        try:
            import iree.runtime
            from iree.compiler.tools.binaries import find_tool
        except ImportError as error:
            raise UsageError(f"{model}: IREE is not installed; expected `{INSTALL}` for outputs") from error
        self.model, self.outputs = model, outputs
        with TemporaryDirectory() as scratch:
            path = Path(scratch, "reference.vmfb")
            _compile(find_tool("iree-compile"), model, path)
            module = iree.runtime.load_vm_flatbuffer(path.read_bytes(), driver="local-sync")
        names = [name for name in module.vm_module.function_names if "$" not in name and not name.startswith("__")]
        self.function = module[function or ("main" if "main" in names else names[0])]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        try:
            found = self.function(*inputs.values())
        except (ValueError, RuntimeError) as error:
            raise ModelError(str(self.model), "", f"IREE cannot run it: {printable(str(error), 300)}") from error
        results = found if isinstance(found, tuple | list) else (found,)
        arrays = [np.asarray(result.to_host()) for result in results]
        return dict(zip(self.outputs, arrays, strict=True))


def _compile(tool: str, model: Path, path: Path) -> None:
    command = [tool, str(model), *_FLAGS, "-o", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise ModelError(str(model), "", f"IREE does not compile it within {MOST_SECONDS} seconds") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or ["no reason given"]
        raise ModelError(str(model), "", f"IREE cannot compile it: {printable(lines[0], 300)}")
