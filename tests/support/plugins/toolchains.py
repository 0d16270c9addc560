"""Environments of made-up programs, and interpreters of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from opscope.backends import environments
from opscope.backends.environments import Toolchain
from opscope.backends.making import Making
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
    for user in ("environments", "registry", "environment_maker"):
        monkeypatch.setattr(f"opscope.backends.{user}.manifests", lambda: (manifest,))
    return manifest


def finishing(monkeypatch: pytest.MonkeyPatch, finish: Callable[[Making], None]) -> Environment:
    """The stub without packages, whose finishing step is all that makes it."""
    module = ModuleType("stub_plugin.steps")
    module.finish = finish  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stub_plugin", ModuleType("stub_plugin"))
    monkeypatch.setitem(sys.modules, "stub_plugin.steps", module)
    environment = STUB._replace(packages=(), finish=".steps:finish")
    offer(monkeypatch, environment)
    return environment


def wheel(folder: Path, name: str, version: str, *, tag: str = "py3-none-any", programs: Sequence[str] = ()) -> Path:
    """A package of one module, whose programs print its version and where they are."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    code = f"import sys\n\n\ndef main():\n    print('{name} {version}', *sys.argv)\n"
    files = {
        f"{module}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/entry_points.txt": "[console_scripts]\n" + "".join(f"{each} = {module}:main\n" for each in programs),
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{module}-{version}-{tag}.whl"
    with ZipFile(place, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return place


def program(path: Path, text: str = "echo stub 1.2.3") -> Path:
    """A program of one line of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def needed(name: str) -> Toolchain:
    """The programs of an environment; the test is skipped where they are not here."""
    toolchain = environments.find(name)
    if toolchain is None:
        pytest.skip(f"{environments.named(name).title} is not here; `make toolchains` brings it")
    return toolchain


def pythons() -> Iterator[Path]:
    """Interpreters of this machine that pyenv has, oldest first; of those that opscope itself does not need."""
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for place in sorted(folder.glob("3.*/bin/python3"), key=lambda p: [int(n) for n in p.parts[-3].split(".")[:2]]):
        told = subprocess.run(
            [place, "-c", "import sys; print(sys.version_info >= (3, 8))"], capture_output=True, text=True, check=False
        )
        if told.stdout.strip() == "True":
            yield place
