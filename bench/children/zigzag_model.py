"""ZigZag on an ONNX file, with the hardware, mapping and search limits of its own example."""

import sys
from pathlib import Path

import zigzag
from zigzag.api import get_hardware_performance_zigzag

inputs = Path(zigzag.__file__).parent / "inputs"
energy, latency, _ = get_hardware_performance_zigzag(
    workload=sys.argv[1],
    accelerator=str(inputs / "hardware" / "tpu_like.yaml"),
    mapping=str(inputs / "mapping" / "tpu_like.yaml"),
    opt="latency",
    dump_folder=sys.argv[2],
    loma_show_progress_bar=False,
)
print(f"{latency} cycles")
