"""A quantised copy as JSON: everything that is known of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

from ...core.json_files import PRODUCER, write_json
from ...recording.quantized import Difference, Quantized

SCHEMA = "opscope.quantize/1"


class QuantizedJson:
    """Sizes, calibration, errors of outputs and layers, ops that stayed float, both profiles."""

    suffix = ".json"

    def render(self, result: Quantized, out: TextIO) -> None:
        told = asdict(result)
        told |= {"producer": {**PRODUCER, "packages": dict(result.producer)}}
        told |= {"outputs": outputs_fields(result)}
        told |= {
            "layers": [
                {
                    "op": layer.op,
                    "type": layer.type,
                    "tensor": layer.tensor,
                    "inputs_sqnr_db": layer.inputs_db,
                    "added_noise": layer.added,
                    **difference_fields(layer.difference),
                }
                for layer in result.layers
            ]
        }
        write_json({"schema": SCHEMA, **told}, out)


def outputs_fields(result: Quantized) -> list[dict[str, object]]:
    return [
        {
            "name": row.name,
            "top1_agreement": row.top1,
            "rows": row.rows,
            "problem": row.problem,
            **difference_fields(row.difference),
        }
        for row in result.outputs
    ]


def difference_fields(found: Difference | None) -> dict[str, object]:
    """None where it is not known; an exact copy has no noise and so no ratio."""
    return {
        "sqnr_db": None if found is None else found.sqnr_db,
        "exact": None if found is None else found.is_exact,
        "cosine": None if found is None else found.cosine,
        "max_abs_error": None if found is None else found.max_abs,
        "largest": None if found is None else found.largest,
    }
