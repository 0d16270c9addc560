"""`@opscope.profiled`: a module of PyTorch that is profiled when it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from .core.errors import UsageError
from .readers.torch import call_key, is_exporting, is_torch

if TYPE_CHECKING:
    from .api import AnyTarget

Decorated = TypeVar("Decorated")
Forward = Callable[..., Any]  # the user's own, of any arguments
_KEPT = "_profiles"  # attribute of a module: call → its profile


def profiled(
    target: AnyTarget | None = None, *, backend: str | None = None, **options: str | int | bool | None
) -> Callable[[Decorated], Decorated]:
    """Decorate a module class, its `forward`, a function that returns a module, or a module itself.

    The first call with inputs of new shapes is profiled as `opscope.profile` does it, with the same arguments, and then
    carried out as before. `module.profiled` is the profile of the latest call, None before the first.
    """

    def decorate(what: Decorated) -> Decorated:
        found: Decorated = _decorated(what, {"target": target, "backend": backend, **options})
        return found

    return decorate


def _decorated(what: Any, ask: dict[str, Any]) -> Any:
    forward = getattr(what if inspect.isclass(what) else type(what), "forward", None)
    if forward is not None and (inspect.isclass(what) or is_torch(what)):
        call = _profiling(forward, ask)
        what.profiled, what.forward = None, call if inspect.isclass(what) else MethodType(call, what)
        return what
    if not inspect.isfunction(what):
        raise UsageError(f"profiled: is on {type(what).__name__}; expected a module class, its forward, or a factory")
    if next(iter(inspect.signature(what).parameters), "") == "self":
        return _profiling(what, ask)
    return wraps(what)(lambda *given, **named: _decorated(what(*given, **named), ask))


def _profiling(forward: Forward, ask: dict[str, Any]) -> Forward:
    @wraps(forward)
    def call(self: Any, *inputs: Any, **keywords: Any) -> Any:
        if not is_exporting():
            key = call_key(inputs, keywords)
            found = self.__dict__.get(_KEPT, {}).get(key) or _profile(self, inputs, keywords, ask)
            self.__dict__.setdefault(_KEPT, {})[key] = found  # not sooner: an export puts attributes back as they were
            self.profiled = found
        return forward(self, *inputs, **keywords)

    return call


def _profile(module: Any, inputs: tuple[Any, ...], keywords: dict[str, Any], ask: dict[str, Any]) -> object:
    from .api import profile

    if not keywords:
        return profile(module, inputs, **ask)
    bound = inspect.signature(module.forward).bind(*inputs, **keywords)
    return profile(module, dict(bound.arguments), **ask)
