"""The import rules of the house style, followed transitively, and where vendors may be named."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from opscope.fleet.plan import CODE
from opscope.rewrites.judge import JUDGES
from opscope.workflows.simulated_run import COMPILING, RUNNING

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "opscope"
MOST_FILES = 25  # Python files in one folder
MOST_LINES = 500  # of one module

# What a part may import besides itself. Read from the ground up: everything named in a row stands above it.
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "options": {"core"},
    "graph": {"core"},
    "machine": {"core", "graph"},
    "program": {"core"},
    "recording": {"core", "graph", "program"},
    "readers": {"core", "graph"},
    "estimate": {"core", "options", "graph", "machine", "program", "recording", "readers"},
    "calibration": {"core", "options", "graph", "machine", "program", "recording", "readers", "estimate"},
    "simulation": {"core", "program"},
    "compiler": {"core", "options", "graph", "machine", "program", "readers", "estimate", "simulation"},
    "device": {"core", "graph", "options", "program", "recording", "simulation"},
    "decode": {"core", "program", "recording"},
    "analysis": {"core", "graph", "program", "recording"},
    "gate": {"core", "graph", "program", "recording", "estimate", "analysis"},
    "views": {"core", "graph", "program", "recording", "estimate", "calibration", "analysis", "gate", "machine"},
    "importers": {"core", "graph", "program", "recording"},
    "backends": {"core", "graph", "program", "recording", "readers", "importers"},
    "zoo": {"core", "graph"},
}
ALLOWED["quantization"] = {"core", "options", "graph", "program", "recording", "readers", "importers", "backends"}
ALLOWED["conversion"] = ALLOWED["quantization"] | {"quantization"}
BELOW_WORKFLOWS = set(ALLOWED) - {"zoo"}
ALLOWED["workflows"] = BELOW_WORKFLOWS
ALLOWED["changes"] = BELOW_WORKFLOWS | {"workflows"}
ALLOWED["rewrites"] = BELOW_WORKFLOWS | {"workflows", "changes"}
ALLOWED["language_models"] = BELOW_WORKFLOWS | {"workflows", "changes"}
ALLOWED["fleet"] = ALLOWED["changes"] | {"changes", "language_models"}
ALLOWED["selection"] = ALLOWED["fleet"] | {"fleet"}
ALLOWED["commands"] = BELOW_WORKFLOWS | {"workflows"}
ALLOWED["zoo"] |= {"language_models"}  # the one description of a decoder
ALLOWED["plugins"] = BELOW_WORKFLOWS | {"workflows", "changes", "rewrites", "language_models", "commands"}
ALLOWED["api"] = BELOW_WORKFLOWS | {"workflows", "changes", "rewrites", "language_models", "fleet", "selection"}
ALLOWED["notebook"] = ALLOWED["api"] | {"api"}
ALLOWED["decorator"] = ALLOWED["api"] | {"api"}
ALLOWED["pytest_plugin"] = ALLOWED["api"] | {"api"}
ALLOWED["server"] = ALLOWED["api"] | {"api"}
ALLOWED["agents"] = {"core"}
ALLOWED["pipelines"] = {"core", "gate", "views"}
ALLOWED["cli"] = ALLOWED["api"] | {"api", "agents", "pipelines", "server", "commands", "zoo"}
ALLOWED["__main__"] = {"cli"}
ALLOWED["opscope"] = {
    "core",
    "options",
    "api",
    "workflows",
    "rewrites",
    "language_models",
    "fleet",
    "selection",
    "notebook",
    "decorator",
    "plugins",
}  # verbs, wherever one stands whole; `plugins`: names of faces, for type checkers alone

NEVER = {
    "simulation": {"estimate"},
    "device": {"estimate"},
    "decode": {"device", "estimate"},
    "views": {"device", "decode"},
}
NOUNS = {"core", "graph", "machine", "program", "recording"}

VENDOR_WORDS = (
    "qualcomm",
    "qaic",
    "hexagon",
    "snapdragon",
    "hextimate",
    "qnn",
    "vtcm",
    "htp",
    "torq",
    "synaptics",
    "analog devices",
    "analogdevices",
    "cfs",
    "codefusion",
    "code fusion",
    "sharc",
    "hmx",
    "hvx",
    "qhas",
    "sophgo",
    "rknn",
    "rockchip",
    "stm32cube",
    "neuropilot",
    "nvidia-",
    "tensix",
    "deep learning container",
    "tflm",
    "tenstorrent",
    "espressif",
    "stedgeai",
    "openvino",
    "cloud ai",
    "qpc",
    "aic-profiling",
    "aiccycle",
    "dmaissue",
)
VENDOR_WORDS_OF = {  # outside contracts: what scripts of users spell, and files of users are
    "program/file_names.py": {"qpc", "aic-profiling", "aiccycle"},
    "api.py": {"qpc"},  # the keyword of `opstats`
    "cli/opstats.py": {"qpc"},  # its option
    "readers/unsupported.py": {
        "qualcomm",
        "htp",
        "openvino",
        "qpc",
        "deep learning container",
    },  # what files are that are given for models
}


def part_of(path: Path) -> str:
    """The folder, or the module of the root, that a file belongs to."""
    first = path.relative_to(SOURCE).parts[0]
    return "opscope" if first == "__init__.py" else first.removesuffix(".py")


@cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(SOURCE.rglob("*.py")))


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full dotted name of everything a file imports, wherever in it and however it is written."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    package = ["opscope", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            yield from ((node.lineno, ".".join([*module, alias.name])) for alias in node.names)


def own_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and part of every import of our own; `opscope` itself is the version."""
    for line, found in imports(path):
        head, _, rest = found.partition(".")
        if head == "opscope":
            part = rest.partition(".")[0]
            yield line, part if part in ALLOWED else "opscope"


