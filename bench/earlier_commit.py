"""An earlier commit of opscope beside this one, and the processor time that a command takes with either."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
NOW = ROOT / "src"
NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")  # a user has byte-code caches


def opscope(source: Path, folder: Path, words: Sequence[str]) -> float:
    """Seconds of processor time of one command with the package of a source folder; byte code goes beside the model."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_A_USERS}
    environment = {**kept, "PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": str(folder / "byte-code")}
    quiet = subprocess.DEVNULL
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "opscope", *words], check=True, env=environment, stdout=quiet, stderr=quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def checked_out(commit: str) -> Iterator[tuple[Path, Path]]:
    """The source folder of a commit, in a temporary git worktree, and a folder to work in."""
    with TemporaryDirectory() as scratch:
        tree = Path(scratch, "before")
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, commit], check=True)
        try:
            _build(tree)
            yield tree / "src", Path(scratch)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


def _build(tree: Path) -> None:
    """Extensions are not in git, and how they are called has changed since."""
    code = "from setuptools import setup; setup()"
    build = [sys.executable, "-W", "ignore", "-c", code, "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=tree, check=True)


def ratios(before: Path, seconds: Callable[[Path], float], rounds: int) -> Iterator[tuple[float, float]]:
    """Yield the times now and before, pair by pair; the first pair fills the caches and is left out."""
    for number in range(rounds + 1):
        order = (NOW, before) if number % 2 else (before, NOW)
        taken = {source: seconds(source) for source in order}
        if number:
            yield taken[NOW], taken[before]
