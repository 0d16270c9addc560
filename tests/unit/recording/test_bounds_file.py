"""Bounds in files: what a program and a run say of them comes back, and those of earlier versions say nothing."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import ProgramError, UsageError
from opscope.core.provenance import Provenance
from opscope.program.bounds import Bounds, Holding, MemoryPeak, Rate, RoutePeak, UnitPeak
from opscope.program.program_file import decode_program, encode_program
from opscope.recording.bounds_file import BOUNDS_FILE
from opscope.recording.build import to_run
from opscope.recording.folder_reader import read_run
from opscope.recording.recording import Recording, empty_trace
from support.decode.build import small
from support.recording.run_build import write_run

BOUNDS = Bounds(
    memories=(MemoryPeak("DDR", False, 1 << 34, Rate(137e9)), MemoryPeak("SRAM", True, 1 << 23)),
    routes=(RoutePeak("in", Rate(8.0, per_cycle=True)),),
    units=(UnitPeak("MXU", {"i8": 8192.0, "*": 512.0}),),
    holdings=(Holding("DDR", 0, 5, 6, 7, 1 << 34),),
    macs=9,
    repeated_macs=1,
    streamed_bytes=4,
)


def told(bounds: Bounds | None) -> Recording:
    provenance = Provenance.SIMULATED
    return Recording("mine", provenance, empty_trace(provenance), bounds=bounds)


@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_a_run_keeps_its_bounds(bounds: Bounds | None, tmp_path: Path) -> None:
    write_run(to_run(told(bounds), command=(), created="", sha256=None), tmp_path / "a.run")
    assert read_run(tmp_path / "a.run").bounds == bounds
    assert (tmp_path / "a.run" / BOUNDS_FILE).exists() is (bounds is not None)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("routes", [{"name": "in", "rate": {"value": 0}}]),
        ("units", [{"name": "x", "macs_per_cycle": {}}]),
        ("macs", "9"),
    ],
)
def test_bounds_that_cannot_be_are_refused(place: str, value: object, tmp_path: Path) -> None:
    write_run(to_run(told(BOUNDS), command=(), created="", sha256=None), tmp_path / "a.run")
    file = tmp_path / "a.run" / BOUNDS_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {place: value}))
    with pytest.raises(UsageError, match=r"bounds\.json: .*; expected schema opscope\.bounds/1"):
        read_run(tmp_path / "a.run")


@pytest.mark.parametrize("bounds", [BOUNDS, None])
def test_a_program_keeps_its_bounds(bounds: Bounds | None) -> None:
    program = replace(small().program, bounds=bounds)
    assert decode_program(encode_program(program), source="q").bounds == bounds


def edited(raw: bytes, old: bytes, new: bytes) -> bytes:
    """A program file with other words of the same length, and a checksum that is right."""
    assert len(old) == len(new)
    assert old in raw
    changed = raw.replace(old, new)
    return changed[:0x18] + zlib.crc32(changed[0x20:]).to_bytes(4, "little") + changed[0x1C:]


def test_a_program_of_earlier_says_nothing_of_bounds_and_one_that_cannot_be_is_refused() -> None:
    raw = encode_program(replace(small().program, bounds=BOUNDS))
    assert decode_program(edited(raw, b'"bounds":', b'"bouncy":'), source="q").bounds is None
    with pytest.raises(ProgramError, match="section META does not describe a program"):
        decode_program(edited(raw, b'"per_core":false', b'"per_core":"abc"'), source="q")
