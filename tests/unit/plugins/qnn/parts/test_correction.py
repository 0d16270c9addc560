"""The vendor's times and a call, corrected by what was measured: never mixed with the vendor's own number."""

from __future__ import annotations

import pytest

from opscope.core.provenance import Provenance
from opscope.plugins.qnn.parts.correction import Correction, correction_of
from opscope.plugins.qnn.socs import SOCS
from opscope.recording.summary import Share
from support.plugins.qnn.htp_samples import profiled, tiny


@pytest.fixture(scope="module")
def known() -> Correction:
    found = correction_of(52, "f16")
    assert found is not None
    return found


def shares(**seconds: float) -> tuple[Share, ...]:
    whole = sum(seconds.values())
    return tuple(Share(cause, 1e9 * each, each / whole) for cause, each in seconds.items())


def test_an_inference_is_the_call_and_each_engine_by_its_factor(known: Correction) -> None:
    found = known.inference(shares(HMX=2e-3, HVX=1e-3))
    assert found is not None
    wanted = known.call_seconds.value + 2e-3 * known.factors["HMX"].value + 1e-3 * known.factors["HVX"].value
    assert found.value == pytest.approx(wanted)
    assert found.low < found.value < found.high
    longer = known.inference(shares(HMX=3e-3, HVX=1e-3))
    assert longer is not None
    assert longer.value > found.value


def test_the_range_is_wide_where_kernels_rule_that_the_vendors_model_is_far_off_of(known: Correction) -> None:
    matrix, vector = known.inference(shares(HMX=1e-2)), known.inference(shares(HVX=1e-2))
    assert matrix is not None
    assert vector is not None
    assert vector.high / vector.low > matrix.high / matrix.low


def test_an_engine_without_a_factor_and_a_path_without_time_have_no_number(known: Correction) -> None:
    assert known.inference(shares(HMX=1e-3, HLX=1e-3)) is None
    assert known.inference(()) is None


def test_figures_of_the_file_have_ranges_and_a_source(known: Correction) -> None:
    for figure in (known.call_seconds, *known.factors.values()):
        assert figure.smallest < figure.value < figure.largest
        assert figure.source in known.sources
    assert known.validation.source in known.sources
    assert set(known.ids) <= {soc.id for soc in SOCS if soc.has_model}


@pytest.mark.parametrize(("soc", "dtype"), [(62, "f16"), (52, "i8"), (43, "f16")])
def test_what_was_not_measured_beside_the_vendors_model_has_no_correction(soc: int, dtype: str) -> None:
    assert correction_of(soc, dtype) is None


def test_a_profile_shows_both_numbers_each_with_its_provenance() -> None:
    recording = profiled(tiny())
    total, vendor = recording.metric("total_inference_time"), recording.metric("htp_execution_time")
    assert vendor is not None
    assert vendor.provenance is Provenance.VENDOR_MODEL
    assert total is not None
    assert (total.value is None) == (recording.machine.get("macs_in") != "f16")
    if total.value is not None:
        assert total.provenance is Provenance.CALIBRATED
    assert recording.latency is not None
    assert recording.latency.provenance is Provenance.VENDOR_MODEL
