"""Shapes as one run of the model had them: for what only the data decide (`--shapes-from-run`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError, printable
from ..core.random_arrays import RANDOM_INPUTS
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
    types: tuple[str, ...] = ()  # of the outputs, in the runtime's words

    @property
    def count(self) -> int:
        return len(self.shapes)

    @property
    def same(self) -> tuple[Shape, ...] | None:
        """The shapes of the outputs, if every execution had the same."""
        return self.shapes[0] if len(set(self.shapes)) == 1 else None


Observed = Mapping[str, NodeRuns]  # by the operator's place in the file: "node 5", "subgraph 0 operator 3"


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a model is run on: the arrays of a file, by input name; inputs that it lacks are random."""

    given: Mapping[str, Array]
    file: Path | None = None

    @classmethod
    def of(cls, choice: str | Path | None) -> RunInputs | None:
        """The inputs that `--shapes-from-run` asks for; None if it does not."""
        if choice is None:
            return None
        return cls({}) if choice == RANDOM_INPUTS else cls(_load(Path(choice)), Path(choice))

    @property
    def shapes(self) -> dict[str, Shape]:
        return {name: array.shape for name, array in self.given.items()}

    def note(self, what: str, runtime: str) -> Note:
        inputs = f"the inputs of {self.file}" if self.file is not None else "random inputs"
        return Note("shapes-from-run", f"{what} are those of one run in {runtime} on {inputs}")

    def arrays(self, ports: Sequence[Port], source: str) -> dict[str, Array]:
        """Return an array for every input."""
        from ..core.random_arrays import random_arrays

        made = [port for port in ports if port[0] not in self.given]
        for port in made:
            _check_size(port, source)
        drawn = zip(made, random_arrays(made, seed=SEED), strict=True)
        found = dict(self.given) | {name: array for (name, _, _), array in drawn}
        return {name: self._typed(name, label, found[name]) for name, label, _ in ports}

    def _typed(self, name: str, label: str, array: Array) -> Array:
        from ..core.random_arrays import NUMPY_TYPES

        if label == "string" and array.dtype.kind == "U":
            return array.astype(object)  # as runtimes take strings
        if label in NUMPY_TYPES and array.dtype.name != NUMPY_TYPES[label]:
            raise UsageError(f"{self.file}: {printable(name)!r} is {array.dtype}; expected {NUMPY_TYPES[label]}")
        return array


def _check_size(port: Port, source: str) -> None:
    """Refuse an input that no random array can be made for."""
    import numpy as np

    from ..core.random_arrays import NUMPY_TYPES

    name, label, shape = port
    if label not in NUMPY_TYPES or prod(shape) * np.dtype(NUMPY_TYPES[label]).itemsize > MAX_INPUT_BYTES:
        kinds = f"{', '.join(NUMPY_TYPES)} of at most {MAX_INPUT_BYTES >> 30} GB"
        problem = f"input {printable(name)!r} is {label} of {list(shape)}"
        raise UsageError(f"{source}: {problem}; expected {kinds}, or --shapes-from-run INPUTS.npz")


def _load(file: Path) -> dict[str, Array]:
    from zipfile import BadZipFile
    from zlib import error as ZlibError  # noqa: N812 - it is a class

    import numpy as np

    try:
        with file.open("rb") as content, np.load(content, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}); expected an .npz of inputs") from error
    except (AttributeError, BadZipFile, EOFError, KeyError, MemoryError, TypeError, ValueError, ZlibError) as error:
        raise UsageError(f"{file}: no archive of arrays ({printable(str(error), 200)}); expected an .npz") from error
