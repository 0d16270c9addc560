"""Annotated → a table in parts: what its columns are called, and their values as Arrow arrays, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ....core.columns import Numbers
from .annotated import ActionRows, Annotated, Step, StepRows, Usage

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_A_TIME = 1 << 16
_US = 1000


Prepare = Callable[[Sequence["pa.Array"]], list["pa.Array"]]


class Headers(Enum):
    """How columns are called."""

    SNAKE = "snake"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Column:
    """Both names of a column."""

    snake: str
    human: str

    def called(self, headers: Headers) -> str:
        return self.human if headers is Headers.HUMAN else self.snake


_INFERENCE = Column("inference", "Inference")
_DISPATCH = Column("dispatch", "Dispatch")
_USED = {
    "dma_in": Column("dma_in_used_in_program", "DMA In Used in NSS Program"),
    "dma_out": Column("dma_out_used_in_program", "DMA Out Used in NSS Program"),
    "cdma": Column("cdma_used_in_program", "CDMA Used in CSS Program"),
    "css": Column("css_used_in_program", "CSS Used in CSS Program"),
}
_STEP_UNITS, _ACTION_UNITS = ("dma_in", "dma_out"), ("dma_in", "dma_out", "cdma", "css")


def _slice_column(number: int) -> Column:
    return Column(f"slice_used_{number}_in_program", f"Slice {number} Used in NSS Program")


def _as_they_are(columns: Sequence[pa.Array]) -> list[pa.Array]:
    return list(columns)


class Table:
    """The rows of an Annotated. A part is a list of arrays, one per column, of the same length.

    Neighbouring columns that repeat together are given to `prepare` as a whole, once, before their values are repeated:
    a view that writes text turns them into one column of text. The last columns may be given to a rule of their own.
    """

    def __init__(self, annotated: Annotated, prepare: Prepare | None = None, last: Prepare | None = None) -> None:
        rows, slices, made = annotated.rows, annotated.slices, prepare or _as_they_are
        self._source: _Steps | _Actions
        if isinstance(rows, StepRows):
            self._source = _Steps(rows, slices, made, last or made)
        else:
            self._source = _Actions(rows, slices, made, last or made)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._source.columns

    def __len__(self) -> int:
        return len(self._source)

    def parts(self) -> Iterator[list[pa.Array]]:
        return map(self.part, self.starts())

    def starts(self) -> range:
        """The first row of every part."""
        return range(0, len(self), ROWS_AT_A_TIME)

    def part(self, start: int) -> list[pa.Array]:
        """The rows from one of the starts to the next."""
        return self._source.part(np.arange(start, min(start + ROWS_AT_A_TIME, len(self))))


class _Steps:
    """A row per step of every job of every inference."""

    def __init__(self, rows: StepRows, slices: int, prepare: Prepare, last: Prepare) -> None:
        """The columns' names and what is the same in every inference; values are made part by part."""
        self.rows, self._prepare = rows, prepare
        steps = [(number, step) for number, job in enumerate(rows.jobs) for step in job.steps]
        self._several = rows.inferences > 1
        self._job = np.array([number for number, _ in steps], np.int64)
        dialect = next((step.operation.rpartition(".")[0].replace("_", "-") for _, step in steps), "")
        self.columns = (
            *((_INFERENCE,) if self._several else ()),
            Column("nss_program_index", "NSS Program Index"),
            Column("operation", f"{dialect} Operation in program".strip()),
            Column("slice_id", "Slice ID (if applicable)"),
            Column("invocation_name", "Invocation Name (if applicable)"),
            Column("nss_program_timestamp_start", "NSS Program Start Timestamp [us]"),
            Column("nss_program_timestamp_end", "NSS Program End Timestamp [us]"),
            Column("nss_program_timestamp_total", "NSS Program Total Time [us]"),
            *(_slice_column(number) for number in range(slices)),
            *(_USED[unit] for unit in _STEP_UNITS),
        )
        self._told = prepare([_column(self._job), *_told([step for _, step in steps])])
        self._flags = last(_flags([rows.usage[number] for number, _ in steps], slices, _STEP_UNITS))

    def __len__(self) -> int:
        return len(self._job) * self.rows.inferences

    def part(self, at: Numbers) -> list[pa.Array]:
        inference, step = np.divmod(at, max(len(self._job), 1))
        cell = inference * len(self.rows.jobs) + self._job[step]  # one run of a job: its steps have the same times
        low, high = int(cell[0]), int(cell[-1]) + 1
        start, end = (times.reshape(-1)[low:high] // _US for times in (self.rows.start_ns, self.rows.end_ns))
        first, last = int(inference[0]), int(inference[-1])
        numbers = self._repeated([np.arange(first, last + 1)], inference - first) if self._several else []
        times = self._repeated([start, end, end - start], cell - low)
        told, flags = ([column.take(_column(step)) for column in of] for of in (self._told, self._flags))
        return [*numbers, *told, *times, *flags]

    def _repeated(self, columns: Sequence[Numbers], place: Numbers) -> list[pa.Array]:
        """What is told once of a job or of an inference, for each of its rows."""
        at = _column(place)
        return [column.take(at) for column in self._prepare([_column(values) for values in columns])]


def _column(values: npt.NDArray[Any], lost: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers, null where they are lost; as they lie in memory, since `pa.array` would import pandas where it is."""
    import pyarrow as pa

    if lost is not None and lost.any():
        return pa.array(values, mask=lost)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _told(steps: Sequence[Step]) -> list[pa.Array]:
    """Operation, slice and program of every step."""
    import pyarrow as pa

    return [
        pa.array([step.operation for step in steps], pa.string()),
        pa.array([step.number for step in steps], pa.int64()),
        pa.array([step.invocation for step in steps], pa.string()),
    ]


def _flags(usage: Sequence[Usage | None], slices: int, units: Sequence[str]) -> list[pa.Array]:
    """A column per slice and per unit; null where there is no job."""
    import pyarrow as pa

    of_slices = [[None if use is None else number in use.slices for use in usage] for number in range(slices)]
    of_units = [[None if use is None else use.uses(unit) for use in usage] for unit in units]
    return [pa.array(column, pa.bool_()) for column in (*of_slices, *of_units)]


class _Actions:
    """A row per action that was logged."""

    def __init__(self, rows: ActionRows, slices: int, prepare: Prepare, last: Prepare) -> None:
        """The columns' names and the texts of every kind of action; values are made part by part."""
        import pyarrow as pa

        self.rows, self._prepare = rows, prepare
        kinds = rows.kinds
        texts: tuple[list[Any], ...] = (
            [kind.dispatch for kind in kinds],
            [kind.operation for kind in kinds],
            [",".join(kind.invocations) or None for kind in kinds],
            [" ".join(kind.operators) or None for kind in kinds],
            [kind.location for kind in kinds],
        )
        self._several = len({kind.dispatch for kind in kinds if kind.action is not None}) > 1
        dispatch, operation, names, operators, location = (pa.array(column, pa.string()) for column in texts)
        action, job = (pa.array(column, pa.int64()) for column in ([k.action for k in kinds], [k.job for k in kinds]))
        first = [dispatch] if self._several else []
        self._told = prepare([*first, action, job, operation, names, operators])
        self._flags = prepare(_flags([kind.usage for kind in kinds], slices, _ACTION_UNITS))
        self._location = last([location])
        self.columns = (
            *((_DISPATCH,) if self._several else ()),
            Column("action_id", "Action ID"),
            Column("job_id", "Job ID"),
            Column("operation", "Action in program"),
            Column("invocation_names", "Slice Invocation Names (if applicable)"),
            Column("original_operators", "Original Operators"),
            Column("total_time", "Total Time [us]"),
            *(_slice_column(number) for number in range(slices)),
            *(_USED[unit] for unit in _ACTION_UNITS),
            Column("timestamp_start", "Timestamp Start [us]"),
            Column("timestamp_end", "Timestamp End [us]"),
            Column("location", "Location"),
        )

    def __len__(self) -> int:
        return len(self.rows.kind)

    def part(self, at: Numbers) -> list[pa.Array]:
        kind = _column(self.rows.kind[at])
        start, end = self.rows.start_ns[at] / _US, self.rows.end_ns[at] / _US
        lost: npt.NDArray[np.bool_] = ~self.rows.ended[at]  # an end that was not logged is unknown
        took = self._prepare([_column(end - start, lost)])
        times = self._prepare([_column(start), _column(end, lost)])
        told, flags, location = ([c.take(kind) for c in of] for of in (self._told, self._flags, self._location))
        return [*told, *took, *flags, *times, *location]
