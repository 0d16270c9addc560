"""Every command line that the vendor's page prints, word for word, with `opscope` in front of the tool's name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from opscope.cli import main, verbs
from opscope.commands.vendor_flags import Takes
from opscope.plugins.qaic.flags import COMPILE
from opscope.zoo import Recipe, make

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
PAGE = next(iter(sorted(SEEDS.glob("001*"))), None)
PLACEHOLDERS = {  # what a reader of the page fills in
    "<model.onnx>": "model.onnx",
    "<path/to/programqpc.bin>": "./binaries/programqpc.bin",
    "<num>": "4",
    "<recipe>": "KernelUtil",
    "<event,event,...>": "3F,70,200",
}
pytestmark = pytest.mark.skipif(PAGE is None, reason="the vendor's page is not beside this repository")


def page() -> str:
    assert PAGE is not None
    return PAGE.read_text(encoding="utf-8").replace("\\\n", " ")


def command_lines() -> list[list[str]]:
    """Words of every line that starts a tool; `sudo` and the tool's folder are the shell's affair."""
    lines = []
    for line in page().splitlines():
        found = re.match(r"(?:sudo )?/opt/qti-aic/exec/(qaic-\S+) (.*)", line)
        if found:
            lines.append(shlex.split(f"{found[1]} {_filled(found[2])}"))
    return lines


def flag_lines() -> list[str]:
    """Flags of the compiler that stand on a line of their own, with what they take."""
    switches = {f"-{name}" for flag in COMPILE if flag.takes is Takes.NOTHING for name in flag.names}
    words = [line.strip() for line in page().splitlines()]
    return [_filled(word) for word in words if word in switches or re.fullmatch(r"-[a-z][a-z-]+=\S+", word)]


def _filled(text: str) -> str:
    for placeholder, value in PLACEHOLDERS.items():
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


def test_the_page_has_the_lines_that_are_tested() -> None:
    tools = [words[0] for words in command_lines()]
    assert tools.count("qaic-compile") == 3
    assert tools.count("qaic-runner") == 2
    assert tools.count("qaic-opstats") == 3
    assert "-aic-pmu-events=3F,70,200" in flag_lines()


def test_every_command_of_the_page_runs_word_for_word(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples: set[str] = set()
    for words in command_lines():
        if words[0] not in verbs():
            continue  # the decoder, where it is not there yet
        assert main(words) == 0, (words, capsys.readouterr().err)
        if words[0] == "qaic-compile":
            assert (workplace / "binaries" / "programqpc.bin").stat().st_size > 1000
        elif words[0] == "qaic-runner":
            new = {path.name for path in (workplace / "stats").iterdir()} - samples
            wanted = next(int(word.partition("=")[2]) for word in words if "num-samples" in word)
            assert len(new) == wanted
            assert all(re.fullmatch(_PROMISED + r"-aiccyclecounts\.bin", name) for name in new)
            samples |= new
        else:
            _check_decoded(workplace, samples, traces="--trace" in words, summaries="--summary" in words)


_PROMISED = r"aic-profiling-program-0-activation-0-inf-\d+-QAicGraph"


def _check_decoded(workplace: Path, samples: set[str], *, traces: bool, summaries: bool) -> None:
    written = {path.name for path in (workplace / "stats-out").iterdir()}
    for name in samples:
        stem = name.removesuffix("-aiccyclecounts.bin")
        assert not summaries or f"{stem}.qaic-opstats.summary.txt" in written
        assert not traces or f"{stem}.qaic-opstats.trace.json" in written


def test_the_first_example_profiles_the_iterations_it_asks_for(workplace: Path) -> None:
    compile_line, run_line = (
        next(w for w in command_lines() if w[0] == tool) for tool in ("qaic-compile", "qaic-runner")
    )
    assert main(compile_line) == main(run_line) == 0
    found = sorted(path.name for path in (workplace / "stats").iterdir())
    assert found == [f"aic-profiling-program-0-activation-0-inf-{i}-QAicGraph-aiccyclecounts.bin" for i in range(1, 6)]


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
