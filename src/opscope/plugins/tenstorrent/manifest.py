"""Tenstorrent chips, and what tt-metal's profiler writes of them."""

from __future__ import annotations

from pathlib import Path

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="tenstorrent",
    title="Tenstorrent tt-metal",
    package=__package__,
    order=65,
    targets=Path(__file__).with_name("targets"),
    formats=(
        Format(
            "tenstorrent-ops",
            "op table of tt-metal's profiler (ops_perf_results_*.csv)",
            (Signature(rb"OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID"),),
            ".importer:TenstorrentOps",
        ),
    ),
)
