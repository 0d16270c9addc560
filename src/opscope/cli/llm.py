"""The verb `llm`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import add_format, command_line, print_checks, write_result
from ..commands.options import add_options, options_from
from ..commands.progress import counted, step
from ..core.errors import UsageError
from ..options import LlmOptions

if TYPE_CHECKING:
    from typing import TextIO

    from ..gate.verdict import Verdict
    from ..workflows.record import Recorded

FORMATS = ("text", "md", "json", "html")


class LlmCommand:
    """Estimate a language model on a target from its config: time to the first token, time per token, tokens per
    second, memory and what fits, what bounds each phase, and energy per token. No weights are needed. CONFIG is a
    Hugging Face config.json, a folder with one, or a built-in name (--list)."""

    examples = """\
examples:
  opscope llm --list
  opscope llm llama-3.1-8b --target aic100-ultra --devices 4 --weights mxfp6 --kv mxint8
  opscope llm ./my-model/config.json --target aic100-std --prompt 128,2048 --context 2048,8192 --batch 1,8
  opscope llm llama-3.1-8b --target aic100-std --weights mxfp6 --budget ttft=500ms,tpot=50ms -o llama.run

Each prompt is combined with every context that is at least as long. With -o the first point is written as a run, whose
page has all points. Exit codes: 0 fine, 1 a budget is exceeded, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("config", nargs="?", metavar="CONFIG", help="config.json, its folder, or a built-in name")
        parser.add_argument("--list", action="store_true", help="list the built-in names")
        parser.add_argument("--target", metavar="T", help="name (see `opscope targets`) or TOML file")
        add_options(parser, LlmOptions)
        add_format(parser, FORMATS)
        parser.add_argument("-o", "--output", type=Path, metavar="RUN", help="folder of the run to write")
        parser.add_argument(
            "--budget",
            metavar="ttft=500ms,tpot=50ms,memory=32GB,energy=1J",
            help="exit 1 if a point exceeds one of these limits; energy is per token",
        )

    def run(self, args: Namespace) -> int:
        from ..gate.token_budget import judge_tokens, parse_token_budget
        from ..language_models.llm import language_model_of, llm

        if args.list:
            return _list(as_json=args.format == "json")
        if args.config is None or args.target is None:
            missing = "CONFIG" if args.config is None else "--target"
            raise UsageError(f"llm: no {missing}; expected `opscope llm CONFIG --target T`, or --list")
        limits = parse_token_budget(args.budget) if args.budget else {}
        found = llm(
            args.config,
            args.target,
            options_from(args, LlmOptions),
            run=args.output,
            command=command_line(),
            progress=counted("points"),
        )
        step("")
        verdict = judge_tokens(language_model_of(found), limits)
        write_result(_renderer(found, args.format, verdict), None)
        code = print_checks(verdict)
        if found.folder is not None:
            print(f"wrote {found.folder}", file=sys.stderr)
        return code


def _renderer(found: Recorded, form: str, verdict: Verdict) -> Callable[[TextIO], None]:
    """What writes it; only its view is imported."""
    from ..language_models.llm import language_model_of

    told = language_model_of(found)
    if form == "json":
        from ..views.json.language_model_json import LanguageModelJson

        return lambda out: LanguageModelJson(verdict=verdict).render(told, out)
    if form == "html":
        from ..views.page.page import RunPage

        return lambda out: RunPage().render(found.run, found.findings, out)
    from ..views.text.language_model_text import LanguageModelMarkdown, LanguageModelText

    view = LanguageModelMarkdown() if form == "md" else LanguageModelText()
    return lambda out: view.render(told, out)


def _list(*, as_json: bool) -> int:
    """Names that need no file."""
    from ..core.json_files import write_json
    from ..language_models.llm import known_models
    from ..views.text.columns import columns

    known = known_models()
    if as_json:
        rows = [
            {
                "name": each.name,
                "parameters": round(each.parameters * 1e9),
                "source": each.source,
                "found_in": each.found_in,
            }
            for each in known
        ]
        write_json({"schema": "opscope.llm-list/1", "models": rows}, sys.stdout)
        return 0
    table = [(each.name, f"{each.parameters:.4g} billion", each.source, each.found_in) for each in known]
    for line in columns(("name", "parameters", "config", "sizes found in"), table, align="<><<", limits={}):
        print(line)
    return 0


COMMANDS = {"llm": LlmCommand()}
