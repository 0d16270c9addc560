"""The import rules of the house style, and where vendors may be named."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "opscope"

FOUNDATION = {"errors", "units", "ahead", "ordering"}
NOUNS = {
    "graph", "target", "cost", "program", "program_check", "program_file", "wire", "capture", "sublanes", "trace",
    "run", "summary", "finding", "report", "verdict", "compatibility", "host", "profiled", "imported", "annotated",
    "sequence", "figures", "comparison",
}  # fmt: skip
STAGES = {
    "readers", "targets", "estimate", "compiler", "device", "backends", "decode", "importers", "analysis", "gate",
    "views", "zoo", "runtime",
}  # fmt: skip
TOP = {"api", "session", "htp_profiler", "notebook", "server", "dialects", "cli"}

# What a part may import of the others, from the ground up. `opscope` itself is the version; the verbs that it lends
# from `api` are imported by type checkers, and otherwise only when asked for.
ALLOWED = (
    {
        "opscope": {"api", "session", "htp_profiler", "notebook"},
        "errors": set(),
        "units": {"errors"},
        "ahead": set(),
        "ordering": set(),
    }
    | {noun: {"opscope"} | FOUNDATION | NOUNS for noun in NOUNS}
    | {stage: {"opscope"} | FOUNDATION | NOUNS for stage in STAGES}
    | {"compiler": {"opscope", "estimate"} | FOUNDATION | NOUNS}
    # a runtime leaves files that importers read, and its rows go by the names that readers give to ops
    | {"backends": {"opscope", "importers", "readers"} | FOUNDATION | NOUNS}
    | {"api": {"opscope"} | FOUNDATION | NOUNS | STAGES}
    | {"session": {"opscope", "api", "runtime"} | FOUNDATION | NOUNS}
    | {"htp_profiler": {"opscope", "api", "backends"} | FOUNDATION | NOUNS}
    | {"dialects": {"opscope", "api", "targets"} | FOUNDATION | NOUNS}
    | {"server": {"opscope", "api", "views"} | FOUNDATION | NOUNS}
    | {"notebook": {"opscope", "api", "views"} | FOUNDATION | NOUNS}
    | {"cli": {"opscope", "api", "dialects", "server"} | FOUNDATION | NOUNS | STAGES}
    | {"__main__": {"cli"}}
)

VENDOR_WORDS = (
    "qualcomm", "qaic", "hexagon", "snapdragon", "hextimate", "qnn", "torq", "synaptics", "analog devices",
    "analogdevices", "cfs", "codefusion", "code fusion", "sharc",
)  # fmt: skip
VENDOR_PARTS = {"targets", "readers", "importers", "backends", "dialects"}
VENDOR_LINES = {  # file → what may stand there: the entrance to a dialect has to say its name
    "cli/__init__.py": ('("cfs", "CodeFusion Studio', '("qaic", "Cloud AI command line', '("torq", "Torq command line'),
    "cli/report.py": ('COMPAT = ("cfs",)', "--target cfs-sample --compat cfs"),
}


def part_of(path: Path) -> str:
    """The noun or the stage that a file belongs to."""
    first = path.relative_to(SOURCE).parts[0]
    return "opscope" if first == "__init__.py" else first.removesuffix(".py")


@cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(SOURCE.rglob("*.py")))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything a file imports, wherever in it and however it is written."""
    package = ["opscope", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            yield from ((node.lineno, ".".join([*module, alias.name])) for alias in node.names)


def own_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and part of every import of our own."""
    for line, name in imports(path):
        head, _, rest = name.partition(".")
        if head == "opscope":
            part = rest.partition(".")[0]
            yield line, part if part in ALLOWED else "opscope"


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def test_every_part_of_the_package_has_its_place_in_the_picture() -> None:
    assert {part_of(path) for path in files()} <= set(ALLOWED)


@pytest.mark.parametrize("path", files(), ids=name)
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    wrong = [
        f"{name(path)}:{line} imports {other}"
        for line, other in own_imports(path)
        if other not in ALLOWED[part] | {part}
    ]
    assert not wrong


@pytest.mark.parametrize("path", [path for path in files() if part_of(path) in NOUNS | FOUNDATION], ids=name)
def test_a_noun_uses_the_standard_library_and_numpy_alone(path: Path) -> None:
    allowed = {"numpy", "pyarrow", "opscope", *sys.stdlib_module_names}
    assert not [found for _, found in imports(path) if found.partition(".")[0] not in allowed]


def test_nothing_imports_the_command_line() -> None:
    users = {part_of(path) for path in files() for _, other in own_imports(path) if other == "cli"}
    assert users <= {"cli", "__main__"}


def test_views_never_estimate_and_the_device_never_meets_the_estimate() -> None:
    for part, never in (("views", "estimate"), ("device", "estimate"), ("decode", "device")):
        for path in files():
            if part_of(path) == part:
                assert never not in {other for _, other in own_imports(path)}, name(path)


def may_name_vendors(path: Path) -> bool:
    part = part_of(path)
    dialects = {file.stem for file in (SOURCE / "dialects").glob("*.py")} - {"__init__"}
    return part in VENDOR_PARTS or (part == "cli" and path.stem in dialects)


@pytest.mark.parametrize("path", [path for path in files() if not may_name_vendors(path)], ids=name)
def test_vendors_are_named_only_where_their_formats_and_chips_are(path: Path) -> None:
    excused = VENDOR_LINES.get(name(path), ())
    wrong = [
        f"{name(path)}:{number}: {line.strip()}"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if any(word in line.lower() for word in VENDOR_WORDS) and not any(words in line for words in excused)
    ]
    assert not wrong


def test_the_walk_sees_every_way_of_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "views"
    folder.mkdir()
    file = folder / "page.py"
    file.write_text(
        "from ..estimate.work import work_of\nfrom .. import api\nimport opscope.cli.report\n"
        "def f():\n    from ..targets import load\nfrom .columns import bar\nfrom .. import __version__\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    assert sorted(other for _, other in own_imports(file)) == ["api", "cli", "estimate", "opscope", "targets", "views"]
