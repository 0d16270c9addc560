"""Optimisers of well-kept libraries as rewrites of a model as a whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from .rule import whole

LARGEST_MODEL = 1_900_000_000  # bytes that a library may be given in one message; the format ends at 2 GB
MOST_FOLDED = 2**20  # elements of a constant that folding may make
OWN_DOMAINS = frozenset(("", "ai.onnx"))


@whole
def fold_constants(model: ir.Model) -> ir.Model:
    """What depends on constants alone is computed, functions are inlined, ops that change nothing go."""
    from onnxscript import optimizer

    def change(given: ir.Model) -> ir.Model:
        optimizer.optimize_ir(given, output_size_limit=MOST_FOLDED)
        return given

    def fold(given: ir.Model) -> ir.Model:  # its patterns write operators as versions from 18 on have them
        optimizer.fold_constants_ir(given, output_size_limit=MOST_FOLDED)
        return common.RemoveUnusedNodesPass()(given).model

    changed = guarded(model, change)
    return changed if changed is not model else guarded(model, fold)


@whole
def share_equal_ops(model: ir.Model) -> ir.Model:
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

    return guarded(model, change)


@whole
def slim(model: ir.Model) -> ir.Model:
    """What onnxslim makes of a model: shapes worked out, constants folded, patterns fused, equal ops shared."""

    def change(given: ir.Model) -> ir.Model:
        from onnxslim.core import optimize, shape_infer

        return ir.serde.deserialize_model(optimize(shape_infer(ir.to_proto(given))))

    return guarded(model, change, in_one_message=True)


@whole
def runtime_basic(model: ir.Model) -> ir.Model:
    """What ONNX Runtime makes of a model by rewrites of its graph that hold on every device."""
    return guarded(model, lambda given: _by_runtime(given, "ORT_ENABLE_BASIC"), in_one_message=True)


@whole
def runtime_extended(model: ir.Model) -> ir.Model:
    """What ONNX Runtime makes of a model by fusions, where these give operators of ONNX itself."""
    return guarded(model, lambda given: _by_runtime(given, "ORT_ENABLE_EXTENDED"), in_one_message=True)


def _by_runtime(model: ir.Model, level: str) -> ir.Model:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    with TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(ir.to_proto(model), before)
        options.optimized_model_filepath = str(after)
        onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])
        return ir.serde.deserialize_model(onnx.load(after))


def guarded(model: ir.Model, change: Callable[[ir.Model], ir.Model], *, in_one_message: bool = False) -> ir.Model:
    """The changed model, or the one given where a library fails, takes too much or makes what others cannot run."""
    weights = sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value)
    if in_one_message and weights > LARGEST_MODEL:
        return model
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # libraries tell what they do; nobody asked
            changed = change(_whole_copy(model) if in_one_message else model.clone())
    except Exception:
        return model
    if _ports(changed) != _ports(model) or not _domains(changed) <= _domains(model) or not _is_of_version(changed):
        return model
    for domain in set(changed.graph.opset_imports) - _domains(changed) - OWN_DOMAINS:
        del changed.graph.opset_imports[domain]
    common.NameFixPass()(changed)
    common.ShapeInferencePass(check_type=False, strict_mode=False)(changed)
    _keep_shapes(model, changed)
    return changed


def _whole_copy(model: ir.Model) -> ir.Model:
    """A copy whose weights are in memory, not in files beside it."""
    return ir.external_data.load_to_model(model.clone())


def _ports(model: ir.Model) -> list[list[tuple[str | None, object]]]:
    return [[(value.name, value.dtype) for value in ports] for ports in (model.graph.inputs, model.graph.outputs)]


def _domains(model: ir.Model) -> frozenset[str]:
    """Domains of the operators of a model, those in bodies of control flow among them."""
    return frozenset(node.domain for node in model.graph.all_nodes()) | OWN_DOMAINS


def _is_of_version(model: ir.Model) -> bool:
    """Whether operators of ONNX itself have only attributes that they have in the model's version."""
    imports = model.graph.opset_imports
    version = imports.get("", imports.get("ai.onnx", 0))
    for node in model.graph.all_nodes():
        if node.domain in OWN_DOMAINS and onnx.defs.has(node.op_type, version, ""):
            known = onnx.defs.get_schema(node.op_type, version, "").attributes
            if not node.attributes.keys() <= known.keys():
                return False
    return True


def _keep_shapes(before: ir.Model, after: ir.Model) -> None:
    """Shapes of inputs and outputs as the model's own file says them."""
    for olds, news in ((before.graph.inputs, after.graph.inputs), (before.graph.outputs, after.graph.outputs)):
        for old, new in zip(olds, news, strict=True):
            new.shape = old.shape
