"""The gallery: every question has a picture of the command above it, and the picture is what the command prints."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ten_questions_have_a_picture_that_starts_with_their_command(gallery: ModuleType) -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    found = gallery.questions(text)
    assert len(found) == text.count("\n## ") == 10
    for commands, _, place in found:
        file = ROOT / "docs" / place
        first = ET.fromstring(file.read_text(encoding="utf-8")).find("{http://www.w3.org/2000/svg}text")  # noqa: S314
        assert first is not None
        assert first.text == f"$ {commands[-1]}"
        assert file.stat().st_size < 12_000


@pytest.mark.slow
def test_pictures_are_what_commands_print(gallery: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ethosu")
    monkeypatch.chdir(tmp_path)
    stale = [
        place
        for place, text in gallery.pictures().items()
        if (ROOT / "docs" / place).read_text(encoding="utf-8") != text
    ]
    assert not stale, "run `make screenshots`"
