"""What puts packages into a folder: uv where it is found, which can fetch a Python too, else venv and pip."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..core.errors import ProfilerError, UsageError, printable
from ..core.manifest import Environment, Unpacked
from .process import run, work_folder

_PROBE_S = 20.0
_PROBE = "import sys, {}; print('%d.%d' % sys.version_info[:2])"
_OUR_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

Command = list[str]


class Installer(Protocol):
    """Commands that make a virtual environment, install into it, and unpack packages."""

    @property
    def title(self) -> str: ...

    def venv(self, folder: Path, name: str) -> Command: ...

    def install(self, folder: Path, environment: Environment, wheels: Path | None) -> Command: ...

    def unpack(self, folder: Path, group: Unpacked, wheels: Path | None) -> Command: ...


@dataclass(frozen=True, slots=True)
class Uv:
    """Copies files out of its cache instead of linking them: a finishing step may change them."""

    program: str
    python: str  # a path, or a version that it looks for or fetches

    @property
    def title(self) -> str:
        return "uv"

    def venv(self, folder: Path, name: str) -> Command:
        options = ["--quiet", "--no-project", "--prompt", name, "--python", self.python]
        return [self.program, "venv", *options, str(folder)]

    def install(self, folder: Path, environment: Environment, wheels: Path | None) -> Command:
        options = [] if environment.with_dependencies else ["--no-deps"]
        return self._install(["--python", str(folder / "bin" / "python"), *options], environment.packages, wheels)

    def unpack(self, folder: Path, group: Unpacked, wheels: Path | None) -> Command:
        options = ["--python", sys.executable, "--target", str(folder), "--no-deps", "--only-binary", ":all:"]
        options += ["--python-version", group.python or _OUR_VERSION]
        if group.platforms:
            options += ["--python-platform", _uv_platform(group.platforms[0])]
        return self._install(options, group.packages, wheels)

    def _install(self, options: Command, packages: tuple[str, ...], wheels: Path | None) -> Command:
        offline = [] if wheels is None else ["--offline", "--no-index", "--find-links", str(wheels)]
        return [self.program, "pip", "install", "--quiet", "--link-mode", "copy", *offline, *options, *packages]


@dataclass(frozen=True, slots=True)
class Pip:
    """Of a Python that has venv and pip."""

    python: str

    @property
    def title(self) -> str:
        return "pip"

    def venv(self, folder: Path, name: str) -> Command:
        return [self.python, "-m", "venv", "--prompt", name, str(folder)]

    def install(self, folder: Path, environment: Environment, wheels: Path | None) -> Command:
        options = [] if environment.with_dependencies else ["--no-deps"]
        return _pip(str(folder / "bin" / "python"), options, environment.packages, wheels)

    def unpack(self, folder: Path, group: Unpacked, wheels: Path | None) -> Command:
        options = ["--target", str(folder), "--no-deps", "--only-binary", ":all:", "--implementation", "cp"]
        # the version chooses wheels, and pip would refuse them for not being its own
        options += ["--python-version", group.python or _OUR_VERSION, "--ignore-requires-python"]
        options += [word for tag in group.platforms for word in ("--platform", tag)]
        return _pip(self.python, options, group.packages, wheels)


def installer_for(environment: Environment, python: Path | None = None) -> Installer:
    """The one to use here; an error where no Python of the version that the packages need is found.

    Args:
        python: the interpreter that the user wants.
    """
    wanted, needs = (environment.python, "venv, ensurepip") if environment.packages else ("", "pip")
    uv = shutil.which("uv")
    if python is None and uv:
        return Uv(uv, wanted or sys.executable)
    for candidate in _candidates(wanted) if python is None else [str(python)]:
        told = _probe(candidate, needs)
        if told is not None and wanted in ("", told):
            return Uv(uv, candidate) if uv else Pip(candidate)
    version = f"Python {wanted}".strip()
    if python is not None:
        raise UsageError(
            f"--python {printable(str(python))}: is no {version} with {needs}; expected one that runs here"
        )
    raise UsageError(
        f"setup {environment.name}: no {version} with {needs} is found (PATH, pyenv); expected --python PATH, or uv on "
        "the PATH, which fetches one"
    )


def _candidates(version: str) -> Iterator[str]:
    """Interpreters that may be of a version: ours, on the PATH, of pyenv; a shim may be there and not run."""
    if version in ("", _OUR_VERSION):
        yield sys.executable
    yield from filter(None, [shutil.which(f"python{version or 3}")])
    versions = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    newest = sorted(versions.glob(f"{version or '3.*'}*/bin/python{version or 3}"), key=_numbers, reverse=True)
    yield from map(str, newest)


def _numbers(place: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", place.parts[-3])]


def _probe(python: str, modules: str) -> str | None:
    """The version of a Python that has these modules; None: it does not run, or lacks one."""
    with work_folder("python") as folder:
        try:
            ended = run([python, "-c", _PROBE.format(modules)], folder, longest_s=_PROBE_S)
        except ProfilerError:
            return None
    return ended.output.strip() if ended.code == 0 else None


def _pip(python: str, options: Command, packages: tuple[str, ...], wheels: Path | None) -> Command:
    offline = [] if wheels is None else ["--no-index", "--find-links", str(wheels)]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile"]
    return [python, "-m", "pip", "install", *quiet, *offline, *options, *packages]


def _uv_platform(tag: str) -> str:
    """manylinux_2_39_x86_64 → x86_64-manylinux_2_39"""
    match = re.fullmatch(r"(manylinux_\d+_\d+)_(\w+)", tag)
    return f"{match[2]}-{match[1]}" if match else tag
