"""A code host on the loopback interface: comments of pull requests and merge requests, and who may write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

TOKEN = "token-of-the-job"  # noqa: S105
_PLACE = re.compile(r"/(?:repos/o/r/issues/7/comments|projects/42/merge_requests/7/notes)(?:/(\d+))?$")
_EDIT = re.compile(r"/repos/o/r/issues/comments/(\d+)$")


class CodeHost(ThreadingHTTPServer):
    """Keeps comments by their number."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: dict[int, str] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: CodeHost

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        tokens = (self.headers.get("Authorization"), self.headers.get("PRIVATE-TOKEN"))
        found = _PLACE.match(path) or _EDIT.match(path)
        if f"Bearer {TOKEN}" not in tokens and TOKEN not in tokens:
            self._send(403, {"message": "Forbidden"})
        elif found is None:
            self._send(404, {"message": "Not Found"})
        elif self.command == "GET":
            self._send(200, [{"id": number, "body": text} for number, text in self.server.comments.items()])
        else:
            number = int(found[1] or len(self.server.comments) + 1)
            self.server.comments[number] = json.loads(body)["body"]
            self._send(201, {"id": number})

    do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815

    def _send(self, code: int, found: object) -> None:
        data = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Stays silent."""


@contextmanager
def code_host() -> Iterator[CodeHost]:
    with CodeHost() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
