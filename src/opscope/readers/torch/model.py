"""TorchModel: a module with example inputs, or what torch.export made of one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeGuard

from ...core.errors import ModelError, UsageError, did_you_mean, printable
from ...graph.graph import Note

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.nn import Module

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TorchModel:
    """What torch.export is called with; `module` may be what it returned already."""

    module: Module | ExportedProgram
    name: str
    source: str  # as a user knows it: a file, a name for a factory, a class
    inputs: tuple[object, ...] | None = None  # None: not known
    keywords: Mapping[str, object] = field(default_factory=dict)
    dynamic_shapes: object = None  # as torch.export takes them
    notes: tuple[Note, ...] = ()
    file_bytes: int = 0
    has_random_weights: bool = False

    def __str__(self) -> str:
        return self.source

    @property
    def is_exported(self) -> bool:
        return hasattr(self.module, "graph_signature")

    def with_shapes(self, shapes: Shapes, batch: int | None) -> TorchModel:
        """Other example inputs: of these shapes, by the names that `forward` has for them, and of this batch."""
        if self.is_exported:
            return self
        if self.inputs is None and not self.keywords:
            return self._made_of(shapes)
        bound = self._signature().bind(*self.inputs or (), **self.keywords)
        tensors = {name: value for name, value in bound.arguments.items() if _is_tensor(value)}
        changed = {**_with_batch(tensors, batch, self.dynamic_shapes), **_chosen(tensors, shapes)}
        if not changed:
            return self
        bound.arguments.update({name: tensors[name].new_zeros(shape) for name, shape in changed.items()})
        return replace(self, inputs=bound.args, keywords=bound.kwargs)

    def _made_of(self, shapes: Shapes) -> TorchModel:
        """Example inputs out of nothing but shapes, in the type that the module's weights have."""
        import torch

        names = self.input_names()
        given = ", ".join(f"--shape {printable(name)}=…" for name in names) or "its example inputs"
        if not shapes:
            raise ModelError(self.source, "", f"has no example inputs; expected (module, example_inputs), or {given}")
        for name in shapes:
            if name not in names:
                hint = did_you_mean(name, names)
                raise ModelError(self.source, "", f"forward has no {printable(name)!r}; {hint}expected {given}")
        first = next((value for value in self.module.parameters() if value.is_floating_point()), torch.empty(0))
        keywords = {name: first.new_zeros(shape) for name, shape in shapes.items()}
        return replace(self, inputs=(), keywords=keywords)

    def input_names(self) -> list[str]:
        """What `forward` calls its inputs; those of an exported program are as they were exported."""
        return [] if self.is_exported else list(self._signature().parameters)

    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.module.forward)


def is_torch(model: object) -> bool:
    """Whether this is a module or an exported program; torch is not imported to find out."""
    return any(f"{kind.__module__}.{kind.__qualname__}" in _KINDS for kind in type(model).__mro__)


_KINDS = {"torch.nn.modules.module.Module", "torch.export.exported_program.ExportedProgram"}


def torch_model(
    module: Module | ExportedProgram,
    example_inputs: object = None,
    *,
    dynamic_shapes: object = None,
    name: str = "",
    source: str = "",
) -> TorchModel:
    """The model of a module in memory; `example_inputs` are a tensor, several in order, or several by name."""
    own = name or type(module).__name__
    made = TorchModel(module, own, source or own, dynamic_shapes=dynamic_shapes)
    if example_inputs is None:
        return made
    if made.is_exported:
        raise UsageError(f"{printable(own)}: is exported already; expected no example inputs beside it")
    if isinstance(example_inputs, Mapping):
        return replace(made, inputs=(), keywords=dict(example_inputs))
    if isinstance(example_inputs, Sequence) and not isinstance(example_inputs, str):
        return replace(made, inputs=tuple(example_inputs))
    return replace(made, inputs=(example_inputs,))


def _is_tensor(value: object) -> TypeGuard[Tensor]:
    return hasattr(value, "new_zeros") and hasattr(value, "shape")


def _chosen(tensors: Mapping[str, Tensor], shapes: Shapes) -> dict[str, tuple[int, ...]]:
    return {name: shape for name, shape in shapes.items() if name in tensors}


def _with_batch(tensors: Mapping[str, Tensor], batch: int | None, dynamic: object) -> dict[str, tuple[int, ...]]:
    """As for files: of every input that has the first extent of the first; dynamic ones are set in what is exported."""
    if batch is None or dynamic is not None or not tensors:
        return {}
    first = next(iter(tensors.values())).shape[:1]
    return {name: (batch, *tensor.shape[1:]) for name, tensor in tensors.items() if first and tensor.shape[:1] == first}


def is_exporting() -> bool:
    """Whether a module is called by an exporter, and not by its user."""
    import torch

    return bool(torch.compiler.is_exporting() or torch.compiler.is_compiling())


def call_key(inputs: Sequence[object], keywords: Mapping[str, object]) -> tuple[object, ...]:
    """The same for calls that run the same ops: types and shapes of tensors, values of all else."""
    given = [("", value) for value in inputs] + sorted(keywords.items())
    return tuple((name, _brief(value)) for name, value in given)


def _brief(value: object) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if _is_tensor(value) else repr(value)
