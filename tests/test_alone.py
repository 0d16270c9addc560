"""The tests stand alone: nothing that they or the benchmarks open lies above the repository."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "bench", "tools") for path in (ROOT / folder).rglob("*.py"))
PUBLISHED = ROOT / "tests" / "published"


def path_of(node: ast.expr, file: Path, known: dict[str, Path]) -> Path | None:
    """The path that an expression of `Path(__file__)`, parents, slashes and names of such paths is; None: another."""
    match node:
        case ast.Name(name):
            return known.get(name)
        case ast.Call(func=ast.Name("Path"), args=[ast.Name("__file__")]):
            return file
        case ast.Call(func=ast.Attribute(value, "resolve" | "absolute"), args=[]):
            return path_of(value, file, known)
        case ast.Attribute(value, "parent"):
            inner = path_of(value, file, known)
            return inner and inner.parent
        case ast.Subscript(ast.Attribute(value, "parents"), ast.Constant(int() as number)):
            inner = path_of(value, file, known)
            return inner and inner.parents[number]
        case ast.BinOp(left, ast.Div(), ast.Constant(str() as name)):
            inner = path_of(left, file, known)
            return inner and Path(os.path.normpath(inner / name))
    return None


def named_in(source: str, file: Path) -> Iterator[Path]:
    """Every path of that kind in a file; names are those that the module assigns."""
    tree, known = ast.parse(source), {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found = path_of(statement.value, file, known)
            known |= {statement.targets[0].id: found} if found else {}
    for node in ast.walk(tree):
        found = path_of(node, file, known) if isinstance(node, ast.expr) else None
        if found is not None:
            yield found


def test_no_file_names_a_path_above_the_repository() -> None:
    assert len(FILES) > 200
    named = ((file, found) for file in FILES for found in named_in(file.read_text(encoding="utf-8"), file))
    assert [(file, found) for file, found in named if not found.is_relative_to(ROOT)] == []


@pytest.mark.parametrize(
    "text",
    [
        "A = Path(__file__).parents[2]",
        "R = Path(__file__).parents[1]\nA = R.parent / 'files'",
        "R = Path(__file__).resolve().parent\ndef f():\n    return R / '..' / '../files'",
    ],
)
def test_paths_above_the_repository_are_found(text: str) -> None:
    assert any(not found.is_relative_to(ROOT) for found in named_in(text, ROOT / "tests" / "test_x.py"))


def test_every_file_of_published_figures_names_its_source() -> None:
    listed = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    stems = {path.name for path in PUBLISHED.iterdir()} - {"README.md"}
    families = {name if f"`{name}`" in listed else f"{name.rpartition('_')[0]}_*.csv" for name in stems}
    assert {name for name in families if f"`{name}`" not in listed} == set()
