"""Weights that a step of a language model has to read, from its parameters alone: without ops and kernels."""

from __future__ import annotations

from dataclasses import replace

from opscope.language_models.architecture import Architecture, Mixture, Parameters
from opscope.language_models.decoder import DecoderStep
from opscope.language_models.decoder_graph import Storage
from opscope.language_models.decoder_parts import touched_experts
from opscope.language_models.memory import _stored


def read_weight_bytes(model: Architecture, storage: Storage, step: DecoderStep) -> int:
    """Weights that one step reads: of tables the rows of its tokens, of experts those that its tokens use."""
    tokens, total = step.batch * step.tokens, 0
    for row in model.parameter_rows:
        if row.used_rows is not None:
            total += tokens * row.matrix.columns * storage.weights.flows.bits // 8
        elif row.is_copy:  # a tied head reads the whole table
            total += storage.of_block(row.block).size_bytes(row.matrix.rows, row.matrix.columns)
        else:
            read = replace(row, matrix=replace(row.matrix, copies=_touched(row, model, step)))
            total += row.count * _stored(read, model, storage)
    return total


def _touched(row: Parameters, model: Architecture, step: DecoderStep) -> int:
    """Of an expert's matrices, those that the tokens of a step read."""
    matrix = row.matrix
    if matrix.copies == 1:
        return 1
    parts = (layer.feed_forward for layer in model.repeats)
    part = next(p for p in parts if isinstance(p, Mixture) and p.experts == matrix.copies)
    return touched_experts(part, step.batch * step.tokens, step.routing)
