"""Which data types are products computed in?"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from ..core.columns import distinct
from ..recording.run import Run

_FLOAT = re.compile(r"\bb?f(loat)?(16|32|64)?\b", re.IGNORECASE)


def computed_in_floats(run: Run, chosen: npt.NDArray[np.bool_] | None = None) -> bool:
    """Some product of these ops (None: of all) is of floats, as commands say; False too where they do not."""
    floats = {types for types in set(run.commands.types) if _FLOAT.search(types)}
    if not floats:
        return False
    rows = run.commands.rows[run.commands.rows["macs"] > 0]
    if chosen is not None:
        rows = rows[np.append(chosen, False)[rows["op"]]]
    return any(run.commands.types[detail] in floats for detail in distinct(rows["detail"]).tolist())
