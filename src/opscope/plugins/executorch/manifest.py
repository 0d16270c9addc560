"""What ExecuTorch's developer tools write: events of a run (ETDump), and the programs they are of (ETRecord)."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="executorch",
    title="ExecuTorch",
    package=__package__,
    order=45,
    formats=(
        Format(
            "executorch-etdump",
            "ExecuTorch ETDump (*.etdp); with its ETRecord, ops have the names and lines of the model",
            (Signature(rb"(?s).{4}ED00"), Signature(rb"(?s).{8}ED00")),
            ".importer:EtDump",
            with_formats=("executorch-etrecord",),
        ),
        Format(
            "executorch-etrecord",
            "ExecuTorch ETRecord (etrecord.bin): ops, their modules and lines of source; no times",
            (Signature(rb"PK\x03\x04", contains=(b"ETRECORD_V0",)),),
            ".importer:EtRecord",
        ),
    ),
)
