"""The last steps of the compiler's environment: what its wheel brings and cannot work with here goes, and what it asks
for and does not use is made up. A third of the room is saved by keeping equal files once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...backends.making import Making
from ...core.files import sha256_of
from .manifest import ENVIRONMENT

# The wheel carries the C library of Ubuntu 22.04 and puts it before that of the system: with a newer loader nothing
# starts.
_SYSTEM_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0")
# Imported where modules begin, and used for other models than ONNX, for images and for drawings.
_NOT_USED = ("torch", "onnxruntime_extensions", "plotly", "sklearn", "graphviz", "cv2")
_NOT_NEEDED = ("cross_toolchains", "python/test", "python/samples", "python/caffe", "python/PerfAI", "src")
_STAND_IN = "opscope_stand_in"
_PACKAGE = "from {} import stand_in\n\n__getattr__ = stand_in(__name__)\n"
_LARGE_BYTES = 1 << 18


def finish(making: Making) -> None:
    """Complete the folder: its programs are those that the package brings."""
    packages = making.packages
    compiler = packages / "tpu_mlir"
    making.report("removing what the wheel brings for other systems")
    for name in _SYSTEM_LIBRARIES:
        (compiler / "lib" / "third_party" / name).unlink(missing_ok=True)
    for name in _NOT_NEEDED:
        shutil.rmtree(compiler / name, ignore_errors=True)
    shutil.copyfile(Path(__file__).with_name("stand_in.py"), packages / f"{_STAND_IN}.py")
    for name in _NOT_USED:
        if not (packages / name).exists():
            (packages / name).mkdir()
            (packages / name / "__init__.py").write_text(_PACKAGE.format(_STAND_IN), encoding="utf-8")
    making.report("keeping equal files once")
    _link_equal(compiler)
    for file in (*(compiler / "bin").iterdir(), *(compiler / "python" / "tools").glob("*.py")):
        file.chmod(file.stat().st_mode | 0o111)
    for name in ENVIRONMENT.programs[:3]:  # a library or a module that is missing would show here
        making.run([making.folder / "bin" / name, "--help"])


def _link_equal(folder: Path) -> None:
    """Large files of one content become links of one file: a wheel has no links, and copies instead."""
    for same in _by_size(folder):
        first: dict[str, Path] = {}
        for file in same:
            known = first.setdefault(sha256_of(file), file)
            if known is not file:
                file.unlink()
                os.link(known, file)


def _by_size(folder: Path) -> Iterator[list[Path]]:
    """Groups of large files of one size, which alone can be equal."""
    found: dict[int, list[Path]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.stat().st_size >= _LARGE_BYTES:
            found.setdefault(file.stat().st_size, []).append(file)
    yield from (files for files in found.values() if len(files) > 1)
