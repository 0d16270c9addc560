"""Models inside of other files: gzip, zip archives with one model, arrays in C source; and those of PyTorch.

Readers map a file, and runtimes and compilers take the path of one. So a model is unpacked into a temporary folder, for
as long as somebody works with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from ..core.errors import ModelError, printable
from .formats import HEAD_BYTES, Head, ModelFormat, format_of, head_of, is_text, listed

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    from .torch import TorchModel

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # the latter: of an archive without files
GZIP_MAGIC = b"\x1f\x8b"

# What an archive may unpack to: always the first, never more than the last, else so many times its size. Weights of a
# network hardly pack; a file that packs a thousandfold is there to fill the disk.
ALWAYS_BYTES = 1 << 28
MOST_RATIO = 100
MOST_BYTES = 1 << 33
_MOST_DIRECTORY_BYTES = 1 << 20  # of an archive's list of files: some ten thousand
_CHUNK_BYTES = 1 << 20
_METHODS = (0, 8)  # stored, deflate: of the others Python's decoders do not bound the memory


_TORCH_MEMBERS = {"serialized_exported_program.json", "archive_format"}  # of exported programs
Shapes = Mapping[str, tuple[int, ...]]


class Unpacked(NamedTuple):
    """A model that was inside of another file."""

    file: Path
    inside: str  # where: the name of a file in an archive, of an array; empty where there is one place only


@contextmanager
def unpacked(path: Path | TorchModel, shapes: Shapes | None = None) -> Iterator[Path]:
    """The file that a reader or runtime takes for a model: the one given, or a temporary one with what is inside.

    Whatever is wrong with the temporary one is said of the one given. A model of PyTorch is exported, with inputs of
    these shapes, by name.
    """
    head = head_if_file(path) if isinstance(path, Path) else None
    if not isinstance(path, Path) or is_torch(path, head):
        yield from _exported(path, shapes or {})
        return
    with unpacked_file(path, head) as (file, _):
        yield file


@contextmanager
def unpacked_file(path: Path, head: Head | None) -> Iterator[tuple[Path, Head | None]]:
    """The same of a path that names no model of PyTorch, with the head of the file that is read."""
    kind = None if head is None else _kind(path, head)
    if kind is None:
        yield path, head
        return
    from tempfile import TemporaryDirectory  # most models need none

    with TemporaryDirectory(prefix="opscope-model-", ignore_cleanup_errors=True) as folder:
        found = kind(path, Path(folder))
        if found is None:
            yield path, head
            return
        try:
            yield found.file, head_of(found.file)
        except ModelError as error:
            if error.source != str(found.file):
                raise
            place = ": ".join(filter(None, (printable(found.inside), error.place)))
            raise ModelError(str(path), place, error.problem) from error


def head_if_file(path: Path) -> Head | None:
    """Where a file begins; None: there is no file."""
    return head_of(path) if path.is_file() else None


def is_torch_model(path: Path) -> bool:
    """Whether this is a .pt2 file, or a name for Python code that makes a model (docs/pytorch.md)."""
    return is_torch(path, head_if_file(path))


def is_torch(path: Path, head: Head | None) -> bool:
    """The same where the head of the file has been read."""
    from .torch.sources import is_named

    if head is None:
        return is_named(path)
    if head.start[:4] not in ZIP_MAGIC:
        return False
    try:
        return any(PurePosixPath(name).name in _TORCH_MEMBERS for name in member_names(path))
    except ModelError:  # damaged: who unpacks it says how
        return False


def _exported(given: Path | TorchModel, shapes: Shapes) -> Iterator[Path]:
    from tempfile import TemporaryDirectory

    from .torch import load, write_onnx

    model = load(given, weights=True) if isinstance(given, Path) else given
    with TemporaryDirectory(prefix="opscope-torch-", ignore_cleanup_errors=True) as folder:
        yield write_onnx(model.with_shapes(shapes, None), Path(folder))


def member_names(path: Path) -> list[str]:
    """Names of the files in a zip archive."""
    with _reading(path), _open_archive(path) as archive:
        return [member.filename for member in archive.infolist()]


def _kind(path: Path, found: Head) -> Callable[[Path, Path], Unpacked | None] | None:
    """What unpacks a file; None: nothing has to."""
    head, size = found
    if head[:2] == GZIP_MAGIC:
        return _unpack_gzip
    if head[:4] in ZIP_MAGIC:
        return _unpack_zip
    if not is_text(head) or format_of(head, size, path.suffix) is not None:
        return None
    from .unsupported import unsupported

    return _unpack_source if unsupported(head) is None else None


def _unpack_gzip(path: Path, folder: Path) -> Unpacked:
    import gzip

    from .unsupported import unsupported

    whole = folder / "unpacked"
    with _reading(path), gzip.open(path) as packed:
        _write(path, whole, iter(lambda: packed.read(_CHUNK_BYTES), b""))
    head, size = head_of(whole)
    form = format_of(head, size, _inner_suffix(path))
    if form is None:
        inside = unsupported(head)
        what = inside.what if inside else "no model"
        raise ModelError(str(path), "", f"a gzip file, and inside is {what}; expected a model")
    return Unpacked(whole.rename(folder / _file_name(path, form)), "")


def _unpack_zip(path: Path, folder: Path) -> Unpacked | None:
    """None where there is no model inside; several are an error."""
    from .unsupported import unsupported_archive

    with _reading(path), _open_archive(path) as archive:
        if unsupported_archive(archive.namelist()):
            return None
        models = _models(path, archive)
        if not models:
            return None
        if len(models) > 1:
            names = listed([member.filename for member, _ in models])
            raise ModelError(
                str(path),
                "",
                f"holds {len(models)} models ({names}); expected one: unpack it, and name the one to read",
            )
        ((member, form),) = models
        place = folder / "archive" / _file_name(path, form)
        place.parent.mkdir()
        _check_size(path, member.file_size)
        _write(path, place, _content(archive, member))
        if form is ModelFormat.ONNX and _has_external_data(place):
            _write_neighbours(path, archive, member, place.parent)
    return Unpacked(place, member.filename)


def _models(path: Path, archive: ZipFile) -> list[tuple[ZipInfo, ModelFormat]]:
    """The files of an archive that are models; of several, those that are called so."""
    found = []
    for member in archive.infolist():
        if member.is_dir() or member.file_size == 0:
            continue
        _check_readable(path, member)
        with archive.open(member) as file:
            form = format_of(file.read(HEAD_BYTES), member.file_size, PurePosixPath(member.filename).suffix)
        if form is not None:
            found.append((member, form))
    called = [(member, form) for member, form in found if member.filename.endswith(form.value)]
    return called or found


def _check_readable(path: Path, member: ZipInfo) -> None:
    name = printable(member.filename, 60)
    if member.flag_bits & 1:
        raise ModelError(str(path), name, "locked with a password; expected an archive without")
    if member.compress_type not in _METHODS:
        raise ModelError(
            str(path), name, f"packed by method {member.compress_type}; expected deflate, as every tool can, or none"
        )


def _has_external_data(model: Path) -> bool:
    """Whether an ONNX model may name files beside it, by the key that they are named under."""
    with model.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(b"location") >= 0


def _write_neighbours(path: Path, archive: ZipFile, model: ZipInfo, folder: Path) -> None:
    """The other files of the model's folder in the archive: its weights may be among them."""
    base = PurePosixPath(model.filename).parent
    beside = [
        (member, PurePosixPath(member.filename).relative_to(base))
        for member in archive.infolist()
        if member is not model and not member.is_dir() and PurePosixPath(member.filename).is_relative_to(base)
    ]
    _check_size(path, model.file_size + sum(member.file_size for member, _ in beside))
    for member, name in beside:
        if name.is_absolute() or ".." in name.parts:  # leads out of the folder: no file of this model
            continue
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            _write(path, place, _content(archive, member))


