"""Packages as an installer leaves them: a folder of modules, and metadata beside it that name the entry points."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
GROUP = "opscope.plugins"


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


def copy_tree(place: Path) -> None:
    """The source tree, with whatever was compiled in it; files are linked where that can be."""
    left_out = shutil.ignore_patterns("*.egg-info", "*.dist-info")
    shutil.copytree(ROOT / "src", place / "src", ignore=left_out, copy_function=_link)
    shutil.copy(ROOT / "pyproject.toml", place)


def install(tree: Path) -> Path:
    """Where the package of a tree is found, with its entry points beside it, as `pip install -e` leaves them."""
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    write_metadata(tree / "src", "opscope", {GROUP: project["entry-points"][GROUP]})
    return tree / "src"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
