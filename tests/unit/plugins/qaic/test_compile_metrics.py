from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from support.plugins.importer_samples import SAMPLES, all_hold, sample
from support.plugins.qaic_published import METRICS, written

KB = 1024


def test_published_metrics_add_up(tmp_path: Path) -> None:
    found = read_profile(written(tmp_path, METRICS))
    assert all_hold(found)
    assert len(found.checks) == 6
    assert found.model == "bert_base_cased_onnx/model_fix_outofrange_fp16.onnx"
    assert found.value("total DDR read") == 168941 * KB
    assert found.value("c01 MC write, constants") == 408 * KB
    assert found.value("VTCMMaxSize") == 8323072
    assert found.value("ops of the model's graph") == 516
    assert (found.latency_ns, len(found.trace.spans), found.ops) == (None, 0, ())


def test_sizes_counts_and_traffic_are_totals() -> None:
    metrics = {metric.name: (metric.value, metric.unit) for metric in sample("qaic_compile_metrics.txt").metrics}
    assert metrics == {
        "ops of the model's graph": (5, "1"),
        "preD32 constants size": (4096, "bytes"),
        "AIC non-HMX MAC estimate": (12, "1"),
        "MulticastTableSize": (6, "1"),
        "VTCM0Size": (8192, "bytes"),
        "VTCMMaxSize": (8192, "bytes"),
        "StaticSharedDDRSize": (1024, "bytes"),
        "Constants size": (4096, "bytes"),
        "c00 barriers": (3, "1"),
        "Number of specialized kernels": (50, "1"),
        "host DDR read": (2 * KB, "bytes"),
        "host DDR read, first inference": (2 * KB, "bytes"),
        "host DDR read, constants": (0, "bytes"),
        "host DDR read, constants, first inference": (0, "bytes"),
        "port02 DDR read": (2 * KB, "bytes"),
        "c00 DDR read": (5 * KB, "bytes"),
        "c00 DDR read, first inference": (9 * KB, "bytes"),
        "c00 DDR read, constants": (4 * KB, "bytes"),
        "c00 DDR read, constants, first inference": (8 * KB, "bytes"),
        "host MC write": (KB, "bytes"),
        "c00 MC write": (3 * KB, "bytes"),
        "c00 MC write, constants": (2 * KB, "bytes"),
        "total DDR read": (7 * KB, "bytes"),
        "total DDR read, first inference": (11 * KB, "bytes"),
        "total DDR read, constants": (4 * KB, "bytes"),
        "total DDR read, constants, first inference": (8 * KB, "bytes"),
        "total MC write": (9 * KB, "bytes"),
    }


def test_a_total_that_is_none_is_a_violation() -> None:
    assert {check.name: check.holds for check in sample("qaic_compile_metrics.txt").checks} == {
        "total DDR read = host and cores": True,
        "total DDR read, constants = host and cores": True,
        "total MC write = host and cores": False,
    }


def test_an_estimate_that_overflowed_is_unknown_and_lines_that_cannot_be_read_are_named() -> None:
    found = sample("qaic_compile_metrics.txt")
    assert found.value("Original MAC estimate") is None
    assert found.notes[-1].startswith(
        "2 lines could not be read: line 4: Original MAC estimate: 18446744060020916224; line"
    )
    assert "c00: DDR traffic write:          x KB" in found.notes[-1]


def test_facts_of_the_compiler_go_with_a_measurement() -> None:
    both = combine([sample("latency.txt"), sample("qaic_compile_metrics.txt")])
    assert both.provenance == "measured"
    assert both.value("VTCM0Size") == 8192


def test_a_text_without_traffic_is_an_error(tmp_path: Path) -> None:
    text = (SAMPLES / "qaic_compile_metrics.txt").read_text().replace(" KB", " MB")
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(ImportFileError, match="no line of traffic; expected `c00: DDR traffic  read: N KB`"):
        read_profile(tmp_path / "m.txt")
