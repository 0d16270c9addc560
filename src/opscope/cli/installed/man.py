"""The verb `man`: help of all verbs → a manual page in roff."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ... import __version__
from ...commands.command import write_result
from ...core.errors import UsageError, did_you_mean

_TITLE = "The open profiler for AI accelerators"
_EXIT = "0 fine; 1 a budget or gate failed; 2 wrong usage or unreadable input."
_PLAIN = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})
_BREAK = r",\:"  # a line may end behind a comma of many choices
_WORDS = re.compile(r"\s+")


class ManCommand:
    """Print the manual page, made from the help of every verb that is installed; or that of one verb."""

    examples = """\
examples:
  opscope man -o ~/.local/share/man/man1/opscope.1
  opscope man profile | man -l -
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", nargs="?", metavar="VERB", help="verb to print (default: all)")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)")

    def run(self, args: Namespace) -> int:
        from .. import EXAMPLES, verbs

        known = verbs()
        if args.verb is not None and args.verb not in known:
            raise UsageError(f"man {args.verb}: no such verb; {did_you_mean(args.verb, known)}see `opscope --help`")
        chosen = known if args.verb is None else {args.verb: known[args.verb]}

        def write(out: TextIO) -> None:
            out.writelines(f"{line}\n" for line in page(chosen, EXAMPLES if args.verb is None else ""))

        write_result(write, args.output)
        return 0


def page(verbs: dict[str, str], examples: str) -> Iterator[str]:
    """The lines of the page."""
    name = "opscope" if len(verbs) > 1 else f"opscope-{next(iter(verbs))}"
    yield f'.TH "{name.upper()}" 1 "" "opscope {__version__}" "opscope"'
    yield from (".ad l", ".nh")  # options are no words to be broken, nor to be spread out
    yield from (".SH NAME", f"{_plain(name)} \\- {_plain(_TITLE if len(verbs) > 1 else verbs[name[8:]])}")
    if len(verbs) > 1:
        yield from (".SH SYNOPSIS", ".B opscope", ".I VERB", "[\\fIOPTION\\fR ...]", ".SH VERBS")
        for verb, line in verbs.items():
            yield from (".TP", f".B {_plain(verb)}", _line(line))
    for verb in verbs:
        yield from _verb(verb)
    yield from (".SH EXIT STATUS", _line(_EXIT))
    if examples:
        yield ".SH EXAMPLES"
        yield from _as_it_is(examples)


def _verb(verb: str) -> Iterator[str]:
    from .. import parser_of

    parser = parser_of(verb)[1]
    yield f'.SH "OPSCOPE {_plain(verb.upper())}"'
    yield _line(parser.description or "")
    yield from _options(parser)
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, inner in action.choices.items():
                yield f'.SS "opscope {_plain(verb)} {_plain(name)}"'
                yield from _options(inner)
    yield ".PP"
    yield from _as_it_is(parser.epilog or "")


def _options(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.help == SUPPRESS or isinstance(action, _SubParsersAction) or "--help" in action.option_strings:
            continue
        yield from (".TP", _term(action, parser))
        yield _line(parser._get_formatter()._expand_help(action) if action.help else "what it is about")


def _term(action: Action, parser: ArgumentParser) -> str:
    """`-o, --output FILE`, names in bold and what they take in italics."""
    formatter = parser._get_formatter()
    value = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    shown = f"\\fI{_plain(_WORDS.sub(' ', value)).replace(',', _BREAK)}\\fR" if value else ""
    names = ", ".join(f"\\fB{_plain(name)}\\fR" for name in action.option_strings)
    return " ".join(filter(None, (names, shown)))


def _as_it_is(text: str) -> Iterator[str]:
    """Examples, with their lines kept."""
    yield ".nf"
    for line in text.rstrip("\n").splitlines():
        yield f"\\&{_plain(line)}"
    yield ".fi"


def _line(text: str) -> str:
    """A paragraph in one line, which cannot be taken for a request."""
    return f"\\&{_plain(_WORDS.sub(' ', text).strip())}"


def _plain(text: str) -> str:
    return text.translate(_PLAIN)


COMMANDS = {"man": ManCommand()}
