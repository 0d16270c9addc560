"""Draw the pictures of docs/gallery.md again: what each command of the page prints, as a terminal shows it.

`make screenshots` runs it. A picture is an SVG of text: small, sharp, and a difference shows in review.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

from opscope.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "gallery.md"
_QUESTION = re.compile(
    r"```sh\n(.*?)```\s*(?:<!-- from: (.*?) -->\s*)?!\[[^\]]*\]\((images/gallery/[\w-]+\.svg)\)", re.DOTALL
)
_MOST_LINES, _MOST_COLUMNS = 30, 118
_LINE, _COLUMN, _EDGE = 17, 7.85, 14


def questions(text: str) -> list[tuple[list[str], str, str]]:
    """The commands of every question, the last of which is in the picture; where its answer starts; the picture."""
    found = []
    for block, start, picture in _QUESTION.findall(text):
        lines = block.replace("\\\n", " ").splitlines()
        found.append(([line for line in lines if line.startswith("opscope ")], start, picture))
    return found


def printed(command: str) -> list[str]:
    """What a command prints; a gate that fails is an answer too."""
    out, words = StringIO(), shlex.split(command)[1:]
    with redirect_stdout(out), redirect_stderr(StringIO()):
        code = main(words)
    if code not in (0, 1):
        sys.exit(f"{command}: exit {code}")
    return out.getvalue().splitlines()


def from_answer(lines: list[str], start: str) -> list[str]:
    """The head of what is printed, and what follows from the line that starts like this."""
    if not start:
        return lines
    first = next(number for number, line in enumerate(lines) if line.startswith(start))
    return [*lines[:4], "…", *lines[first:]]


def picture(command: str, lines: list[str]) -> str:
    """A terminal with a command and the first lines of its answer."""
    shown = [line.rstrip()[:_MOST_COLUMNS] for line in lines[:_MOST_LINES]] + ["…"] * (len(lines) > _MOST_LINES)
    width = round(_MOST_COLUMNS * _COLUMN + 2 * _EDGE)
    height = (len(shown) + 2) * _LINE + 2 * _EDGE
    rows = [(f"$ {command}", "#7ee787"), ("", ""), *((line, "#e6edf3") for line in shown)]
    texts = [
        f'<text x="{_EDGE}" y="{_EDGE + (number + 1) * _LINE - 4}" fill="{colour}" xml:space="preserve">'
        f"{escape(line)}</text>"
        for number, (line, colour) in enumerate(rows)
        if line
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">'
    )
    back = f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    return "\n".join([head, back, *texts, "</svg>", ""])


def pictures() -> dict[str, str]:
    """Path → picture, of every question of the page; commands run in the current folder, in the page's order."""
    found = {}
    for commands, start, place in questions(PAGE.read_text(encoding="utf-8")):
        *before, last = commands
        for command in before:
            printed(command)
        found[place] = picture(last, from_answer(printed(last), start))
    return found


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        for place, text in pictures().items():
            (DOCS / place).parent.mkdir(parents=True, exist_ok=True)
            (DOCS / place).write_text(text, encoding="utf-8", newline="\n")
            sys.stdout.write(f"{place}: {len(text)} bytes\n")
