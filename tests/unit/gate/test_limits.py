from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.gate.bootstrap import spread_of
from opscope.gate.comparison import Difference, Interval
from opscope.gate.figures import BYTES, NS, PER_SECOND
from opscope.gate.limits import judge, parse_limit
from opscope.gate.verdict import Check


def difference(
    base: float | None, new: float | None, *, unit: str = NS, interval: Interval | None = None, note: str = ""
) -> Difference:
    return Difference("latency", base, new, unit, "measured", "measured", "less", interval, note)


def check(text: str, found: Difference | None) -> Check:
    limit = parse_limit(text)
    (only,) = judge([limit], {} if found is None else {limit.name: found}, {"op": ["a", "b"]}).checks
    return only


@pytest.mark.parametrize(
    ("text", "name", "above", "value", "relative"),
    [
        ("latency>5%", "latency", True, 0.05, True),
        ("latency > 100us", "latency", True, 100_000, False),
        ("latency>1.5ms", "latency", True, 1_500_000, False),
        ("latency>7", "latency", True, 7, False),
        ("throughput<-5%", "throughput", False, -0.05, True),
        ("throughput<-10/s", "throughput", False, -10, False),
        ("peak_memory>0", "peak_memory", True, 0, False),
        ("peak_memory:VTCM>64KB", "peak_memory:VTCM", True, 65536, False),
        ("op:/layer.0/MatMul>10%", "op:/layer.0/MatMul", True, 0.1, True),
        ("op:a>b<c:0 >1us", "op:a>b<c:0", True, 1000, False),
        ("type:Conv>+2%", "type:Conv", True, 0.02, True),
        ("commands>0", "commands", True, 0, False),
    ],
)
def test_a_limit_is_a_metric_a_sign_and_a_change(
    text: str, name: str, above: bool, value: float, relative: bool
) -> None:
    limit = parse_limit(text)
    assert (limit.name, limit.above, limit.relative) == (name, above, relative)
    assert limit.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not understood"),
        ("latency", "not understood"),
        ("latency>", "not understood"),
        ("latency>5%%", "is no unit"),
        ("latency>1e400", "not understood"),
        ("latency>" + "9" * 400, "not understood"),
        ("speed>5%", "'speed' is not known; expected one of latency, throughput, "),
        ("latency>5KB", "'KB' is no unit of latency; expected one of %, ns, us"),
        ("commands>5ms", "'ms' is no unit of commands; expected one of %"),
        ("op>5%", "which op; expected op:NAME>VALUE"),
        ("latency:HMX>5%", "latency has no parts; expected latency>VALUE"),
        ("\x1b[31m>5%", r"\x1b[31m"),
    ],
)
def test_what_is_no_limit_is_said_with_what_would_be(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limit(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("--fail-on ")
    assert str(caught.value).isprintable()


@given(st.text(max_size=40))
def test_any_text_is_a_limit_or_an_error_of_one_line(text: str) -> None:
    try:
        found = parse_limit(text).text
    except UsageError as error:
        found = str(error)
    assert found.isprintable()


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(-50, 50))
def test_a_relative_limit_is_broken_by_a_larger_change_only(base: int, new: int, percent: int) -> None:
    assert check(f"latency>{percent}%", difference(base, new)).passed == ((new - base) / base <= percent / 100)
    assert check(f"latency<{percent}%", difference(base, new)).passed == ((new - base) / base >= percent / 100)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(-(10**6), 10**6))
def test_an_absolute_limit_is_on_the_change_not_on_the_value(base: int, new: int, limit: int) -> None:
    assert check(f"latency>{limit}ns", difference(base, new)).passed == (new - base <= limit)


def test_the_reason_says_how_much_and_against_what() -> None:
    assert check("latency>5%", difference(1_000_000, 1_100_000)).reason == "latency +10.0% (+100 us), limit latency>5%"
    assert check("latency>5%", difference(1000, 1000)).reason == "latency unchanged, limit latency>5%"
    memory = check("peak_memory>0", difference(1024, 3072, unit=BYTES))
    assert memory.reason == "peak_memory +200.0% (+2.00 KB), limit peak_memory>0"
    rate = check("throughput<-5%", difference(1000, 900, unit=PER_SECOND))
    assert (rate.passed, rate.reason) == (False, "throughput −10.0% (−100/s), limit throughput<-5%")


