"""The verb `view`."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from types import FrameType


class ViewCommand:
    """Show a run, or all runs of a folder, in the browser. The server listens on this machine only; its address holds a
    random token and is good until Ctrl-C."""

    examples = """\
examples:
  opscope view bert.run
  opscope view runs --port 8000 --no-browser

Exit codes: 0 ended by Ctrl-C, 2 no such run, or the port is taken.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=Path, metavar="RUN|FOLDER", help="a run, or a folder with runs in it")
        parser.add_argument("--port", type=_port, default=0, metavar="N", help="default: any that is free")
        parser.add_argument("--no-browser", action="store_true", help="print the address only")

    def run(self, args: Namespace) -> int:
        """Serve until Ctrl-C or SIGTERM, which are handled alike."""
        from ..server.http import RunServer

        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            with RunServer.with_installed_ui(args.run, port=args.port, log=_log) as server:
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


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print("note: no browser to be found; open the address above in one", file=sys.stderr)


def _log(line: str) -> None:
    from ..core.errors import printable

    print(f"opscope: {printable(line, 1000)}", file=sys.stderr)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise ArgumentTypeError(f"{text!r} is no port; expected 1 to 65535")
    return int(text)


COMMANDS = {"view": ViewCommand()}
