"""The editor of each format, imported when a model of it is to be changed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from ..core.errors import UsageError
from .rewrite import Editor

FORMATS = ("onnx", "tflite")
_NEEDS = {"onnx": ("onnx_ir", "optimize"), "tflite": ("ai_edge_litert", "litert")}  # package, and its extra


def lacking(form: str) -> str:
    """The package that changing models of a format needs and that is not here; empty: none."""
    package = _NEEDS[form][0] if form in _NEEDS else ""
    return package if package and find_spec(package) is None else ""


def editor_of(form: str) -> Editor[Any]:
    if form not in FORMATS or find_spec(f"{__package__}.{form}") is None:
        raise UsageError(f"optimize: a model of format {form}; expected {' or '.join(FORMATS)}")
    if package := lacking(form):
        extra = _NEEDS[form][1]
        raise UsageError(f"optimize: the package {package} is not here; expected `pip install 'opscope[{extra}]'`")
    return cast("Editor[Any]", import_module(f".{form}.editor", __package__))
