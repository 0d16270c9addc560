"""Options of backends on the command line of `profile`."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from opscope.backends import registry as backends
from opscope.cli.profile import ProfileCommand
from opscope.commands.backend_options import add_option, chosen_options, merged
from opscope.core.errors import UsageError
from opscope.core.manifest import BackendEntry, Option
from opscope.plugins.qnn.manifest import BACKEND

TOY = BackendEntry("toy", "A toy", ".none", (Option("colour", "a colour"), Option("precision", "a precision", ("f8",))))


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> ArgumentParser:
    monkeypatch.setattr(backends, "entries", lambda: (BACKEND, TOY))
    made = ArgumentParser()
    ProfileCommand().add_arguments(made)
    return made


def test_options_of_two_backends_share_a_name_their_words_and_their_choices() -> None:
    (option,) = merged([Option("p", "first", ("a", "b")), Option("p", "second", ("b", "c"))])
    assert (option.help, option.choices) == ("first; or: second", ("a", "b", "c"))


def test_what_only_one_backend_says_of_an_option_stands_behind_what_all_say() -> None:
    options = [Option("p", "the precision"), *(Option("p", "the precision", differs=word) for word in ("a", "b", "a"))]
    (option,) = merged(options)
    assert (option.help, option.differs) == ("the precision", "a; b")
    made = ArgumentParser()
    add_option(made, option)
    assert "the precision; a; b" in made.format_help()


def test_each_backend_gets_its_own_options(parser: ArgumentParser) -> None:
    args = parser.parse_args(["m.onnx", "--backend", "toy", "--colour", "red", "--precision", "f8"])
    assert chosen_options(args) == {"colour": "red", "precision": "f8"}


def test_an_option_of_another_backend_is_a_mistake(parser: ArgumentParser) -> None:
    args = parser.parse_args(["m.onnx", "--backend", "htp", "--colour", "red"])
    with pytest.raises(UsageError, match=r"^--colour: not an option of backend htp"):
        chosen_options(args)
