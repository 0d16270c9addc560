"""The simulated device: what of a simulated inference its stats buffers hold, and the host around it."""

from .stats import Inference, collect

__all__ = ["Inference", "collect"]
