"""ONNX Runtime on the CPU of this machine: measured, every node of the model accounted for through fusion."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.measuring import Measuring, cpu_model, filled_options
from ...backends.registry import BackendState
from ...core.errors import UsageError
from ...core.manifest import Value
from .manifest import BACKEND

if TYPE_CHECKING:
    from ...recording.recording import Recording

INSTALL = "pip install onnxruntime"


class OrtBackend:
    """Runs the model, and maps what ran back to its nodes."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the library."""
        try:
            found = version("onnxruntime") if find_spec("onnxruntime") else ""
        except PackageNotFoundError:
            found = "of another package" if find_spec("onnxruntime") else ""
        if not found:
            return BackendState(self.name, self.title, False, "", "onnxruntime is not installed", INSTALL)
        return BackendState(self.name, self.title, True, found, f"measures ONNX models on {cpu_model()}")

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        from .profile import profile_model

        if find_spec("onnxruntime") is None:
            raise UsageError(f"backend ort: the package onnxruntime is not installed; install it: {INSTALL}")
        filled = filled_options(self.name, BACKEND.options, options)
        level = str(filled["graph-optimization"])
        return profile_model(model, Measuring.of(filled), level=level, shapes=shapes or {})
