"""Where the programs of an environment are found, and of which version they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.backends import environments, registry
from opscope.core.errors import ProfilerError, UsageError
from opscope.core.manifest import BackendEntry, Manifest, Option
from support.plugins.toolchains import STUB, offer, program


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer(monkeypatch, STUB)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("OPSCOPE_STUB", raising=False)


def programs(folder: Path) -> Path:
    for name in STUB.programs:
        program(folder / name)
    return folder


def test_what_is_named_counts_before_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments.find("stub") is None
    programs(environments.made_folder(STUB) / "bin")
    assert environments.found("stub").origin == "opscope setup stub"
    programs(tmp_path / "path")
    assert environments.found("stub").origin == "PATH"
    monkeypatch.setenv("OPSCOPE_STUB", str(programs(tmp_path / "variable" / "bin").parent))
    assert environments.found("stub").origin == "OPSCOPE_STUB"
    toolchain = environments.found("stub", str(programs(tmp_path / "tool")))
    assert (toolchain.origin, toolchain.place) == ("--tool", tmp_path / "tool")


@pytest.mark.parametrize("place", ["tool", "tool/bin", "tool/bin/stub-run"])
def test_a_tool_is_a_folder_its_bin_or_a_program(tmp_path: Path, place: str) -> None:
    programs(tmp_path / "tool" / "bin")
    assert environments.found("stub", str(tmp_path / place)).programs["stub-compile"].is_file()


def test_a_named_place_without_the_programs_is_an_error(tmp_path: Path) -> None:
    program(tmp_path / "tool" / "stub-run")
    words = r"^--tool .*/tool: stub-compile not found; expected a program of A stub's compiler, its folder, or a folder"
    with pytest.raises(UsageError, match=words):
        environments.find("stub", str(tmp_path / "tool"))


def test_what_is_not_here_says_how_to_get_it() -> None:
    words = (
        r"^A stub's compiler: stub-compile, stub-run not found; expected `opscope setup stub`, --tool PATH or OPSCOP"
    )
    with pytest.raises(UsageError, match=words):
        environments.found("stub")
    with pytest.raises(UsageError, match=r"^environment 'stup': not known; did you mean stub\? known: stub$"):
        environments.find("stup")


def test_programs_beside_the_first_count_before_others_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "other" / "stub-run")
    programs(tmp_path / "path")
    monkeypatch.setenv("PATH", f"{tmp_path / 'other'}:{tmp_path / 'path'}")
    assert {file.parent for file in environments.found("stub").programs.values()} == {tmp_path / "path"}


@given(st.text() | st.sampled_from(["~nobody-here/x", "\0", "x" * 5000, "/" * 5000, "bin/" * 2000]))
def test_whatever_a_tool_is_called_only_errors_for_users_are_raised(text: str) -> None:
    told = ""
    try:
        found = environments.find("stub", text)
    except ProfilerError as error:
        found, told = None, str(error)
    assert found is None
    assert "\n" not in told


def test_versions_come_from_the_record_the_metadata_or_the_program(tmp_path: Path) -> None:
    folder = programs(tmp_path / "tool" / "bin").parent
    toolchain = environments.found("stub", str(folder))
    assert environments.version(toolchain) == "1.2.3"
    (folder / "venv/lib/python3.10/site-packages/stub_tools-1.5.dist-info").mkdir(parents=True)
    assert environments.version(toolchain) == "1.5"
    record = {"schema": "opscope.environment/1", "name": "stub", "versions": {"stub-tools": "1.7"}, "made_with": {}}
    (folder / "environment.json").write_text(json.dumps(record))
    assert environments.version(toolchain) == "1.7"
    (folder / "environment.json").write_text(json.dumps({**record, "schema": "opscope.environment/9"}))
    assert environments.version(toolchain) == "1.5"


def test_a_program_that_hangs_or_cannot_start_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_VERSION_S", 0.5)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = programs(tmp_path / "tool")
    program(folder / "stub-compile", "sleep 60 & wait")
    assert environments.version(environments.found("stub", str(folder))) == ""
    (folder / "stub-compile").write_text("#!/gone/python\n")
    assert environments.version(environments.found("stub", str(folder))) == ""


def test_the_state_says_where_it_is_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = environments.state("stub")
    assert (missing.works, missing.install, missing.origin) == (False, "opscope setup stub", "")
    monkeypatch.setenv("OPSCOPE_STUB", str(programs(tmp_path / "tool")))
    there = environments.state("stub")
    assert (there.works, there.install, there.origin, there.version) == (True, "", "OPSCOPE_STUB", "1.2.3")
    (tmp_path / "tool" / "stub-run").unlink()
    broken = environments.state("stub")
    assert not broken.works
    assert broken.detail.startswith("OPSCOPE_STUB ")


def test_a_backend_with_an_environment_has_the_option_tool() -> None:
    assert [option.name for option in registry.find("stub").options] == ["tool"]
    own = BackendEntry("stub", "", ".b:B", options=(Option("tool", ""),), environment="stub")
    assert list(Manifest("stub", "", "stub", backends=(own,)).mistakes()) == [
        "backend stub: option tool is every backend's that has an environment"
    ]
