"""Environments of made-up programs, and interpreters of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.core.manifest import BackendEntry, Environment, Manifest

STUB = Environment(
    "stub", "A stub's compiler", ("stub-compile", "stub-run"), ("stub-tools==1.2",), licence="MIT", megabytes=1
)


def offer(monkeypatch: pytest.MonkeyPatch, *environments: Environment, package: str = "stub_plugin") -> Manifest:
    """Let a plug-in with these environments, and a backend for each, be the only one."""
    backends = tuple(
        BackendEntry(each.name, each.title, ".backend:Backend", environment=each.name) for each in environments
    )
    manifest = Manifest("stub", "A stub", package, environments=environments, backends=backends)
    for user in ("backends.environments", "backends.registry"):
        monkeypatch.setattr(f"opscope.{user}.manifests", lambda: (manifest,))
    return manifest


def program(path: Path, text: str = "echo stub 1.2.3") -> Path:
    """A program of one line of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def pythons() -> Iterator[Path]:
    """Interpreters of this machine that pyenv has, oldest first; of those that opscope itself does not need."""
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for place in sorted(folder.glob("3.*/bin/python3"), key=lambda p: [int(n) for n in p.parts[-3].split(".")[:2]]):
        told = subprocess.run(
            [place, "-c", "import sys; print(sys.version_info >= (3, 8))"], capture_output=True, text=True, check=False
        )
        if told.stdout.strip() == "True":
            yield place
