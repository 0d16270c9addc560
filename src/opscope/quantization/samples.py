"""Arrays to calibrate with: the user's files, read sample by sample, or random ones where they are asked for.

An array holds one sample where it has the shape of its input. It holds several along its first axis where that is a
multiple of the input's (N×3×224×224 for an input of 1×3×224×224), or where it has one axis more (N×1×3×224×224).
An input with one sample goes with all samples of the others. What is in memory is one sample, whatever a file holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from math import prod
from pathlib import Path
from typing import BinaryIO, Protocol
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError  # noqa: N812 - it is a class

import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError, in_words, printable
from ..core.random_arrays import NUMPY_TYPES, Port, random_arrays
from ..recording.quantized import CALIBRATION, RANDOM, Calibration

Array = npt.NDArray[np.generic]
Feed = dict[str, Array]  # an array for every input

EXPECTED = "an .npz with an array per input, or a folder of such files (.npy where the model has one input)"
MOST_SAMPLE_BYTES = 1 << 31
_BROKEN = (AttributeError, BadZipFile, EOFError, KeyError, MemoryError, OverflowError, TypeError, ValueError, ZlibError)
_NOT_ZIP = (NotImplementedError, RuntimeError)  # an archive that needs a password, or another method of compression


class Samples(Protocol):
    """What a model is calibrated with, and held against itself with."""

    def feeds(self, most: int | None = None) -> Iterator[Feed]:
        """Each sample, from the first; no more than `most`."""

    @property
    def count(self) -> int: ...

    @property
    def calibration(self) -> Calibration:
        """What is said of it wherever the copy is shown."""

    @property
    def metadata(self) -> dict[str, str]:
        """The same, for the file of the copy."""


@dataclass(frozen=True, slots=True)
class RandomSamples:
    """Random values, for questions of speed: their ranges are not those of real data."""

    ports: Sequence[Port]
    count: int
    seed: int = 0

    def feeds(self, most: int | None = None) -> Iterator[Feed]:
        for port in self.ports:
            _check_random(port)
        for number in range(self.count if most is None else min(self.count, most)):
            arrays = random_arrays(self.ports, seed=self.seed + number)
            yield {name: array for (name, _, _), array in zip(self.ports, arrays, strict=True)}

    @property
    def calibration(self) -> Calibration:
        told = f"random data ({self.count} samples, seed {self.seed}): ranges and errors are not those of real inputs"
        return Calibration(told, True, self.count, seed=self.seed)

    @property
    def metadata(self) -> dict[str, str]:
        return {CALIBRATION: RANDOM, f"{CALIBRATION}.samples": str(self.count), f"{CALIBRATION}.seed": str(self.seed)}


def _check_random(port: Port) -> None:
    name, label, shape = port
    if label not in NUMPY_TYPES or prod(shape) * np.dtype(NUMPY_TYPES[label]).itemsize > MOST_SAMPLE_BYTES:
        kinds = f"{', '.join(NUMPY_TYPES)} of at most {MOST_SAMPLE_BYTES >> 30} GB"
        raise UsageError(f"input {printable(name)!r}: {label} of {list(shape)} cannot be random; expected {kinds}")


@dataclass(frozen=True, slots=True)
class _Content:
    """One array of a file, as its header tells."""

    samples: int
    lies: tuple[int, ...]  # the shape of a sample as it lies there


class FileSamples:
    """Samples of an .npz file, or of all files of a folder, in the order of their names."""

    def __init__(self, place: Path, ports: Sequence[Port]) -> None:
        self.place, self.ports = place, ports
        self.files = _files(place)
        self.count = sum(self._samples(file) for file in self.files)
        if not self.count:
            raise UsageError(f"{place}: has no samples; expected {EXPECTED}")

    @property
    def calibration(self) -> Calibration:
        return Calibration(f"{self.count} samples of {self.place}", False, self.count, source=str(self.place))

    @property
    def metadata(self) -> dict[str, str]:
        source = {f"{CALIBRATION}.samples": str(self.count), f"{CALIBRATION}.source": self.place.name}
        return {CALIBRATION: "data", **source}

    def feeds(self, most: int | None = None) -> Iterator[Feed]:
        return islice(chain.from_iterable(map(self._read, self.files)), most)

    def _samples(self, file: Path) -> int:
        with self._opened(file) as streams:
            return max((content.samples for _, content, _ in streams.values()), default=0)

    def _read(self, file: Path) -> Iterator[Feed]:
        with self._opened(file) as streams, _told(file):
            count = max(content.samples for _, content, _ in streams.values())
            arrays = {
                port[0]: _arrays(file, port, *streams[port[0]], count=count)
                for port in self.ports
                if port[0] in streams
            }
            for _ in range(count):
                yield {name: next(each) for name, each in arrays.items()}

    @contextmanager
    def _opened(self, file: Path) -> Iterator[dict[str, tuple[BinaryIO, _Content, np.dtype[np.generic]]]]:
        """The array of every input, its header read and held against the model."""
        with ExitStack() as stack, _told(file):
            opened = self._streams(file, stack)
            self._check_names(file, list(opened))
            found = {}
            for port in self.ports:
                stream = stack.enter_context(opened[port[0]]())
                shape, kind = _header(stream)
                found[port[0]] = (stream, _content(file, port, shape, kind), kind)
            counts = {content.samples for _, content, _ in found.values()} - {1}
            if len(counts) > 1:
                told = ", ".join(f"{printable(name)} {content.samples}" for name, (_, content, _) in found.items())
                raise UsageError(f"{file}: inputs differ in samples ({told}); expected as many of each, or one")
            yield found

    def _streams(self, file: Path, stack: ExitStack) -> dict[str, _Open]:
        if file.suffix == ".npy":
            if len(self.ports) != 1:
                names = ", ".join(printable(name) for name, _, _ in self.ports)
                raise UsageError(f"{file}: one array, and the model has inputs {names}; expected an .npz with each")
            return {self.ports[0][0]: lambda: file.open("rb")}
        archive = stack.enter_context(ZipFile(file))
        return {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}

    def _check_names(self, file: Path, given: Sequence[str]) -> None:
        expected = [name for name, _, _ in self.ports]
        wanted = ", ".join(f"{printable(name)} ({label} of {_extents(shape)})" for name, label, shape in self.ports)
        for name in expected:
            if name not in given:
                raise UsageError(f"{file}: has no array {printable(name)!r}; expected {wanted}")
        for name in given:
            if name not in expected:
                raise UsageError(f"{file}: {printable(name)!r} is no input of the model; expected {wanted}")


class _Open(Protocol):
    def __call__(self) -> BinaryIO: ...


def _member(archive: ZipFile, name: str) -> _Open:
    return lambda: archive.open(name)  # type: ignore[return-value]


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Whatever is wrong with a file, in one line that names it."""
    try:
        yield
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}); expected {EXPECTED}") from error
    except (*_BROKEN, *_NOT_ZIP) as error:
        raise UsageError(f"{file}: no arrays that can be read ({in_words(error)}); expected {EXPECTED}") from error


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        found = sorted(file for file in place.iterdir() if file.suffix in (".npz", ".npy") and file.is_file())
        if not found:
            raise UsageError(f"{place}: has no .npz or .npy files; expected {EXPECTED}; images are not decoded")
        return found
    if not place.is_file():
        raise UsageError(f"{place}: no such file or folder; expected {EXPECTED}")
    if place.suffix not in (".npz", ".npy"):
        raise UsageError(f"{place}: not an .npz or .npy file; expected {EXPECTED}; images are not decoded")
    return [place]


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Shape and type of the array that begins here; columns first and Python objects are refused."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format; 1.0 and 2.0 are read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, kind = read(stream)
    if is_fortran and len(shape) > 1:
        raise ValueError("an array in Fortran order; numpy.ascontiguousarray makes it one in C order")
    if kind.hasobject:
        raise ValueError("an array of Python objects")
    return tuple(shape), kind


