"""Qualcomm HTP through onnxruntime-qnn: the vendor's compiler for 69 parts, its performance model for seven of them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from ...backends.registry import BackendState
from ...core.manifest import Value
from ...recording.recording import Recording
from .compilation import INSTALL, PACKAGE, execute_model
from .manifest import BACKEND
from .options import HtpOptions
from .profile import profile_model
from .socs import SOCS

_OLDEST_GLIBC = (2, 35)


class HtpBackend:
    """Compiles for a part, and gives the vendor's estimate where its performance model knows the part."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the library."""
        problem = _platform_problem()
        if problem:
            return BackendState(self.name, self.title, False, "", problem)
        try:
            found = version("onnxruntime-qnn") if find_spec(PACKAGE) else ""
        except PackageNotFoundError:
            found = ""
        if not found:
            return BackendState(self.name, self.title, False, "", "onnxruntime-qnn is not installed", INSTALL)
        models = [soc.label for soc in SOCS if soc.has_model]
        detail = (
            f"compiler facts and times for {len(SOCS)} parts, by the vendor's performance model for "
            f"{', '.join(models)}, scaled from these for the others; no device needed"
        )
        return BackendState(self.name, self.title, True, found, detail)

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        return profile_model(model, HtpOptions.of(options), shapes=shapes or {})

    def execute(
        self,
        model: Path,
        options: Mapping[str, Value],
        output: Path,
        *,
        inputs: Path | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        """Run once in emulation; `output` gets the arrays. Functional only: its timing means nothing."""
        execute_model(model, HtpOptions.of(options), shapes=shapes or {}, inputs=inputs, output=output)


def _platform_problem() -> str:
    """What rules the vendor's package out here; empty: nothing."""
    machine = platform.machine().lower()
    if sys.platform == "linux" and machine in ("x86_64", "amd64"):
        name, number = platform.libc_ver()
        parts = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
        if name != "glibc" or parts < _OLDEST_GLIBC:
            return f"{name or 'an unknown C library'} {number}: the package needs glibc 2.35 or newer"
        return ""
    if sys.platform == "win32":
        return ""
    return f"{sys.platform} on {machine}: the package exists for x86-64 Linux and for Windows"
