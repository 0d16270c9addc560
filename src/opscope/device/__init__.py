"""The simulated device: takes a Program and returns a Capture in the format of the hardware."""

from .simulator.simulate import Timeline, simulate
from .simulator.stats import Inference, collect
from .simulator.variation import steady_state_ns, vary

__all__ = ["Inference", "Timeline", "collect", "simulate", "steady_state_ns", "vary"]
