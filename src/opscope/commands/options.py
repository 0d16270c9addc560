"""Option dataclasses as flags of a command line, and back."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args, get_origin, get_type_hints

from ..core.errors import UsageError
from ..options import Option, Shapes, options_of
from ..options.shared import SHAPES
from .command import named_shape, positive

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar("Options", bound="DataclassInstance")


def add_options(parser: ArgumentParser, kind: type[DataclassInstance]) -> None:
    """A flag for every option of a dataclass, under the headings that they ask for."""
    hints, groups = get_type_hints(kind), dict[str, ArgumentParser | _ArgumentGroup]({"": parser})
    defaults = {each.name: each.default for each in fields(kind)}
    for name, option in options_of(kind).items():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        _add(groups[option.group], name, option, _plain(hints[name]), defaults[name])


def add_shape(parser: ArgumentParser, metadata: Mapping[str, Option] = SHAPES) -> None:
    """`--shape` of a verb whose options have no shapes."""
    (option,) = metadata.values()
    _add(parser, "shape", option, Shapes, MISSING)


def options_from(args: Namespace, kind: type[Options], **others: object) -> Options:
    """The options that a command line chose; `others` are fields that it has no flag for."""
    hints = get_type_hints(kind)
    given = {
        name: _value(getattr(args, name), option, _plain(hints[name])) for name, option in options_of(kind).items()
    }
    return kind(**given, **others)


def _plain(hint: object) -> object:
    """The type of what may be None."""
    return next((part for part in get_args(hint) if part is not type(None)), hint) if _is_optional(hint) else hint


def _is_optional(hint: object) -> bool:
    return type(None) in get_args(hint)


def _add(parser: ArgumentParser | _ArgumentGroup, name: str, option: Option, kind: object, default: object) -> None:
    """One flag, by the type of its field: a switch, a repeated value, or one value."""
    flags, words = option.flags or (f"--{name.replace('_', '-')}",), option.help.replace("%", "%%")
    if kind is bool and not option.metavar and not option.choices:
        action = "store_false" if default is True else "store_true"
        parser.add_argument(*flags, dest=name, action=action, help=words)
    elif get_origin(kind) is Mapping or (kind == tuple[str, ...] and option.read is None):
        parse = str if option.choices else named_shape
        choices, metavar = option.choices or None, option.metavar
        parser.add_argument(
            *flags, dest=name, action="append", default=[], type=parse, choices=choices, metavar=metavar, help=words
        )
    else:
        shown = option.choices[0] if kind is bool and option.choices else default
        parser.add_argument(
            *flags,
            dest=name,
            type=_parser_of(kind, option),
            default=None if shown is MISSING else shown,
            choices=option.choices or None,
            metavar=option.metavar,
            help=words,
            nargs="?" if option.bare else None,
            const=option.bare or None,
        )


def _parser_of(kind: object, option: Option) -> Callable[[str], object]:
    if option.read is not None:
        return _reader(option.read)
    if kind is int:
        return positive if option.least else int if option.least is None else _count
    if kind is bool:
        return str if option.choices else _truth
    if kind is float:
        return _number
    if kind is Path:
        return Path
    return _numbers if kind == tuple[int, ...] else str


def _reader(read: Callable[[str], object]) -> Callable[[str], object]:
    """As a type of argparse, which puts the name of the flag before what is wrong."""

    def parsed(text: str) -> object:
        try:
            return read(text)
        except UsageError as error:
            raise ArgumentTypeError(str(error)) from error

    return parsed


def _value(found: object, option: Option, kind: object) -> object:
    """What a flag left, as the dataclass has it."""
    if isinstance(found, list):
        return tuple(found) if kind == tuple[str, ...] else dict(found)
    return found == option.choices[1] if kind is bool and option.choices else found


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    """0,5,1"""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise ArgumentTypeError(f"{text!r} is not a list such as 0,5,1")
    return tuple(map(int, parts))


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"
