"""How copies are quantised for the accelerator: the vendor's execution provider has its own configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...quantization.copies import simplified
from ...quantization.precisions import Precision


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

        is_small = precision.weight_bits == 4  # the compiler takes signed weights of 4 bits, with a scale per channel
        return get_qnn_qdq_config(
            str(model),
            reader,
            activation_type=QuantType.QUInt16 if precision.activation_bits == 16 else QuantType.QUInt8,
            weight_type=QuantType.QInt4 if is_small else QuantType.QUInt8,
            per_channel=is_small,
            nodes_to_exclude=excluded or None,
        )
