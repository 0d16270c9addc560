"""opscope: the open profiler for AI accelerators."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import (
        analyze,
        backend_states,
        check,
        compare,
        compile_model,
        import_profile,
        opstats,
        profile,
        read,
        report,
        run,
        save_baseline,
        side_by_side,
        update_baseline,
        what_if,
        what_if_run,
    )
    from .notebook import RunView, open_run
    from .options import CompileOptions, OpstatsOptions, ProfileOptions, ReportOptions, RunOptions
    from .plugins.qaic.session import Session
    from .plugins.qnn.profiler import HtpProfiler

__version__ = "0.1.0"

_VERBS = {  # name → module it comes from, imported when first asked for
    "HtpProfiler": "plugins.qnn.profiler",
    "RunView": "notebook",
    "Session": "plugins.qaic.session",
    "open_run": "notebook",
    "analyze": "api",
    "check": "api",
    "profile": "api",
    "what_if": "api",
    "report": "api",
    "compare": "api",
    "side_by_side": "api",
    "save_baseline": "api",
    "update_baseline": "api",
    "compile_model": "api",
    "run": "api",
    "read": "api",
    "opstats": "api",
    "import_profile": "api",
    "backend_states": "api",
    "what_if_run": "api",
    "CompileOptions": "options",
    "OpstatsOptions": "options",
    "ProfileOptions": "options",
    "ReportOptions": "options",
    "RunOptions": "options",
}

__all__ = [
    "CompileOptions",
    "HtpProfiler",
    "OpstatsOptions",
    "ProfileOptions",
    "ReportOptions",
    "RunOptions",
    "RunView",
    "Session",
    "__version__",
    "analyze",
    "backend_states",
    "check",
    "compare",
    "compile_model",
    "import_profile",
    "open_run",
    "opstats",
    "profile",
    "read",
    "report",
    "run",
    "save_baseline",
    "side_by_side",
    "update_baseline",
    "what_if",
    "what_if_run",
]


def __getattr__(name: str) -> object:
    if name not in _VERBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f".{_VERBS[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_VERBS})
