from __future__ import annotations

import pytest

from opscope.core.errors import UsageError
from opscope.plugins.qnn.options import HtpOptions


def test_the_part_goes_to_the_library_by_number() -> None:
    options = HtpOptions.of({"soc": "Snapdragon 8 Gen 3", "vtcm-mb": 4, "opt-level": "2", "io-quant": "off"})
    assert options.provider_options() == {
        "soc_model": "57",
        "offload_graph_io_quantization": "1",
        "htp_performance_mode": "balanced",
        "vtcm_mb": "4",
        "htp_graph_finalization_optimization_mode": "2",
    }


def test_levels_that_the_runtime_would_ignore_are_not_passed_on() -> None:
    assert "profiling_level" not in HtpOptions.of({"profiling-level": "linting"}).provider_options()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"profiling-level": "loud"}, "--profiling-level loud: not known; expected one of basic, detailed, backend"),
        ({"vtcm-mb": 9}, "--vtcm-mb 9: SA8255 has 8 MB; expected 1 to 8"),
        ({"vtcm-mb": 0}, "--vtcm-mb 0: SA8255 has 8 MB; expected 1 to 8"),
        ({"opt-level": "4"}, "--opt-level 4: not known; expected one of 0, 1, 2, 3"),
        ({"colour": "red"}, "option colour: not one of the htp backend; expected one of soc, "),
    ],
)
def test_a_wrong_choice_names_the_option_and_what_is_accepted(values: dict[str, str | int], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        HtpOptions.of(values)
    assert str(caught.value).startswith(words)


def test_a_type_alone_is_that_of_weights_and_activations() -> None:
    assert HtpOptions.of({"precision": "i8"}) == HtpOptions.of({"precision": "w8a8"})
    with pytest.raises(UsageError, match=r"^--precision w16a16: not known; expected one of as-is, w8a8, w8a16"):
        HtpOptions.of({"precision": "i16"})
