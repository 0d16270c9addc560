"""The verb `completion`: a few lines for a shell, which ask us for the words that may stand at the cursor."""

from __future__ import annotations

import sys
from argparse import REMAINDER, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterable, Sequence

from ...core.errors import ProfilerError

_BASH = """\
_opscope() {
    local IFS=$'\\n'
    COMPREPLY=($(opscope completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _opscope opscope
"""
_ZSH = """\
#compdef opscope
_opscope() {
    local -a found
    found=("${(@f)$(opscope completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n $found[1] ]]; then compadd -- $found; else _files; fi
}
compdef _opscope opscope
"""
_FISH = """\
function __opscope_words
    set -l before (commandline -opc)
    set -l now (commandline -ct | string collect --allow-empty)
    opscope completion --words $before[2..] "$now" 2>/dev/null
end
complete -c opscope -a '(__opscope_words)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


class CompletionCommand:
    """Print a script that makes a shell complete verbs, options, their choices, targets, backends and networks. The
    shell asks opscope each time, so names of new plug-ins are completed too."""

    examples = """\
examples:
  opscope completion bash >> ~/.bashrc
  opscope completion zsh > "${fpath[1]}/_opscope"
  opscope completion fish > ~/.config/fish/completions/opscope.fish
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("shell", nargs="?", choices=list(SCRIPTS), default="bash", help="shell (default: bash)")
        parser.add_argument(
            "--words", nargs=REMAINDER, metavar="WORD", help="print completions of the last word; for shells"
        )

    def run(self, args: Namespace) -> int:
        if args.words is None:
            sys.stdout.write(SCRIPTS[args.shell])
            return 0
        try:
            found = completions(args.words or [""])
        except ProfilerError:  # a broken plug-in, say: then there is nothing to offer
            return 0
        sys.stdout.write("".join(f"{word}\n" for word in found))
        return 0


def completions(words: Sequence[str]) -> list[str]:
    """What the last word, which may be empty, may become; nothing: a file, or any text."""
    from .. import verbs

    given = [word for word in words[:-1] if word != "="]  # bash has the sign as a word of its own
    last = "" if words[-1] == "=" else words[-1]
    if not given:
        return _starting([*verbs(), "--help", "--version"], last)
    if given[0] not in verbs():
        return []
    option, equals, start = last.partition("=")
    if equals and last.startswith("--"):
        return [f"{option}={word}" for word in _of_verb([*given, option], start)]
    return _of_verb(given, last)


def _of_verb(given: Sequence[str], last: str) -> list[str]:
    from .. import parser_of

    verb = given[0]
    parser: ArgumentParser = parser_of(verb)[1]
    place = 0  # how many words are no option and no value of one
    before: Action | None = None
    for word in given[1:]:
        action = parser._option_string_actions.get(word)
        if action is None and before is None and not word.startswith("-"):
            inner = _inner(parser, word)
            parser, place = (inner, 0) if inner is not None else (parser, place + 1)
        before = action if action is not None and action.nargs != 0 else None
    if before is not None:
        return _starting(_values(verb, before), last)
    if last.startswith("-"):
        return _starting(parser._option_string_actions, last)
    positional = [action for action in parser._actions if not action.option_strings]
    chosen = positional[min(place, len(positional) - 1)] if positional else None
    return [] if chosen is None else _starting(_values(verb, chosen), last)


def _inner(parser: ArgumentParser, word: str) -> ArgumentParser | None:
    """The parser of a verb's own verb."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            found: ArgumentParser | None = action.choices.get(word)
            return found
    return None


def _values(verb: str, action: Action) -> Iterable[str]:
    if action.choices is not None:
        return map(str, action.choices)
    return next((of() for key in ((verb, action.dest), ("", action.dest)) if (of := _KNOWN.get(key))), ())


def _targets() -> Iterable[str]:
    """Names alone: reading every target would take longer than a key."""
    from ...core.entries import known_entries, typed
    from ...machine.catalogue import catalogue

    return {*catalogue(), *(typed(known.entry.name) for known in known_entries())}


def _backends() -> Iterable[str]:
    from ...commands.backend_options import known_options

    return known_options()


def _networks() -> Iterable[str]:
    from ...zoo import names

    return (entry.name for entry in names())


def _environments() -> Iterable[str]:
    from ...backends.environments import known

    return (environment.name for environment in known())


def _verbs() -> Iterable[str]:
    from .. import verbs

    return verbs()


_KNOWN: dict[tuple[str, str], Callable[[], Iterable[str]]] = {  # verb (empty: any) and argument → its words
    ("", "target"): _targets,
    ("", "backend"): _backends,
    ("targets", "name"): _targets,
    ("calibrate", "target"): _targets,
    ("zoo", "name"): _networks,
    ("setup", "name"): _environments,
    ("man", "verb"): _verbs,
}


def _starting(words: Iterable[str], start: str) -> list[str]:
    return sorted(word for word in words if word.startswith(start))


COMMANDS = {"completion": CompletionCommand()}
