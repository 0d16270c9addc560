"""The analysis summary of a profile (QHAS) as a file."""

from __future__ import annotations

from io import StringIO

from ...recording.profiled import Profiled
from .qhas_html import QhasHtml
from .qhas_json import QhasJson


def analysis_summary(profiled: Profiled, form: str) -> bytes:
    """As json or html."""
    out = StringIO()
    (QhasHtml() if form == "html" else QhasJson()).render(profiled, out)
    return out.getvalue().encode()
