"""Every command line of the vendor's profiling page, word for word, with `opscope` in front of the tool's name."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.plugins.qaic.flags import COMPILE
from opscope.zoo import Recipe, make

PAGE = tomllib.loads((Path(__file__).parents[3] / "published" / "cloud_ai_commands.toml").read_text(encoding="utf-8"))
FILES: dict[str, str] = PAGE["files"]


def command_lines() -> list[list[str]]:
    return [shlex.split(_filled(line)) for line in PAGE["commands"]]


def flag_lines() -> list[str]:
    """Flags of the compiler that the page explains, with what they take."""
    return [_filled(flag) for flag in PAGE["compiler_flags"]]


def _filled(text: str) -> str:
    for placeholder, value in PAGE["placeholders"].items():
        text = text.replace(placeholder, value)
    return text


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of someone who follows the page: a model, and the folders that must be there."""
    make(Recipe("kws-cnn"), tmp_path / "model.onnx")
    for name in ("stats", "stats-out"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_flag_that_the_page_explains_is_one_of_the_compilers() -> None:
    known = {name for flag in COMPILE for name in flag.names}
    assert {flag.lstrip("-").partition("=")[0] for flag in flag_lines()} <= known


def test_every_command_of_the_page_runs_word_for_word(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples: set[str] = set()
    for words in command_lines():
        assert main(words) == 0, (words, capsys.readouterr().err)
        if words[0] == "qaic-compile":
            assert (workplace / FILES["program"]).stat().st_size > 1000
        elif words[0] == "qaic-runner":
            new = {path.name for path in (workplace / "stats").iterdir()} - samples
            wanted = next(int(word.partition("=")[2]) for word in words if "num-samples" in word)
            assert len(new) == wanted
            assert all(_number(name) is not None for name in new)
            samples |= new
        else:
            _check_decoded(workplace, samples, traces="--trace" in words, summaries="--summary" in words)


def _number(buffer: str) -> str | None:
    """Of the inference, in the name of a stats buffer as the page promises it."""
    found = re.fullmatch(re.escape(FILES["stats_buffer"]).replace("<I>", r"(\d+)"), buffer)
    return found and found[1]


def _check_decoded(workplace: Path, samples: set[str], *, traces: bool, summaries: bool) -> None:
    written = {path.name for path in (workplace / "stats-out").iterdir()}
    for name in samples:
        number = str(_number(name))
        assert not summaries or FILES["summary"].replace("<I>", number) in written
        assert not traces or FILES["trace"].replace("<I>", number) in written


def test_the_first_example_profiles_the_iterations_it_asks_for(workplace: Path) -> None:
    compile_line, run_line = (
        next(w for w in command_lines() if w[0] == tool) for tool in ("qaic-compile", "qaic-runner")
    )
    assert main(compile_line) == main(run_line) == 0
    found = sorted(path.name for path in (workplace / "stats").iterdir())
    assert found == [FILES["stats_buffer"].replace("<I>", str(number)) for number in range(1, 6)]


def test_a_run_shorter_than_its_start_delay_says_what_it_profiled_instead(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    delayed = next(words for words in command_lines() if any("start-delay" in word for word in words))
    main(command_lines()[0])
    assert main(delayed) == 0
    assert "before profiling was to begin (iteration 0, 1000 ms)" in capsys.readouterr().err


def test_every_flag_of_the_page_compiles(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = command_lines()[0]
    for flag in flag_lines():
        assert main([*base, flag]) == 0, (flag, capsys.readouterr().err)


def test_help_lists_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for tool, flag in (("qaic-compile", "-stats-level"), ("qaic-runner", "-aic-profiling-type")):
        assert main([tool, "--help"]) == 0
        assert flag in capsys.readouterr().out
