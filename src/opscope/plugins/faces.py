"""The faces of our own plug-ins, for type checkers: at run time they come from manifests, and this is not imported."""

from .qaic.session import Session
from .qnn.profiler import HtpProfiler

__all__: list[str] = ["HtpProfiler", "Session"]
