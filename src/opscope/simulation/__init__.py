"""When every command of a program starts and ends: what the compiler chooses by, and what the device does."""

from .simulate import Timeline, simulate, total_cycles

__all__ = ["Timeline", "simulate", "total_cycles"]
