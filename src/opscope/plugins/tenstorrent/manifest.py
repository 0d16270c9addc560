"""What tt-metal's profiler writes of Tenstorrent parts."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="tenstorrent",
    title="Tenstorrent tt-metal",
    package=__package__,
    order=65,
    formats=(
        Format(
            "tenstorrent-ops",
            "op table of tt-metal's profiler (ops_perf_results_*.csv)",
            (Signature(rb"OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID"),),
            ".importer:TenstorrentOps",
        ),
    ),
)
