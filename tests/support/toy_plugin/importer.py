"""Files of the toy's tool."""

from pathlib import Path

import msgspec

from opscope.core.errors import ImportFileError
from opscope.importers.reading import read_bytes
from opscope.recording.imported import LATENCY, Imported, Metric, empty_trace


class ToyFile:
    """One number: microseconds."""

    name = "toy-file"

    def read(self, path: Path) -> Imported:
        try:
            microseconds = msgspec.json.decode(read_bytes(path), type=dict[str, object])["toy"]
        except (msgspec.MsgspecError, KeyError) as error:
            raise ImportFileError(str(path), "", f"{error}; expected a toy's profile") from error
        return Imported(
            format=self.name,
            source=str(path),
            tool="a toy's tool",
            provenance="measured",
            trace=empty_trace("measured"),
            metrics=(Metric(LATENCY, int(str(microseconds)) * 1000, "ns"),),
        )
