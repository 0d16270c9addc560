"""opscope: the open profiler for AI accelerators."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import analyze as analyze
    from .api import backend_states as backend_states
    from .api import calibrate as calibrate
    from .api import check as check
    from .api import compare as compare
    from .api import compile_model as compile_model
    from .api import import_profile as import_profile
    from .api import opstats as opstats
    from .api import profile as profile
    from .api import quantize as quantize
    from .api import read as read
    from .api import report as report
    from .api import run as run
    from .api import side_by_side as side_by_side
    from .api import targets as targets
    from .api import validate as validate
    from .api import what_if as what_if
    from .api import what_if_run as what_if_run
    from .decorator import profiled as profiled
    from .fleet.verbs import add_to_store as add_to_store
    from .fleet.verbs import ask_store as ask_store
    from .fleet.verbs import plan_sweep as plan_sweep
    from .fleet.verbs import save_baseline as save_baseline
    from .fleet.verbs import store_page as store_page
    from .fleet.verbs import sweep as sweep
    from .fleet.verbs import table as table
    from .fleet.verbs import trend as trend
    from .fleet.verbs import update_baseline as update_baseline
    from .language_models.llm import llm as llm
    from .notebook import RunView as RunView
    from .notebook import open_run as open_run
    from .options import BakeoffOptions as BakeoffOptions
    from .options import CompileOptions as CompileOptions
    from .options import LlmOptions as LlmOptions
    from .options import OpstatsOptions as OpstatsOptions
    from .options import OptimizeOptions as OptimizeOptions
    from .options import ProfileOptions as ProfileOptions
    from .options import QuantizeOptions as QuantizeOptions
    from .options import ReportOptions as ReportOptions
    from .options import RunOptions as RunOptions
    from .options import SweepOptions as SweepOptions
    from .options import WhatIfOptions as WhatIfOptions
    from .plugins.faces import *  # noqa: F403 - whatever our own plug-ins add
    from .rewrites.optimize import optimize as optimize
    from .selection.bakeoff import bakeoff as bakeoff
    from .workflows.exporting import export as export
    from .workflows.setting_up import environment_states as environment_states
    from .workflows.setting_up import plan_setup as plan_setup
    from .workflows.setting_up import setup as setup

__version__ = "0.2.0"

_MODULES = {  # module → the names that come from it, imported when first asked for
    "api": "analyze backend_states calibrate check compare compile_model import_profile opstats profile quantize read"
    " report run side_by_side targets validate what_if what_if_run",
    "decorator": "profiled",
    "fleet.verbs": "add_to_store ask_store plan_sweep save_baseline store_page sweep table trend update_baseline",
    "language_models.llm": "llm",
    "notebook": "RunView open_run",
    "options": "BakeoffOptions CompileOptions LlmOptions OpstatsOptions OptimizeOptions ProfileOptions QuantizeOptions"
    " ReportOptions RunOptions SweepOptions WhatIfOptions",
    "rewrites.optimize": "optimize",
    "selection.bakeoff": "bakeoff",
    "workflows.exporting": "export",
    "workflows.setting_up": "environment_states plan_setup setup",
}
_OWN = {name: module for module, names in _MODULES.items() for name in names.split()}


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
