"""PyTorch on this machine: measured, every op with its module and its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...backends.measuring import Measuring, cpu_model, filled_options
from ...backends.registry import BackendState, package_state
from ...core.errors import UsageError
from ...core.manifest import Value
from .manifest import BACKEND

if TYPE_CHECKING:
    from ...readers.torch import TorchModel
    from ...recording.recording import Recording

INSTALL = "pip install 'opscope[torch]'"


class TorchBackend:
    """Runs a module, and reads what torch's profiler saw of it."""

    def state(self) -> BackendState:
        """Looks without loading torch."""
        return package_state(BACKEND, "torch", INSTALL, lambda: f"measures PyTorch modules on {cpu_model()}, or a GPU")

    def profile_module(self, model: TorchModel, options: Mapping[str, Value]) -> Recording:
        if not self.state().works:
            raise UsageError(f"backend torch: the package torch is not installed; install it: {INSTALL}")
        from .profile import profile_module
        from .running import Choices

        filled = filled_options(BACKEND.name, BACKEND.options, options)
        device, mode, dtype = (str(filled[name] or "") for name in ("device", "mode", "dtype"))
        return profile_module(model, Choices.of(Measuring.of(filled), device, mode, dtype))
