"""Answer: status, headers and body of one response, each with a content security policy."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

HTML, TEXT, BINARY = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/octet-stream"

_NEVER = "base-uri 'none'; frame-ancestors 'none'"
OWN_PAGE = f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; {_NEVER}"
DATA = f"default-src 'none'; sandbox; {_NEVER}"
# Rendered pages list the hashes of their script and style in a meta element; a header cannot, as they differ by run.
RUN_PAGE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    f"connect-src 'self'; form-action 'none'; {_NEVER}"
)
# A page stored in a run may come from anyone: it gets a separate origin and no network.
FOREIGN_PAGE = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    f"style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'; form-action 'none'; {_NEVER}"
)
# The UI compiles WebAssembly and starts workers; it may talk to this server only.
PERFETTO_UI = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; "
    f"connect-src 'self' data: blob:; manifest-src 'self'; form-action 'none'; {_NEVER}"
)

ISOLATED, MAY_OPEN_WINDOWS, NO_OPENER_POLICY = "same-origin", "same-origin-allow-popups", "unsafe-none"

_ALWAYS = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One response."""

    body: bytes | BinaryIO  # a stream is a file opened for this response, sent completely
    kind: str = HTML
    status: HTTPStatus = HTTPStatus.OK
    policy: str = OWN_PAGE
    opener: str = ISOLATED
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def length(self) -> int:
        return len(self.body) if isinstance(self.body, bytes) else os.fstat(self.body.fileno()).st_size

    def headers(self) -> tuple[tuple[str, str], ...]:
        return (
            ("Content-Type", self.kind),
            ("Content-Length", str(self.length)),
            ("Content-Security-Policy", self.policy),
            ("Cross-Origin-Opener-Policy", self.opener),
            *_ALWAYS,
            *self.extra,
        )

    def stream(self) -> BinaryIO:
        return io.BytesIO(self.body) if isinstance(self.body, bytes) else self.body


def refusal(status: HTTPStatus, text: str = "") -> Answer:
    """Return a short text that does not reveal which addresses exist."""
    return Answer(f"{text or status.phrase}\n".encode(), TEXT, status, DATA)
