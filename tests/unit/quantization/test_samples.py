from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import UsageError
from opscope.core.random_arrays import Port
from opscope.quantization.samples import FileSamples, RandomSamples

IMAGE: Port = ("x", "f32", (1, 3, 2, 2))
PAIR: list[Port] = [("x", "f32", (2, 3)), ("ids", "i64", (4,))]


def archive(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(("shape", "count"), [((1, 3, 2, 2), 1), ((5, 3, 2, 2), 5), ((5, 1, 3, 2, 2), 5)])
def test_samples_lie_along_the_first_axis(tmp_path: Path, shape: tuple[int, ...], count: int) -> None:
    values = floats(*shape)
    samples = FileSamples(archive(tmp_path / "d.npz", x=values), [IMAGE])
    feeds = list(samples.feeds())
    assert samples.count == len(feeds) == count
    assert np.array_equal(np.concatenate([feed["x"] for feed in feeds]), values.reshape(-1, 3, 2, 2))
    assert len(list(samples.feeds(2))) == min(2, count)


def test_a_batch_is_one_sample(tmp_path: Path) -> None:
    samples = FileSamples(archive(tmp_path / "d.npz", x=floats(6, 3), ids=np.zeros(4, np.int32)), PAIR)
    feeds = list(samples.feeds())
    assert [feed["x"].shape for feed in feeds] == [(2, 3)] * 3
    assert all(feed["ids"].dtype == np.int64 for feed in feeds)  # one sample of it goes with all of the others


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, value in (("b", 1), ("a", 0)):
        np.save(tmp_path / f"{name}.npy", np.full((1, 3, 2, 2), value, np.float64))
    (tmp_path / "readme.txt").write_text("not data")
    feeds = list(FileSamples(tmp_path, [IMAGE]).feeds())
    assert [float(feed["x"][0, 0, 0, 0]) for feed in feeds] == [0.0, 1.0]
    assert all(feed["x"].dtype == np.float32 for feed in feeds)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": floats(1)}, "has no array 'x'; expected x \\(f32 of 2x3\\), ids \\(i64 of 4\\)"),
        ({"x": floats(2, 3), "ids": np.zeros(4, int), "z": floats(1)}, "'z' is no input of the model"),
        ({"x": floats(2, 4), "ids": np.zeros(4, int)}, "'x' is of 2x4; expected 2x3, or several of them"),
        ({"x": floats(3, 3), "ids": np.zeros(4, int)}, "'x' is of 3x3; expected 2x3"),
        ({"x": np.zeros((2, 3), np.uint8), "ids": np.zeros(4, int)}, "'x' is uint8; expected float32"),
        ({"x": floats(4, 3), "ids": np.zeros((3, 4), int)}, "inputs differ in samples \\(x 2, ids 3\\)"),
        ({"x": floats(0, 3), "ids": np.zeros(4, int)}, "'x' has no samples; expected at least one"),
        ({"x": np.asfortranarray(floats(2, 3)), "ids": np.zeros(4, int)}, "Fortran order"),
        ({"x": np.array([[None] * 3] * 2), "ids": np.zeros(4, int)}, "array of Python objects"),
    ],
)
def test_data_that_do_not_go_with_the_model_are_refused(
    tmp_path: Path, arrays: dict[str, np.ndarray], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        FileSamples(archive(tmp_path / "d.npz", **arrays), PAIR)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((1, 3, 2, 2), np.nan, np.float32), "'x' has values that are not finite"),
        (np.full((1, 3, 2, 2), np.inf, np.float32), "not finite"),
    ],
)
def test_values_without_a_range_are_refused(tmp_path: Path, array: np.ndarray, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        list(FileSamples(archive(tmp_path / "d.npz", x=array), [IMAGE]).feeds())


def test_integers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    samples = FileSamples(archive(tmp_path / "d.npz", x=np.array([300])), [("x", "i8", (1,))])
    with pytest.raises(UsageError, match="'x' has values that are no int8"):
        list(samples.feeds())


def test_files_that_are_no_data_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "folder"
    empty.mkdir()
    image = tmp_path / "cat.png"
    image.write_bytes(b"\x89PNG")
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 and no more")
    cut = tmp_path / "cut.npy"
    np.save(cut, floats(4, 3, 2, 2))
    cut.write_bytes(cut.read_bytes()[:-8])
    absurd = tmp_path / "absurd.npz"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 3, 2, 2), }".ljust(117) + b"\n"
    with zipfile.ZipFile(absurd, "w") as out:
        out.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    for place, words in (
        (tmp_path / "none", "no such file or folder; expected an .npz with an array per input"),
        (empty, "has no .npz or .npy files; .* images are not decoded"),
        (image, "not an .npz or .npy file"),
        (broken, "no arrays that can be read"),
        (cut, "'x' is cut short; expected 4 samples"),
        (absurd, "'x' is cut short"),
    ):
        with pytest.raises(UsageError, match=words):
            list(FileSamples(place, [IMAGE]).feeds())


def test_one_array_for_two_inputs_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", floats(2, 3))
    with pytest.raises(UsageError, match="one array, and the model has inputs x, ids"):
        FileSamples(tmp_path, PAIR)


def test_random_samples_differ_and_come_again() -> None:
    first, again = (list(RandomSamples([IMAGE], 3, seed=7).feeds()) for _ in range(2))
    assert all(np.array_equal(a["x"], b["x"]) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0]["x"], first[1]["x"])
    assert RandomSamples([IMAGE], 3, seed=7).calibration.is_random


def test_what_cannot_be_random_is_refused() -> None:
    with pytest.raises(UsageError, match="'x': bf16 of \\[2\\] cannot be random"):
        list(RandomSamples([("x", "bf16", (2,))], 1).feeds())
    with pytest.raises(UsageError, match=r"cannot be random; expected .* of at most 2 GB"):
        list(RandomSamples([("x", "f32", (1 << 20, 1 << 20))], 1).feeds())
