"""How copies are quantised for the accelerator: the vendor's execution provider has its own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...backends.worker import RefusedError
from ...quantization.copies import simplified
from ...quantization.precisions import Precision
from .manifest import PRECISIONS

_CHANNELS = {"Conv": 0, "ConvTranspose": 1}  # type → axis of the weights; the compiler takes a scale per channel there
_PRODUCTS = {"MatMul", "Gemm"}


class QnnRecipe:
    """Fusions and types that the vendor's compiler takes; it wants fixed shapes."""

    fixes_shapes = True

    def prepared(self, model: Path, folder: Path) -> Path:
        import onnx
        from onnxruntime.quantization.execution_providers.qnn import qnn_preprocess_model

        simpler, made = simplified(model, folder), folder / "fused.onnx"
        proto = onnx.load(str(simpler))
        del proto.metadata_props[:]  # the vendor's step fails on a model that has any, and the one before leaves some
        onnx.save(proto, str(simpler))
        return made if qnn_preprocess_model(str(simpler), str(made)) else simpler

    def config(self, model: Path, reader: object, precision: Precision, *, excluded: list[str]) -> Any:
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

        if precision.word not in PRECISIONS:
            known = ", ".join(PRECISIONS[1:])
            raise RefusedError(f"--precision {precision.word}: not for this accelerator; expected one of {known}")
        return get_qnn_qdq_config(
            str(model),
            reader,
            activation_type=QuantType.QUInt16 if precision.activation_bits == 16 else QuantType.QUInt8,
            weight_type=QuantType.QUInt8,
            init_overrides=_weights(model, QuantType.QInt4 if precision.weight_bits == 4 else None, QuantType.QInt8),
            add_qtype_converts=False,  # they are for activations of several widths
            nodes_to_exclude=excluded or None,
        )


def _weights(model: Path, small: Any, usual: Any) -> dict[str, list[dict[str, Any]]]:
    """Types of weights: a scale per channel for convolutions alone, as other ops with one are left to the CPU.

    `small` is the type of less than 8 bits, if it is asked for; without it products keep the one that they have.
    """
    import onnx

    graph = onnx.load(str(model), load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    found: dict[str, list[dict[str, Any]]] = {}
    readers: dict[str, set[str]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            readers.setdefault(name, set()).add(node.op_type if place == 1 else "")
    for name, types in readers.items():
        if name not in constants or len(types) != 1:
            continue
        (reader,) = types
        if reader in _CHANNELS:
            found[name] = [{"axis": _CHANNELS[reader], "quant_type": small or usual, "symmetric": True}]
        elif reader in _PRODUCTS and small is not None:
            found[name] = [{"quant_type": small, "symmetric": True}]
    return found
