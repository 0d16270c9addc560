"""`opscope setup` for real: wheels made here, a virtual environment, no network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.backends import environments
from opscope.cli import main
from opscope.core.manifest import Environment, Unpacked
from support.plugins.toolchains import STUB, offer, pythons, wheel

STRANGE = "cp39-cp39-manylinux_2_40_x86_64"  # neither our Python nor our C library
PYTHON = next(iter(pythons()), Path(sys.executable))  # the oldest there is
VERSION = subprocess.run([PYTHON, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
ENVIRONMENT = STUB._replace(
    python=VERSION.rpartition(".")[0], unpacked=(Unpacked(("strange==3",), "3.9", ("manylinux_2_40_x86_64",)),)
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache in which the stub was set up, by the command line, from a folder of wheels."""
    place = tmp_path_factory.mktemp("it's a cache")
    wheel(place / "wheels", "stub-tools", "1.2", programs=STUB.programs)
    wheel(place / "wheels", "strange", "3", tag=STRANGE)
    with pytest.MonkeyPatch.context() as patch:
        offer(patch, ENVIRONMENT)
        patch.setenv("XDG_CACHE_HOME", str(place))
        patch.delenv("OPSCOPE_STUB", raising=False)
        assert main(["setup", "stub", "--wheels", str(place / "wheels"), "--python", str(PYTHON)]) == 0
        yield place


def test_its_programs_run_from_the_place_that_it_was_moved_to(made: Path) -> None:
    toolchain = environments.found("stub")
    told = subprocess.run([toolchain.programs["stub-run"]], capture_output=True, text=True, check=True)
    assert told.stdout.startswith(f"stub-tools 1.2 {made}/opscope/environments/stub/bin/stub-run")
    told = subprocess.run([toolchain.python, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"Python {VERSION}\n"


def test_no_script_holds_the_path_that_it_was_made_at(made: Path) -> None:
    folder = made / "opscope" / "environments"
    assert [path.name for path in folder.iterdir() if path.suffix != ".lock"] == ["stub"]
    texts = [path for path in (folder / "stub").rglob("*") if path.is_file() and path.suffix not in (".pyc", ".exe")]
    assert len(texts) > 5
    assert not [path for path in texts if b".stub.part" in path.read_bytes()]


def test_packages_for_another_machine_are_unpacked(made: Path) -> None:
    assert (made / "opscope/environments/stub/packages/strange.py").is_file()


def test_the_record_and_doctor_say_what_was_made(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((made / "opscope/environments/stub/environment.json").read_text())
    assert record["schema"] == "opscope.environment/1"
    assert record["versions"]["stub-tools"] == "1.2"
    assert record["versions"]["strange"] == "3"
    assert record["made_with"]["source"] == str(made / "wheels")
    assert main(["setup", "--list"]) == 0
    assert capsys.readouterr().out.startswith("ok       stub 1.2: A stub's compiler\n")


def test_a_package_that_is_not_in_the_folder_is_one_line_and_the_earlier_setup_stays(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, ENVIRONMENT._replace(packages=(), unpacked=(Unpacked(("stub-tools==9",)),)))
    assert main(["setup", "stub", "--wheels", str(made / "wheels")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("opscope: setup stub: ")
    assert "stub-tools==9" in last
    assert environments.found("stub").programs["stub-run"].is_file()


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["setup", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Environment:
    environment = STUB._replace(agreement="https://example.com/terms")
    offer(monkeypatch, environment)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return environment


@pytest.mark.usefixtures("stub")
def test_size_and_licence_are_said_first_and_terms_need_an_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = command(capsys, "stub")
    first, last = err.splitlines()
    folder = tmp_path / "opscope" / "environments" / "stub"
    assert (code, out) == (2, "")
    assert first == f"stub: A stub's compiler; about 1 MB in {folder}; licence: MIT"
    assert last.startswith(
        "opscope: setup stub: its terms must be agreed to first (https://example.com/terms); expected"
    )
    assert not (tmp_path / "opscope").exists()


@pytest.mark.usefixtures("stub")
def test_a_dry_run_prints_the_commands_and_does_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = command(capsys, "stub", "--dry-run", "--json")
    assert code == 0
    assert [step["step"].split()[0] for step in json.loads(out)["steps"]] == ["making", "installing"]
    code, out, _ = command(capsys, "stub", "--dry-run")
    assert "stub-tools==1.2" in out
    assert not (tmp_path / "opscope").exists()


@pytest.mark.usefixtures("stub")
def test_lists_and_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys)
    assert code == 0
    assert out.splitlines()[0] == "missing  stub: A stub's compiler"
    assert out.splitlines()[-1] == "         get it: opscope setup stub (about 1 MB; licence: MIT)"
    assert command(capsys, "stub", "--remove") == (0, "", "stub: nothing to remove\n")
    assert command(capsys, "stup") == (
        2,
        "",
        "opscope: environment 'stup': not known; did you mean stub? known: stub\n",
    )
