"""Annotated as CSV with semicolons; locations hold commas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from ....core.ahead import ahead
from .annotated import Annotated
from .columns import Headers, Table

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR = ";"
_SPECIAL = '[;"\r\n]'


class AnnotatedCsv:
    """One line per row. What is unknown is empty; quotes are doubled where a text needs them around it."""

    suffix = ".csv"

    def __init__(self, *, headers: Headers = Headers.SNAKE) -> None:
        self.headers = headers

    def render(self, annotated: Annotated, out: BinaryIO) -> None:
        import pyarrow.compute as pc

        table = Table(annotated, _one_text, _end_of_line)
        out.write((SEPARATOR.join(column.called(self.headers) for column in table.columns) + "\n").encode())

        def text(start: int) -> memoryview:
            return _bytes_of(pc.binary_join_element_wise(*table.part(start), SEPARATOR))

        for lines in ahead(text, table.starts()):
            out.write(lines)


def _bytes_of(texts: pa.Array) -> memoryview:
    """All texts one behind the other, as they lie in memory."""
    import numpy as np

    _, offsets, data = texts.buffers()
    kind = np.int64 if "large" in str(texts.type) else np.int32
    edges = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(edges[0]) : int(edges[-1])]


def _one_text(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns as one, with the separator between them."""
    import pyarrow.compute as pc

    return [pc.binary_join_element_wise(*(_as_text(column) for column in columns), SEPARATOR)]


def _end_of_line(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The same of the last columns: there are few of them before they are repeated, so the newline is put here."""
    import pyarrow.compute as pc

    return [pc.binary_join_element_wise(*_one_text(columns), "", "\n")]


def _as_text(column: pa.Array) -> pa.Array:
    """Flags as True and False; fractional columns keep their `.0`; texts are quoted where they must be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type):
        text = pc.if_else(column, "True", "False")
    elif pa.types.is_floating(column.type):
        whole = pc.cast(column, pa.int64(), safe=False)
        if pc.all(pc.equal(whole, column)).as_py() is not False:  # written faster than fractions are
            text = pc.binary_join_element_wise(pc.cast(whole, pa.string()), "0", ".")
        else:
            text = pc.cast(column, pa.string())
    elif pa.types.is_string(column.type):
        quoted = pc.replace_substring(column, '"', '""')
        quoted = pc.binary_join_element_wise('"', quoted, '"', "")
        text = pc.if_else(pc.match_substring_regex(column, _SPECIAL), quoted, column)
    else:
        text = pc.cast(column, pa.string())
    return pc.fill_null(text, "")
