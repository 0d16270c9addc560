from __future__ import annotations

from collections.abc import Iterator
from threading import get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.ahead import ahead


@given(st.lists(st.integers()), st.integers(1, 3))
def test_results_come_in_the_order_of_what_was_given(values: list[int], threads: int) -> None:
    assert list(ahead(lambda value: value + 1, values, threads=threads)) == [value + 1 for value in values]


def test_the_work_is_done_elsewhere() -> None:
    assert get_ident() not in set(ahead(lambda _: get_ident(), range(4)))


def test_no_more_is_taken_than_is_worked_on() -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = ahead(str, numbers(), threads=2)
    assert next(results) == "0"
    assert taken == [0, 1, 2]
    results.close()  # type: ignore[attr-defined]
    assert taken == [0, 1, 2]


def test_an_error_comes_where_its_result_would() -> None:
    results = ahead(lambda value: 6 // value, [3, 0, 2])
    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_error_in_what_is_given_comes_through() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(ahead(str, broken()))
