"""Input shapes given by the user (`--shape`, `--batch`) substituted for symbolic or stored extents.

Example: input `x` is ["batch", "seq", 64]; `--shape x=2x128x64`, or `--shape batch=2 --shape seq=128`, sets the symbols
batch = 2 and seq = 128, which are then replaced wherever the graph states them, also in formulas such as "past + seq".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...core.errors import ModelError, did_you_mean, printable
from ...graph.graph import Note
from .formulas import evaluate, names_in
from .model import Body, Dims, Value, map_bodies
from .open_dimensions import OpenDimensions, described

Shapes = Mapping[str, tuple[int, ...]]
_Symbols = Mapping[str, int | None]  # None: the inputs disagree about it, so that it stands for nothing elsewhere


def graph_inputs(body: Body) -> list[Value]:
    """Return the inputs that a caller has to provide; old models list their initializers as inputs too."""
    return [value for value in body.inputs if value.name not in body.constants]


def with_extents(
    body: Body, source: str, shapes: Shapes, batch: int | None, runs: Callable[[Body], bool]
) -> tuple[Body, tuple[Note, ...]]:
    """Return the body with the user's shapes set, and what a user should know about them.

    An open batch is read as 1. Inputs with other open dimensions are an error, with sizes for which `runs` says that
    a body can run.
    """
    notes: list[Note] = []
    if shapes or batch is not None:
        body, notes = _with_request(body, source, shapes, batch)
    if any(value.is_tensor and value.shape is None for value in graph_inputs(body)):
        body = _substitute(body, {})  # formulas of numbers alone
    inputs = [value for value in graph_inputs(body) if value.is_tensor]
    if all(value.shape is not None for value in inputs):
        return body, tuple(notes)
    left = OpenDimensions(body, inputs)
    if not left.is_batch_only:
        left.fit(lambda: runs(_set(body, left.suggested, left.sizes)))
        raise left.question(source)
    notes.append(Note("open-batch", "batch is open in the file; read at batch 1, --batch N for another"))
    return _set(body, left.suggested, left.sizes), tuple(notes)


def _with_request(body: Body, source: str, shapes: Shapes, batch: int | None) -> tuple[Body, list[Note]]:
    inputs = graph_inputs(body)
    _check_request(inputs, source, shapes, batch)
    requested = {value.name: _requested_dims(value, inputs[0], shapes, batch) for value in inputs}
    symbols, notes = _bind_symbols(inputs, requested, shapes)
    if any(_changes_number(value.dims, requested[value.name]) for value in inputs):
        # The shapes that the model states for later tensors no longer hold. If only symbols are set, they still do.
        body = _drop_shapes(body, body.inputs)
    return _set(body, requested, symbols), notes


def _check_request(inputs: Sequence[Value], source: str, shapes: Shapes, batch: int | None) -> None:
    """Refuse a batch or shape that does not fit the graph inputs."""
    by_name, symbols = {value.name: value for value in inputs}, _symbols_of(inputs)
    if batch is not None and batch < 1:
        raise ModelError(source, "", f"the batch was given as {batch}; expected 1 or more")
    for name, given in shapes.items():
        if name in by_name:
            _check_shape(by_name[name], source, given)
        elif name not in symbols:
            hint = did_you_mean(name, [*by_name, *symbols])
            problem = f"no input or dimension is called {printable(name)!r}; {hint}the model has {described(inputs)}"
            raise ModelError(source, "", problem)
        elif len(given) != 1 or given[0] < 0:
            problem = f"was given as {'x'.join(map(str, given))}; expected one size of 0 or more"
            raise ModelError(source, f"dimension {printable(name)!r}", problem)
        elif batch not in (None, given[0]) and any((value.dims or (0,))[0] == name for value in inputs):
            problem = f"was given as {given[0]}, and the batch, which it is, as {batch}; expected one of them"
            raise ModelError(source, f"dimension {printable(name)!r}", problem)
    follow = [value for value in inputs if batch is not None and _has_batch(value, inputs[0])]
    if follow and all(batch not in shapes.get(value.name, (batch,)) for value in follow):  # it may be no first extent
        problem = f"was given [{_text(shapes[follow[0].name])}], and the batch as {batch}; expected one of them"
        raise ModelError(source, f"input {printable(follow[0].name)!r}", problem)


def _check_shape(value: Value, source: str, given: tuple[int, ...]) -> None:
    place = f"input {printable(value.name)!r}"
    if not value.is_tensor:
        raise ModelError(source, place, "is no tensor, so it takes no shape")
    if value.dims is not None and len(value.dims) != len(given):
        problem = f"has {len(value.dims)} dimensions [{_text(value.dims)}]; {len(given)} were given"
        raise ModelError(source, place, problem)
    if any(extent < 0 for extent in given):
        raise ModelError(source, place, f"was given [{_text(given)}]; expected extents of 0 or more")


def _symbols_of(inputs: Sequence[Value]) -> set[str]:
    """Return the names of dimensions, and those in formulas."""
    texts = {dim for value in inputs for dim in value.dims or () if isinstance(dim, str)}
    return texts.union(*(names_in(text) for text in texts))


def _requested_dims(value: Value, first: Value, shapes: Shapes, batch: int | None) -> Dims | None:
    """Return the dims of one input after `--shape` and `--batch`."""
    dims = value.dims
    if value.name in shapes:
        return shapes[value.name]
    return (batch, *dims[1:]) if batch is not None and dims and _has_batch(value, first) else dims


def _has_batch(value: Value, first: Value) -> bool:
    """Whether a batch sets the first extent: that of inputs [1, 3, 224, 224] and [1, 10], not that of [5, 2]."""
    leading = value.dims[0] if value.dims else 0
    return bool(value.dims) and (not isinstance(leading, int) or leading == (first.dims or (None,))[0])


def _bind_symbols(
    inputs: Sequence[Value], requested: Mapping[str, Dims | None], shapes: Shapes
) -> tuple[dict[str, int | None], list[Note]]:
    """Return the value of each symbol, and a note for each that has two: ONNX Runtime runs such inputs too."""
    names = {value.name for value in inputs}
    symbols: dict[str, int | None] = {name: size[0] for name, size in shapes.items() if name not in names}
    notes: list[Note] = []
    for value in inputs:
        for old, new in zip(value.dims or (), requested[value.name] or (), strict=False):
            if not isinstance(old, str) or not isinstance(new, int):
                continue
            known = symbols.setdefault(old, new)
            if known is not None and known != new:
                symbols[old] = None
                text = f"dimension {printable(old)!r} is {new} in input {printable(value.name)!r} and {known} elsewhere"
                notes.append(Note("repeated-symbol", f"{text}; shapes that the file states with it are not used"))
    return symbols, notes


def _changes_number(old: Dims | None, new: Dims | None) -> bool:
    """Whether the request replaces an extent that the model states as a number."""
    return any(isinstance(a, int) and a != b for a, b in zip(old or (), new or (), strict=False))


def _drop_shapes(body: Body, inputs: Sequence[Value]) -> Body:
    """Return the body, and its subgraphs, without the shapes of computed tensors; element types stay."""
    outputs = [value._replace(dims=None) for value in body.outputs]
    nodes = [map_bodies(node, _drop_all_shapes) for node in body.nodes]
    return replace(body, nodes=nodes, inputs=inputs, outputs=outputs, values=_by_name(outputs, inputs))


def _drop_all_shapes(body: Body) -> Body:
    return _drop_shapes(body, [value._replace(dims=None) for value in body.inputs])


def _by_name(*groups: Sequence[Value]) -> dict[str, Value]:
    return {value.name: value for group in groups for value in group}


def _set(body: Body, dims: Mapping[str, Dims | None], symbols: _Symbols) -> Body:
    """Return the body with these dims of inputs, and these values of symbols everywhere."""
    inputs = [value._replace(dims=dims.get(value.name, value.dims)) for value in body.inputs]
    return _substitute(replace(body, inputs=inputs), symbols)


def _substitute(body: Body, symbols: _Symbols) -> Body:
    """Replace symbols by their values in the body and its subgraphs."""
    disputed = {name for name, size in symbols.items() if size is None}
    sizes = {name: size for name, size in symbols.items() if size is not None}
    known: dict[str, int | str | None] = {}  # a file repeats few names many times

    def size_of(dim: str) -> int | str | None:
        if dim not in known:
            size = evaluate(dim, sizes)
            is_disputed = size is None and not disputed.isdisjoint({dim, *names_in(dim)})
            known[dim] = None if is_disputed else dim if size is None else size
        return known[dim]

    return _map_dims(body, size_of)


def _map_dims(body: Body, size_of: Callable[[str], int | str | None]) -> Body:
    """Return the body, and its subgraphs, with each named dim replaced."""

    def mapped(value: Value) -> Value:
        if value.dims is None or not any(isinstance(dim, str) for dim in value.dims):
            return value
        return value._replace(dims=tuple(size_of(dim) if isinstance(dim, str) else dim for dim in value.dims))

    inputs, outputs = [mapped(value) for value in body.inputs], [mapped(value) for value in body.outputs]
    values = [mapped(value) for value in body.values.values()]
    nodes = [map_bodies(node, lambda inner: _map_dims(inner, size_of)) for node in body.nodes]
    return replace(body, nodes=nodes, inputs=inputs, outputs=outputs, values=_by_name(values, outputs, inputs))


def _text(dims: Dims) -> str:
    return ", ".join("?" if dim is None else printable(str(dim)) for dim in dims)
