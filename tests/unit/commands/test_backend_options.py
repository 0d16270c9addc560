"""What verbs with options of their own hand on to a backend."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import pytest

from opscope.backends import registry as backends
from opscope.commands.backend_options import add_option, add_source, all_options, sections_shown, source_of_verb
from opscope.core.manifest import USUAL_SECTIONS, BackendEntry, Levels, Option, Section

TOY = BackendEntry("toy", "A toy", ".none", (Option("colour", "a colour"), Option("data", "what it is shown")))


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> ArgumentParser:
    monkeypatch.setattr(backends, "entries", lambda: (TOY,))
    made = ArgumentParser()
    made.set_defaults(model="m.onnx")
    add_source(made)
    for option in all_options():
        add_option(made, option)
    return made


def parsed(parser: ArgumentParser, text: str) -> Namespace:
    return parser.parse_args(text.split())


def test_an_option_of_the_verb_itself_is_not_handed_on(parser: ArgumentParser) -> None:
    args = parsed(parser, "--backend toy --colour red --data samples")
    assert source_of_verb(args, ("data",))[0] == {"colour": "red"}
    assert args.data == "samples"


LEVELS = Levels("depth", (("all", (Section.LANES, Section.KERNELS)), ("little", ())))
DEEP = BackendEntry("deep", "", ".none", (Option("depth", "how much", ("all", "little"), "all"),), levels=LEVELS)


@pytest.mark.parametrize(
    ("backend", "options", "sections"),
    [
        ("deep", {"depth": "little"}, ()),
        ("deep", {"depth": None}, (Section.LANES, Section.KERNELS)),
        ("toy", {"colour": "red"}, USUAL_SECTIONS),
        ("estimate", {}, USUAL_SECTIONS),
    ],
)
def test_the_manifest_says_which_option_is_the_level_of_what_is_printed(
    backend: str, options: dict[str, str | None], sections: tuple[Section, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "entries", lambda: (TOY, DEEP))
    assert sections_shown(backend, options) == sections


def test_without_a_target_and_a_backend_nobody_is_chosen(parser: ArgumentParser) -> None:
    args = parsed(parser, "--colour red")
    assert source_of_verb(args, ()) == (None, "")
    assert args.backend is None
