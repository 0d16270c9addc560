"""The editor of each format, imported when a model of it is to be changed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import ProfilerError, UsageError
from ..readers import given_format

if TYPE_CHECKING:
    from .rewrite import Editor

FORMATS = ("onnx", "tflite")
ADVISING = "onnx"  # the format whose rewrites a profile names
_NEEDS = {"onnx": ("onnx_ir", "optimize"), "tflite": ("ai_edge_litert", "litert")}  # package, and its extra


def lacking(form: str) -> str:
    """The package that changing models of a format needs and that is not here; empty: none."""
    package = _NEEDS[form][0] if form in _NEEDS else ""
    return package if package and find_spec(package) is None else ""


def can_advise(model: Path) -> bool:
    """Whether a profile of it can name rewrites: those of ONNX, with what they need here."""
    try:
        form = given_format(model).name.lower()
    except ProfilerError:
        return False
    return form == ADVISING and not lacking(form)


def editor_of(form: str) -> Editor[Any]:
    if form not in FORMATS or find_spec(f"{__package__}.{form}") is None:
        raise UsageError(f"optimize: a model of format {form}; expected {' or '.join(FORMATS)}")
    if package := lacking(form):
        extra = _NEEDS[form][1]
        raise UsageError(f"optimize: the package {package} is not here; expected `pip install 'opscope[{extra}]'`")
    return cast("Editor[Any]", import_module(f".{form}.editor", __package__))
