"""Options of backends as flags: every verb that profiles models offers those of all backends, and hands on one's."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..core.errors import UsageError
from ..core.manifest import USUAL_SECTIONS, Option, Section, Value
from .command import positive

_Flags = ArgumentParser | _ArgumentGroup


def known_options() -> dict[str, tuple[Option, ...]]:
    """Every backend with its options: the built-in ones first, then real runtimes."""
    from ..backends import registry as backends
    from ..workflows import own_backends

    return {**own_backends.OWN, **{entry.name: entry.options for entry in backends.entries()}}


def merged(options: Iterable[Option]) -> list[Option]:
    """Options of the same name as one, with the help texts and choices of all backends that have it."""
    found: dict[str, Option] = {}
    for option in options:
        first = found.setdefault(option.name, option)
        if first is not option:
            both = tuple(dict.fromkeys((*first.choices, *option.choices)))
            found[option.name] = first._replace(
                help=_joined(first.help, option.help, "; or: "),
                differs=_joined(first.differs, option.differs, "; "),
                choices=both if first.choices and option.choices else (),
            )
    return list(found.values())


def _joined(words: str, more: str, between: str) -> str:
    """Two texts as one, or the first where it has the second."""
    return words if more in words else between.join(filter(None, (words, more)))


def all_options(further: Sequence[Option] = ()) -> list[Option]:
    """The options of all backends, each name once."""
    return merged([*(option for options in known_options().values() for option in options), *further])


def add_source(parser: ArgumentParser) -> None:
    """`--target` and `--backend`: on what a model is profiled, and who tells."""
    parser.add_argument("--target", metavar="T", help="any name of `opscope targets`, or a TOML file")
    parser.add_argument(
        "--backend",
        metavar="B",
        help=f"what measures or predicts the times: {', '.join(known_options())} (see `opscope doctor`)",
    )


def add_option(parser: _Flags, option: Option, *, several: bool = False) -> None:
    """An option of a backend as an argument; with `several` it takes a comma-separated list."""
    flag = f"--{option.name}"
    words = _joined(option.help, option.differs, "; ").replace("%", "%%")
    if option.is_flag:
        parser.add_argument(flag, action="store_true", help=words)
    elif several:
        listed = f"; of {', '.join(option.choices)}" if option.choices else ""
        parser.add_argument(flag, metavar="V,V,…", help=words + listed)
    else:
        parser.add_argument(
            flag,
            type=positive if option.is_number else str,
            choices=option.choices or None,
            metavar=None if option.choices else option.metavar,
            help=words,
            nargs="?" if option.bare else None,
            const=option.bare or None,
        )


def chosen_options(args: Namespace) -> dict[str, Value]:
    """The values of the backend's own options; an option of another backend is an error."""
    known = {option.name for option in known_options()[args.backend]}
    given: dict[str, Value] = {}
    for option in all_options():
        value = getattr(args, attribute(option.name))
        if option.name in known:
            given[option.name] = value
        elif value:
            own = ", ".join(f"--{name}" for name in sorted(known))
            raise UsageError(f"--{option.name}: not an option of backend {args.backend}; expected of {own}")
    return given


def sections_shown(backend: str, options: Mapping[str, Value]) -> tuple[Section, ...]:
    """What is printed of what a backend tells, by its option for it."""
    from ..backends import registry as backends

    entry = next((each for each in backends.entries() if each.name == backend), None)
    if entry is None or entry.levels is None:
        return USUAL_SECTIONS
    level = entry.levels.option
    default = next(option.default for option in entry.options if option.name == level)
    return dict(entry.levels.sections).get(str(options.get(level) or default), USUAL_SECTIONS)


def choose_source(args: Namespace) -> str:
    """Set the backend that is to tell about the target, and its part; return why, where several could."""
    from ..workflows import catalogue

    words = {option.name: attribute(option.name) for option in all_options()}
    given = {name: getattr(args, word) for name, word in words.items() if getattr(args, word)}
    choice = catalogue.choose(args.target, backend=args.backend, options=given, model=args.model)
    if args.target is None and choice.target is not None:
        args.target = choice.target.name  # a part's own option named it
    args.backend = choice.backend
    for name, word in words.items():
        if name in given or name in choice.options:
            setattr(args, word, choice.options.get(name))
    return choice.note


def source_of_verb(args: Namespace, own: Collection[str]) -> tuple[dict[str, Value] | None, str]:
    """Of a verb that has options of its own: those of the backend, which is set as by `choose_source`, and why it is
    this one; None where neither a target nor a backend nor a part is named.

    Args:
        own: names of options that mean something of the verb, and are not handed on.
    """
    from ..backends import registry as backends

    parts = [attribute(entry.part) for entry in backends.entries() if entry.part]
    if args.backend is None and args.target is None and not any(getattr(args, part) for part in parts):
        return None, ""
    others = Namespace(**{**vars(args), **dict.fromkeys(map(attribute, own))})
    note = choose_source(others)
    args.target, args.backend = others.target, others.backend
    return {name: value for name, value in chosen_options(others).items() if name not in own}, note


def attribute(name: str) -> str:
    """Of an option, in the parsed arguments."""
    return name.replace("-", "_")
