"""The tools of `opscope mcp`, by the SDK of the Model Context Protocol; each is a verb with its JSON."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from .. import __version__
from ..core.errors import ProfilerError, UsageError
from .verbs import Workspace

INSTRUCTIONS = """\
opscope profiles neural networks for accelerators and micro-controllers. Paths are relative to the folder served.
Start with `targets` to find a chip, `report` for memory and latency at a glance, `profile` for a run with causes.
`analyze` says why a run is slow, `compare` what differs between two, `whatif` which compiler options help.
Every number has a provenance (estimated, simulated, calibrated, vendor-model, measured): say it when you quote one,
with its range. null is unknown, never zero. `page` is a link for the person you talk to."""
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
Answer = dict[str, Any]
Option = str | int | bool


def make_server(workspace: Workspace) -> MCPServer:
    """A server with every tool, confined to a workspace."""
    server = MCPServer("opscope", title="opscope", version=__version__, instructions=INSTRUCTIONS)
    tools = Tools(workspace)
    for tool in (tools.targets, tools.report, tools.analyze, tools.compare, tools.whatif, tools.query_store, tools.llm):
        server.add_tool(tool, annotations=READS)
    server.add_tool(tools.profile, annotations=WRITES)
    return server


class Tools:
    """What an agent can ask."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def targets(self, search: str = "") -> Answer:
        """Chips that a model can be profiled on: names, titles, who can tell of each. `search` is words of a name."""
        return self._run("targets", [f"--search={search}"] if search else [])

    def report(self, model: str, target: str, budget: str = "", batch: int | None = None) -> Answer:
        """Memory, latency and energy of a model on a target, layer by layer, in about a second.

        `budget` such as "ram=256KB,latency=20ms" is checked; `passed` says whether it holds.
        """
        words = [self._file(model), *self._options({"target": target})]
        words += [f"--budget={budget}"] if budget else []
        words += [f"--batch={batch}"] if batch is not None else []
        return self._run("report", words)

    def profile(
        self,
        model: str,
        run: str,
        target: str = "",
        backend: str = "",
        options: dict[str, Option] | None = None,
    ) -> Answer:
        """Profile a model and leave a run in the folder `run`: latency with its range, where the time goes, findings.

        `options` are those of `opscope profile`, such as {"cores": 4, "precision": "w8a8", "soc": "SA8255"}.
        """
        place = self._place(run)
        chosen = {"target": target, "backend": backend, **(options or {})}
        found = self._run("profile", [self._file(model), f"--output={place}", *self._options(chosen)])
        return {**found, "run": run, "page": self._page(run)}

    def analyze(self, run: str, what_if: list[str] | None = None) -> Answer:
        """Why a run takes as long as it does: what binds it, causes with their cost, what to do about each.

        With `what_if` a simulated run is timed again with changes made, such as ["bandwidth*2", "cores=8",
        "op:/layer.0/MatMul*0.5"], and the answer is what that changes.
        """
        changes = [f"--what-if={change}" for change in what_if or []]
        return {**self._run("analyze", [self._file(run), *changes]), "page": self._page(run)}

    def compare(self, base: str, new: str, fail_on: list[str] | None = None) -> Answer:
        """What differs between two runs, and what explains it. `fail_on` are limits such as "latency>5%"."""
        limits = [f"--fail-on={limit}" for limit in fail_on or []]
        found = self._run("compare", [self._file(base), self._file(new), *limits])
        return {**found, "pages": [self._page(base), self._page(new)]}

    def whatif(self, model: str, axes: dict[str, list[str]], backend: str = "") -> Answer:
        """Compile a model by the vendor's own compiler with every combination of some options; the best first.

        `axes` such as {"soc": ["SA8255", "SA8295"], "precision": ["float", "w8a8"]}.
        """
        chosen = {"backend": backend, **{name: ",".join(values) for name, values in axes.items()}}
        return self._run("whatif", [self._file(model), *self._options(chosen)])

    def query_store(self, store: str, sql: str) -> Answer:
        """Rows of a store of many profiles, by a SELECT in SQL."""
        return self._run("store", ["query", f"--store={self._file(store)}", "--", sql])

    def llm(self, config: str, target: str, options: dict[str, Option] | None = None) -> Answer:
        """A language model on a target from its config alone: first token, next token, does it fit, what binds it.

        `config` is a config.json or a built-in name. `options` such as {"weights": "mxfp6", "prompt": "128,2048"}.
        """
        given = self._file(config) if "/" in config or self._place(config).exists() else config
        return self._run("llm", [given, *self._options({"target": target, **(options or {})})])

    def _run(self, verb: str, words: list[str]) -> Answer:
        try:
            return self._workspace.run(verb, words)
        except ProfilerError as error:
            raise ToolError(str(error)) from error

    def _file(self, given: str) -> str:
        try:
            return self._workspace.file(given)
        except ProfilerError as error:
            raise ToolError(str(error)) from error

    def _place(self, given: str) -> Path:
        try:
            return self._workspace.path(given)
        except ProfilerError as error:
            raise ToolError(str(error)) from error

    def _page(self, run: str) -> str | None:
        """A link to the page of a run, for people; None: it has none."""
        page = self._place(run) / "report.html"
        return page.as_uri() if page.is_file() else None

    def _options(self, chosen: Mapping[str, Option]) -> list[str]:
        """Words of the command line; what names a file stays below the folder served, and no program is started."""
        words = []
        for given, value in chosen.items():
            name = given.strip("-").replace("_", "-")
            if name in _NOT_FOR_AGENTS or not name.replace("-", "").isalnum():
                raise ToolError(f"option {given!r}: is not for agents; expected a choice of the verb")
            names_file = isinstance(value, str) and ("/" in value or "\\" in value or value.startswith(("~", "..")))
            if value is True:
                words.append(f"--{name}")
            elif value is not False and value != "":
                words.append(f"--{name}={self._place(str(value)) if names_file else value}")
        return words


_NOT_FOR_AGENTS = {"tool", "open"}  # they start programs


Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


def with_token(app: App, token: str) -> App:
    """The application for those alone who bring the token in the header Authorization."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        if scope["type"] == "http" and not secrets.compare_digest(headers.get(b"authorization", b""), wanted):
            await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
            await send({"type": "http.response.body", "body": b"the token of `opscope mcp` is missing\n"})
            return
        await app(scope, receive, send)

    return guarded


def serve_http(server: MCPServer, port: int, token: str) -> None:
    """Serve on the loopback interface until interrupted."""
    import uvicorn

    if not token:
        raise UsageError("mcp: no token; expected one")
    app = with_token(server.streamable_http_app(), token)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
