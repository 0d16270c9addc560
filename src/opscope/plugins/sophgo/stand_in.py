"""Takes the place of a package that the compiler imports and does not use: importing it works, using it does not.

This file is copied beside the compiler as `opscope_stand_in.py`; it needs the standard library of Python 3.10 alone.
"""

from __future__ import annotations

import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DECORATORS = ("onnx_op", "no_grad", "inference_mode")  # called while a module is loaded, and harmless


class _Absent:
    """Any attribute of the package: it may be passed around, named as a base and looked into."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self._name}.{name}")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __call__(self, *given: object, **named: object) -> Callable[[object], object]:
        if not given and self._name.rpartition(".")[2] in _DECORATORS:
            return lambda decorated: decorated
        package = self._name.partition(".")[0]
        raise ModuleNotFoundError(f"{self._name}: {package} is not in this environment", name=package)


class _Parts(MetaPathFinder, Loader):
    """Modules below the package."""

    def __init__(self, package: str) -> None:
        self._below = f"{package}."

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.startswith(self._below) else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = _attributes(spec.name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


def _attributes(module: str) -> Callable[[str], _Absent]:
    return _Absent(module).__getattr__


def stand_in(package: str) -> Callable[[str], _Absent]:
    """Let modules below a package be found; returns what its own `__getattr__` is."""
    sys.meta_path.append(_Parts(package))
    return _attributes(package)
