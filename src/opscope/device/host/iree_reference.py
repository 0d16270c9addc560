"""Reference outputs of an MLIR module: compiled by IREE for this machine's processor and run there."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ...core.errors import ModelError, UsageError, printable
from .inputs import Array
from .outputs import Output

if TYPE_CHECKING:
    from iree.runtime import HalBufferView

INSTALL = "pip install 'opscope[mlir]'"
MOST_SECONDS = 600  # limit for a compiler that hangs
_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",  # the same results on every machine
    "--iree-input-demote-f64-to-f32=false",
)
_SMALL_FLOATS = (
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e8m0fnu,
)


class IreeReference:
    """The entry function of a module, compiled and ready to run."""

    def __init__(self, model: Path, outputs: Sequence[str]) -> None:
        try:
            import iree.runtime
            from iree.compiler.tools.binaries import find_tool
        except ImportError as error:
            raise UsageError(f"{model}: IREE is not installed; expected `{INSTALL}` for outputs") from error
        self.model, self.outputs = model, outputs
        config = iree.runtime.Config("local-sync")
        self.device = config.device
        self.context = iree.runtime.SystemContext(config=config)
        with TemporaryDirectory() as scratch:
            path = Path(scratch, "reference.vmfb")
            _compile(find_tool("iree-compile"), model, path)
            module = iree.runtime.VmModule.copy_buffer(self.context.instance, path.read_bytes())
        self.context.add_vm_module(module)
        names = [name for name in module.function_names if "$" not in name and not name.startswith("__")]
        self.function = module.lookup_function("main" if "main" in names else names[0])

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Call the function with buffers: IREE's calls with arrays know fewer types than its buffers."""
        from iree.runtime import HalBufferView, VmVariantList

        given, found = VmVariantList(len(inputs)), VmVariantList(len(self.outputs))
        try:
            for array in inputs.values():
                given.push_ref(self._buffer(array))
            self.context.vm_context.invoke(self.function, given, found)
            arrays = [_array(found.get_as_object(place, HalBufferView)) for place in range(len(found))]
        except (ValueError, RuntimeError) as error:
            raise ModelError(str(self.model), "", f"IREE cannot run it: {printable(str(error), 300)}") from error
        return dict(zip(self.outputs, arrays, strict=True))

    def _buffer(self, array: Array) -> HalBufferView:
        from iree.runtime import BufferUsage, MemoryType
        from iree.runtime.array_interop import map_dtype_to_element_type

        return self.device.allocator.allocate_buffer_copy(
            memory_type=MemoryType.DEVICE_LOCAL,
            allowed_usage=BufferUsage.DEFAULT | BufferUsage.MAPPING,
            device=self.device,
            buffer=np.ascontiguousarray(array).view(_bits(array.dtype)),
            element_type=map_dtype_to_element_type(array.dtype),
        )


def _array(buffer: HalBufferView) -> Array:
    """A copy of what a buffer holds, in the type of its elements."""
    from iree.runtime import HalElementType
    from iree.runtime.array_interop import map_dtype_to_element_type

    small = {int(map_dtype_to_element_type(np.dtype(kind))): np.dtype(kind) for kind in _SMALL_FLOATS}
    dtype = small.get(buffer.element_type) or np.dtype(HalElementType.map_to_dtype(buffer.element_type))
    return np.array(buffer.map().asarray(buffer.shape, _bits(dtype))).view(dtype)


def _bits(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The type in which elements cross to IREE, whose bindings do not take arrays of small floats."""
    return np.dtype(f"u{dtype.itemsize}") if dtype.type in _SMALL_FLOATS else dtype


def _compile(tool: str, model: Path, path: Path) -> None:
    command = [tool, str(model), *_FLAGS, "-o", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise ModelError(str(model), "", f"IREE does not compile it within {MOST_SECONDS} seconds") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or ["no reason given"]
        raise ModelError(str(model), "", f"IREE cannot compile it: {printable(lines[0], 300)}")
