"""Packages as an installer leaves them: a folder of modules, and metadata beside it that name the entry points."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUP = "opscope.plugins"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def write_metadata(folder: Path, package: str, groups: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
    """`PACKAGE-VERSION.dist-info`, as an installer writes it."""
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    sections = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(sections))


def install_tree(tree: Path, folder: Path) -> None:
    """The package of a source tree, and the entry points that its pyproject.toml names."""
    shutil.copytree(tree / "src" / "opscope", folder / "opscope", ignore=LEFT_OUT)
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    write_metadata(folder, "opscope", {GROUP: project["entry-points"][GROUP]})
