"""What users may choose, once: from these classes come flags of the command line, keywords of the api and its checks.

An option is a line in every class that offers it: name, type, default, and metadata that says the rest. Each class has
a module, which is read when its name is asked for: making one takes a tenth of the time of `opscope report --help`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..core.errors import UsageError, did_you_mean, printable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from .bakeoff import BakeoffOptions as BakeoffOptions
    from .compile import DEFAULT_OVERLAP_PARTS as DEFAULT_OVERLAP_PARTS
    from .compile import CompileOptions as CompileOptions
    from .llm import LlmOptions as LlmOptions
    from .opstats import OpstatsOptions as OpstatsOptions
    from .optimize import OptimizeOptions as OptimizeOptions
    from .profile import ProfileOptions as ProfileOptions
    from .quantize import QuantizeOptions as QuantizeOptions
    from .report import ReportOptions as ReportOptions
    from .run import MOST_INFERENCES as MOST_INFERENCES
    from .run import RunOptions as RunOptions
    from .sweep import SweepOptions as SweepOptions
    from .what_if import WhatIfOptions as WhatIfOptions

KV_CACHES = ("as-is", "mxint8")

_OPTION = "option"  # key of the metadata of a field

Shapes = Mapping[str, tuple[int, ...]]  # graph input name → shape
Options = TypeVar("Options", bound="DataclassInstance")
Named = TypeVar("Named")


class Option(NamedTuple):
    """What a user is told of an option, and how it is written on a command line."""

    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()  # of a bool: the words for no and yes
    least: int | None = None  # of a whole number
    flags: tuple[str, ...] = ()  # where they are not the name of the field
    group: str = ""  # heading in the help
    bare: str = ""  # what the flag means without a value; empty: it needs one
    read: Callable[[str], object] | None = None  # of what is written with a unit, or as a comma list


def shown(
    words: str,
    metavar: str | None = None,
    *,
    choices: tuple[str, ...] = (),
    least: int | None = None,
    flags: tuple[str, ...] = (),
    group: str = "",
    bare: str = "",
    read: Callable[[str], object] | None = None,
) -> Mapping[str, Option]:
    """The metadata of a field that is an option."""
    return {_OPTION: Option(words, metavar, choices, least, flags, group, bare, read)}


def options_of(kind: type[DataclassInstance]) -> dict[str, Option]:
    """Every field that a command line offers, in order."""
    return {each.name: each.metadata[_OPTION] for each in fields(kind) if _OPTION in each.metadata}


def chosen(kind: type[Options], options: Options | None, named: Mapping[str, object]) -> Options:
    """The options given, or the default ones, with those that are given by name."""
    known = [each.name for each in fields(kind)]
    for name in named:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"option {printable(name)!r}: not known; {hint}expected one of {', '.join(known)}")
    if options is not None and not isinstance(options, kind):
        raise UsageError(f"options {printable(repr(options))}: expected {kind.__name__}")
    for each in fields(kind):
        _check_number(each.name, str(each.type), named.get(each.name))
    return replace(kind() if options is None else options, **named)


def chosen_or_by_name(
    kind: type[Options], options: Options | Mapping[str, Named] | None, named: Mapping[str, Named]
) -> Options | Mapping[str, Named]:
    """Options of this kind with those that are given by name; of any other, all of them as flags are spelt."""
    if options is None or isinstance(options, Mapping):
        return {**(options or {}), **{name.replace("_", "-"): value for name, value in named.items()}}
    return chosen(kind, options, named)


def _check_number(name: str, kind: str, value: object) -> None:
    """Refuse what is no number where one is meant: its range could not be checked."""
    whole = kind.removesuffix(" | None")
    if value is None or whole not in ("int", "float"):
        return
    if isinstance(value, bool) or not isinstance(value, Integral if whole == "int" else Real):
        expected = "a whole number" if whole == "int" else "a number"
        raise UsageError(f"option {name}: found {printable(repr(value))}; expected {expected}")


def part_of(kind: type[Options], whole: DataclassInstance) -> Options:
    """The options of one kind, with the values that another kind has under the same names."""
    have = {each.name for each in fields(whole)}
    shared = {each.name: getattr(whole, each.name) for each in fields(kind) if each.name in have}
    return replace(kind(), **shared)


def check_words(options: DataclassInstance) -> None:
    """Of options that are one of several words, or several of them, each word is known."""
    for name, option in options_of(type(options)).items():
        value = getattr(options, name)
        if not option.choices or isinstance(value, bool):
            continue
        for word in value if isinstance(value, tuple) else (value,):
            if word not in option.choices:
                two = len(option.choices) == 2
                known = " or ".join(option.choices) if two else f"one of {', '.join(option.choices)}"
                raise UsageError(f"{name.replace('_', ' ')} {printable(str(word))!r}: not known; expected {known}")


def extents(text: str, where: str) -> tuple[int, ...]:
    """1x3x224x224"""
    parts = text.split("x")
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UsageError(f"{where}: {printable(text)!r}; expected extents such as 1x3x224x224")
    return tuple(map(int, parts))


def comma_list(text: str) -> tuple[str, ...]:
    """The words of `a, b`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def shapes_text(shapes: Shapes) -> str:
    """One spelling of shapes, as options of runs and of cells keep them: `x=1x3x8x8;y=1`."""
    return ";".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))


def shapes_of(text: str) -> dict[str, tuple[int, ...]]:
    """What `shapes_text` made."""
    pairs = (part.rpartition("=") for part in text.split(";") if part)
    return {name: extents(found, f"shape of {printable(name)}") for name, _, found in pairs}


_MODULES = {
    "bakeoff": ("BakeoffOptions",),
    "compile": ("CompileOptions", "DEFAULT_OVERLAP_PARTS"),
    "llm": ("LlmOptions",),
    "opstats": ("OpstatsOptions",),
    "optimize": ("OptimizeOptions",),
    "profile": ("ProfileOptions",),
    "quantize": ("QuantizeOptions",),
    "report": ("ReportOptions",),
    "run": ("MOST_INFERENCES", "RunOptions"),
    "sweep": ("SweepOptions",),
    "what_if": ("WhatIfOptions",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
