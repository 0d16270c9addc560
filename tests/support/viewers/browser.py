"""A page in headless Chromium that says what it found; served on loopback, with a fresh profile."""

from __future__ import annotations

import json
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue

from .packages import chromium

SECONDS = 120


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: object, answers: Queue[str], **options: object) -> None:
        self.answers = answers
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def do_POST(self) -> None:
        self.answers.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def answer_of(folder: Path, page: str, profile: Path) -> dict[str, object]:
    """Open a page of a folder; it posts one JSON object to /answer."""
    answers: Queue[str] = Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder), answers=answers))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
        "--window-size=1400,900",
        "--remote-debugging-port=0",
        "--js-flags=--liftoff-only",  # compiling the viewer's engine twice would take longer than to use it once
    )
    url = f"http://127.0.0.1:{server.server_address[1]}/{page}"
    with subprocess.Popen([chromium(), *options, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            found: dict[str, object] = json.loads(answers.get(timeout=SECONDS))
        except Empty:
            raise AssertionError(f"{page} said nothing in {SECONDS} s") from None
        finally:
            browser.terminate()
            try:
                browser.wait(10)
            except subprocess.TimeoutExpired:
                browser.kill()
            server.shutdown()
            server.server_close()
    return found
