"""Which data types are products computed in?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..core.columns import distinct
from ..graph.graph import DType
from ..recording.run import Run

_FLOATS = frozenset(dtype.label for dtype in DType if dtype.is_float)


def computed_in_floats(run: Run, chosen: npt.NDArray[np.bool_] | None = None) -> bool:
    """Some product of these ops (None: of all) is of floats, as commands say; False too where they do not."""
    rows = run.commands.rows[run.commands.rows["macs"] > 0]
    if chosen is not None:
        rows = rows[np.append(chosen, False)[rows["op"]]]
    return any(_in_floats(run, detail) for detail in distinct(rows["detail"]).tolist())


def _in_floats(run: Run, detail: int) -> bool:
    return detail in run.commands.floats or any(o.dtype in _FLOATS for o in run.commands.operands[detail])
