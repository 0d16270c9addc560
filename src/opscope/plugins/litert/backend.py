"""LiteRT (TensorFlow Lite) on the CPU of this machine: measured, op by op through the profiler of its C library."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.measuring import Measuring, cpu_model, filled_options
from ...backends.registry import BackendState, package_state
from ...core.errors import UsageError
from ...core.manifest import Value
from .manifest import BACKEND

if TYPE_CHECKING:
    from ...recording.recording import Recording

PACKAGE = "ai-edge-litert"
INSTALL = "pip install 'opscope[litert]'"


class LitertBackend:
    """Runs the model; where the library's profiler can be reached, with times of ops."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the library."""
        return package_state(BACKEND, PACKAGE, INSTALL, lambda: f"measures TFLite models on {cpu_model()}")

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        from .profile import profile_model

        if find_spec("ai_edge_litert") is None:
            raise UsageError(f"backend litert: the package {PACKAGE} is not installed; install it: {INSTALL}")
        filled = filled_options(self.name, BACKEND.options, options)
        return profile_model(model, Measuring.of(filled), kernels=str(filled["kernels"]), shapes=shapes or {})
