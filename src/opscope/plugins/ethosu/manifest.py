"""Arm Ethos-U through its own compiler, and the files that the compiler writes."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Entry, Example, Format, Manifest, Option, Signature
from ...core.provenance import Provenance

ACCELERATORS = (
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
    "ethos-u85-128",
    "ethos-u85-256",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)
MODES = (
    "Sram_Only",
    "Shared_Sram",
    "Dedicated_Sram",
    "Dedicated_Sram_256KB",
    "Dedicated_Sram_384KB",
    "Dedicated_Sram_512KB",
)
BACKEND = BackendEntry(
    name="vela",
    title="Arm Ethos-U through its compiler, ethos-u-vela",
    place=".backend:VelaBackend",
    models=("tflite",),
    precisions=("w8a8", "w8a16"),
    part="accelerator",
    figures=".options:figures_of",
    options=(
        Option(
            "accelerator",
            "Ethos-U part and its MACs per cycle (default ethos-u55-256)",
            ACCELERATORS,
            "ethos-u55-256",
        ),
        Option(
            "system-config",
            "clock and memories of the system (default: the family's, see docs/backends.md)",
            metavar="NAME",
        ),
        Option("memory-mode", f"what lies in which memory: {', '.join(MODES)} (default: by system)", metavar="NAME"),
        Option(
            "optimise",
            "performance: fastest; size: least memory (default performance)",
            ("performance", "size"),
            "performance",
        ),
        Option(
            "arena-cache-size",
            "memory for activations that the compiler aims at, in bytes (default: the memory mode's)",
            is_number=True,
            metavar="BYTES",
        ),
        Option("vela-config", "your own configuration file, with systems and memory modes", metavar="F.ini"),
        Option(
            "tool",
            "another installation of vela: its program, or its environment (default: the installed package)",
            metavar="PATH",
        ),
    ),
)
MANIFEST = Manifest(
    name="ethosu",
    title="Arm Ethos-U",
    package=__package__,
    order=30,
    targets="targets",
    backends=(BACKEND,),
    entries=tuple(
        Entry(
            name,
            f"Arm {name.rpartition('-')[0].title()}, {name.rpartition('-')[2]} MACs per cycle",
            BACKEND.name,
            (Provenance.VENDOR_MODEL, Provenance.COMPILER_FACT),
            part=name,
        )
        for name in ACCELERATORS
    ),
    examples=(Example("profile", "opscope profile model.tflite --target ethos-u55-256"),),
    formats=(
        Format(
            "vela-layers",
            "Vela per-layer performance (MODEL_per-layer.csv)",
            (Signature(rb"(?=[^\n]*NNG Operator,)[^\n]*Op Cycles,"),),
            ".importer:VelaLayers",
        ),
        Format(
            "vela-summary",
            "Vela summary (MODEL_summary_SYSTEM.csv)",
            (Signature(rb"(?=[^\n]*accelerator_configuration,)[^\n]*cycles_total"),),
            ".importer:VelaSummary",
        ),
    ),
)
