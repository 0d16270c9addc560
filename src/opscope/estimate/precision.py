"""`--precision P` and `--kv-cache`: which a target can run, and what they make of a model.

| word | what it is |
|---|---|
| a float type (`f16`) | every float tensor has this type |
| an integer type (`i8`) | what a quantiser leaves (`quantiser.py`); the rest is float, as the target runs it |
| `w8a16` (`core/precisions.py`) | the same with weights of 8 and activations of 16 bits; `w8a8` is `i8` |
| `mxfp6` | weights of products are stored in MXFP6 (`block_formats.py`); everything is computed in float |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..core.errors import UsageError, did_you_mean, printable
from ..core.precisions import PRECISIONS
from ..graph.graph import DType, Graph, Note
from ..machine import catalogue as targets
from ..machine.target import ANY, Engine, Target
from ..options import KV_CACHES
from .block_formats import store_cache, store_weights
from .quantiser import quantise
from .work import DEQUANTIZE

AS_IS = KV_CACHES[0]
_BY_LABEL: Mapping[str, DType] = {dtype.label: dtype for dtype in DType}
_BY_BITS = {4: DType.I4, 8: DType.I8, 16: DType.I16}
_WIDTHS: Mapping[str, tuple[DType, DType]] = {  # word → types of activations and of weights
    each.word: (_BY_BITS[each.activation_bits], _BY_BITS[each.weight_bits])
    for each in PRECISIONS.values()
    if each.activation_bits is not None and each.weight_bits is not None
}


def precisions(target: Target) -> tuple[str, ...]:
    """Words that `--precision` takes for a target: types that its matrix engine has a rate for, widths of which it has
    a rate for the activations' type, and MX weights if an engine has a kernel that converts them."""
    able = tuple(dtype.label for dtype in DType if dtype.is_number and _has_rate(target, dtype))
    able += tuple(word for word, types in _WIDTHS.items() if _takes_widths(target, *types))
    return (*able, DType.MXFP6.label) if _has_kernel(target, DType.MXFP6) else able


def _has_rate(target: Target, dtype: DType) -> bool:
    rates = matrix_engine(target).macs_per_cycle
    return (dtype.label in rates or ANY in rates or not rates) and _supports(target, dtype)


def _supports(target: Target, dtype: DType) -> bool:
    return not target.support.dtypes or dtype.label in target.support.dtypes


def _takes_widths(target: Target, activations: DType, weights: DType) -> bool:
    """Whether products of these types run: at the rate of the activations, with weights that engines read as they are.

    Weights of whole bytes are; narrower ones where the target says so, by a rate for them or in `[support]`.
    """
    narrow = weights.bits < DType.I8.bits
    readable = weights.label in target.support.dtypes if narrow else _supports(target, weights)
    return _has_rate(target, activations) and (readable or _has_rate(target, weights))


def matrix_engine(target: Target) -> Engine:
    """The engine with most MACs per cycle."""
    return max(target.engines, key=lambda engine: max((f.value for f in engine.macs_per_cycle.values()), default=0.0))


def with_precision(target: str | Path | Target, precision: str | None, *, kv_cache: str = AS_IS) -> Target:
    """The target, running float tensors as the precision asks; what it has no rate or kernel for is refused."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    if kv_cache != AS_IS and not _has_kernel(chosen, _BY_LABEL[kv_cache]):
        raise UsageError(f"--kv-cache {kv_cache}: {chosen.name} has no kernel that converts it; expected {AS_IS}")
    if precision is None:
        return chosen
    _check(chosen, precision)
    (dtype, _), runs_as = _types(precision), chosen.precision
    if dtype.is_float:
        runs_as = _all_floats_as(precision)
    elif not runs_as:  # quantised or stored: what stays float has to be of a type that is there
        rates = matrix_engine(chosen).macs_per_cycle
        floats = [label for label in rates if label != ANY and _BY_LABEL[label].is_float]
        runs_as = _all_floats_as(floats[0]) if floats and DType.F32.label not in floats and ANY not in rates else {}
    return replace(chosen, precision=runs_as)


def _all_floats_as(label: str) -> dict[str, str]:
    return {dtype.label: label for dtype in DType if dtype.is_number and dtype.is_float and dtype.label != label}


def _check(target: Target, precision: str) -> None:
    able = precisions(target)
    if precision in able:
        return
    if precision in {*_WIDTHS, *(dtype.label for dtype in DType if dtype.is_number), DType.MXFP6.label}:
        problem, hint = f"{target.name} has no rate for it", ""
    else:
        problem, hint = "not known", did_you_mean(precision, able)
    raise UsageError(f"--precision {printable(precision)}: {problem}; {hint}expected one of {', '.join(able)}")


def in_precision(graph: Graph, target: Target, precision: str | None, *, kv_cache: str = AS_IS) -> Graph:
    """The graph as a quantiser leaves it for a target: with the ops and the types of storage that the choices bring."""
    if kv_cache != AS_IS:
        problem = "the model gives no cache of keys and values out again; nothing is stored so"
        graph = _stored(store_cache(graph), _BY_LABEL[kv_cache], f"--kv-cache {kv_cache}: {problem}")
    if precision is None:
        return graph
    dtype, weights = _types(precision)
    if dtype is DType.MXFP6:
        problem = "no matrix product has weights of a float type; nothing is stored so"
        return _stored(store_weights(graph), dtype, f"--precision {precision}: {problem}")
    return quantise(graph, target, dtype, weights) if dtype.is_number and not dtype.is_float else graph


def _stored(graph: Graph, dtype: DType, otherwise: str) -> Graph:
    """The graph, with a note where none of its tensors is stored in the format that was asked for."""
    if any(tensor.dtype is dtype for tensor in graph.tensors):
        return graph
    return replace(graph, notes=(*graph.notes, Note("nothing-stored", otherwise)))


def _types(precision: str) -> tuple[DType, DType]:
    """Types of activations and of weights that a word asks for."""
    return _WIDTHS[precision] if precision in _WIDTHS else (_BY_LABEL[precision], _BY_LABEL[precision])


def _has_kernel(target: Target, dtype: DType) -> bool:
    return any(DEQUANTIZE[dtype] in engine.kernels for engine in target.engines)
