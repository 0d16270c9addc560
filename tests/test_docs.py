"""The documentation site builds without a warning, fetches nothing from elsewhere, every link leads somewhere, and
every option of every verb is on a page."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from opscope.cli import command_of, verbs
from support.models.packed_models import relu_onnx

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```+).*?^\1\s*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


def links_of(page: Path) -> list[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if not urlsplit(link).scheme]


def anchors_of(page: Path) -> set[str]:
    """Names of headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    bare = (re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", words).strip().lower() for words in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", words).replace(" ", "-") for words in bare}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        place, _, anchor = unquote(link).partition("#")
        target = (page.parent / place).resolve() if place else page
        found = target.exists() and target.is_relative_to(ROOT)
        if not found or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
            broken.append(link)
    assert not broken


def defined_in(file: Path) -> set[str]:
    """Functions, classes and constants of a module."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_life_of_a_profile_names_what_exists() -> None:
    places = re.findall(r"`([\w/]+\.py):(\w+)`", (ROOT / "docs" / "life-of-a-profile.md").read_text(encoding="utf-8"))
    missing = [f"{file}:{name}" for file, name in places if name not in defined_in(ROOT / "src" / "opscope" / file)]
    assert len(places) > 25
    assert not missing


TRACE = """
import sys
entered = set()
def note(frame, event, arg):
    code = frame.f_code
    if event == "call":
        entered.add((code.co_filename, code.co_qualname.partition(".")[0]))
sys.setprofile(note)
from opscope.cli import main
main(sys.argv[1:])
sys.setprofile(None)
print(*(f"{file}:{name}" for file, name in entered), sep="\\n", file=sys.stderr)
"""
NOT_ON_THE_WAY = {  # what the page says happens elsewhere: with another backend, and in later commands
    "changes/profile_model.py:estimate_model",
    "workflows/profiling.py:profile",
    "workflows/analysing.py:analyze",
    "workflows/comparing.py:compare",
}


def test_a_profile_goes_through_every_place_that_its_life_names(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(relu_onnx())
    words = ("profile", "net.onnx", "--target", "aic100-std", "--cores", "2", "-o", "net.run")
    done = subprocess.run(
        [sys.executable, "-c", TRACE, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    source = f"{ROOT}/src/opscope/"
    entered = {line.removeprefix(source) for line in done.stderr.splitlines()}
    text = (ROOT / "docs" / "life-of-a-profile.md").read_text(encoding="utf-8")
    places = set(re.findall(r"`([\w/]+\.py:\w+)`", text))
    constants = {place for place in places if place.rpartition(":")[2].isupper()}
    passed = entered | {place for place in constants if f"{place.partition(':')[0]}:<module>" in entered}
    assert places - passed == NOT_ON_THE_WAY


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/[\w/]+\.(?:py|c))`", text)
    assert len(named) > 20
    places = (ROOT / "src" / "opscope", ROOT)
    assert not [file for file in named if not any((place / file).exists() for place in places)]


@pytest.mark.parametrize("verb", list(verbs()))
def test_every_option_of_a_verb_is_on_a_page(verb: str) -> None:
    parser = ArgumentParser()
    command_of(verb)[0].add_arguments(parser)
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    said = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))
    assert f"opscope {verb}" in text
    assert not [names for names in options_of(parser) if not said & set(names)]


def options_of(parser: ArgumentParser) -> Iterator[Sequence[str]]:
    """The names of each option, those of the verb's own verbs too."""
    for action in parser._actions:
        if action.option_strings and "--help" not in action.option_strings:
            yield action.option_strings
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                yield from options_of(inner)


class Loaded(HTMLParser):
    """Addresses that a page loads by itself; not those that a reader may click on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in LOADS and (address := values.get(LOADS[tag])) and values.get("rel") not in ("canonical", "author"):
            self.addresses.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("sphinx") is None:
        pytest.skip("no Sphinx; the extra [docs] brings it")
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "dirhtml",
        str(ROOT / "docs"),
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return out


def test_the_site_builds_without_a_warning_and_has_every_page(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / ("" if place.name == "index" else place) / "index.html").is_file(), place


def test_a_page_of_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    away = {a for page in pages for a in Loaded(page.read_text(encoding="utf-8")).addresses if urlsplit(a).netloc}
    assert not away
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", text), style
        assert not re.search(r"@import\s+['\"]?(https?:)?//", text), style


def test_the_checker_of_links_bites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One *two*, `three`\n[a](#one-two-three) [b](gone.md) [c](#no)\n```sh\n[d](x.md)\n```\n", encoding="utf-8"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"gone\.md.*#no"):
        test_every_link_within_the_repository_leads_somewhere(page)
