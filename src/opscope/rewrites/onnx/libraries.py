"""Optimisers of well-kept libraries as rewrites of a model as a whole.

Those that work on onnx-ir, as rules do, are called here. Others print, keep settings of their own or are compiled code
that may crash: they work in a process of their own (`library_worker`). A library that fails, or that makes what others
cannot run, is an error with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from ...backends.process import run_worker, work_folder
from ...core.errors import in_words, printable
from ..rewrite import RewriteContext, RewriteError
from .files import changed_file
from .rule import whole

MOST_FOLDED = 2**20  # elements of a constant that folding may make
LONGEST_S = 900.0  # of one library
OWN_DOMAINS = frozenset(("", "ai.onnx"))
_WORKER = f"{__package__}.library_worker"


@whole
def fold_constants(model: ir.Model, _: RewriteContext) -> ir.Model:
    """What depends on constants alone is computed, functions are inlined, ops that change nothing go."""
    from onnxscript import optimizer

    def change(given: ir.Model) -> ir.Model:
        optimizer.optimize_ir(given, output_size_limit=MOST_FOLDED)
        return given

    def fold(given: ir.Model) -> ir.Model:  # its patterns write operators as versions from 18 on have them
        optimizer.fold_constants_ir(given, output_size_limit=MOST_FOLDED)
        return common.RemoveUnusedNodesPass()(given).model

    try:
        return held(model, _tried(model, change))
    except RewriteError:
        return held(model, _tried(model, fold))


@whole
def share_equal_ops(model: ir.Model, _: RewriteContext) -> ir.Model:
    """Ops of one kind on the same values are one, and so are equal constants; what nobody reads goes."""

    def change(given: ir.Model) -> ir.Model:
        for step in (
            common.LiftConstantsToInitializersPass(),
            common.DeduplicateHashedInitializersPass(),
            common.CommonSubexpressionEliminationPass(),
            common.RemoveUnusedNodesPass(),
        ):
            given = step(given).model
        return given

    return held(model, _tried(model, change))


@whole
def slim(model: ir.Model, context: RewriteContext) -> ir.Model:
    """What onnxslim makes of a model: shapes worked out, constants folded, patterns fused, equal ops shared."""
    return by_library(model, "onnxslim", context)


@whole
def runtime_basic(model: ir.Model, context: RewriteContext) -> ir.Model:
    """What ONNX Runtime makes of a model by rewrites of its graph that hold on every device."""
    return by_library(model, "onnxruntime-basic", context)


@whole
def runtime_extended(model: ir.Model, context: RewriteContext) -> ir.Model:
    """What ONNX Runtime makes of a model by fusions, where these give operators of ONNX itself."""
    return by_library(model, "onnxruntime-extended", context)


def _tried(model: ir.Model, change: Callable[[ir.Model], ir.Model]) -> ir.Model:
    try:
        return change(model.clone())
    except Exception as error:  # of a library, whatever it is
        raise RewriteError(in_words(error, 300)) from error


def by_library(model: ir.Model, library: str, context: RewriteContext) -> ir.Model:
    """What a library makes of a model in a process of its own."""

    def make(before: Path, after: Path) -> None:
        request: dict[str, object] = {"library": library, "before": str(before), "after": str(after)}
        with work_folder("library") as folder:
            answer, ended = run_worker(_WORKER, request, folder, longest_s=LONGEST_S)
        if answer is None:
            raise RewriteError(f"{library} {ended.how}; it says: {ended.last_words}")
        if not answer["ok"]:
            raise RewriteError(printable(f"{library}: {answer['problem']}", 300))

    return held(model, changed_file(model, library, context, make))


def held(model: ir.Model, changed: ir.Model) -> ir.Model:
    """What a library made, whole: its ports and operators are those of the model, or it is an error."""
    if _ports(changed) != _ports(model):
        raise RewriteError("inputs or outputs are others than the model's")
    if foreign := _domains(changed) - _domains(model):
        raise RewriteError(f"uses operators of {', '.join(sorted(foreign))}, which not every runtime knows")
    if unknown := _unknown_attribute(changed):
        raise RewriteError(f"writes {unknown}, which is not of the model's version")
    for domain in set(changed.graph.opset_imports) - _domains(changed) - OWN_DOMAINS:
        del changed.graph.opset_imports[domain]
    common.NameFixPass()(changed)
    common.ShapeInferencePass(check_type=False, strict_mode=False)(changed)
    _keep_shapes(model, changed)
    return changed


def _ports(model: ir.Model) -> list[list[tuple[str | None, object]]]:
    return [[(value.name, value.dtype) for value in ports] for ports in (model.graph.inputs, model.graph.outputs)]


def _domains(model: ir.Model) -> frozenset[str]:
    """Domains of the operators of a model, those in bodies of control flow among them."""
    return frozenset(node.domain for node in model.graph.all_nodes()) | OWN_DOMAINS


def _unknown_attribute(model: ir.Model) -> str:
    """An attribute of an operator of ONNX itself that it does not have in the model's version; empty: there is none."""
    imports = model.graph.opset_imports
    version = imports.get("", imports.get("ai.onnx", 0))
    for node in model.graph.all_nodes():
        if node.domain in OWN_DOMAINS and onnx.defs.has(node.op_type, version, ""):
            known = onnx.defs.get_schema(node.op_type, version, "").attributes
            if more := node.attributes.keys() - known.keys():
                return f"{min(more)} of {node.op_type}"
    return ""


def _keep_shapes(before: ir.Model, after: ir.Model) -> None:
    """Shapes of inputs and outputs as the model's own file says them."""
    for olds, news in ((before.graph.inputs, after.graph.inputs), (before.graph.outputs, after.graph.outputs)):
        for old, new in zip(olds, news, strict=True):
            new.shape = old.shape
