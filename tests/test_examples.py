"""Every `opscope` command line of the README and the pages runs, in the order printed."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from opscope.cli import main

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/reports.md",
    "docs/zoo.md",
    "docs/targets.md",
    "docs/simulation.md",
    "docs/running.md",
    "docs/opstats.md",
)
FAILS_A_BUDGET = "--budget"


def command_lines(page: str) -> list[str]:
    """Lines that start with `opscope` in shell blocks, or follow a `$` in text blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = []
    for language, block in re.findall(r"```(sh|text)\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            bare = line.removeprefix("$ ") if language == "text" else line
            if bare.startswith("opscope ") and (language == "sh" or line.startswith("$ ")):
                lines.append(bare.split("  #")[0].strip())
    return lines


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = command_lines(page)
    assert lines
    for line in lines:
        arguments = shlex.split(line)[1:]
        if "htp" in arguments and find_spec("onnxruntime_qnn") is None:
            continue  # the extra [htp] is not installed; CI installs it
        code = _run(arguments)
        output = capsys.readouterr()
        assert code in ((0, 1) if FAILS_A_BUDGET in arguments else (0,)), f"{line}: exit {code}\n{output.err}"
        assert output.out or output.err, line


def _run(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_the_readme_shows_what_the_report_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(.*?)```", text, flags=re.DOTALL)
    assert block is not None
    for line in [line for line in block[1].splitlines() if line.startswith("$ ")]:
        assert main(shlex.split(line)[2:]) == 0
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    shown = [line.rstrip() for line in block[1].splitlines() if line and not line.startswith("$ ") and "…" not in line]
    missing = [line for line in shown if line not in printed]
    assert not missing


def test_the_target_in_the_guide_is_valid() -> None:
    from opscope.targets import parse

    text = (ROOT / "docs/targets.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert block is not None
    assert parse(block[1].encode(), source="docs/targets.md").name == "mychip"
