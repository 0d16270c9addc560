"""PyTorch on this machine: a module runs as it is, on the CPU or on a GPU."""

from __future__ import annotations

from ...core.manifest import MODULES, BackendEntry, Entry, Manifest, Option
from ...core.measuring_options import CPU, MEASURING
from ...core.provenance import Provenance

BACKEND = BackendEntry(
    name="torch",
    title="PyTorch on this machine, CPU or GPU",
    place=".backend:TorchBackend",
    models=(MODULES,),
    options=(
        *MEASURING,
        Option("device", "device to run on (default cuda if torch has one, else cpu)", ("cpu", "cuda")),
        Option(
            "mode",
            "eager: op by op; graph: as a CUDA graph; compile: by torch.compile (default eager)",
            ("eager", "graph", "compile"),
            "eager",
        ),
        Option("dtype", "cast float weights and inputs to this type (default: no cast)", ("f32", "f16", "bf16")),
    ),
)
MANIFEST = Manifest(
    name="torch",
    title="PyTorch",
    package=__package__,
    order=15,
    backends=(BACKEND,),
    entries=(Entry(*CPU, BACKEND.name, (Provenance.MEASURED,), aliases=("this CPU",), group="This machine"),),
)
