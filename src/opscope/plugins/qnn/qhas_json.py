"""The analysis summary of a profile (QHAS) as JSON."""

from __future__ import annotations

from typing import TextIO

import msgspec

from ...recording.recording import Recording


class QhasJson:
    """The short form and the tables, in one object."""

    suffix = ".qhas.json"

    def render(self, recording: Recording, out: TextIO) -> None:
        out.write(msgspec.json.format(msgspec.json.encode(recording.vendor_tables), indent=1).decode() + "\n")
