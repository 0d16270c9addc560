"""Capture → Trace: the bytes of a stats buffer, checked against its program, on one time axis in nanoseconds."""

from .buffer import Buffer, decode_buffer
from .check import ForeignBufferError, check_buffer
from .lanes import LaneIndex
from .spans import Barriers, Threads, decode_trace, merge_traces, origin_tick

__all__ = [
    "Barriers",
    "Buffer",
    "ForeignBufferError",
    "LaneIndex",
    "Threads",
    "check_buffer",
    "decode_buffer",
    "decode_trace",
    "merge_traces",
    "origin_tick",
]
