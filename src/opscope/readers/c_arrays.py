"""A model as an array in C or C++ source, as `xxd -i` and firmware projects have it → the model's bytes.

    alignas(16) const unsigned char g_model[] = { 0x1c, 0x00, 0x00, 0x00, 0x54, 0x46, 0x4c, 0x33, … };

A name, anything about alignment, a brace and numbers are all that is looked for: no preprocessor, no types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..core.errors import ModelError, printable
from .formats import HEAD_BYTES, ModelFormat, format_of, listed

MOST_TEXT_BYTES = 1 << 26  # about 10 MB of model
MOST_ARRAYS = 1000
_WINDOW_BYTES = 1 << 16
_HEAD_TEXT_BYTES = 1 << 16  # that the first numbers of an array stand in
_LONGEST_NUMBER = 32

# An open brace and a number. Repeats are bounded or possessive: the time is linear in the text, whatever it is.
_ARRAY = re.compile(rb"\{\s*+\{?\s*+(?:(?://[^\n]{0,100}+\n|/\*[^*]{0,100}+\*/)\s*+)?(?=-?\d)")
_NAME = re.compile(rb"(\w+)\s*(?:\[[^\[\]{};]*\][^\[\]{};=]*)?=?\s*\Z")  # name[size] attributes =
_LONGEST_DECLARATION = 300
_COMMENT_OR_END = re.compile(rb"\}|//[^\n]*+|/\*(?:.*?\*/|.*)", re.DOTALL)


class Array(NamedTuple):
    """A model in source text."""

    name: str
    format: ModelFormat
    start: int  # of its first number in the text


class _NotBytesError(ValueError):
    """What stands in an array is no byte."""


def find_model(text: bytes, source: str) -> Array | None:
    """The array that holds a model; None: the text has no arrays of bytes. Several models, or none, is an error."""
    names: list[str] = []
    models: list[Array] = []
    for match in _ARRAY.finditer(text):
        name = _name(text[max(0, match.start() - _LONGEST_DECLARATION) : match.start()])
        if len(names) == MOST_ARRAYS:
            raise ModelError(source, "", f"more than {MOST_ARRAYS} arrays; expected source with one model in it")
        names.append(name)
        head = _head(text, match.end())
        # The text is longer than what it stands for, and that is all that matters here.
        form = format_of(head, len(text), "") if head else None
        if form in (ModelFormat.TFLITE, ModelFormat.ONNX):
            models.append(Array(name, form, match.end()))
    certain = [model for model in models if model.format is ModelFormat.TFLITE]  # which has a mark, ONNX has none
    models = certain or models
    if len(models) > 1:
        raise ModelError(source, "", f"holds {len(models)} models ({listed([m.name for m in models])}); expected one")
    if not models and names:
        raise ModelError(
            source, "", f"source text, and no array in it is a model ({listed(names)}); expected one that is"
        )
    return models[0] if models else None


def decode(text: bytes, array: Array, source: str) -> Iterator[bytes]:
    """The bytes that the numbers of an array stand for, in pieces."""
    try:
        yield from _decoded(text, array.start)
    except _NotBytesError as error:
        raise ModelError(source, f"array {printable(array.name)}", str(error)) from None


def _name(before: bytes) -> str:
    """What the array behind these words is called."""
    found = _NAME.search(before)
    return found[1].decode("ascii", "replace") if found else "without a name"


def _head(text: bytes, start: int) -> bytes:
    """The first bytes of an array, up to what is none: of a model, it is said when the whole of it is read."""
    head = bytearray()
    try:
        for numbers in _numbers(text[start : start + _HEAD_TEXT_BYTES], 0, HEAD_BYTES):
            for number in numbers:
                head.append(_byte(number))
            if len(head) >= HEAD_BYTES:
                break
    except _NotBytesError:
        pass
    return bytes(head[:HEAD_BYTES])


def _decoded(text: bytes, start: int) -> Iterator[bytes]:
    for numbers in _numbers(text, start, _WINDOW_BYTES):
        yield bytes(map(_byte, numbers))


def _numbers(text: bytes, start: int, window: int) -> Iterator[list[bytes]]:
    """What stands between the commas of an array."""
    rest = b""
    for piece in _windows(text, start, window):
        *numbers, rest = (rest + piece).split(b",")
        yield numbers
        rest = rest.strip()
        if len(rest) > _LONGEST_NUMBER:
            raise _NotBytesError(f"{_shown(rest)} is no byte; expected numbers from 0x00 to 0xff")
    if rest:  # there is none behind a last comma
        yield [rest]


def _windows(text: bytes, start: int, window: int) -> Iterator[bytes]:
    """What stands between the braces, less comments."""
    for match in _COMMENT_OR_END.finditer(text, start):
        yield from _cut(text, start, match.start(), window)
        if match[0] == b"}":
            return
        start = match.end()
    yield from _cut(text, start, len(text), window)
    raise _NotBytesError("the text ends before the array does; expected a closing brace")


def _cut(text: bytes, start: int, end: int, window: int) -> Iterator[bytes]:
    return (text[at : min(at + window, end)] for at in range(start, end, window))


def _byte(number: bytes) -> int:
    try:
        value = int(number, 0)
    except ValueError:
        value = _unusual(number)
    if not -128 <= value <= 255:
        raise _NotBytesError(f"{_shown(number)} is no byte; expected numbers from 0x00 to 0xff")
    return value & 0xFF


def _unusual(number: bytes) -> int:
    """A number with a suffix, or in octal as C writes it."""
    plain = number.strip().rstrip(b"uUlL")
    try:
        return int(plain, 8 if plain[:1] == b"0" and plain.isdigit() else 0)
    except ValueError:
        raise _NotBytesError(f"{_shown(number)} is no byte; expected numbers from 0x00 to 0xff") from None


def _shown(number: bytes) -> str:
    return f"'{printable(number.strip().decode('ascii', 'replace'), _LONGEST_NUMBER)}'"
