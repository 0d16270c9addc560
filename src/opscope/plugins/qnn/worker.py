"""The process in which the vendor's library works: `python -m opscope.plugins.qnn.worker REQUEST RESULT`.

It has a folder of its own, because the library writes into the working folder and appends to files that are there.
The answer goes into a file, because the library prints to stdout. Nothing here is imported by the rest of opscope.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.worker import RefusedError, answer
from ...core.errors import UsageError
from ...core.random_arrays import random_arrays
from ...device.host.outputs import Output, saved_form
from .model_copies import prepared_model

if TYPE_CHECKING:
    import onnxruntime

    from ...device.host.inputs import Array

PROVIDER = "QNNExecutionProvider"


def _work(request: Mapping[str, Any]) -> dict[str, object]:
    folder = Path.cwd()
    model = prepared_model(request, folder)
    told = {"nodes": model.nodes, "notes": model.notes}
    provider = request["provider"]
    if not isinstance(provider, dict):
        raise RefusedError("provider: expected a table of options")
    if request["execute"]:
        return {**told, "outputs": _execute(model.file, folder, provider, request)}
    _compile(model.file, folder, provider)
    made = {} if model.quantized is None else {"copy": str(model.file), "quantized": model.quantized}
    return {**told, **made, **_versions()}


def _compile(model: Path, folder: Path, provider: Mapping[str, str]) -> None:
    """Compile without running: everything else is in the files that the library leaves."""
    entries = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(folder / "context.onnx"),
        "ep.context_embed_mode": "0",
    }
    options = {
        "enable_htp_prepare_only": "1",
        "profiling_level": "optrace",
        "profiling_file_path": str(folder / "profile.csv"),
        "enable_framework_op_trace": "1",
        "framework_op_trace_dir": str(folder),
        **provider,
    }
    _session(model, entries, options)


def _execute(model: Path, folder: Path, provider: Mapping[str, str], request: Mapping[str, Any]) -> str:
    """Run once in emulation; the outputs go into a file."""
    import numpy as np

    session = _session(model, {}, provider)
    given = dict(np.load(request["inputs"])) if request["inputs"] else {}
    missing = [port.name for port in session.get_inputs() if given and port.name not in given]
    if missing:
        raise RefusedError(f"inputs: {', '.join(missing)} missing; expected an array for every input of the model")
    ports = [(name, label, tuple(shape)) for name, label, shape in request["ports"]]
    feeds = given or dict(zip((name for name, _, _ in ports), random_arrays(ports, seed=0), strict=True))
    names = [port.name for port in session.get_outputs()]
    file = folder / "outputs.npz"
    np.savez(file, **_arrays(dict(zip(names, session.run(names, feeds), strict=True))))  # type: ignore[arg-type]
    return str(file)


def _arrays(outputs: Mapping[str, Output]) -> dict[str, Array]:
    """Outputs by name; those that are no tensors in several arrays, `NAME.keys` and such."""
    arrays: dict[str, Array] = {}
    for name, value in outputs.items():
        try:
            form = saved_form(value)
        except UsageError as error:
            raise RefusedError(f"output {name}: {error}") from error
        arrays |= {f"{name}.{part}": array for part, array in form.items()} if isinstance(form, dict) else {name: form}
    return arrays


def _session(model: Path, entries: Mapping[str, str], options: Mapping[str, str]) -> onnxruntime.InferenceSession:
    """A session on the vendor's execution provider; a missing one is refused in words for the user."""
    import onnxruntime as ort
    import onnxruntime_qnn as qnn  # type: ignore[import-untyped,import-not-found,unused-ignore]

    ort.register_execution_provider_library(PROVIDER, qnn.get_library_path())
    settings = ort.SessionOptions()
    settings.log_severity_level = 2
    for key, value in entries.items():
        settings.add_session_config_entry(key, value)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    if not devices:
        raise RefusedError(
            "the runtime offers no device of its QNN library here; expected x86-64 Linux or a Snapdragon PC"
        )
    settings.add_provider_for_devices(devices[:1], {"backend_path": qnn.get_qnn_htp_path(), **options})
    return ort.InferenceSession(str(model), settings)


def _versions() -> dict[str, object]:
    from importlib.metadata import version

    return {"producer": {name: version(name) for name in ("onnxruntime-qnn", "onnxruntime")}}


if __name__ == "__main__":
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser's tools tell their own users what to do
    answer(_work, *sys.argv[1:3])
