"""Vendor flags as a table, and one parser for them: `-flag=value`, `-flag value`, `--flag`, short letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum

from ..core.errors import ProfilerError, UsageError, printable


class Takes(Enum):
    """Whether a flag has a value."""

    NOTHING = "nothing"  # but =true, =false, =1, =0, =on and =off are accepted
    VALUE = "one value"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, by all its names without dashes."""

    names: tuple[str, ...]
    parameter: str  # the native parameter it sets; empty: none
    takes: Takes = Takes.VALUE
    note: str = ""  # printed when the flag is used; for flags without an effect here

    @property
    def shown(self) -> str:
        return ", ".join(f"-{name}" for name in self.names)


def noted(takes: Takes, note: str, names: str) -> tuple[Flag, ...]:
    """Flags that are accepted, and answered with a note."""
    return tuple(Flag((name,), "", takes, note) for name in names.split())


@dataclass(slots=True)
class ParsedFlags:
    """A parsed command line: values by parameter, in order, and notes."""

    values: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    help: bool = False
    spelt: dict[str, str] = field(default_factory=dict)  # parameter → the flag as it was given last

    def last(self, parameter: str) -> str | None:
        """The value of a flag; of one that was given several, the last, with a note."""
        given = self.values.get(parameter, [])
        if len(set(given)) > 1:
            flag = self.spelt.get(parameter, parameter)
            note = f"{flag}: given {len(given)} times; the last counts, {printable(given[-1])}"
            self.notes += [] if note in self.notes else [note]
        return given[-1] if given else None

    def on(self, parameter: str) -> bool:
        return self.last(parameter) == "true"

    def number(self, parameter: str, *, least: int = 1) -> int | None:
        """Return an integer; an error names the flag as it was given."""
        text = self.last(parameter)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < least:
            flag = f"{self.spelt[parameter]}={printable(text)}"
            raise UsageError(f"{flag}: expected a whole number of at least {least}")
        return int(text)

    def seconds(self, parameter: str) -> float | None:
        """Return a number with an optional decimal point."""
        text = self.last(parameter)
        try:
            value = None if text is None else float(text)
        except ValueError:
            raise UsageError(f"{self.spelt[parameter]}={printable(text or '')}: expected a number") from None
        return value


_SWITCH = {"true": "true", "1": "true", "on": "true", "false": "false", "0": "false", "off": "false"}


def read_words(tool: str, table: Sequence[Flag], words: Sequence[str], *, positional: str = "") -> ParsedFlags:
    """Parse all arguments. An unknown flag is an error that names similar ones.

    `positional` is the parameter that takes arguments without a dash; if it is empty, they are errors.
    """
    known = {name: flag for flag in table for name in flag.names}
    found = ParsedFlags()
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word in ("-h", "-help", "--help"):
            found.help = True
            continue
        if positional and word and not word.startswith("-"):
            found.values.setdefault(positional, []).append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise UsageError(f"{tool}: {printable(word)!r} is not a flag; expected flags such as {table[0].shown}")
        if name not in known and not equals and name[0] in known and len(name) > 1 and name[1:].isdecimal():
            name, equals, value = name[0], "=", name[1:]  # -a7
            word = f"-{name}"
        flag = known.get(name)
        if flag is None:
            raise _unknown_flag(tool, word.partition("=")[0], list(known))
        if flag.takes is Takes.NOTHING:
            value = _parse_switch(tool, word, value if equals else "true")
        elif not equals:
            if not remaining:
                raise UsageError(f"{tool}: {printable(word)}: no value; expected {printable(word)}=VALUE")
            value = remaining.pop(0)
        _add_value(found, flag, word, value)
    return found


def _add_value(found: ParsedFlags, flag: Flag, word: str, value: str) -> None:
    if flag.parameter:
        found.values.setdefault(flag.parameter, []).append(value)
        found.spelt[flag.parameter] = printable(word.partition("=")[0])
    if flag.note:
        found.notes.append(f"{printable(word)}: {flag.note}")


def _parse_switch(tool: str, word: str, value: str) -> str:
    if value.lower() not in _SWITCH:
        raise UsageError(f"{tool}: {printable(word)}: takes no value; expected it alone, or with =true or =false")
    return _SWITCH[value.lower()]


def _unknown_flag(tool: str, word: str, known: list[str]) -> UsageError:
    near = get_close_matches(word.lstrip("-"), known, n=3, cutoff=0.6)
    dashes = word[: len(word) - len(word.lstrip("-"))]
    hint = ", ".join(f"{dashes}{name}" for name in near) or f"one that `opscope {tool} --help` lists"
    return UsageError(f"{tool}: {printable(word)}: no such flag; expected {hint}")


@contextmanager
def spelt_as(words: Mapping[str, str]) -> Iterator[None]:
    """Errors from below name options as this command line spells them.

    `words` is ours → theirs. Flags, and commands between ticks, are replaced wherever they stand; other words at the
    start of a message, where it names what is wrong: `activations 0: …` → `-a=0: …`.
    """
    try:
        yield
    except ProfilerError as error:
        error.args = (respelt(str(error), words),)
        raise


def respelt(text: str, words: Mapping[str, str]) -> str:
    """A message with words of the command line for ours, longer ones first."""
    for ours in sorted(words, key=len, reverse=True):
        theirs = words[ours]
        joined = "=" if theirs.startswith("-") and "=" not in theirs else " "
        if ours.startswith(("-", "`")):
            found = rf"(?<![\w-]){re.escape(ours)}(?![\w-])(?: (?=\w))?"
        else:
            found = rf"^{re.escape(ours)} (?=-?(?:[\d.]|nan|inf))"

        def spelt(match: re.Match[str], by: str = theirs, joined: str = joined) -> str:
            return by + joined if match[0].endswith(" ") else by

        text = re.sub(found, spelt, text)
    return text
