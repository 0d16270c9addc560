"""opscope: the open profiler for AI accelerators."""

__version__ = "0.1.0"
