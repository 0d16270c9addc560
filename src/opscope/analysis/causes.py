"""What a stretch of work counts as – compute, memory, link, … – by what it does and the route that its bytes take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import Carries, Does, Party
from ..recording.finding import BOUNDS, OTHER_BOUND
from ..recording.run import RunRoute
from ..recording.summary import HostStage, OpTotal
from ..recording.trace import SpanKind

CAUSES = (*BOUNDS, OTHER_BOUND)
COMPUTE, MEMORY, LINK, HOST_LINK, WAIT, LAYOUT, LAUNCH, HOST, OTHER = range(len(CAUSES))

_OF_WORK = {
    Does.COMPUTE: COMPUTE,
    Does.LAYOUT: LAYOUT,
    Does.MOVE: MEMORY,  # unless its route says otherwise
    Does.LAUNCH: LAUNCH,
    Does.SYNC: WAIT,
    Does.STATS: LAUNCH,  # no work of the network: the price of recording it
    Does.HOST: HOST,
    Does.UNKNOWN: OTHER,
    Does.MIXED: OTHER,
}
_OF_ROUTE = {  # what goes between local memory and an engine's own is memory too, as what goes further out is
    Carries.MULTICAST: LINK,
    Carries.LINK: LINK,
    Carries.HOST: HOST_LINK,
}
_OF_UNKNOWN = {SpanKind.TRANSFER: MEMORY, SpanKind.HOST: HOST}  # what a kind of span says by itself
_BY_DOES = np.array([_OF_WORK[does] for does in Does])


def causes_of(spans: npt.NDArray[np.void], routes: Sequence[RunRoute]) -> Numbers:
    """What each of these counts as."""
    kind, does = spans["kind"], spans["does"]
    cause = _BY_DOES[does]
    of_route = np.array([*(_OF_ROUTE.get(route.carries, MEMORY) for route in routes), MEMORY])
    cause = np.where(does == Does.MOVE, of_route[spans["route"]], cause)
    cause[(does == Does.MOVE) & (kind == SpanKind.HOST)] = HOST_LINK
    for known, meant in _OF_UNKNOWN.items():
        cause[(does == Does.UNKNOWN) & (kind == known)] = meant
    return np.asarray(cause, np.int64)


def cause_of_op(op: OpTotal, *, slow_bytes: bool) -> int:
    """Without a timeline: what the time of an op counts as."""
    cause = _OF_WORK[does_of(op)]
    if cause == MEMORY:
        return _OF_ROUTE.get(Carries(op.carries), MEMORY)
    return MEMORY if cause == COMPUTE and slow_bytes else cause


def cause_of_stage(stage: HostStage) -> int:
    """Of a stage of an inference: what the device does in its own is not said; of the others, what the host does."""
    does = does_of(stage)
    if stage.party is Party.DEVICE:
        return OTHER
    if does is Does.UNKNOWN:
        return HOST
    return HOST_LINK if does is Does.MOVE else _OF_WORK[does]


def does_of(row: OpTotal | HostStage) -> Does:
    return Does[row.does.upper()]
