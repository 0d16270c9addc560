"""The simulated device: a Program in, a Capture out, as the hardware would leave it."""

from .simulator.simulate import Timeline, simulate
from .simulator.stats import Inference, collect
from .simulator.variation import steady_state_ns, vary

__all__ = ["Inference", "Timeline", "collect", "simulate", "steady_state_ns", "vary"]
