"""ONNX file → TFLite file by onnx2tf, whose tensors bear the names of the model's nodes. A worker of its environment.

The tool names tensors after the op that reads them, and says in a report of its own which node made which.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MOST_NAME = 200  # letters


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    import onnx2tf

    folder = Path(request["folder"])
    try:
        onnx2tf.convert(
            input_onnx_file_path=request["model"],
            output_folder_path=str(folder),
            keep_shape_absolutely_input_names=list(request["keep"]) or None,
            non_verbose=True,
        )
    except (Exception, SystemExit) as error:
        raise RuntimeError(_words(error)) from error
    file = next(folder.glob("*_float32.tflite"))
    report = json.loads(next(folder.glob("*_tensor_correspondence_report.json")).read_text(encoding="utf-8"))
    inputs = _renamed(file, report["records"], request["nodes"])
    return {"file": str(file), "version": onnx2tf.__version__, "inputs": inputs}


def _words(error: BaseException) -> str:
    """Of the first cause: what wraps it says only that something failed."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return f"{type(error).__name__}: {error}"


def _renamed(file: Path, records: Sequence[Mapping[str, Any]], nodes: Sequence[Any]) -> list[list[object]]:
    """Write the file with other names of inner tensors; return names and shapes of its inputs."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(file.read_bytes(), 0)
    names = _names(records, nodes)
    graph = model.subgraphs[0]
    ports = {*graph.inputs, *graph.outputs}
    taken = {graph.tensors[number].name for number in ports}
    for number, tensor in enumerate(graph.tensors):
        name = names.get(tensor.name.decode())
        if number not in ports and name is not None:
            wanted = name.encode()
            tensor.name = wanted if wanted not in taken else wanted + b":" + str(number).encode()
            taken.add(tensor.name)
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    file.write_bytes(bytes(builder.Output()))
    tensors = [graph.tensors[number] for number in graph.inputs]
    return [[tensor.name.decode(), [int(extent) for extent in tensor.shape]] for tensor in tensors]


def _names(records: Sequence[Mapping[str, Any]], nodes: Sequence[Any]) -> dict[str, str]:
    """Tensor of the tool → names of the nodes whose work makes it, first to last."""
    makers = {_plain(output): name for name, outputs in nodes for output in outputs}
    found: dict[str, list[str]] = {}
    for record in records:
        name = makers.get(_plain(record["onnx_output_name"]))
        if name and record["exists_in_final_model"]:
            found.setdefault(record["resolved_tflite_tensor_name"], []).append(name)
    return {tensor: ";".join(dict.fromkeys(made))[:_MOST_NAME] for tensor, made in found.items()}


def _plain(name: str) -> str:
    """Without what the tool changes in names: a slash at the beginning, and colons."""
    text = name[2:] if name.startswith("wa/") else name
    return text.replace(":", "__").lstrip("/")
