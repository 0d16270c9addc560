"""`python qnn_real.py MODEL SOC LEVEL RUNS`: compile with the vendor's library and run in emulation, in this folder.

The library writes into the working folder and prints to stdout, so it needs a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn as qnn

PROVIDER = "QNNExecutionProvider"


def main(model: str, soc: str, level: str, runs: str) -> None:
    folder = Path.cwd()
    ort.register_execution_provider_library(PROVIDER, qnn.get_library_path())
    settings = ort.SessionOptions()
    settings.enable_profiling, settings.profile_file_prefix = True, str(folder / "ort")
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    options = {
        "backend_path": qnn.get_qnn_htp_path(),
        "soc_model": soc,
        "profiling_level": level,
        "profiling_file_path": str(folder / "prof.csv"),
        "enable_framework_op_trace": "1",
        "framework_op_trace_dir": str(folder),
    }
    settings.add_provider_for_devices(devices[:1], options)
    session = ort.InferenceSession(model, settings)
    (port,) = session.get_inputs()
    for _ in range(int(runs)):
        session.run(None, {port.name: np.ones(port.shape, np.float32)})
    session.end_profiling()


if __name__ == "__main__":
    main(*sys.argv[1:])
