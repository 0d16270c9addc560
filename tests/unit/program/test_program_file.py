"""The program file says what the device has, not only what the program takes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import ProgramError
from opscope.program import program_file
from opscope.program.program_file import decode_program, encode_program
from support.device.build import Step, program_of


def test_cores_of_the_device_are_in_the_file() -> None:
    raw = encode_program(replace(program_of([Step()]), device_cores=14))
    assert decode_program(raw, source="p").device_cores == 14


def test_a_file_of_an_earlier_version_does_not_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = tuple(name for name in program_file._META_FIELDS if name != "device_cores")
    with monkeypatch.context() as patch:
        patch.setattr(program_file, "_META_FIELDS", earlier)
        raw = encode_program(replace(program_of([Step()]), device_cores=14))
    found = decode_program(raw, source="p")
    assert (found.cores, found.device_cores) == (1, None)


def test_a_value_of_another_type_or_a_negative_count_is_refused_with_its_place() -> None:
    program = program_of([Step()])
    changes: dict[str, dict[str, object]] = {
        r"\$\.batch": {"batch": -1},
        r"\$\.model": {"model": 7},
        r"\$\.groups\[.*\]\.threads": {"groups": (replace(program.groups[0], threads=-4),)},
        r"\$\.inputs": {"inputs": (("x", "f32", (-1,)),)},
        r"\$\.metrics\.macs": {"metrics": replace(program.metrics, macs=-1)},
    }
    for where, change in changes.items():
        raw = encode_program(replace(program, **change))  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match=rf"^p: section META does not describe a program .*{where}"):
            decode_program(raw, source="p")
