"""MLIR source locations as text: what is inside `loc(…)`, where it points to, and a short form.

Five productions: unknown, "file":line:column, callsite(callee at caller), fused<metadata>[…], "name"(child).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Position = tuple[str, int, int]  # file, line, column
Place = tuple[str, Position | None]  # the outermost name of a location, and where it points to

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLACE = re.compile(r":(\d{1,9})(?::(\d{1,9}))?")
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{2})|(.))")
_DEEPEST = 64
UNKNOWN = "unknown"


def plain_location(text: str) -> str:
    """The location inside `loc(…)`, without the quotes that a table put around it."""
    body = unquoted(text.strip())
    if body.startswith("loc(") and body.endswith(")"):
        body = body[4:-1]
    return body


def unquoted(text: str) -> str:
    """Without quotes around all of it. Quotes inside may be doubled, as in CSV, or not, as from a careless writer."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    inner = text[1:-1]
    if '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return inner if inner.startswith("loc(") else text


def positions(location: str) -> tuple[Position, ...]:
    """Where a location points to, without callers; empty: nowhere that is known, or no location."""
    return tuple(dict.fromkeys(position for _, position in _places(location) if position is not None))


def labels(location: str) -> tuple[str, ...]:
    """What a location calls its op, without callers: a name, or `line:column` where it has none."""
    found = (name or (f"{at[1]}:{at[2]}" if at else "") for name, at in _places(location))
    return tuple(dict.fromkeys(filter(None, found)))


def _places(location: str) -> list[Place]:
    try:
        found, end = _parse(location, 0, 0)
    except ValueError:
        return []
    return found if end == len(location) else []


def short(location: str) -> str:
    """`@L7C10`, joined with `+` where several were fused."""
    return "+".join(f"@L{line}C{column}" for _, line, column in positions(location))


def _parse(text: str, at: int, depth: int) -> tuple[list[Place], int]:
    """Positions of the location that starts here, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if text.startswith("loc(", at):
        found, at = _parse(text, at + 4, depth + 1)
        return found, _expect(text, at, ")")
    if text.startswith("callsite(", at):
        found, at = _parse(text, at + 9, depth + 1)
        _, at = _parse(text, _expect(text, at, " at "), depth + 1)
        return found, _expect(text, at, ")")
    if text.startswith("fused", at):
        return _fused(text, at + 5, depth)
    if text.startswith(UNKNOWN, at):
        return [], at + len(UNKNOWN)
    return _named(text, at, depth)


def _named(text: str, at: int, depth: int) -> tuple[list[Place], int]:
    """A position in a file, or a name with or without a location of its own."""
    string = _STRING.match(text, at)
    if string is None:
        raise ValueError("no location")
    place = _PLACE.match(text, string.end())
    if place is not None:
        return [("", (string[1], int(place[1]), int(place[2] or 0)))], place.end()
    name = _ESCAPE.sub(_unescaped, string[1])
    if text.startswith("(", string.end()):
        found, at = _parse(text, string.end() + 1, depth + 1)
        return [(name, position) for _, position in found] or [(name, None)], _expect(text, at, ")")
    return [(name, None)], string.end()


def _unescaped(found: re.Match[str]) -> str:
    return found[2] or chr(int(found[1], 16))


def _fused(text: str, at: int, depth: int) -> tuple[list[Place], int]:
    if text.startswith("<", at):
        at = _behind_metadata(text, at)
    at = _expect(text, at, "[")
    found: list[Place] = []
    while True:
        part, at = _parse(text, at, depth + 1)
        found += part
        if not text.startswith(", ", at):
            return found, _expect(text, at, "]")
        at += 2


def _behind_metadata(text: str, at: int) -> int:
    """Position behind `<…>`, which may nest and hold strings."""
    for kind, end in _brackets(text, at):
        if kind == 0:
            return end
    raise ValueError("metadata without an end")


def _brackets(text: str, at: int) -> Iterator[tuple[int, int]]:
    depth = 0
    for mark in re.finditer(r'"(?:[^"\\]|\\.)*"|[<>]', text[at:]):
        depth += {"<": 1, ">": -1}.get(mark[0], 0)
        yield depth, at + mark.end()


def _expect(text: str, at: int, words: str) -> int:
    if not text.startswith(words, at):
        raise ValueError(f"no {words!r}")
    return at + len(words)
