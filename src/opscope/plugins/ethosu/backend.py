"""Arm Ethos-U through its own compiler, ethos-u-vela: cycles by resource, placement and memory of int8 models."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.registry import BackendState
from ...core.manifest import Value
from .manifest import BACKEND
from .options import INSTALL, MACS_PER_CYCLE, PACKAGE, VelaOptions

if TYPE_CHECKING:
    from ...recording.recording import Recording


class VelaBackend:
    """Compiles for an accelerator, and gives the compiler's own estimate."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the package."""
        try:
            found = version(PACKAGE)
        except PackageNotFoundError:
            return BackendState(self.name, self.title, False, "", f"{PACKAGE} is not installed", INSTALL)
        detail = f"estimates for {len(MACS_PER_CYCLE)} accelerators from TFLite files of int8; no device needed"
        return BackendState(self.name, self.title, True, found, detail)

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        from .profile import profile_model

        return profile_model(model, VelaOptions.of(options), shapes=shapes or {})
