"""The analysis summary of a profile (QHAS) as a file."""

from __future__ import annotations

from io import StringIO

from ...recording.recording import Recording
from .qhas_html import QhasHtml
from .qhas_json import QhasJson


def analysis_summary(recording: Recording, form: str) -> bytes:
    """As json or html."""
    out = StringIO()
    (QhasHtml() if form == "html" else QhasJson()).render(recording, out)
    return out.getvalue().encode()
