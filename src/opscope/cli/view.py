"""The verb `view`."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from types import FrameType

from ..core.errors import UsageError, printable


class ViewCommand:
    """Show a run, all runs of a folder, or a store in the browser. The server listens on this machine only; its address
    has a random token and is valid until Ctrl-C."""

    examples = """\
examples:
  opscope view bert.run
  opscope view runs --port 8000 --no-browser
  opscope view fleet.store
  opscope view fleet.store -o fleet.html --figures prices.csv

Exit codes: 0 written, or ended by Ctrl-C, 2 no such run, or the port is taken.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN|FOLDER|STORE", help="a run, a folder with runs in it, or a store")
        parser.add_argument("--port", type=_port, default=0, metavar="N", help="port (default: any free port)")
        parser.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
        group = parser.add_argument_group("of a store")
        group.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="write the page to a file instead of serving it"
        )
        group.add_argument("--where", metavar="SQL", help="SQL condition on the cells in the file")
        group.add_argument(
            "--figures",
            type=Path,
            action="append",
            default=[],
            metavar="CSV",
            help="more figures by column: target,price_usd:less (less is better); may be repeated",
        )

    def run(self, args: Namespace) -> int:
        """Serve until Ctrl-C or SIGTERM, which are handled alike."""
        from ..fleet.store import is_store

        if not is_store(args.run) and (args.output or args.where or args.figures):
            raise UsageError(f"{printable(args.run)}: is no store; expected -o, --where and --figures with one only")
        if args.output is not None:
            return _write(args)
        if args.where is not None:
            raise UsageError("--where: is for -o FILE; expected none, as the page that is served has a field for it")
        from ..server.http import RunServer

        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            with RunServer.with_installed_ui(args.run, port=args.port, given=args.figures, log=_log) as server:
                print(server.address, flush=True)
                print("Ctrl-C ends it", file=sys.stderr)
                if not args.no_browser:
                    _open(server.address)
                server.serve()
        except KeyboardInterrupt:
            print("ended", file=sys.stderr)
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0


def _write(args: Namespace) -> int:
    from ..fleet import verbs

    verbs.store_page(args.run, args.output, where=args.where or "", figures=args.figures)
    print(f"wrote {args.output}", file=sys.stderr)
    return 0


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print("note: no browser to be found; open the address above in one", file=sys.stderr)


def _log(line: str) -> None:
    print(f"opscope: {printable(line, 1000)}", file=sys.stderr)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise ArgumentTypeError(f"{text!r} is no port; expected 1 to 65535")
    return int(text)


COMMANDS = {"view": ViewCommand()}
