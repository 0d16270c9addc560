"""Plug-ins come and go: each of ours can be taken out, and anybody's can be added, without a change elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from opscope.core.manifest import Manifest
from support.plugins.installing import GROUP, ROOT, copy_tree, install, write_metadata

SAMPLES = ROOT / "tests" / "samples"
OURS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
TOY = ROOT / "tests" / "support" / "plugins" / "toy_plugin"

CHILD = """
import contextlib, io, json, sys
from opscope.cli import main

def run(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()

print(json.dumps([run(words) for words in json.loads(sys.argv[1])]))
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def python(place: Path, code: str, *words: str, folder: Path) -> str:
    """What a Python prints that finds packages in a place before all others."""
    environment = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def opscope(place: Path, commands: Sequence[Sequence[str]], folder: Path) -> list[Ran]:
    """Several commands in one process."""
    return [Ran(*ran) for ran in json.loads(python(place, CHILD, json.dumps(commands), folder=folder))]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The whole program, installed from a copy of its tree."""
    copy_tree(tmp_path / "tree")
    return install(tmp_path / "tree")


def without(name: str, tree: Path) -> Path:
    """The program, installed from a tree that has neither the folder of a plug-in nor its line in pyproject.toml."""
    copy_tree(tree)
    shutil.rmtree(tree / "src" / "opscope" / "plugins" / name)
    project = tree / "pyproject.toml"
    cut = re.sub(rf'^{name} = "opscope\.plugins\..*\n', "", project.read_text(), flags=re.MULTILINE)
    project.write_text(cut)
    return install(tree)


def asked_of(manifest: Manifest) -> list[list[str]]:
    """A command for everything that a plug-in adds to the command line."""
    sample = str(SAMPLES / "latency.txt")
    return [
        *([verb.name, "x"] for verb in manifest.verbs),
        *(["import", "--format", form.name, sample] for form in manifest.formats),
        *(["profile", "x.onnx", "--backend", backend.name] for backend in manifest.backends),
        *(["report", "x", "--target", "y", "--compat", style.name] for style in manifest.report_styles),
    ]


@pytest.mark.parametrize("name", OURS)
def test_the_program_works_without_any_one_of_its_plug_ins_and_says_what_it_misses(name: str, tmp_path: Path) -> None:
    manifest = import_module(f"opscope.plugins.{name}.manifest").MANIFEST
    place = without(name, tmp_path / "tree")
    target = "max32690-cm4" if name != "cfs" else "aic100-std"
    sample = "latency.txt" if name != "qaic" else "vela_per-layer.csv"
    works = [
        ["--help"],
        ["targets"],
        ["doctor"],
        ["zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", "kws.tflite"],
        ["report", "kws.tflite", "--target", target],
        ["profile", "kws.tflite", "--target", target, "--backend", "estimate", "-o", "a.run"],
        ["import", str(SAMPLES / sample)],
    ]
    missed = asked_of(manifest)
    ran = opscope(place, [*works, *missed], tmp_path)
    fine, gone = ran[: len(works)], ran[len(works) :]
    assert [done.code for done in fine] == [0] * len(works), fine
    assert not any("plug-in" in done.err for done in fine)
    assert target in fine[1].out
    assert "latency" in fine[5].out
    for words, done in zip(missed, gone, strict=True):
        assert (done.code, len(done.err.splitlines())) == (2, 1), (words, done)
        assert re.search(r"no such verb|not known|invalid choice", done.err), (words, done.err)
    faces = [face.name for face in manifest.faces]
    code = "import opscope, sys\nfor name in sys.argv[1:]:\n    print(name in dir(opscope), hasattr(opscope, name))"
    assert python(place, code, *faces, folder=tmp_path).split() == ["False"] * (2 * len(faces))


@pytest.mark.parametrize("name", ["qaic", "qnn"])
def test_a_type_checker_finds_no_mistake_where_a_plug_in_with_a_face_is_gone(name: str, tmp_path: Path) -> None:
    copy_tree(tmp_path / "tree")
    source = tmp_path / "tree" / "src"
    shutil.rmtree(source / "opscope" / "plugins" / name)
    words = ("--strict", "--no-site-packages", "--follow-imports=skip", "--cache-dir", str(tmp_path / "cache"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, str(source / "opscope" / "plugins" / "faces.py")],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def with_toy(installed: Path) -> Path:
    """The program with a package of a stranger beside it."""
    place = installed
    shutil.copytree(TOY, place / "toy_plugin")
    chip = (ROOT / "src/opscope/plugins/cfs/targets/adsp-21834-fx.toml").read_text()
    (place / "toy_plugin" / "targets").mkdir()
    (place / "toy_plugin" / "targets" / "toy-chip.toml").write_text(
        re.sub(
            r"^title = .*", 'title = "A toy chip"', chip.replace('"adsp-21834-fx"', '"toy-chip"'), flags=re.MULTILINE
        )
    )
    write_metadata(place, "toy_plugin", {GROUP: {"toy": "toy_plugin.manifest:MANIFEST"}})
    return place


def test_a_strangers_package_adds_a_target_a_format_a_backend_a_verb_and_a_face(with_toy: Path, tmp_path: Path) -> None:
    (tmp_path / "a.toy").write_text('{"traceEvents": [], "toy": 5}')  # which any reader of timelines would take too
    found = opscope(
        with_toy,
        [
            ["targets"],
            ["import", "--list"],
            ["import", "a.toy"],
            ["doctor"],
            ["toy", "--loud"],
            ["--help"],
            ["profile", "--help"],
            ["zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", "kws.tflite"],
            ["report", "kws.tflite", "--target", "toy-chip"],
            ["profile", "kws.tflite", "--backend", "toy", "--speed", "3", "-o", "toy.run"],
            ["profile", "kws.tflite", "--backend", "toy", "--advise"],
            ["profile", "kws.tflite", "--target", "Toy Board", "--speed", "3", "-o", "board.run"],
        ],
        tmp_path,
    )
    assert [ran.code for ran in found] == [0] * 10 + [2, 0], found
    assert "toy-chip" in found[0].out
    assert "toy-board" in found[0].out
    assert "toy-file" in found[1].out
    assert "a toy's tool" in found[2].out
    assert "toy 1.0: A toy" in found[3].out
    assert "HELLO" in found[4].out
    assert "toy" in found[5].out
    assert "--speed" in found[6].out
    assert "kws on A toy chip" in found[8].out
    assert "3" in found[9].out
    assert "--advise: not an option of backend toy; expected a runtime such as htp" in found[10].err
    assert found[11].out == found[9].out.replace("toy.run", "board.run")
    assert python(with_toy, "import opscope; print(opscope.Toy().name)", folder=tmp_path) == "toy\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('no luck')", "cannot be loaded (RuntimeError: no luck)"),
        ("MANIFEST = 5", "is no manifest; expected an opscope.core.manifest.Manifest"),
        (
            "from opscope.core.manifest import *\nMANIFEST = Manifest('torq', 'Another', 'toy_plugin')",
            "left out, as another has plug-in torq",
        ),
    ],
)
def test_a_broken_plug_in_is_one_line_and_takes_nothing_down(
    code: str, words: str, with_toy: Path, tmp_path: Path
) -> None:
    (with_toy / "toy_plugin" / "manifest.py").write_text(code)
    listed, read = opscope(with_toy, [["targets"], ["import", str(SAMPLES / "latency.txt")]], tmp_path)
    assert (listed.code, read.code) == (0, 0)
    assert listed.err == f"note: plug-in toy (toy_plugin.manifest:MANIFEST): {words}\n"


LOADED = """
import sys
from opscope.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
plugins = [name.split(".", 2)[2] for name in sys.modules if name.startswith("opscope.plugins.")]
print(*sorted(name for name in plugins if "." in name and not name.endswith(".manifest")), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "plugin"),
    [
        (["--help"], ""),
        (["profile", "--help"], ""),
        (["import", "--list"], ""),
        (["targets", "show", "aic100-std"], "qnn.entries qnn.socs"),  # a part may be called so as well
        (["report", "gone.onnx", "--target", "aic100-std"], ""),
        (  # each says what it knows, and whether it works here
            ["targets"],
            "ethosu.backend ethosu.options litert.backend ort.backend qnn.backend qnn.entries qnn.options qnn.socs "
            "sophgo.backend tflm.backend torch.backend torq.compiler torq.compiler.backend torq.compiler.options "
            "torq.parts",
        ),
        (["import", str(SAMPLES / "tensorrt_profile.json")], "tables.tensorrt"),
        (["analyze", str(SAMPLES / "tensorrt_profile.json")], "tables.tensorrt"),
        (
            ["compare", str(SAMPLES / "tensorrt_profile.json"), str(SAMPLES / "tensorrt_profile.json")],
            "tables.tensorrt",
        ),
    ],
)
def test_no_code_of_a_plug_in_is_loaded_that_is_not_used(
    words: list[str], plugin: str, installed: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == plugin
