"""The simulated device: what of a simulated inference its stats buffers hold, and the host around it."""

from .stats import Inference, collect
from .variation import steady_state_ns, vary

__all__ = ["Inference", "collect", "steady_state_ns", "vary"]
