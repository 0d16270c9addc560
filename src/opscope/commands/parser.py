"""The argument parser; a mistake on the command line is reported in one line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn

from ..core.errors import did_you_mean

_UNKNOWN = "unrecognized arguments: "  # argparse's own words


class Parser(ArgumentParser):
    """An ArgumentParser whose errors are one line, without the usage of all options."""

    def error(self, message: str) -> NoReturn:
        given = message.removeprefix(_UNKNOWN).split("=")[0].split()
        known = [option for action in self._actions for option in action.option_strings]
        hint = did_you_mean(given[0], known) if message.startswith(_UNKNOWN) else ""
        self.exit(2, f"{self.prog}: {message}; {hint}see `{self.prog} --help`\n")
