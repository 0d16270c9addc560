"""The verb `targets`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

from ..commands.command import write_result
from ..core.errors import UsageError

if TYPE_CHECKING:
    from ..machine.target import Target


class TargetsCommand:
    """List the targets, or print one with the source of every figure."""

    examples = """\
examples:
  opscope targets
  opscope targets show aic100-std
  opscope targets show ./mychip.toml --json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", nargs="?", choices=["list", "show"], default="list", help="default: list")
        parser.add_argument("name", nargs="?", metavar="NAME", help="with show: a name or a TOML file")
        parser.add_argument("--json", action="store_true", help="as JSON")

    def run(self, args: Namespace) -> int:
        from ..machine import catalogue as targets

        if args.action == "show":
            if args.name is None:
                raise UsageError("targets show: no name given; expected one of `opscope targets` or a TOML file")
            target = targets.load(args.name)
            write_result(lambda out: _show_json(target, out) if args.json else _show(target, out), None)
            return 0
        known = [targets.read(path) for path in targets.catalogue().values()]
        write_result(lambda out: _list_json(known, out) if args.json else _list(known, out), None)
        return 0


def _list(known: list[Target], out: TextIO) -> None:
    """Write one row per target: clock, cores and memory."""
    from ..core.units import format_bytes
    from ..machine.target import Holds
    from ..views.text.columns import columns

    rows = [
        (
            t.name,
            f"{t.clocks.core_hz.value / 1e6:,.0f} MHz",
            f"{t.topology.devices.value:.0f} × {t.topology.cores.value:.0f}",
            format_bytes(t.home(Holds.ACTIVATIONS).bytes.value),
            t.title,
        )
        for t in known
    ]
    header = ("name", "clock", "devices × cores", "RAM", "title")
    out.write("\n".join(columns(header, rows, align="<>>><", limits={})) + "\n")


def _list_json(known: list[Target], out: TextIO) -> None:
    json.dump([{"name": t.name, "title": t.title, "clock_hz": t.clocks.core_hz.value} for t in known], out, indent=1)
    out.write("\n")


def _show(target: Target, out: TextIO) -> None:
    from ..machine.catalogue import figures
    from ..views.text.columns import columns

    rows = []
    for place, figure in figures(target):
        spread = f"{figure.smallest:,.6g} – {figure.largest:,.6g}" if figure.smallest != figure.largest else ""
        rows.append((place, f"{figure.value:,.6g}", spread, figure.source))
    out.write(f"{target.name}: {target.title}\n\n")
    out.write("\n".join(columns(("figure", "value", "range", "source"), rows, align="<>><", limits={})) + "\n\n")
    for key, text in target.sources.items():
        out.write(f"{key}: {text}\n")


def _show_json(target: Target, out: TextIO) -> None:
    from enum import Enum

    json.dump(
        asdict(target), out, indent=1, default=lambda value: value.value if isinstance(value, Enum) else str(value)
    )
    out.write("\n")


COMMANDS = {"targets": TargetsCommand()}
