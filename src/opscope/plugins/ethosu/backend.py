"""Arm Ethos-U through its own compiler, ethos-u-vela: cycles by resource, placement and memory of int8 models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.registry import BackendState, package_state
from ...core.manifest import Value
from .manifest import BACKEND
from .options import INSTALL, MACS_PER_CYCLE, PACKAGE, VelaOptions

if TYPE_CHECKING:
    from ...recording.recording import Recording

_DETAIL = f"estimates for {len(MACS_PER_CYCLE)} accelerators from TFLite files of int8; no device needed"


class VelaBackend:
    """Compiles for an accelerator, and gives the compiler's own estimate."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the package."""
        return package_state(BACKEND, PACKAGE, INSTALL, lambda: _DETAIL)

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        from .profile import profile_model

        return profile_model(model, VelaOptions.of(options), shapes=shapes or {})
