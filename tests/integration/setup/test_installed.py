"""The program where it is installed: completion in real shells, the manual page, the file for a bug report."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from opscope.cli import main, verbs
from opscope.cli.installed.completion import SCRIPTS, completions

PATH = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ([""], {"profile", "zoo", "--version"}),
        (["pro"], {"profile"}),
        (["profile", "m.onnx", "--target", "cortex-m3"], {"cortex-m33"}),
        (["profile", "--target=cortex-m3"], {"--target=cortex-m33"}),
        (["profile", "--target", "=", "cortex-m3"], {"cortex-m33"}),
        (["profile", "m.onnx", "--backend", "est"], {"estimate"}),
        (["profile", "m.onnx", "--fre"], {"--fresh"}),
        (["zoo", "kws"], {"kws-cnn"}),
        (["zoo", "kws-cnn", "--format", "t"], {"tflite", "tosa"}),
        (["targets", "sh"], {"show"}),
        (["targets", "show", "aic100-s"], {"aic100-std"}),
        (["baseline", "che"], {"check"}),
        (["baseline", "check", "a.run", "b.json", "--fail"], {"--fail-on"}),
        (["completion", "z"], {"zsh"}),
        (["man", "bake"], {"bakeoff"}),
    ],
)
def test_words_that_may_stand_at_the_cursor_are_those_of_parsers_and_plug_ins(words: list[str], some: set[str]) -> None:
    found = completions(words)
    assert some <= set(found)
    start = words[-1].rpartition("=")[2] if words[-1] != "=" else ""
    assert all(start in word for word in found)


@pytest.mark.parametrize(
    "words", [["nonsense", ""], ["analyze", ""], ["profile", "--output", ""], ["profile", "m", "x"]]
)
def test_where_a_file_is_expected_the_shell_is_left_to_it(words: list[str]) -> None:
    assert completions(words) == []


@pytest.mark.parametrize("verb", list(verbs()))
def test_every_verb_completes_its_options(verb: str) -> None:
    assert completions([verb, "--help"]) == ["--help"]


ASKED = {
    "bash": """{script}
COMP_WORDS=(opscope profile m.onnx --target cortex-m3); COMP_CWORD=4; _opscope; printf '%s\\n' "${{COMPREPLY[@]}}"
COMP_WORDS=(opscope zo); COMP_CWORD=1; _opscope; printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """compdef() {{ :; }}; compadd() {{ shift; print -l -- $@; }}; _files() {{ print FILES; }}
{script}
words=(opscope profile m.onnx --target cortex-m3); CURRENT=5; _opscope
words=(opscope zo); CURRENT=2; _opscope
""",
    "fish": """{script}
complete -C 'opscope profile m.onnx --target cortex-m3'
complete -C 'opscope zo'
""",
}


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_a_real_shell_completes_a_target_and_a_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert main(["completion", shell]) == 0
    script = ASKED[shell].format(script=capsys.readouterr().out)
    done = subprocess.run([shell, "-c", script], env=PATH, capture_output=True, text=True, timeout=120, check=False)
    found = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert "cortex-m33" in found, done.stderr
    assert "zoo" in found
    assert not [word for word in found if not word.startswith(("cortex-m3", "zoo"))]


@pytest.mark.parametrize("words", [["man"], ["man", "profile"]])
def test_the_manual_page_is_good_roff_and_has_every_verb(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    page = tmp_path / "opscope.1"
    assert main([*words, "-o", str(page)]) == 0
    command = ["groff", "-ww", "-man", "-K", "utf8", "-T", "utf8", "-P", "-cbu", str(page)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "--allow-unknown" in text
    for verb in verbs() if len(words) == 1 else ():
        assert f"OPSCOPE {verb.upper()}" in text, verb


def test_of_an_unknown_verb_there_is_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man", "profil"]) == 2
    assert "did you mean profile?" in capsys.readouterr().err


def test_the_file_for_a_bug_report_tells_versions_and_where_and_nothing_of_model_or_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "grace-hopper"
    (home / "secret-project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "grace-hopper")
    monkeypatch.setenv("LOGNAME", "grace-hopper")
    monkeypatch.setenv("OPSCOPE_MCP_TOKEN", "hunter2")
    monkeypatch.setenv("OPSCOPE_TORQ", str(home / "secret-project" / "tools"))
    monkeypatch.setenv("AWS_SECRET", "hunter3")
    monkeypatch.chdir(home / "secret-project")
    Path("confidential.onnx").write_bytes(b"\x08\x07confidential-layer-name")
    command = "opscope profile confidential.onnx --target cortex-m4 --top 3"
    assert main(["doctor", "--bundle", "bug.zip", "--command", command]) == 0
    with ZipFile("bug.zip") as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    whole = "\n".join(parts.values())
    for word in ("grace-hopper", "hunter", "confidential", "secret-project", str(tmp_path), getpass.getuser(), "AWS"):
        assert word not in whole, word
    found = json.loads(parts["command.json"])
    assert found["words"] == ["profile", "FILE.onnx", "--target", "cortex-m4", "--top", "3"]
    assert found["exit"] == 2
    assert found["error"].endswith("Error")
    assert found["at"][-1].startswith("readers/")
    variables = json.loads(parts["variables.json"])
    assert (variables["OPSCOPE_MCP_TOKEN"], variables["OPSCOPE_TORQ"]) == ("(set)", "FILE")
    assert all(name.startswith("OPSCOPE_") for name in variables)
    assert json.loads(parts["versions.json"])["numpy"]
    torq = next(b for b in json.loads(parts["doctor.json"])["backends"] if b["name"] == "torq")
    assert torq["works"] is False


def test_the_same_machine_gives_the_same_file_and_a_wrong_use_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.zip", "b.zip"):
        assert main(["doctor", "--bundle", name]) == 0
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()
    assert main(["doctor", "--command", "zoo"]) == 2
    assert "--command: nothing is written; expected --bundle" in capsys.readouterr().err
