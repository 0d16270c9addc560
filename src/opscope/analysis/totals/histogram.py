"""How long do commands take: many short ones, or few long ones?"""

from __future__ import annotations

import numpy as np

from ...recording.summary import Bucket
from .work import Work, total

_FIRST_NS = 1000


def histogram(work: Work) -> tuple[Bucket, ...]:
    """Commands by duration, in buckets that double: below 1 µs, below 2 µs, below 4 µs, …"""
    ns = work.network.ns
    if not len(ns):
        return ()
    most = int(ns.max()) // _FIRST_NS
    edges = _FIRST_NS << np.arange(most.bit_length() + 1)
    bucket = np.searchsorted(edges, ns, side="right")
    counts, sums = np.bincount(bucket, minlength=len(edges)), total(bucket, ns, len(edges))
    lows = [0, *edges.tolist()]
    return tuple(
        Bucket(low, int(high), int(count), int(busy))
        for low, high, count, busy in zip(lows, edges, counts, sums, strict=False)
    )
