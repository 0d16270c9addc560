"""How long do commands take: many short ones, or few long ones?"""

from __future__ import annotations

import numpy as np

from ..summary import Bucket
from .work import Work, total


def histogram(work: Work) -> tuple[Bucket, ...]:
    """Commands by duration, in buckets that double: below 1 µs, below 2 µs, below 4 µs, …"""
    spans = work.commands[~work.index.is_flush[work.commands["command"]]]
    duration = spans["end_ns"] - spans["start_ns"]
    bucket = np.zeros(len(duration), np.int64)
    long = duration >= 1000
    bucket[long] = 1 + np.floor(np.log2(duration[long] / 1000 * (1 + 1e-12))).astype(np.int64)
    most = int(bucket.max(initial=0)) + 1
    counts, ns = np.bincount(bucket, minlength=most), total(bucket, duration, most)
    return tuple(
        Bucket(0 if not i else 1000 << (i - 1), 1000 << i, int(counts[i]), int(ns[i])) for i in range(most) if len(spans)
    )
