"""Arithmetic in the names of dimensions, as exporters write it.

`past_sequence_length + 1` (Optimum), `floor(height/2 - 1/2) + 1` (SymPy, through ONNX Runtime's symbolic inference),
`((s0 - 1)//2) + 1` and `Max(1, s1)` (PyTorch). Division is exact, so that a formula holds for the numbers it was
written for; what is no formula, divides by zero or is no whole number of elements has no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil, floor

_MOST_CHARACTERS = 400
_MOST_DEPTH = 32
_LARGEST = 1 << 62
_WORD = re.compile(r"\s*(?:(?P<number>\d{1,18})(?![\w.])|(?P<name>[^\W\d][\w.:]*)|(?P<mark>//|\*\*|[-+*/%(),]))")


class _NoValueError(Exception):
    """The text is no formula, or one of its names has no value."""


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or not 0 <= exponent <= 8:
        raise _NoValueError
    return Fraction(base ** int(exponent))


_FUNCTIONS: Mapping[str, Callable[..., Fraction]] = {
    "floor": lambda x: Fraction(floor(x)),
    "ceil": lambda x: Fraction(ceil(x)),
    "ceiling": lambda x: Fraction(ceil(x)),
    "max": lambda *x: max(x),
    "min": lambda *x: min(x),
    "mod": lambda x, y: x % y,
    "floordiv": lambda x, y: Fraction(x // y),
}
_OPERATORS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: Fraction(x // y),
    "%": lambda x, y: x % y,
    "**": _power,
}
_RANKS = ({"+", "-"}, {"*", "/", "//", "%"}, {"**"})  # loosest first


def evaluate(text: str, symbols: Mapping[str, int]) -> int | None:
    """Return the size that a dimension's name stands for, None if it cannot be told."""
    if text in symbols:
        return symbols[text]
    try:
        value = _Formula(text, symbols.get).value()
    except (_NoValueError, ZeroDivisionError, TypeError):  # TypeError: floor of two arguments
        return None
    return int(value) if value.denominator == 1 and 0 <= value < _LARGEST else None


def names_in(text: str) -> tuple[str, ...]:
    """Return the names that a formula is made of; a text that is no formula is one name."""
    names: dict[str, None] = {}

    def note(name: str) -> int:
        names[name] = None
        return 1

    try:
        _Formula(text, note).value()
    except (_NoValueError, TypeError):
        return (text,)
    except ZeroDivisionError:  # all names are 1 here: "n/(n - 1)"
        pass
    return tuple(names) or (text,)


class _Formula:
    """A parser that evaluates as it goes: one method per level of precedence."""

    def __init__(self, text: str, value_of: Callable[[str], int | None]) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise _NoValueError
        self._words = list(_words_of(text))
        self._value_of = value_of
        self._depth = 0

    def value(self) -> Fraction:
        found = self._level(0)
        if self._words:
            raise _NoValueError
        return found

    def _level(self, rank: int) -> Fraction:
        if rank == len(_RANKS):
            return self._term()
        left = self._level(rank + 1)
        while self._next() in _RANKS[rank]:
            mark = self._words.pop(0)
            left = _bounded(_OPERATORS[mark](left, self._level(rank + 1)))
            if mark == self._next() == "**":  # reads from the right, elsewhere; no exporter writes it
                raise _NoValueError
        return left

    def _term(self) -> Fraction:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _NoValueError
        found = self._number_or_call()
        self._depth -= 1
        return found

    def _number_or_call(self) -> Fraction:
        word = self._take()
        if word == "-":
            return -self._level(len(_RANKS) - 1)
        if word == "(":
            return self._arguments(1)[0]
        if word.isdecimal():
            return Fraction(int(word))
        if self._next() == "(":
            return self._call(word)
        size = self._value_of(word) if word[0].isalpha() or word[0] == "_" else None
        if size is None:
            raise _NoValueError
        return Fraction(size)

    def _call(self, name: str) -> Fraction:
        function = _FUNCTIONS.get(name.lower().rpartition(".")[2])
        if function is None:
            raise _NoValueError
        self._words.pop(0)
        return function(*self._arguments(8))

    def _arguments(self, most: int) -> list[Fraction]:
        """Read up to the closing bracket."""
        found = [self._level(0)]
        while (word := self._take()) == "," and len(found) < most:
            found.append(self._level(0))
        if word != ")":
            raise _NoValueError
        return found

    def _next(self) -> str:
        return self._words[0] if self._words else ""

    def _take(self) -> str:
        if not self._words:
            raise _NoValueError
        return self._words.pop(0)


def _words_of(text: str) -> Iterator[str]:
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise _NoValueError
        yield match[match.lastgroup or 0]
        position = match.end()


def _bounded(value: Fraction) -> Fraction:
    """Keep hostile products small: a chain of `**` would grow without end."""
    if abs(value.numerator) > _LARGEST or value.denominator > _LARGEST:
        raise _NoValueError
    return value