def _content(file: Path, port: Port, shape: tuple[int, ...], kind: np.dtype[np.generic]) -> _Content:
    """How many samples an array has; a shape or a type that does not go with the input is refused."""
    name, label, wanted = port
    if not _goes(kind, label):
        raise UsageError(f"{file}: {printable(name)!r} is {kind}; expected {NUMPY_TYPES.get(label, label)}")
    found = _Content(1, shape) if shape == wanted else None
    if found is None and len(shape) == len(wanted) and shape[1:] == wanted[1:] and wanted[:1] > (0,):
        samples, left = divmod(shape[0], wanted[0])
        found = _Content(samples, wanted) if not left else None
    if found is None and shape[1:] == wanted:
        found = _Content(shape[0], wanted)
    if found is None:
        raise UsageError(
            f"{file}: {printable(name)!r} is of {_extents(shape)}; expected {_extents(wanted)}, or several of them "
            "along the first axis"
        )
    if found.samples < 1:
        raise UsageError(f"{file}: {printable(name)!r} has no samples; expected at least one")
    if prod(found.lies) * kind.itemsize > MOST_SAMPLE_BYTES:
        raise UsageError(f"{file}: a sample of {printable(name)!r} has more than {MOST_SAMPLE_BYTES >> 30} GB")
    return found


def _goes(kind: np.dtype[np.generic], label: str) -> bool:
    """Floats go as floats of another width, and integers as integers; bytes as floats would hide a missing scale."""
    wanted = np.dtype(NUMPY_TYPES[label]) if label in NUMPY_TYPES else None
    return wanted is not None and (kind.kind == wanted.kind or {kind.kind, wanted.kind} <= set("iu"))


def _arrays(
    file: Path, port: Port, stream: BinaryIO, content: _Content, kind: np.dtype[np.generic], *, count: int
) -> Iterator[Array]:
    """The samples of one input, one after the other."""
    first = _array(file, port, stream, content, kind) if content.samples == 1 else None
    if first is not None:
        return repeat(first, count)
    return (_array(file, port, stream, content, kind) for _ in range(count))


def _array(file: Path, port: Port, stream: BinaryIO, content: _Content, kind: np.dtype[np.generic]) -> Array:
    name, label, shape = port
    size = prod(content.lies) * kind.itemsize
    raw = stream.read(size)
    if len(raw) != size:
        raise UsageError(f"{file}: {printable(name)!r} is cut short; expected {content.samples} samples")
    found: Array = np.frombuffer(raw, kind).reshape(shape)
    if kind.kind == "f" and not np.isfinite(found).all():
        raise UsageError(f"{file}: {printable(name)!r} has values that are not finite; expected numbers")
    if label == "string":
        return found.astype(object)
    typed: Array = found.astype(NUMPY_TYPES[label], copy=False)
    if kind.kind in "iu" and typed.dtype != kind and (typed != found).any():
        raise UsageError(f"{file}: {printable(name)!r} has values that are no {typed.dtype}; expected {typed.dtype}")
    return typed


def _extents(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "one element"


def samples_of(request: Mapping[str, object]) -> Samples:
    """What a request to a process of ours names: a place of data, or a count of random samples."""
    ports = [(str(name), str(label), tuple(shape)) for name, label, shape in request["ports"]]  # type: ignore[attr-defined]
    if request.get("data"):
        return FileSamples(Path(str(request["data"])), ports)
    return RandomSamples(ports, int(str(request["random"])), int(str(request["seed"])))
