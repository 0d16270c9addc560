"""Models of torch by name: `model.pt2`, `package.module:factory`, `hf:FOLDER`; they are files, or Python code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError, UsageError, first_line, printable
from .model import TorchModel, is_torch, torch_model

if TYPE_CHECKING:
    from types import ModuleType

INSTALL = "pip install 'opscope[torch]'"
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_HF = "hf:"


def is_named(path: Path) -> bool:
    """Whether this is no file but a name: of a factory, or of a config of transformers."""
    text = str(path)
    return text.startswith(_HF) or (_FACTORY.fullmatch(text) is not None and not path.exists())


def name_of(path: Path) -> str:
    """What a model is called, for the names of files that are made of it."""
    text = str(path)
    if not is_named(path):
        return path.stem
    if not text.startswith(_HF):
        return text.rpartition(":")[2]
    place = Path(text.removeprefix(_HF)).absolute()
    return place.parent.name if place.suffix == ".json" else place.name


def load(path: Path, *, weights: bool = False) -> TorchModel:
    """The model that a name or a .pt2 file stands for; with `weights`, those of transformers have some."""
    needed("torch", str(path))
    text = str(path)
    if text.startswith(_HF):
        from .pretrained import load_config

        return load_config(path, text.removeprefix(_HF), weights=weights)
    return _made(path) if is_named(path) else _program(path)


def needed(package: str, source: str) -> ModuleType:
    """A package of the extra, or one line that names it."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(f"{source}: the package {package} is not installed; expected {INSTALL}") from error


def _program(path: Path) -> TorchModel:
    import torch

    try:
        with _tensors_only():
            program = torch.export.load(path)
    except Exception as error:  # whatever a damaged archive makes it raise
        raise ModelError(
            str(path), "", f"torch.export.load fails ({first_line(error, 200)}); expected a .pt2 of this torch"
        ) from error
    found = torch_model(program, name=path.stem, source=str(path))
    return replace(found, file_bytes=path.stat().st_size)


@contextmanager
def _tensors_only() -> Iterator[None]:
    """torch unpickles tensors of an archive, and else nothing."""
    import os

    key = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(key)
    os.environ[key] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[key]
        else:
            os.environ[key] = before


def _made(path: Path) -> TorchModel:
    """What a factory returns: a module, an exported program, or a module with its example inputs."""
    module_name, _, factory_name = str(path).partition(":")
    factory = getattr(_imported(module_name, str(path)), factory_name, None)
    if factory is None:
        raise ModelError(str(path), "", f"{module_name} has no {factory_name}; expected a function that makes a module")
    made = factory() if callable(factory) and not is_torch(factory) else factory
    module, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not is_torch(module):
        problem = f"returns {type(made).__name__}; expected a torch.nn.Module, or (module, example_inputs)"
        raise ModelError(str(path), "", problem)
    return torch_model(module, inputs, name=factory_name, source=str(path))


def _imported(name: str, source: str) -> ModuleType:
    """The user's module, also from the working folder, as with `python -m`."""
    import sys
    from importlib import import_module

    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return import_module(name)
    except ImportError as error:
        raise ModelError(
            source, "", f"cannot be imported ({printable(str(error))}); expected package.module:factory"
        ) from error
    finally:
        sys.path.remove(here)