def name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def direct() -> dict[str, set[str]]:
    """The parts that each part imports."""
    return {
        start: {other for path in files() if part_of(path) == start for _, other in own_imports(path)} - {start}
        for start in ALLOWED
    }


def reached(part: str) -> set[str]:
    """Every part that one leads to, over any number of imports."""
    found, left = set(), [part]
    while left:
        for other in direct()[left.pop()] - found - {"opscope"}:
            found.add(other)
            left.append(other)
    return found


def test_every_part_of_the_package_has_its_place_in_the_picture() -> None:
    assert {part_of(path) for path in files()} <= set(ALLOWED)


@pytest.mark.parametrize("path", files(), ids=name)
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    wrong = [
        f"{name(path)}:{line} imports {other}"
        for line, other in own_imports(path)
        if other not in ALLOWED[part] | {part, "opscope"}
    ]
    assert not wrong


def test_the_picture_has_no_circle() -> None:
    for part in set(ALLOWED) - {"opscope"}:
        assert part not in reached(part)


@pytest.mark.parametrize(("part", "never"), NEVER.items())
def test_two_parts_never_meet_not_even_through_another(part: str, never: set[str]) -> None:
    assert not reached(part) & never


@pytest.mark.parametrize("path", [path for path in files() if part_of(path) in NOUNS], ids=name)
def test_a_noun_uses_the_standard_library_and_columns_alone(path: Path) -> None:
    allowed = {"numpy", "pyarrow", "msgspec", "opscope", *sys.stdlib_module_names}
    assert not [found for _, found in imports(path) if found.partition(".")[0] not in allowed]


def test_nothing_imports_the_command_line() -> None:
    users = {part_of(path) for path in files() for _, other in own_imports(path) if other == "cli"}
    assert users <= {"cli", "__main__"}


@pytest.mark.parametrize(
    ("makers", "code"),
    [
        ({"compiler"}, COMPILING),
        ({"compiler", "device", "decode", "analysis"}, (*COMPILING, *RUNNING)),
        ({"compiler", "device", "decode", "analysis", "estimate", "quantization"}, CODE),
        ({"compiler", "device", "decode", "analysis", "estimate", "quantization"}, JUDGES),
    ],
    ids=["program", "run", "cell of a store", "trial of a rewrite"],
)
def test_what_is_kept_is_made_again_when_any_code_changed_that_it_came_from(
    makers: set[str], code: tuple[str, ...]
) -> None:
    """Keys of what is kept hash the code of parts (core/keys.py): of all that its makers lead to."""
    assert set().union(makers, *map(reached, makers)) <= set(code)
    assert all((SOURCE / part).is_dir() for part in code)


def test_a_plug_in_imports_no_other_plug_in() -> None:
    """Each folder can be taken out alone."""
    wrong = []
    for path in files():
        if part_of(path) == "plugins" and len(path.relative_to(SOURCE).parts) > 2:
            own = path.relative_to(SOURCE).parts[1]
            for line, found in imports(path):
                parts = found.split(".")
                if parts[:2] == ["opscope", "plugins"] and parts[2] != own:
                    wrong.append(f"{name(path)}:{line} imports {found}")
    assert not wrong


@pytest.mark.parametrize("root", [SOURCE, TESTS, TESTS.parent / "bench"], ids=lambda root: root.name)
def test_no_folder_has_more_files_than_a_reader_can_take_in(root: Path) -> None:
    counts = Counter(path.parent.relative_to(root).as_posix() for path in root.rglob("*.py"))
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_no_module_is_longer_than_a_reader_can_take_in() -> None:
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files()}
    assert {module: count for module, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("path", [path for path in files() if part_of(path) != "plugins"], ids=name)
def test_vendors_are_named_only_in_their_plug_ins(path: Path) -> None:
    words = set(VENDOR_WORDS) - VENDOR_WORDS_OF.get(name(path), set())
    wrong = [
        f"{name(path)}:{number}: {line.strip()}"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if any(word in line.lower() for word in words)
    ]
    assert not wrong


def test_the_walk_sees_every_way_of_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "views"
    folder.mkdir()
    file = folder / "page.py"
    file.write_text(
        "from ..estimate.work import work_of\nfrom .. import api\nimport opscope.cli.report\n"
        "def f():\n    from ..machine import load\nfrom .columns import bar\nfrom .. import __version__\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    assert sorted(other for _, other in own_imports(file)) == ["api", "cli", "estimate", "machine", "opscope", "views"]
