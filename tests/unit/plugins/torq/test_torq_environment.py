"""The last step of `opscope setup torq`: how its programs start, with the C library of the machine or a newer one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opscope.backends.making import Making
from opscope.core.errors import UsageError
from opscope.plugins.torq import environment
from opscope.plugins.torq.manifest import ENVIRONMENT
from support.plugins.toolchains import program

NATIVE = (
    "torq/_compiler_libs/torq-compile",
    "torq/_runtime_libs/torq-run-module",
    "iree/compiler/_mlir_libs/iree-opt",
    "iree/compiler/_mlir_libs/iree-lld",
    "iree/_runtime_libs/iree-dump-module",
)
LOADER = "ld-linux-x86-64.so.2"
LIBRARIES = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """The folder after its packages are there: programs that say who they are, and a converter."""
    folder = tmp_path / "a folder"
    for file in NATIVE:
        program(folder / "packages" / file, f'echo {Path(file).name} "$@"').chmod(0o644)
    module = folder / "packages" / "tosa_converter_for_tflite"
    module.mkdir()
    (module / "cli.py").write_text("def main():\n    print('converted')\n")
    (tmp_path / "wheels").mkdir()
    return Making(ENVIRONMENT, folder, tmp_path / "wheels", lambda _: None)


def said(making: Making, name: str) -> str:
    command = [making.folder / "bin" / name, "--flag"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def deb(folder: Path, package: str, files: dict[str, str]) -> None:
    """A package of Debian's with these files, which are programs."""
    tree = folder.parent / package
    for name, text in files.items():
        program(tree / "usr/lib/x86_64-linux-gnu" / name, text)
    (tree / "DEBIAN").mkdir()
    control = f"Package: {package}\nVersion: 2.41\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(control)
    subprocess.run(["dpkg-deb", "-b", tree, folder / f"{package}_2.41_amd64.deb"], check=True, capture_output=True)


def test_where_the_c_library_is_new_enough_programs_start_by_themselves(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_c_library", lambda: (2, 38))
    environment.finish(making)
    assert {path.name for path in (making.folder / "bin").iterdir()} == set(ENVIRONMENT.programs)
    assert said(making, "torq-compile") == "torq-compile --flag"
    assert said(making, "tosa-converter-for-tflite") == "converted"
    assert not (making.folder / "system").exists()


@needs_dpkg
def test_where_it_is_older_the_loader_of_a_newer_one_starts_them(
    making: Making, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "_c_library", lambda: (2, 36))
    loader = 'echo "$2" "$4"; shift 4; exec "$@"'  # --library-path PATH --argv0 NAME FILE ARGUMENT…
    deb(tmp_path / "wheels", "libc6", {LOADER: loader, **dict.fromkeys(LIBRARIES, "")})
    deb(tmp_path / "wheels", "libstdc++6", {"libstdc++.so.6": ""})
    deb(tmp_path / "wheels", "libgcc-s1", {"libgcc_s.so.1": ""})
    environment.finish(making)
    libraries = making.folder / "packages/iree/compiler/_mlir_libs"
    called = making.folder / "packages/torq/_compiler_libs/torq-compile"
    assert said(making, "torq-compile") == f"{making.folder}/system:{libraries} {called}\ntorq-compile --flag"
    linker = subprocess.run([libraries / "iree-lld", "-x"], capture_output=True, text=True, check=True).stdout
    assert linker == f"{making.folder}/system:{libraries} {libraries}/iree-lld\niree-lld -x\n"
    assert {path.name for path in (making.folder / "bin").iterdir()} == set(ENVIRONMENT.programs)


@needs_dpkg
def test_packages_that_are_not_in_the_folder_are_named(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_c_library", lambda: (2, 31))
    words = r"^setup torq: its programs need glibc 2\.38 .* has no libc6_\*\.deb, .*; expected a newer system, or"
    with pytest.raises(UsageError, match=words):
        environment.finish(making)


def test_a_system_without_such_packages_is_told_what_would_do(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_c_library", lambda: (0,))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match=r"and dpkg-deb, which unpacks one, is not found; expected a newer system"):
        environment.finish(making)
