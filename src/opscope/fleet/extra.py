"""Packages that only stores and sweeps need; where one is missing, the error says how to get it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ..core.errors import UsageError

INSTALL = "pip install 'opscope[fleet]'"


def needed(package: str, *, install: str = INSTALL) -> ModuleType:
    """The package, imported."""
    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(f"{package}: is not installed ({error}); expected `{install}`") from error
