"""opscope: the open profiler for AI accelerators."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import (
        analyze,
        backend_states,
        calibrate,
        check,
        compare,
        compile_model,
        import_profile,
        opstats,
        profile,
        quantize,
        read,
        report,
        run,
        side_by_side,
        targets,
        validate,
        what_if,
        what_if_run,
    )
    from .decorator import profiled
    from .fleet.verbs import (
        add_to_store,
        ask_store,
        plan_sweep,
        save_baseline,
        store_page,
        sweep,
        table,
        trend,
        update_baseline,
    )
    from .language_models.llm import llm
    from .notebook import RunView, open_run
    from .options import (
        CompileOptions,
        LlmOptions,
        OpstatsOptions,
        ProfileOptions,
        QuantizeOptions,
        ReportOptions,
        RunOptions,
    )
    from .plugins import faces
    from .plugins.faces import *  # noqa: F403 - whatever our own plug-ins add
    from .rewrites.optimize import optimize
    from .selection.bakeoff import bakeoff
    from .workflows.exporting import export
    from .workflows.setting_up import environment_states, plan_setup, setup

    __all__: list[str] = [  # noqa: PLE0604 - the names of a list are strings too
        *faces.__all__,
        "CompileOptions",
        "LlmOptions",
        "OpstatsOptions",
        "ProfileOptions",
        "QuantizeOptions",
        "ReportOptions",
        "RunOptions",
        "RunView",
        "__version__",
        "add_to_store",
        "analyze",
        "ask_store",
        "backend_states",
        "bakeoff",
        "calibrate",
        "check",
        "compare",
        "compile_model",
        "environment_states",
        "export",
        "import_profile",
        "llm",
        "open_run",
        "opstats",
        "optimize",
        "plan_setup",
        "plan_sweep",
        "profile",
        "profiled",
        "quantize",
        "read",
        "report",
        "run",
        "save_baseline",
        "setup",
        "side_by_side",
        "store_page",
        "sweep",
        "table",
        "targets",
        "trend",
        "update_baseline",
        "validate",
        "what_if",
        "what_if_run",
    ]

__version__ = "0.2.0"

_OWN = {  # name → module it comes from, imported when first asked for
    "RunView": "notebook",
    "open_run": "notebook",
    "analyze": "api",
    "check": "api",
    "profile": "api",
    "what_if": "api",
    "quantize": "api",
    "calibrate": "api",
    "validate": "api",
    "report": "api",
    "compare": "api",
    "side_by_side": "api",
    "save_baseline": "fleet.verbs",
    "update_baseline": "fleet.verbs",
    "profiled": "decorator",
    "compile_model": "api",
    "run": "api",
    "read": "api",
    "opstats": "api",
    "import_profile": "api",
    "backend_states": "api",
    "export": "workflows.exporting",
    "environment_states": "workflows.setting_up",
    "plan_setup": "workflows.setting_up",
    "setup": "workflows.setting_up",
    "targets": "api",
    "what_if_run": "api",
    "add_to_store": "fleet.verbs",
    "ask_store": "fleet.verbs",
    "plan_sweep": "fleet.verbs",
    "sweep": "fleet.verbs",
    "table": "fleet.verbs",
    "store_page": "fleet.verbs",
    "trend": "fleet.verbs",
    "bakeoff": "selection.bakeoff",
    "llm": "language_models.llm",
    "optimize": "rewrites.optimize",
    "CompileOptions": "options",
    "LlmOptions": "options",
    "OpstatsOptions": "options",
    "ProfileOptions": "options",
    "QuantizeOptions": "options",
    "ReportOptions": "options",
    "RunOptions": "options",
}


def __getattr__(name: str) -> object:
    if name == "__all__":  # asked for by `from opscope import *` alone: it takes a look at the plug-ins
        return sorted({*_OWN, *_faces(), "__version__"})
    if name.startswith("__"):  # what Python itself asks a module for
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _load(name)
    globals()[name] = found
    return found


def _load(name: str) -> object:
    if name in _OWN:
        own: object = getattr(import_module(f".{_OWN[name]}", __name__), name)
        return own
    from .core.plugins import load_place, manifests

    for manifest in manifests():
        for face in manifest.faces:
            if face.name == name:
                return load_place(manifest, face.place)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and no plug-in that is installed offers it")


def _faces() -> set[str]:
    """Names that plug-ins add."""
    from .core.plugins import manifests

    return {face.name for manifest in manifests() for face in manifest.faces}


def __dir__() -> list[str]:
    return sorted({*globals(), *_OWN, *_faces()})