def _content(archive: ZipFile, member: ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _unpack_source(path: Path, folder: Path) -> Unpacked | None:
    """None where the text has no arrays."""
    from .c_arrays import MOST_TEXT_BYTES, decode, find_model

    with _reading(path):
        if path.stat().st_size > MOST_TEXT_BYTES:
            return None
        text = path.read_bytes()
        array = find_model(text, str(path))
        if array is None:
            return None
        file = folder / _file_name(path, array.format)
        _write(path, file, decode(text, array, str(path)))
    return Unpacked(file, f"array {array.name}")


class _Bounded(FileIO):
    """A file that is read in small parts only: the list of files of an archive is read at once, however long it is."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MOST_DIRECTORY_BYTES:
            from zipfile import BadZipFile

            raise BadZipFile(f"a list of files of {size} bytes; expected at most {_MOST_DIRECTORY_BYTES}")
        return super().read(_MOST_DIRECTORY_BYTES if size is None or size < 0 else size)


@contextmanager
def _open_archive(path: Path) -> Iterator[ZipFile]:
    from zipfile import ZipFile

    with _Bounded(path) as file, ZipFile(file) as archive:
        yield archive


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever the decoders of the standard library say of a damaged file is an error of the file."""
    import struct
    import zlib
    from zipfile import BadZipFile

    damage = (BadZipFile, EOFError, OverflowError, RuntimeError, ValueError, struct.error, zlib.error)
    try:
        yield
    except (OSError, *damage) as error:
        reason = getattr(error, "strerror", None) or printable(str(error), 200) or type(error).__name__
        raise ModelError(str(path), "", f"cannot be unpacked ({reason}); expected a whole file") from error


def _write(path: Path, place: Path, chunks: Iterable[bytes]) -> None:
    """Write what is inside of `path`, up to the limit: sizes that an archive states are not believed."""
    written = 0
    with place.open("wb") as out:
        for chunk in chunks:
            written += len(chunk)
            _check_size(path, written)
            out.write(chunk)


def _check_size(path: Path, size: int) -> None:
    most = min(MOST_BYTES, max(ALWAYS_BYTES, MOST_RATIO * path.stat().st_size))
    if size > most:
        raise ModelError(
            str(path), "", f"unpacks to more than {most} bytes; expected a model: unpack it by hand if it is"
        )


def _inner_suffix(path: Path) -> str:
    """`.mlir` of `model.mlir.gz`."""
    return Path(path.stem).suffix


def _file_name(path: Path, form: ModelFormat) -> str:
    """A name whose stem is that of the file given, less the suffix of a model: `net.onnx` of `net.onnx.gz`."""
    stem = path.stem
    return f"{Path(stem).stem if _inner_suffix(path) == form.value else stem}{form.value}"
