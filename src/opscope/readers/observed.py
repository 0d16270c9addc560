"""Shapes as one run of the model had them: for what only the data decide (`--shapes-from-run`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError, printable
from ..graph.graph import Note

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..core.random_arrays import Port

    Array = npt.NDArray[np.generic]

Shape = tuple[int, ...]

MAX_INPUT_BYTES = 1 << 34
SEED = 0


@dataclass(frozen=True, slots=True)
class NodeRuns:
    """All executions of one operator of the file, in order: the shapes of its outputs in each."""

    shapes: tuple[tuple[Shape, ...], ...]

    @property
    def count(self) -> int:
        return len(self.shapes)

    @property
    def same(self) -> tuple[Shape, ...] | None:
        """The shapes of the outputs, if every execution had the same."""
        return self.shapes[0] if len(set(self.shapes)) == 1 else None


Observed = Mapping[str, NodeRuns]  # by the operator's place in the file: "node 5", "subgraph 0 operator 3"


def run_inputs(ports: Sequence[Port], file: Path | None, source: str) -> dict[str, Array]:
    """Return the arrays of an .npz file by input name; inputs that it lacks, or all without a file, are random."""
    import numpy as np

    from ..core.random_arrays import NUMPY_TYPES, random_arrays

    given = {} if file is None else _load(file)
    names = [name for name, _, _ in ports]
    for name in given:
        if name not in names:
            known = ", ".join(map(printable, names)) or "none"
            raise UsageError(f"{file}: {printable(name)!r} is no input of {source}; expected {known}")
    for name, label, shape in ports:
        size = np.dtype(NUMPY_TYPES[label]).itemsize if label in NUMPY_TYPES else None
        for extent in shape:
            size = None if size is None else size * extent
        if name not in given and (size is None or size > MAX_INPUT_BYTES):
            wanted = f"{', '.join(NUMPY_TYPES)} of at most {MAX_INPUT_BYTES >> 30} GB, or --shapes-from-run INPUTS.npz"
            raise UsageError(f"{source}: input {printable(name)!r} is {label} of {list(shape)}; expected {wanted}")
    open_ports = [port for port in ports if port[0] not in given]
    made = zip((name for name, _, _ in open_ports), random_arrays(open_ports, seed=SEED), strict=True)
    found = given | dict(made)
    for name, label, _ in ports:
        if label in NUMPY_TYPES and found[name].dtype != np.dtype(NUMPY_TYPES[label]):
            expected = NUMPY_TYPES[label]
            raise UsageError(f"{file}: {printable(name)!r} is {found[name].dtype}; expected {expected}")
    return {name: found[name] for name in names}


def run_note(runtime: str, file: Path | None) -> Note:
    inputs = f"the inputs of {file}" if file is not None else "random inputs"
    text = f"shapes, branches and trips of loops are those of one run in {runtime} on {inputs}"
    return Note("shapes-from-run", text)


def input_shapes(file: Path) -> dict[str, Shape]:
    """The shapes of the arrays in an .npz file, by input name."""
    return {name: array.shape for name, array in _load(file).items()}


def _load(file: Path) -> dict[str, Array]:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}); expected an .npz of inputs") from error
    except (AttributeError, EOFError, KeyError, MemoryError, ValueError) as error:
        raise UsageError(f"{file}: no archive of arrays ({printable(str(error), 200)}); expected an .npz") from error
