"""The verb `zoo`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..commands.command import positive, write_result
from ..commands.progress import counted
from ..core.errors import UsageError
from ..zoo import EVERYWHERE, Recipe, make, names

if TYPE_CHECKING:
    from ..zoo import ListedNetwork, Option


_SHOWN = 4  # networks that the help of an option names


class ZooCommand:
    """Make a sample model without a download: shapes of the published network, random weights, the same bytes every
    time. Without a name: list the networks and their options."""

    examples = """\
examples:
  opscope zoo
  opscope zoo resnet50 -o resnet50.onnx
  opscope zoo mobilenetv2 --width 35 --size 128 --format tflite --precision int8 -o small.tflite
  opscope zoo bert-base --batch 8 --seq 128 --precision f16 -o bert.onnx
  opscope zoo kws-cnn --format tflite --precision int8 -o kws.tflite
  opscope zoo fc --format tosa -o fc.mlir
  opscope zoo llm-decoder --layers 32 --kv-length 2048 --precision f16 --no-weights -o llm.onnx
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="a network; `opscope zoo` lists them")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the model file to write")
        parser.add_argument(
            "--format",
            choices=["onnx", "tflite", "tosa"],
            help="format of the file (default: by its suffix, else onnx)",
        )
        parser.add_argument(
            "--precision", choices=["f32", "f16", "int8"], help="data type (default: f32; int8 for TOSA)"
        )
        parser.add_argument("--batch", type=positive, default=1, metavar="N", help="batch size (default 1)")
        parser.add_argument("--seq", type=positive, metavar="N", help="sequence length, for networks that read tokens")
        parser.add_argument("--no-weights", action="store_true", help="leave out the data of the weights (ONNX)")
        parser.add_argument("--json", action="store_true", help="print the list as JSON")
        group = parser.add_argument_group("options of single networks")
        for name, used_by, description in _options(names()):
            group.add_argument(f"--{name.replace('_', '-')}", metavar="V", help=f"{description} ({used_by})")

    def run(self, args: Namespace) -> int:
        """List the networks, or write the requested model."""
        if args.name is None:
            write_result(lambda out: _list_json(out) if args.json else _list(out), None)
            return 0
        if args.output is None:
            raise UsageError(f"zoo {args.name}: no output file; expected -o FILE")
        given = {name: getattr(args, name) for name, _, _ in _options(names()) if getattr(args, name) is not None}
        recipe = Recipe(
            name=args.name,
            batch=args.batch,
            sequence=args.seq,
            precision=args.precision,
            format=args.format or {".tflite": "tflite", ".mlir": "tosa"}.get(args.output.suffix, "onnx"),
            weights=not args.no_weights,
            options=given,
        )
        try:
            make(recipe, args.output, progress=counted("writing weights"))
        except OSError as error:
            raise UsageError(
                f"{args.output}: cannot be written ({error.strerror}); expected a writable place"
            ) from error
        print(f"wrote {args.output}", file=sys.stderr)
        return 0


def _options(entries: list[ListedNetwork]) -> list[tuple[str, str, str]]:
    """Return every option once: name, the networks that take it, description."""
    users: dict[str, list[str]] = {}
    text: dict[str, str] = {}
    for entry in entries:
        for option in entry.options:
            users.setdefault(option.name, []).append(entry.name)
            text.setdefault(option.name, option.description)
    return [(name, _some(used, len(entries)), text[name]) for name, used in users.items()]


def _some(users: list[str], everyone: int) -> str:
    """Return the networks that take an option, as many as fit in a line of help."""
    if len(users) == everyone:
        return "all"
    more = len(users) - _SHOWN
    return ", ".join(users[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _list(out: TextIO) -> None:
    """Write one line per network, under its task; those that take the same options share a line that lists them."""
    for task, of_task in groupby(names(), key=lambda entry: entry.task):
        out.write(f"{task}\n")
        for taken, entries in groupby(of_task, key=_taken):
            members = list(entries)
            width = max(len(entry.name) for entry in members)
            for entry in members:
                out.write(f"    {entry.name:<{width}}  {entry.description}\n")
            out.write(f"        {taken}\n")
    out.write("all: --batch --precision --format --no-weights" + "".join(f" {_flag(o)}" for o in EVERYWHERE) + "\n")


def _flag(option: Option) -> str:
    return f"--{option.name.replace('_', '-')}"


def _taken(entry: ListedNetwork) -> str:
    """Return formats, precisions and options of a network as one line."""
    forms = "; ".join(f"{form}: {', '.join(entry.precisions[form])}" for form in entry.formats)
    options = [_flag(option) for option in entry.options if option not in EVERYWHERE]
    return "; ".join([forms, " ".join(["--seq", *options] if entry.takes_sequence else options)]).rstrip("; ")


def _list_json(out: TextIO) -> None:
    rows = [
        {
            "name": entry.name,
            "task": entry.task,
            "description": entry.description,
            "precisions": {form: list(kinds) for form, kinds in entry.precisions.items()},
            "options": {option.name: option.default for option in entry.options},
        }
        for entry in names()
    ]
    json.dump(rows, out, indent=1)
    out.write("\n")


COMMANDS = {"zoo": ZooCommand()}
