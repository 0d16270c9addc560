"""TOSA text by hand: what the writer makes of factors and constants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.zoo.tosa_function import TosaFunction, _multiplier


@given(st.floats(2.0**-30, 2.0**20))
def test_a_factor_is_a_multiplier_of_31_bits_and_a_shift(factor: float) -> None:
    multiplier, shift = _multiplier(factor)
    assert 2**30 <= multiplier < 2**31
    assert 2 <= shift <= 62
    assert multiplier / 2**shift == pytest.approx(factor, rel=2.0**-30)


@pytest.mark.parametrize("factor", [2.0**40, 2.0**-40])
def test_a_factor_that_no_shift_reaches_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="outside what a rescale can do"):
        _multiplier(factor)


def test_a_constant_is_written_once_however_often_it_is_used() -> None:
    function = TosaFunction(frozenset())
    first = function.constant(np.array([1, -1], np.int32))
    assert function.constant(np.array([1, -1], np.int32)) == first == ("%0", "tensor<2xi32>")
    assert function.lines == [
        '%0 = "tosa.const"() <{values = dense<"0x01000000FFFFFFFF"> : tensor<2xi32>}> : () -> tensor<2xi32>'
    ]
    assert function.number(-3, np.int8) == ("%1", "tensor<1xi8>")
    assert function.lines[1].startswith('%1 = "tosa.const"() <{values = dense<-3> : tensor<1xi8>}>')
