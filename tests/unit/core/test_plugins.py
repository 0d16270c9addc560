"""Manifests, and how they are found."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.core import plugins
from opscope.core.errors import UsageError
from opscope.core.manifest import BackendEntry, Can, Format, Levels, Manifest, Option, Signature, Verb
from opscope.core.plugins import load_place, manifests, problems, target_folder
from support.plugins.installing import GROUP, ROOT, write_metadata

OURS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
MANIFESTS = sorted((ROOT / "src" / "opscope" / "plugins").glob("*/manifest.py"))


LEVEL = Option("level", "how much", ("a", "b"), "a")
HALF = Levels("level", (("a", ()),))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that packages can be put into; what is found in it is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.reload()
    yield tmp_path
    sys.modules.pop("stranger", None)
    plugins.reload()


def put(site: Path, code: str, package: str = "stranger") -> None:
    (site / f"{package}.py").write_text(code)
    write_metadata(site, package, {"console_scripts": {"x": "y:z"}, GROUP: {package: f"{package}:MANIFEST"}})


def test_what_is_installed_is_what_the_project_names() -> None:
    """If not: install again, as entry points are read from the metadata of the installed package."""
    assert {manifest.name for manifest in manifests()} >= set(OURS)
    assert {path.parent.name for path in MANIFESTS} == set(OURS)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
def test_a_manifest_imports_the_core_alone(path: Path) -> None:
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert all(node.module and (node.level == 0 or node.module.startswith("core.")) for node in found)


def test_every_place_that_a_manifest_of_ours_names_is_there() -> None:
    for manifest in manifests():
        places = [
            *(form.importer for form in manifest.formats),
            *(backend.place for backend in manifest.backends),
            *(backend.what_if for backend in manifest.backends if backend.what_if),
            *(f"{verb.place}:COMMANDS" for verb in manifest.verbs if verb.place),
            *(entry.place for entry in (*manifest.faces, *manifest.report_styles, *manifest.summary_files)),
        ]
        assert all(load_place(manifest, place) is not None for place in places)
        folder = target_folder(manifest)
        assert folder is None or list(folder.glob("*.toml"))


def test_type_checkers_are_told_of_the_faces_of_our_manifests_and_no_others() -> None:
    tree = ast.parse((ROOT / "src" / "opscope" / "plugins" / "faces.py").read_text())
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    ours = [manifest for manifest in manifests() if manifest.name in OURS]
    assert {f"{node.module}:{alias.name}" for node in lines for alias in node.names} == {
        f"{manifest.name}{face.place}" for manifest in ours for face in manifest.faces
    }


def test_a_place_that_is_not_there_is_an_error_that_names_the_plug_in() -> None:
    manifest = Manifest("mine", "Mine", "opscope.plugins.ort")
    with pytest.raises(UsageError, match=r"^plug-in mine \(\.nowhere:x\): cannot be loaded \(ModuleNotFoundError"):
        load_place(manifest, ".nowhere:x")


def test_a_strangers_manifest_stands_behind_ours(site: Path) -> None:
    put(site, "from opscope.core.manifest import Manifest\nMANIFEST = Manifest('stranger', 'S', 'stranger')\n")
    assert manifests()[-1].name == "stranger"
    assert problems() == ()


def test_of_two_copies_of_a_package_the_first_on_the_path_counts(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(site, "from opscope.core.manifest import Manifest\nMANIFEST = Manifest('first', 'S', 'stranger')\n")
    write_metadata(site / "later", "stranger", {GROUP: {"second": "stranger:NOTHING"}})
    monkeypatch.setattr(sys, "path", [*sys.path, str(site / "later")])
    assert "first" in {manifest.name for manifest in manifests()}
    assert problems() == ()


def test_a_plug_in_that_is_broken_leaves_the_others(site: Path) -> None:
    put(site, "1 / 0")
    assert {manifest.name for manifest in manifests()} >= set(OURS)
    assert problems() == (
        "plug-in stranger (stranger:MANIFEST): cannot be loaded (ZeroDivisionError: division by zero)",
    )


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (Manifest("m", "", "", formats=(Format("f", "", (Signature(),), "x"),)), "format f: a signature that says"),
        (Manifest("m", "", "", formats=(Format("f", "", (), "x"),)), "format f: a signature that says nothing"),
        (Manifest("m", "", "", verbs=(Verb("v", "help"),)), "verb v: expected a place"),
        (
            Manifest("m", "", "", backends=(BackendEntry("b", "", "x", can=frozenset({Can.ADVISE})),)),
            "backend b: a what-if needs its place",
        ),
        (
            Manifest("m", "", "", backends=(BackendEntry("b", "", "x", (LEVEL,), levels=HALF),)),
            "backend b: levels of level are not for all values of an option",
        ),
    ],
)
def test_mistakes_of_a_manifest_are_named(manifest: Manifest, words: str) -> None:
    assert next(manifest.mistakes()).startswith(words)


@pytest.mark.parametrize(
    ("signature", "head", "name", "fits"),
    [
        (Signature(rb"\s*\["), b" [1]", "", True),
        (Signature(rb"\s*\["), b"x[1]", "", False),
        (Signature(contains=(b"a", b"b")), b"b a", "", True),
        (Signature(contains=(b"a", b"b")), b"a", "", False),
        (Signature(finds=(rb"\d\d",)), b"a 12", "", True),
        (Signature(rb"a", lacks=(rb"\d",)), b"a 1", "", False),
        (Signature(rb"\{", file_name="x.json"), b"{}", "x.json", True),
        (Signature(rb"\{", file_name="x.json"), b"{}", "y.json", False),
    ],
)
def test_all_that_a_signature_says_must_hold(signature: Signature, head: bytes, name: str, fits: bool) -> None:
    assert signature.fits(head, name) is fits


@pytest.mark.parametrize("name", ["manifest.py", "importer.py", "backend.py", "commands.py"])
def test_the_documentation_shows_the_plug_in_that_is_tested(name: str) -> None:
    code = (ROOT / "tests" / "support" / "plugins" / "toy_plugin" / name).read_text()
    assert f"`toy_plugin/{name}`:\n\n```python\n{code}```\n" in (ROOT / "docs" / "plugins.md").read_text()
