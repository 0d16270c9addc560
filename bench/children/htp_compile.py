"""The vendor's compiler by itself: python htp_compile.py MODEL. What it writes is removed."""

from __future__ import annotations

import os
import sys
from tempfile import TemporaryDirectory

import onnxruntime as ort
import onnxruntime_qnn as qnn

NAME = "QNNExecutionProvider"


def compile_model(model: str, folder: str) -> None:
    ort.register_execution_provider_library(NAME, qnn.get_library_path())
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    for key, value in (("ep.context_enable", "1"), ("ep.context_file_path", f"{folder}/context.onnx")):
        settings.add_session_config_entry(key, value)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == NAME]
    options = {
        "backend_path": qnn.get_qnn_htp_path(),
        "soc_model": "52",
        "enable_htp_prepare_only": "1",
        "offload_graph_io_quantization": "0",
        "profiling_level": "optrace",
        "profiling_file_path": f"{folder}/profile.csv",
        "enable_framework_op_trace": "1",
        "framework_op_trace_dir": folder,
    }
    settings.add_provider_for_devices(devices[:1], options)
    ort.InferenceSession(model, settings)


if __name__ == "__main__":
    model = os.path.abspath(sys.argv[1])  # noqa: PTH100 – before the working folder changes
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        compile_model(model, folder)
        os.chdir("/")
