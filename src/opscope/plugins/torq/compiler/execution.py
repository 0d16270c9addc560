"""Outputs of a model by the vendor's functional simulator. It has no time of the device, so none is told."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ....backends.process import run
from ....core.errors import ModelError, UsageError
from ....core.files import write_bytes
from ....core.random_arrays import NUMPY_TYPES, Port, random_arrays
from ....graph.graph import Graph
from .compilation import MODULE, RUNNER, compiled, read_graph
from .options import TorqOptions

_LONGEST_S = 3600.0


def execute_model(
    model: Path,
    options: TorqOptions,
    *,
    shapes: Mapping[str, tuple[int, ...]],
    inputs: Path | None,
    output: Path,
) -> None:
    """Compile and run once; inputs are those of an archive, else random ones."""
    graph = read_graph(model, shapes)
    arrays = _inputs(graph, inputs)
    with compiled(model, options) as found:
        words = [str(found.toolchain.programs[RUNNER]), "--device=torq", f"--module={MODULE}"]
        for number, array in enumerate(arrays):
            np.save(found.folder / f"in{number}.npy", array)
            words.append(f"--input=@in{number}.npy")
        words += [f"--output=@out{number}.npy" for number in range(len(graph.outputs))]
        ended = run(words, found.folder, longest_s=_LONGEST_S)
        if ended.code:
            raise ModelError(str(model), "", f"{RUNNER} {ended.how}; it says: {ended.last_words}")
        names = [graph.tensors[tensor].name for tensor in graph.outputs]
        told = {name: np.load(found.folder / f"out{number}.npy") for number, name in enumerate(names)}
    archive = BytesIO()
    np.savez(archive, **told)
    write_bytes(output, archive.getvalue())


def _inputs(graph: Graph, file: Path | None) -> list[npt.NDArray[np.generic]]:
    ports: list[Port] = [
        (tensor.name, tensor.dtype.label, tensor.shape or ()) for tensor in (graph.tensors[n] for n in graph.inputs)
    ]
    if file is None:
        return list(random_arrays(ports, seed=0))
    try:
        with np.load(file, allow_pickle=False) as archive:
            missing = [name for name, _, _ in ports if name not in archive]
            if missing:
                raise UsageError(f"{file}: no array {', '.join(missing)}; expected one per input of the model")
            return [archive[name].astype(NUMPY_TYPES[label]).reshape(shape) for name, label, shape in ports]
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {error}; expected an archive of arrays (.npz) that fit the inputs") from error
