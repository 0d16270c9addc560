"""RunView: a Run's folder in Python – totals as objects, tables as data frames, a card where a notebook shows it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .recording import tables as run_tables
from .recording.finding import Findings
from .recording.run import Run, RunInfo
from .recording.summary import Summary
from .workflows import viewing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    Frame: TypeAlias = pd.DataFrame | pa.Table


def open_run(path: str | Path) -> RunView:
    """Open the folder of a run.

    Args:
        path: what `opscope profile`, `opstats --run` or `import` left.

    Tables are read when first asked for. They are pandas data frames where pandas is installed, else Arrow tables.
    """
    return RunView(Path(path))


class RunView:
    """One run. Reading it changes nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head = viewing.read_head(path)

    @property
    def info(self) -> RunInfo:
        """What was run, on what, when and how."""
        return self._head.info

    @cached_property
    def run(self) -> Run:
        """Everything at once, as the library's own objects."""
        return viewing.open_folder(self.path)

    @cached_property
    def summary(self) -> Summary:
        """Totals per op, lane, memory and cause."""
        return viewing.read_summary(self.path)

    @cached_property
    def findings(self) -> Findings:
        """What the run is bound by, and causes with their cost, costliest first."""
        return viewing.findings_of(self.path, self.run)

    @cached_property
    def spans(self) -> Frame:
        """A row per span: device, core, lane, kind, name, op, op_name, start_ns, end_ns, cycles, what it waited for."""
        return _frame(run_tables.spans_table(self.path))

    @cached_property
    def ops(self) -> Frame:
        """A row per op with its totals, in the order of the summary."""
        return _frame(run_tables.totals_table(self.summary.ops))

    @cached_property
    def commands(self) -> Frame:
        """A row per command of the program: where it runs, what it moves, its operands."""
        return _frame(run_tables.read_table(self.path, "commands"))

    @cached_property
    def edges(self) -> Frame:
        """A row per dependency: source and target command; `data` is false where only memory is used again."""
        return _frame(run_tables.read_table(self.path, "edges"))

    @cached_property
    def counters(self) -> Frame:
        """A row per sample: device, core, name, unit, time_ns, value."""
        return _frame(run_tables.read_table(self.path, "counters"))

    def __repr__(self) -> str:
        return f"<RunView {str(self.path)!r}: {self.info.headline(self._head.latency)}>"

    def _repr_html_(self) -> str:
        from .views.page.run_card import card

        return card(self.info, self.summary, self.findings)


def _frame(table: pa.Table) -> Frame:
    """A data frame in which unknown stays unknown, or the table itself where there is no pandas."""
    try:
        import pandas as pd
    except ImportError:
        return table
    import pyarrow as pa

    whole = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}  # plain numpy would turn null into 0 or a float
    return table.to_pandas(types_mapper=whole.get)
