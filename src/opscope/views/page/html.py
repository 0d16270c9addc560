"""The one file around a page: its style, its script, its data, and the policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import TextIO

import msgspec

from .html_text import full_name
from .packed_columns import base64_of

_WEB = "views/page/web"
_IN_SCRIPT = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="{generator}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript><p>{title}: this page draws its tables and its timeline with its own script, which is not running here. The
same numbers are in the run&#8217;s <code>summary.json</code>, and in a report in another format.</p></noscript>
<div id="app"></div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
"""
_TAIL = "</body>\n</html>\n"


def asset(name: str) -> str:
    """A file that `make web` built."""
    return (files("opscope") / _WEB / name).read_text(encoding="utf-8")


def security_policy(script: str, style: str, *, served: bool) -> str:
    """Only this script and this style, each known by its hash; no request, or to the page's own server alone."""
    rules = (
        "default-src 'none'",
        f"script-src 'sha256-{_digest(script)}'",
        f"style-src 'sha256-{_digest(style)}'",
        "img-src data: blob:",
        "connect-src 'self'" if served else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def script_json(data: msgspec.Struct) -> str:
    """JSON that cannot end the script element around it."""
    try:
        text = msgspec.json.encode(data)
    except UnicodeEncodeError:  # half of a surrogate pair in a name: JSON can say it, UTF-8 cannot
        text = json.dumps(msgspec.to_builtins(data), separators=(",", ":")).encode()
    for plain, escaped in _IN_SCRIPT:
        text = text.replace(plain, escaped)
    return text.decode()


def write_page(
    out: TextIO,
    *,
    title: str,
    generator: str,
    data: msgspec.Struct,
    blocks: Iterable[tuple[str, bytes]] = (),
    served: bool = False,
) -> None:
    """The file, front to back. The script stands before the blocks: the first tab needs none of them."""
    script, style = asset("page.js"), asset("page.css")
    out.write(
        _HEAD.format(
            policy=html.escape(security_policy(script, style, served=served)),
            generator=html.escape(generator),
            title=html.escape(full_name(title)),
            style=style,
            data=script_json(data),
            script=script,
        )
    )
    for name, piece in blocks:
        out.write(
            f'<script type="application/octet-stream" id="block-{html.escape(name)}">{base64_of(piece)}</script>\n'
        )
    out.write(_TAIL)
