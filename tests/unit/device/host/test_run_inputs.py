"""Inputs of a run: given or made up, and the errors of wrong ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import UsageError
from opscope.device.host.inputs import Array, check_inputs, load_inputs, random_inputs
from support.recording.run_build import program_of

EXPECTED = r"expected ids \(int64 of 4x3\), image \(float32 of 4x2x2\)$"


def good() -> dict[str, Array]:
    return {"ids": np.zeros((4, 3), np.int64), "image": np.zeros((4, 2, 2), np.float32)}


def test_good_inputs_pass() -> None:
    assert set(check_inputs(program_of(), good())) == {"ids", "image"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"idz": np.zeros(1)}, "^input 'idz': the program has none of that name; "),
        ({"ids": np.zeros((4, 4), np.int64)}, "^input 'ids': found int64 of 4x4; "),
        ({"ids": np.zeros((4, 3), np.int32)}, "^input 'ids': found int32 of 4x3; "),
        ({"image": np.zeros((), np.float32)}, "^input 'image': found float32 of one element; "),
    ],
)
def test_a_wrong_input_is_named_with_all_that_is_expected(change: dict[str, Array], message: str) -> None:
    with pytest.raises(UsageError, match=message + EXPECTED):
        check_inputs(program_of(), good() | change)


def test_a_missing_input_is_named() -> None:
    with pytest.raises(UsageError, match="^input 'image': missing; " + EXPECTED):
        check_inputs(program_of(), {"ids": np.zeros((4, 3), np.int64)})


def test_random_inputs_are_bounded_and_the_same_for_a_seed() -> None:
    first, again, other = (random_inputs(program_of(), seed=seed) for seed in (5, 5, 6))
    assert check_inputs(program_of(), first)
    assert set(first["ids"].reshape(-1).tolist()) <= {0, 1}
    assert np.abs(first["image"]).max() <= 1.0
    assert all((first[name] == again[name]).all() for name in first)
    assert (first["image"] != other["image"]).any()


def test_arrays_come_from_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", good()["ids"])
    assert load_inputs({"ids": tmp_path / "ids.npy"})["ids"].shape == (4, 3)


def test_files_that_hold_no_array_are_refused(tmp_path: Path) -> None:
    absent, text, pickled, archive, absurd = (tmp_path / name for name in ("absent", "text", "p.npy", "z.npz", "a.npy"))
    text.write_text("no array")
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.npy", b"")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(117) + b"\n"
    absurd.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    for path in (absent, text, pickled, archive, absurd, tmp_path):
        with pytest.raises(UsageError, match=r"expected a \.npy file") as error:
            load_inputs({"x": path})
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)
