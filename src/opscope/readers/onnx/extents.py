"""Input shapes given by the user (`--shape`, `--batch`) substituted for symbolic or stored extents.

Example: input `x` is ["batch", "seq", 64]; `--shape x=2x128x64` sets the symbols batch = 2 and seq = 128, which are
then replaced wherever the graph states them, also in sums such as "past + seq".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.errors import ModelError, printable
from .model import Body, Dims, Value, map_bodies

Shapes = Mapping[str, tuple[int, ...]]


def graph_inputs(body: Body) -> list[Value]:
    """Return the inputs that a caller has to provide; old models list their initializers as inputs too."""
    return [value for value in body.inputs if value.name not in body.constants]


def with_extents(body: Body, source: str, shapes: Shapes, batch: int | None) -> Body:
    """Return the body with the user's shapes set; an input whose shape is still unknown is an error."""
    inputs = graph_inputs(body)
    if shapes or batch is not None:
        _check_request(inputs, source, shapes, batch)
        requested = {value.name: _requested_dims(value, inputs[0], shapes, batch) for value in inputs}
        symbols = _bind_symbols(inputs, requested, source)
        if any(_changes_number(value.dims, requested[value.name]) for value in inputs):
            # The shapes that the model states for later tensors no longer hold. If only symbols are set, they still do.
            body = _drop_shapes(body, body.inputs)
        inputs_set = [value._replace(dims=requested.get(value.name, value.dims)) for value in body.inputs]
        body = _substitute(replace(body, inputs=inputs_set), symbols)
    _require_known(graph_inputs(body), source)
    return body


def _check_request(inputs: Sequence[Value], source: str, shapes: Shapes, batch: int | None) -> None:
    """Refuse a batch or shape that does not fit the graph inputs."""
    by_name = {value.name: value for value in inputs}
    if batch is not None and batch < 1:
        raise ModelError(source, "", f"the batch was given as {batch}; expected 1 or more")
    for name, given in shapes.items():
        value = by_name.get(name)
        if value is None:
            known = ", ".join(printable(name) for name in by_name) or "none"
            raise ModelError(source, "", f"no input is called {printable(name)!r}; the inputs are: {known}")
        place = f"input {printable(name)!r}"
        if not value.is_tensor:
            raise ModelError(source, place, "is no tensor, so it takes no shape")
        if value.dims is not None and len(value.dims) != len(given):
            problem = f"has {len(value.dims)} dimensions [{_text(value.dims)}]; {len(given)} were given"
            raise ModelError(source, place, problem)
        if any(extent < 0 for extent in given):
            raise ModelError(source, place, f"was given [{_text(given)}]; expected extents of 0 or more")


def _requested_dims(value: Value, first: Value, shapes: Shapes, batch: int | None) -> Dims | None:
    """Return the dims of one input after `--shape` and `--batch`."""
    dims = value.dims
    if value.name in shapes:
        return shapes[value.name]
    if batch is not None and dims:
        # `--batch 8` on inputs [1, 3, 224, 224] and [1, 10] changes both; an input [5, 2] has no batch axis and stays.
        leading = first.dims[0] if first.dims else None
        if not isinstance(dims[0], int) or dims[0] == leading:
            return (batch, *dims[1:])
    return dims


def _bind_symbols(inputs: Sequence[Value], requested: Mapping[str, Dims | None], source: str) -> dict[str, int]:
    """Return the value of each symbol; two different values for one symbol are an error."""
    symbols: dict[str, int] = {}
    for value in inputs:
        for old, new in zip(value.dims or (), requested[value.name] or (), strict=False):
            if not isinstance(old, str) or not isinstance(new, int):
                continue
            if symbols.setdefault(old, new) != new:
                problem = f"dimension {printable(old)!r} is {new} here and {symbols[old]} in another input"
                raise ModelError(source, f"input {printable(value.name)!r}", f"{problem}; expected one value")
    return symbols


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


def _substitute(body: Body, symbols: Mapping[str, int]) -> Body:
    """Replace symbols by their values in the body and its subgraphs."""
    inputs = [_substitute_value(value, symbols) for value in body.inputs]
    outputs = [_substitute_value(value, symbols) for value in body.outputs]
    values = [_substitute_value(value, symbols) for value in body.values.values()]
    nodes = [map_bodies(node, lambda inner: _substitute(inner, symbols)) for node in body.nodes]
    return replace(body, nodes=nodes, inputs=inputs, outputs=outputs, values=_by_name(values, outputs, inputs))


def _substitute_value(value: Value, symbols: Mapping[str, int]) -> Value:
    if value.dims is None or all(isinstance(dim, int) for dim in value.dims):
        return value
    return value._replace(dims=tuple(_evaluate(dim, symbols) for dim in value.dims))


def _evaluate(dim: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    """Evaluate a dim: a symbol, or a sum as exporters write it, such as `past_sequence_length + sequence_length`."""
    if not isinstance(dim, str):
        return dim
    terms = [term.strip() for term in dim.split("+")]
    numbers = [
        int(term) if term.isascii() and term.isdigit() and len(term) < 10 else symbols.get(term) for term in terms
    ]
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(terms) else dim


def _require_known(inputs: Sequence[Value], source: str) -> None:
    """Raise an error that names each input with unknown extents and the options that set them."""
    unknown = [value for value in inputs if value.is_tensor and value.shape is None]
    if not unknown:
        return
    what = "; ".join(f"input {printable(value.name)!r} has {_unknown(value.dims)}" for value in unknown)
    flags = " ".join(f"--shape {printable(value.name)}={_placeholder(value.dims)}" for value in unknown)
    leading = any(value.dims and not isinstance(value.dims[0], int) for value in unknown)
    raise ModelError(source, "", f"{what}; give them with {flags}{' or --batch N' if leading else ''}")


def _unknown(dims: Dims | None) -> str:
    if dims is None:
        return "an unknown shape"
    return f"unknown dimensions [{', '.join(printable(str(dim or '?')) for dim in dims if not isinstance(dim, int))}]"


def _placeholder(dims: Dims | None) -> str:
    if dims is None:
        return "DIMxDIM…"
    return "x".join(str(dim) if isinstance(dim, int) else printable(dim or "N").upper() for dim in dims)


def _text(dims: Dims) -> str:
    return ", ".join("?" if dim is None else printable(str(dim)) for dim in dims)
