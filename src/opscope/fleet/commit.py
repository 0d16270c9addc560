"""The commit that a model is of: what git says of the folder."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(folder: Path) -> str | None:
    """Of the repository that a folder is in, with a + behind it where files differ from it; None: there is none."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    return f"{commit}+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else commit


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and words of our own
            ["git", "-C", str(folder), *words],  # noqa: S607 - the git that the user has
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
