"""The faces of our own plug-ins, for type checkers: at run time they come from manifests, and this is not imported.

A type checker needs names before anything runs, so each face stands here once more; a test holds the two together.
Without the folder of a plug-in, its line means nothing, and nothing is reported.
"""

from .qaic.session import Session  # type: ignore[import-not-found, unused-ignore]
from .qnn.profiler import HtpProfiler  # type: ignore[import-not-found, unused-ignore]

__all__: list[str] = ["HtpProfiler", "Session"]