def test_from_nothing_to_something_is_more_than_any_share() -> None:
    found = check("peak_memory>500%", difference(0, 1, unit=BYTES))
    assert (found.passed, found.reason) == (False, "peak_memory +1 B (from nothing), limit peak_memory>500%")
    assert check("peak_memory>0%", difference(0, 0, unit=BYTES)).passed


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "op:x is in neither run; expected one such as a, b"),
        (difference(None, 1), "op:x is not known in the base"),
        (difference(1, None), "op:x is not known in the new run"),
        (difference(None, None), "op:x is not known in either run"),
    ],
)
def test_a_number_that_is_not_known_does_not_pass_and_is_no_regression(found: Difference | None, words: str) -> None:
    result = check("op:x>5%", found)
    assert (result.passed, result.known, result.word, result.reason) == (False, False, "unknown", words)


def interval(low: float, high: float) -> Interval:
    spread = spread_of([1.0] * 30)
    return Interval(low, high, 0.95, spread, spread)


def test_a_change_beyond_the_limit_that_samples_do_not_prove_passes_with_a_warning() -> None:
    found = check("latency>5%", difference(1000, 1080, interval=interval(-0.01, 0.2)))
    assert (found.passed, found.warning) == (True, True)
    assert "the samples do not confirm it: 95% interval -1.0% to +20.0%, 30 and 30 samples" in found.reason
    assert not check("latency>5%", difference(1000, 1080, interval=interval(0.06, 0.1))).passed
    assert check("latency>5%", difference(1000, 1080, interval=interval(0.04, 0.1))).passed
    assert check("latency>50ns", difference(1000, 1080, interval=interval(0.04, 0.1))).passed
    assert not check("latency>30ns", difference(1000, 1080, interval=interval(0.04, 0.1))).passed
    assert not check("latency<-5%", difference(1000, 900, interval=interval(-0.2, -0.06))).passed
    assert check("latency<-5%", difference(1000, 900, interval=interval(-0.2, -0.04))).warning


def test_where_noise_is_not_known_the_reason_says_so() -> None:
    found = check("latency>5%", difference(1000, 1100, note="noise is not known: 1 and 1 samples"))
    assert not found.passed
    assert found.reason.endswith("limit latency>5% (noise is not known: 1 and 1 samples)")


def test_a_metric_that_has_only_parts_needs_one() -> None:
    with pytest.raises(UsageError, match=r"'cause>5%': which cause; expected cause:CAUSE>VALUE"):
        parse_limit("cause>5%")
    assert parse_limit("cause:compute>5%").name == "cause:compute"


@pytest.mark.parametrize("part", ["transfer only", "statistics only", "nothing moves"])
def test_parts_of_the_occupancy_are_also_known_by_the_name_of_causes_that_they_once_had(part: str) -> None:
    limit = parse_limit(f"cause:{part}>5%")
    assert (limit.text, limit.name) == (f"cause:{part}>5%", f"occupancy:{part}")
    assert parse_limit(f"occupancy:{part}>5%").name == limit.name


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    names = {"op": ["/first/Add", "/layer.3/MatMul", "/layer.30/MatMul", "z"]}
    (found,) = judge([parse_limit("op:/Layer.3/matmul>0")], {}, names).checks
    assert found.reason.endswith("is in neither run; expected one such as /layer.3/MatMul, /layer.30/MatMul")
    (found,) = judge([parse_limit("op:???>0")], {}, names).checks
    assert found.reason.endswith("expected one such as /first/Add, /layer.3/MatMul, /layer.30/MatMul, z")


def test_a_limit_on_the_fullest_memory_holds_for_every_memory() -> None:
    sizes = {"peak_memory": (24, 24), "peak_memory:flash": (24, 24), "peak_memory:RAM": (15, 20)}
    found = {name: difference(base, new, unit=BYTES) for name, (base, new) in sizes.items()}
    names = {"peak_memory": ["flash", "RAM", "gone"]}
    (only,) = judge([parse_limit("peak_memory>0")], found, names).checks
    assert (only.passed, only.metric) == (False, "peak_memory:RAM")
    (only,) = judge([parse_limit("peak_memory>50%")], found, names).checks
    assert (only.passed, only.metric) == (True, "peak_memory")
    (only,) = judge([parse_limit("peak_memory:flash>0")], found, names).checks
    assert (only.passed, only.metric) == (True, "peak_memory:flash")
