"""The package from its sdist, in clean environments of every Python here, with and without a compiler."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
VERSIONS = ("3.11", "3.12", "3.13")
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}

pytestmark = pytest.mark.slow


def interpreter(version: str) -> str | None:
    """A Python of this version: on the PATH, or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    own = [sys.executable] if sys.version_info[:2] == tuple(map(int, version.split("."))) else []
    found = [*own, shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for path in filter(None, found):
        asked = subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False)
        if asked.returncode == 0:
            return path
    return None


def run(*words: str | Path, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        list(map(str, words)), cwd=folder, env=kept | more, capture_output=True, text=True, timeout=900, check=False
    )


def fetched(*words: str | Path, **more: str) -> None:
    """Something that may need an index: where there is none, the test has nothing to say."""
    done = run(*words, **more)
    if done.returncode and re.search(r"No matching distribution|Could not find a version|NewConnection", done.stderr):
        pytest.skip("no package index can be reached from here (pip: no matching distribution, or no connection)")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that are in the repository alone."""
    place = tmp_path_factory.mktemp("sdist")
    listed = run("git", "ls-files", "-z", "--", "src", "pyproject.toml", "README.md", "LICENSE", folder=ROOT)
    for name in filter(None, listed.stdout.split("\0")):
        target = place / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    fetched(sys.executable, "-m", "venv", place / "builder")
    python = place / "builder" / "bin" / "python"
    fetched(python, "-m", "pip", "install", "--quiet", "setuptools>=77")
    code = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    done = run(python, "-c", code, place, folder=place / "tree")
    assert done.returncode == 0, done.stderr
    return place / done.stdout.splitlines()[-1]


def test_the_sdist_holds_every_file_of_the_package(sdist: Path) -> None:
    listed = run("git", "ls-files", "--", "src", folder=ROOT).stdout.split()
    with tarfile.open(sdist) as file:
        held = {name.partition("/")[2] for name in file.getnames()}
    assert [name for name in listed if name not in held and not name.endswith(".gitignore")] == []
    assert {"src/opscope/simulation/core.c", "src/opscope/agents/SKILL.md", "pyproject.toml", "LICENSE"} <= held


def profiled(python: Path, folder: Path) -> Any:
    """A simulated profile by the installed program, and where its event loop comes from."""
    folder.mkdir()
    program = python.with_name("opscope")
    for words in (
        ["zoo", "kws-cnn", "-o", "kws.onnx"],
        ["profile", "kws.onnx", "--target", "aic100-std", "--cores", "2", "-o", "kws.run"],
        ["check", "kws.run"],
        ["targets", "show", "cortex-m4"],
        ["mcp", "--skill"],
        ["man", "-o", "opscope.1"],
    ):
        done = run(program, *words, folder=folder)
        assert done.returncode == 0, (words, done.stderr)
    assert (folder / "kws.run" / "report.html").stat().st_size > 100_000
    return json.loads((folder / "kws.run" / "summary.json").read_text())["latency"]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_installs_and_profiles_with_and_without_a_compiler(version: str, sdist: Path, tmp_path: Path) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version}")
    fetched(found, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    fetched(*pip, sdist)
    has_core = "from importlib.util import find_spec; print(find_spec('opscope.simulation._core') is not None)"
    assert run(python, "-c", has_core, folder=tmp_path).stdout.strip() == str(shutil.which("cc") is not None)
    compiled = profiled(python, tmp_path / "compiled")
    fetched(*pip, "--no-deps", "--force-reinstall", "--no-cache-dir", sdist, **NO_COMPILER)
    assert run(python, "-c", has_core, folder=tmp_path).stdout.strip() == "False"
    assert profiled(python, tmp_path / "plain") == compiled
    assert run(python, "-m", "pip", "check").returncode == 0


def test_the_action_installs_the_package_by_its_own_step(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    script = next(step["run"] for step in action["runs"]["steps"] if step.get("id") == "install")
    fetched(sys.executable, "-m", "venv", tmp_path / "venv")
    path = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    fetched("bash", "-eo", "pipefail", "-c", script, PATH=path, ACTION_PATH=str(ROOT), EXTRAS="", PIP_NO_DEPS="1")
    assert run(tmp_path / "venv" / "bin" / "opscope", "--version").stdout.startswith("opscope ")
