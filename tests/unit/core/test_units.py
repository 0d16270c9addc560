"""How numbers are printed and parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.core.units import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_joules,
    format_latency,
    format_percent,
    format_seconds,
    parse_joules,
    parse_seconds,
    parse_share,
    parse_size,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KB"),
        (589_824, "576.00 KB"),
        (1 << 20, "1.00 MB"),
        (1 << 34, "16.00 GB"),
    ],
)
def test_a_kilobyte_is_1024_bytes(size: int, text: str) -> None:
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (5e-9, "5 ns"),
        (1.8026, "1.8 s"),
        (0.01234, "12.3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1,000 ms"),
        (4.4e-5, "44 us"),
        (1234.5, "1,234 s"),
        (86_400, "86,400 s"),
    ],
)
def test_times_have_three_digits_and_no_exponent(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("joules", "text"), [(1.5e-9, "1.5 nJ"), (110.59e-6, "110.6 uJ"), (0.99999, "1,000 mJ"), (54_321, "54,321 J")]
)
def test_energies_have_four_digits_and_no_exponent(joules: float, text: str) -> None:
    assert format_joules(joules) == text


@given(st.floats(0, 1e12))
def test_no_number_is_printed_with_an_exponent(value: float) -> None:
    for text in (format_seconds(value), format_joules(value), format_bytes(value), format_count(value)):
        digits = text.split()[0].replace(",", "")
        assert "e+" not in digits
        assert len(digits.rstrip("0123456789.")) == 0 or "e-" in digits


@pytest.mark.parametrize("show", [format_bytes, format_seconds, format_joules, format_count, format_percent])
def test_unknown_is_a_dash_not_zero(show: object) -> None:
    assert show(None) == UNKNOWN == "—"  # type: ignore[operator]


def test_half_a_tenth_of_a_percent_is_rounded_to_even() -> None:
    assert format_percent(0.5625) == "56.2%"
    assert format_percent(0.5, 0) == "50%"


@pytest.mark.parametrize(
    ("text", "size"),
    [("512KB", 524_288), ("1.5MB", 1_572_864), ("100", 100), ("64 b", 64), ("2GiB", 1 << 31), (".5kb", 512)],
)
def test_sizes_are_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("20ms", 0.02), ("1.5s", 1.5), ("7us", 7e-6), ("7µs", 7e-6), ("9 NS", 9e-9)]
)
def test_times_are_parsed(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


def test_energies_and_shares_are_parsed() -> None:
    assert parse_joules("250uJ") == pytest.approx(250e-6)
    assert parse_joules("1mJ") == pytest.approx(1e-3)
    assert parse_share("12.5%") == pytest.approx(0.125)


@pytest.mark.parametrize("text", ["", "KB", "1 parsec", "-5KB", "1e3KB", "5%", "nan", "1.2.3MB"])
def test_what_is_not_a_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"not understood; expected a size such as 512KB or 1\.5MB") as caught:
        parse_size(text)
    assert str(caught.value).startswith(repr(text))


def test_a_time_needs_its_unit() -> None:
    with pytest.raises(UsageError, match="'20': not understood; expected a time such as 20ms"):
        parse_seconds("20")


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (2000, None, None, "2 us"),
        (2000, 1000, 3000, "2 us (1 us – 3 us)"),
        (2000, 2000, 2000, "2 us"),
        (2000, 1000, None, "2 us"),
        (None, 1000, None, "at least 1 us"),
        (None, None, None, UNKNOWN),
    ],
)
def test_a_latency_without_a_value_is_at_least_its_low_end(
    value: int | None, low: int | None, high: int | None, text: str
) -> None:
    assert format_latency(value, low, high) == text
