"""Which steps lead from what a model file is to what a backend takes. Plug-ins' manifests say which steps there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain

from ..backends import environments
from ..core.manifest import BackendEntry, Conversion, Form
from ..core.plugins import manifests
from ..graph.graph import ABSENT, DType, Graph
from ..graph.kinds import Family

FLOAT = "float"
_TITLES = {"onnx": "ONNX", "tflite": "TFLite", "mlir": "MLIR"}


def known() -> tuple[Conversion, ...]:
    """Every step of every plug-in."""
    return tuple(step for manifest in manifests() for step in manifest.conversions)


def told(form: Form) -> str:
    """A form in words."""
    return f"{form.precision} {_TITLES.get(form.format, form.format)}".strip()


def precision_of(graph: Graph) -> str:
    """What the products of a graph are computed with; without any, what its other ops are.

    Values that were quantised before a product, as in QDQ models, are those that it is computed with.
    """
    whole = {op.outputs[0]: op.inputs[0] for op in graph.ops if op.kind == "dequantize"}
    products = [op for op in graph.ops if op.family is Family.CONTRACTION]
    read = [op.inputs[0] for op in products or graph.ops if op.inputs and op.inputs[0] != ABSENT]
    bits = {kind.bits for kind in (graph.tensors[whole.get(tensor, tensor)].dtype for tensor in read) if _narrow(kind)}
    if 8 in bits and products:
        return "w8a8"
    return "w8a16" if 16 in bits else FLOAT


def _narrow(kind: DType) -> bool:
    return kind.is_number and not kind.is_float and kind.bits <= 16


def goal(entry: BackendEntry, precision: str, asked: str | None) -> str:
    """The precision that a model of `precision` is to have: what is asked for, else what the backend needs.

    A model that comes quantised stays as it is, if nothing else is asked for.
    """
    if asked is not None:
        return asked
    return entry.precisions[0] if entry.precisions and precision == FLOAT else precision


def shortest(
    start: Form, formats: Sequence[str], precision: str, steps: Sequence[Conversion]
) -> tuple[Conversion, ...]:
    """The fewest steps to one of the formats in that precision; the earlier format of two; none: there is no way."""
    before: dict[Form, tuple[Form, Conversion]] = {}
    left, reached = deque([start]), [start]
    while left:
        form = left.popleft()
        for step, made in _onward(form, steps):
            if made not in before and made != start:
                before[made] = (form, step)
                left.append(made)
                reached.append(made)
    ends = [form for form in reached if form.format in formats and form.precision == precision]
    ways = [_way(form, before) for form in ends]
    return min(ways, key=len, default=())  # the first of equal length: breadth first keeps the order of steps


def _onward(form: Form, steps: Sequence[Conversion]) -> Iterator[tuple[Conversion, Form]]:
    for step in steps:
        if step.source.format == form.format and step.source.precision in ("", form.precision):
            yield step, Form(step.makes.format, step.makes.precision or form.precision)


def _way(form: Form, before: dict[Form, tuple[Form, Conversion]]) -> tuple[Conversion, ...]:
    found: list[Conversion] = []
    while form in before:
        form, step = before[form]
        found.insert(0, step)
    return tuple(found)


def missing(steps: Sequence[Conversion]) -> tuple[str, ...]:
    """Environments that the steps need and that are not here."""
    names = dict.fromkeys(step.environment for step in steps if step.environment)
    return tuple(name for name in names if environments.find(name) is None)


def obstacle(form: str, formats: Sequence[str]) -> str:
    """Why a model of a format cannot be brought to one of these, by its format alone; empty: it can."""
    steps = known()
    precisions = dict.fromkeys(chain([FLOAT], (step.source.precision or FLOAT for step in steps)))
    ways = [way for precision in precisions if (way := shortest(Form(form, precision), formats, precision, steps))]
    if form in formats or any(not missing(way) for way in ways):
        return ""
    takes = f"takes {' and '.join(formats)} models, and this one is {form}"
    return f"{takes} (`opscope setup {missing(ways[0])[0]}` brings what converts it)" if ways else takes
