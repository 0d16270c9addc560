"""What was chosen in runs, as far as it tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.gate.baseline import decode_baseline, encode_baseline
from opscope.gate.figures import Figures, choices_of
from opscope.gate.run_figures import figures_of_parts
from opscope.recording.summary import MemoryTotal
from support.recording.compare_build import LABELS, figures, info, op, spans_of, summary_of


def chosen(backend: str = "htp", **options: str) -> Figures:
    return replace(figures([op("a")]), backend=backend, options=options)


def test_what_differs_is_said_and_the_precision_always() -> None:
    runs = [chosen(precision="w8a8", io_quant="on"), chosen(precision="w8a8", io_quant="off")]
    assert choices_of(runs) == [{"precision": "w8a8", "io_quant": "on"}, {"precision": "w8a8", "io_quant": "off"}]
    assert choices_of([chosen(io_quant="on"), chosen(io_quant="on")]) == [{}, {}]


def test_what_is_not_named_is_the_default_of_the_same_backend_and_of_no_other() -> None:
    assert choices_of([chosen(), chosen(opt_level="3")]) == [{"opt_level": "default"}, {"opt_level": "3"}]
    assert choices_of([chosen("sim"), chosen(opt_level="3")]) == [{}, {}]
    runs = [chosen(), chosen(opt_level="3"), chosen("")]
    assert choices_of(runs) == [{"opt_level": "default"}, {"opt_level": "3"}, {}]


def test_options_are_those_of_the_run_without_its_origin_and_with_its_local_memory() -> None:
    memory = (
        MemoryTotal("VTCM", 0, 0, 1, None, 8 << 20, None, None),
        MemoryTotal("VTCM", 0, 1, 1, None, 8 << 20, None, None),
        MemoryTotal("DDR", 0, None, 1, None, 1 << 30, None, None),
    )
    run = replace(info(), options={"backend": "htp", "precision": "f16", "imported_from": "x", "run_key": "y"})
    found = figures_of_parts(run, [], replace(summary_of([]), memory=memory), spans_of([]), label="run")
    assert (found.backend, found.options) == ("htp", {"precision": "f16", "VTCM": "8.00 MB"})


@pytest.mark.parametrize("options", [{}, {"precision": "w8a8", "vtcm_mb": "4"}])
def test_a_baseline_keeps_them(options: dict[str, str]) -> None:
    run = chosen(**options)
    back = decode_baseline(encode_baseline(run, labels=LABELS), source="b", label=run.label)
    assert (back.backend, back.options) == (run.backend, run.options)
