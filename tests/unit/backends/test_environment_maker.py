"""Making an environment: whole or not at all, one at a time, and never over something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opscope.backends import environment_maker, environments
from opscope.backends.making import Making
from opscope.core.errors import UsageError
from opscope.core.manifest import Environment, Unpacked
from support.plugins.toolchains import STUB, finishing, offer, program


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("OPSCOPE_STUB", raising=False)
    return tmp_path / "opscope" / "environments"


def programs(making: Making) -> None:
    for name in STUB.programs:
        making.add_program(name, ["echo", making.folder / "bin", "it's here"])


def make(environment: Environment, *, is_agreed: bool = False, said: list[str] | None = None) -> Path:
    report = (said if said is not None else []).append
    return environment_maker.make(environment_maker.plan(environment), is_agreed=is_agreed, report=report)


def visible(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_what_is_made_is_found_and_its_scripts_name_the_place_that_it_is_in(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(finishing(monkeypatch, programs))
    assert visible(cache) == ["stub"]
    toolchain = environments.found("stub")
    assert toolchain.origin == "opscope setup stub"
    told = subprocess.run([toolchain.programs["stub-run"], "x"], capture_output=True, text=True, check=True)
    assert told.stdout == f"{folder}/bin it's here x\n"
    record = environments.read_record(folder)
    assert record is not None
    assert (record.name, record.versions, record.made_with["source"]) == ("stub", {}, "network")


def test_a_failed_setup_leaves_nothing_and_keeps_the_one_before(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(finishing(monkeypatch, programs))

    def fails(making: Making) -> None:
        programs(making)
        making.run(["sh", "-c", "echo 'no space left' >&2; exit 3"])

    environment = finishing(monkeypatch, fails)
    with pytest.raises(UsageError, match=r"^setup stub: sh ended with code 3; it says: no space left$"):
        make(environment)
    assert visible(cache) == ["stub"]
    assert environments.found("stub").programs["stub-run"].is_file()
    with pytest.raises(
        UsageError, match="its packages have no stub-compile, stub-run; expected stub-compile, stub-run"
    ):
        make(finishing(monkeypatch, lambda _: None))
    assert environments.read_record(cache / "stub") is not None


def test_an_interrupt_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(making: Making) -> None:
        programs(making)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(finishing(monkeypatch, interrupted))
    assert visible(cache) == []


def test_what_a_killed_setup_left_is_not_found_and_is_removed_by_the_next(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed where no handler runs, in a process of its own, after the programs are written."""
    code = """
import os, signal, sys
from types import ModuleType
import pytest
from support.plugins.toolchains import finishing, STUB
from opscope.backends import environment_maker
def finish(making):
    for name in STUB.programs:
        making.add_program(name, ["true"])
    os.kill(os.getpid(), signal.SIGKILL)
with pytest.MonkeyPatch.context() as patch:
    plan = environment_maker.plan(finishing(patch, finish))
    environment_maker.make(plan, is_agreed=False, report=print)
"""
    tests = Path(__file__).parents[2]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    killed = subprocess.run([sys.executable, "-c", code], env=variables, check=False)
    assert killed.returncode == -9
    environment = finishing(monkeypatch, programs)
    assert visible(cache) == [".stub.part"]
    assert environments.find("stub") is None
    make(environment)
    assert visible(cache) == ["stub"]


def test_two_setups_of_one_environment_do_not_meet(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    def twice(making: Making) -> None:
        programs(making)
        with pytest.raises(UsageError) as error:
            make(making.environment)
        refused.append(str(error.value))

    make(finishing(monkeypatch, twice))
    assert refused == [f"setup stub: another one is at work in {cache}; expected it to end first"]
    assert visible(cache) == ["stub"]


def test_a_folder_of_somebody_else_is_neither_replaced_nor_removed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = finishing(monkeypatch, programs)
    program(cache / "stub" / "mine")
    words = (
        r"/stub: has no environment\.json of opscope\.environment/1; expected a folder that `opscope setup` made, or"
    )
    for act in (make, environment_maker.remove):
        with pytest.raises(UsageError, match=words):
            act(environment)
    assert (cache / "stub" / "mine").is_file()


def test_what_was_made_can_be_removed_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = finishing(monkeypatch, programs)
    assert environment_maker.size_bytes(make(environment)) > 100
    assert environment_maker.remove(environment) == cache / "stub"
    assert environment_maker.remove(environment) is None
    assert environments.find("stub") is None


def test_terms_are_agreed_to_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = finishing(monkeypatch, programs)._replace(agreement="https://example.com/terms")
    words = (
        r"^setup stub: its terms must be agreed to first \(https://example\.com/terms\); expected --yes, or an answer"
    )
    with pytest.raises(UsageError, match=words):
        make(environment)
    assert not cache.exists()
    make(environment, is_agreed=True)


def test_another_system_is_refused_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "plan9")
    monkeypatch.setattr("platform.machine", lambda: "MIPS")
    with pytest.raises(UsageError, match=r"^setup stub: this machine is plan9-mips; expected linux-x86_64$"):
        environment_maker.plan(STUB._replace(systems=("linux-x86_64",)))


def test_wheels_that_are_no_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--wheels .*/none: no such folder; expected one of wheels"):
        environment_maker.plan(STUB, wheels=tmp_path / "none")


def test_a_python_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    shim = program(tmp_path / "python3.10", "echo 'pyenv: version not set' >&2; exit 127")
    with pytest.raises(
        UsageError, match=r"^--python .*/python3\.10: is no Python 3\.10 with venv, ensurepip; expected"
    ):
        environment_maker.plan(STUB._replace(python="3.10"), python=shim)
    with pytest.raises(
        UsageError, match=rf"^--python {sys.executable}: is no Python 3\.4 with venv, ensurepip; expected"
    ):
        environment_maker.plan(STUB._replace(python="3.4"), python=Path(sys.executable))


def test_a_python_that_is_nowhere_says_what_would_bring_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim of pyenv that does not run is passed over."""
    program(tmp_path / "bin" / "python3.4", "exit 127")
    program(tmp_path / "versions" / "3.4.10" / "bin" / "python3.4", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    words = (
        r"^setup stub: no Python 3\.4 with venv, ensurepip is found \(PATH, pyenv\); expected --python PATH, or uv on"
    )
    with pytest.raises(UsageError, match=words):
        environment_maker.plan(STUB._replace(python="3.4"))
    found = tmp_path / "versions" / "3.4.10" / "bin" / "python3.4"
    program(found, "echo 3.4")
    plan = environment_maker.plan(STUB._replace(python="3.4"))
    assert plan.steps[0].command[0] == str(found)


def test_uv_is_used_where_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = program(tmp_path / "bin" / "uv")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    group = Unpacked(("other==2",), python="3.12", platforms=("manylinux_2_39_x86_64",))
    environment = STUB._replace(python="3.10", with_dependencies=False, unpacked=(group,))
    offer(monkeypatch, environment)
    venv, install, unpack = (step.command for step in environment_maker.plan(environment, wheels=tmp_path).steps)
    assert venv[:2] == [str(uv), "venv"]
    assert venv[venv.index("--python") + 1] == "3.10"
    assert {"--offline", "--no-index", "--no-deps", "stub-tools==1.2"} <= set(install)
    assert unpack[unpack.index("--python-platform") + 1] == "x86_64-manylinux_2_39"
