"""TensorFlow Lite file → Graph.

The file is memory-mapped: a flatbuffer is read in place and the bytes of large constants are never touched.
`flatbuffer` reads bytes, `model` tables, `shapes` works out what the file leaves open, `ops` translates operators; this
module assembles the Graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError
from ...core.units import Bytes
from ...graph.graph import Graph
from ..observed import RunInputs
from .details import details, placed_offsets, signature_inputs, signature_keys
from .expand import Expansion
from .flatbuffer import Flatbuffer
from .model import StoredModel
from .schema import IDENTIFIER
from .shapes import InputShapes, infer_shapes, input_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .observe import Seen

HEAD_BYTES = 8


def looks_like_tflite(head: bytes) -> bool:
    """Whether a file that starts with `head` (8 bytes or more) is a TensorFlow Lite model."""
    return head[4:HEAD_BYTES] == IDENTIFIER


def read_tflite(
    path: Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] = {},
    batch: int | None = None,
    shapes_from_run: str | Path | None = None,
) -> Graph:
    """Read a TensorFlow Lite model.

    Args:
        path: the file.
        shapes: shapes of inputs, by the name that the file or its signature gives them.
        batch: the leading extent of the inputs, in place of the stored one.
        shapes_from_run: run the model once in LiteRT, on inputs that are "random" or those of an .npz file, and take
            the shapes that its tensors had.
    """
    source = str(path)
    with _map_file(path) as content:
        if not looks_like_tflite(content[:HEAD_BYTES]):
            raise ModelError(
                source, "byte 0x4", f"{content[4:8]!r} is not a TensorFlow Lite file; expected {IDENTIFIER!r}"
            )
        model, run = StoredModel(Flatbuffer(content, source)), RunInputs.of(shapes_from_run)
        if run is not None:
            shapes = {**run.shapes, **shapes}
        aliases = signature_inputs(model) if shapes else {}
        given = input_shapes(model.subgraph(0), shapes, batch, aliases=aliases, source=source)
        return _read(model, path, given, run)


def _read(model: StoredModel, path: Path, given: InputShapes, run: RunInputs | None) -> Graph:
    """Shape the tensors and expand the subgraphs into a Graph."""
    source = model.file.source
    observed: Mapping[int, Seen] = {}
    if run is not None:
        from .observe import observe

        observed = observe(path, model.subgraph(0), given.shapes, run)
    frame, notes = infer_shapes(model, given, observed)
    if run is not None:
        notes = (*notes, run.note("shapes and branches", "LiteRT"))
    expansion = Expansion(model)
    inputs, outputs = expansion.run(signature_keys(model), frame)
    return Graph(
        name=path.stem,
        source=source,
        framework="TensorFlow Lite",
        ops=expansion.ops,
        tensors=expansion.tensors,
        inputs=inputs,
        outputs=outputs,
        file_bytes=Bytes(model.file.size),
        notes=(*given.notes, *notes, *expansion.notes()),
        details=details(model),
        placed_in=expansion.placed_in(placed_offsets(model)),
    )


@contextmanager
def _map_file(path: Path) -> Iterator[mmap]:
    """Map the file into memory; an empty or unreadable file is a ModelError."""
    try:
        with path.open("rb") as file:
            content = mmap(file.fileno(), 0, access=ACCESS_READ)
    except ValueError:  # mmap refuses an empty file this way
        raise ModelError(str(path), "byte 0x0", "the file is empty; expected a TensorFlow Lite model") from None
    except OSError as error:
        raise ModelError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    with content:
        yield content
