"""A damaged target file gives a Target or a TargetError of one line, never anything else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.core.errors import TargetError
from opscope.estimate.build_report import build_report
from opscope.estimate.price import Machine
from opscope.machine import catalogue as targets
from opscope.machine.target import Target
from support.build import resnet
from support.draws import draws

FILES = [path.read_bytes() for path in targets.catalogue().values()]
NETWORK = resnet()
TOKENS = [b"-", b"0", b"1e999", b"nan", b"inf", b'"', b"[", b"]", b"{", b"}", b"=", b".", b"\n", b"\\", b"i8", b"\xff"]
lenient = settings(max_examples=draws(1.5), deadline=None)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A shipped file with some stretches deleted, replaced or doubled."""
    raw = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        length = draw(st.sampled_from([0, 1, 1, 2, 8, 40, 400]))
        patch = draw(st.binary(max_size=6) | st.sampled_from(TOKENS) | st.just(raw[start : start + length] * 2))
        raw = raw[:start] + patch + raw[start + length :]
    return raw


@st.composite
def edited(draw: st.DrawFn) -> bytes:
    """A shipped file with one number or word changed: mostly still TOML, so that the checks behind it are reached."""
    lines = draw(st.sampled_from(FILES)).split(b"\n")
    number = draw(st.integers(0, len(lines) - 1))
    old = draw(st.sampled_from([b"value = ", b'source = "', b'"', b"= "]))
    new = draw(
        st.sampled_from([b"value = -", b"value = 0", b"value = 1e400", b'"x', b"= [] #", b"= 1e-320 #", b"= true #"])
    )
    lines[number] = lines[number].replace(old, new, 1)
    if draw(st.booleans()):
        del lines[draw(st.integers(0, len(lines) - 1))]
    return b"\n".join(lines)


def parsed(raw: bytes) -> Target | None:
    try:
        return targets.parse(raw, source="chip.toml")
    except TargetError as error:
        message = str(error)
    assert message.startswith("chip.toml: ")
    assert "\n" not in message
    return None


@given(damaged() | edited())
@lenient
def test_a_damaged_file_is_read_or_refused(raw: bytes) -> None:
    parsed(raw)


@given(st.binary(max_size=200))
@lenient
def test_junk_is_refused(raw: bytes) -> None:
    assert parsed(raw) is None


@given(edited())
@settings(max_examples=80, deadline=None)
def test_whatever_is_read_can_be_estimated_on(raw: bytes) -> None:
    target = parsed(raw)
    if target is not None:
        report = build_report(NETWORK, Machine(target), sha256=None, advise=False)
        assert len(report.layers) > 0


def test_every_prefix_of_a_file_is_read_or_refused() -> None:
    raw = Path(targets.catalogue()["cfs-sample"]).read_bytes()
    for length in range(0, len(raw), 7):
        parsed(raw[:length])
