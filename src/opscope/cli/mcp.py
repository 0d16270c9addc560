"""The verb `mcp`."""

from __future__ import annotations

import os
import secrets
import sys
from argparse import ArgumentParser, Namespace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from ..core.errors import UsageError

_TOKEN = "OPSCOPE_MCP_TOKEN"  # noqa: S105 - the name of a variable


class McpCommand:
    """Serve the verbs to an assistant as tools of the Model Context Protocol: profile, report, analyze, compare,
    whatif, targets, queries of a store, llm. Paths are limited to one folder, calls are limited in time, and answers
    are shortened to fit a context window."""

    examples = f"""\
examples:
  opscope mcp --root models/
  opscope mcp --root . --timeout 120
  opscope mcp --root . --http 8765
  opscope mcp --skill > SKILL.md

Over standard input and output by default, as assistants start it: `"command": "opscope", "args": ["mcp", "--root",
"PATH"]`. With --http, requests need a token: that of {_TOKEN}, or one that is printed at the start. Needs the extra
[mcp].
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--root",
            type=Path,
            default=Path(),
            metavar="DIR",
            help="only folder that the assistant can use (default: here)",
        )
        parser.add_argument(
            "--timeout", type=float, default=300.0, metavar="S", help="longest time of a call in seconds (default 300)"
        )
        parser.add_argument("--skill", action="store_true", help="print instructions for an assistant, and exit")
        parser.add_argument(
            "--http", type=int, metavar="PORT", help="serve over HTTP on 127.0.0.1 instead of standard input and output"
        )

    def run(self, args: Namespace) -> int:
        """Serve until the other side ends."""
        if args.skill:
            print(files("opscope.agents").joinpath("SKILL.md").read_text(encoding="utf-8"), end="")
            return 0
        if find_spec("mcp") is None:
            raise UsageError("mcp: the package mcp is not installed; expected pip install 'opscope[mcp]'")
        from ..agents.server import make_server, serve_http
        from ..agents.verbs import Workspace

        root = args.root.resolve()
        if not root.is_dir():
            raise UsageError(f"--root {args.root}: is no folder; expected one that an agent may use")
        if not args.timeout > 0:
            raise UsageError(f"--timeout {args.timeout:g}: expected seconds above 0")
        server = make_server(Workspace(root, args.timeout))
        if args.http is None:
            server.run()
            return 0
        token = os.environ.get(_TOKEN) or secrets.token_urlsafe(24)
        if _TOKEN not in os.environ:
            print(f"token: {token}", file=sys.stderr, flush=True)
        print(f"http://127.0.0.1:{args.http}/mcp", flush=True)
        serve_http(server, args.http, token)
        return 0


COMMANDS = {"mcp": McpCommand()}
