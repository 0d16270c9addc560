"""Files of the toy's tool."""

from pathlib import Path

import msgspec

from opscope.core.errors import ImportFileError
from opscope.core.provenance import Provenance
from opscope.importers.reading import read_bytes
from opscope.recording.recording import LATENCY, Metric, Recording


class ToyFile:
    """One number: microseconds."""

    name = "toy-file"

    def read(self, path: Path) -> Recording:
        try:
            microseconds = msgspec.json.decode(read_bytes(path), type=dict[str, object])["toy"]
        except (msgspec.MsgspecError, KeyError) as error:
            raise ImportFileError(str(path), "", f"{error}; expected a toy's profile") from error
        return Recording(
            maker=self.name,
            provenance=Provenance.MEASURED,
            tool="a toy's tool",
            metrics=(Metric(LATENCY, int(str(microseconds)) * 1000, "ns"),),
        )
