"""The last step of `opscope setup torq`: programs that start here, also where the C library is older than theirs."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ...backends.making import Making
from ...core.errors import UsageError

_NEEDS = (2, 38)  # of glibc, by the symbols that the programs ask for
_LOADER = "ld-linux-x86-64.so.2"
_LIBRARIES = (
    *(_LOADER, "libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"),
    *("libdl.so.2", "libpthread.so.0", "librt.so.1"),
)
_DEBS = ("libc6", "libstdc++6", "libgcc-s1")
_RELEASES = {  # distribution → the first release with such a C library, and what its archive is signed with
    "ubuntu": ("noble", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
    "debian": ("trixie", "/usr/share/keyrings/debian-archive-keyring.gpg"),
}
_COMPILER, _RUNTIME = "iree/compiler/_mlir_libs", "iree/_runtime_libs"  # libraries and helpers
_PROGRAMS = {
    "torq-compile": ("torq/_compiler_libs/torq-compile", _COMPILER),
    "torq-run-module": ("torq/_runtime_libs/torq-run-module", _RUNTIME),
    "iree-opt": (f"{_COMPILER}/iree-opt", _COMPILER),
    "iree-dump-module": (f"{_RUNTIME}/iree-dump-module", _RUNTIME),
}
_LINKER = f"{_COMPILER}/iree-lld"  # which the compiler starts from its own folder
_CONVERTER = "tosa-converter-for-tflite"
_CONVERT = "import sys; from tosa_converter_for_tflite.cli import main; sys.exit(main())"


def finish(making: Making) -> None:
    """Leave every program in `bin`, started by a newer C library where this machine's is too old."""
    system = making.folder / "system" if _c_library() < _NEEDS else None
    if system is not None:
        _bring_c_library(making, system)
    for name, (program, libraries) in _PROGRAMS.items():
        making.add_program(name, _start(making, program, libraries, system))
    linker = making.unpacked / _LINKER
    linker.chmod(0o755)
    if system is not None:
        linker.rename(linker.with_name("iree-lld.original"))
        command = _start(making, f"{_LINKER}.original", _COMPILER, system, called=linker)
        wrapper = making.add_program("iree-lld", command)
        wrapper.rename(linker)
    making.add_program(_CONVERTER, [sys.executable, "-c", _CONVERT], variables={"PYTHONPATH": str(making.unpacked)})
    making.report("trying the programs")
    making.run([making.folder / "bin" / "torq-compile", "--version"])
    making.run([making.folder / "bin" / _CONVERTER, "--help"])


def _start(
    making: Making, program: str, libraries: str, system: Path | None, called: Path | None = None
) -> Sequence[str | Path]:
    """The command that starts a program of the packages; `called` is its name to itself."""
    file = making.unpacked / program
    file.chmod(0o755)
    if system is None:
        return [file]
    path = f"{system}:{making.unpacked / libraries}"
    return [system / _LOADER, "--library-path", path, "--argv0", called or file, file]


def _c_library() -> tuple[int, ...]:
    """Version of this machine's glibc; (0,) where it has another C library."""
    name, version = platform.libc_ver()
    return tuple(map(int, re.findall(r"\d+", version)[:2])) if name == "glibc" else (0,)


def _bring_c_library(making: Making, system: Path) -> None:
    """The libraries of a newer system, in a folder of their own."""
    if shutil.which("dpkg-deb") is None:
        raise _cannot(making, "dpkg-deb, which unpacks one, is not found")
    with TemporaryDirectory(prefix="opscope-torq-") as place:
        fetched, root = Path(place, "debs"), Path(place, "root")
        fetched.mkdir()
        files = _given(making) if making.wheels is not None else _fetched(making, fetched)
        for file in files:
            making.run(["dpkg-deb", "-x", file, root])
        system.mkdir()
        for name in _LIBRARIES:
            found = next(iter(sorted(root.rglob(name))), None)
            if found is None:
                raise _cannot(making, f"{name} is in none of {', '.join(file.name for file in files)}")
            shutil.copy(found, system / name)  # what a link leads to
        (system / _LOADER).chmod(0o755)
        (system / "PACKAGES").write_text("".join(f"{file.name}\n" for file in files), encoding="utf-8")


def _given(making: Making) -> list[Path]:
    """Packages of the system in the folder that the user gave."""
    folder = making.wheels or Path()
    found = {name: sorted(folder.glob(f"{name}_*.deb"))[-1:] for name in _DEBS}
    missing = [f"{name}_*.deb" for name, files in found.items() if not files]
    if missing:
        raise _cannot(making, f"{folder} has no {', '.join(missing)}")
    return [file for files in found.values() for file in files]


def _fetched(making: Making, folder: Path) -> list[Path]:
    """The same packages through apt, with lists and settings of its own: those of the system are not touched."""
    words = _os_release()
    distribution = next((name for name in _RELEASES if name in words), "")
    mirror = _mirror(distribution)
    if not mirror or shutil.which("apt-get") is None:
        raise _cannot(making, "this is neither Debian nor Ubuntu with apt, so none can be fetched")
    release, keyring = _RELEASES[distribution]
    making.report(f"fetching {', '.join(_DEBS)} of {distribution} {release}: the C library here is older than 2.38")
    settings = folder.with_name("apt")
    for part in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (settings / part).mkdir(parents=True)
    (settings / "status").touch()
    (settings / "etc/sources.list").write_text(f"deb [signed-by={keyring}] {mirror} {release} main\n", encoding="utf-8")
    acquire = [line for line in making.run(["apt-config", "dump"]).splitlines() if line.startswith("Acquire::")]
    (settings / "etc/apt.conf").write_text("\n".join(acquire) + "\n", encoding="utf-8")  # proxies and such
    options = {
        "Dir::Etc": settings / "etc",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": settings / "state",
        "Dir::State::status": settings / "status",
        "Dir::Cache": settings / "cache",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "",
    }
    apt = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    making.run([*apt, "update"])
    making.run(["sh", "-c", 'cd "$0" && exec "$@"', folder, *apt, "download", *_DEBS])
    return sorted(folder.glob("*.deb"))


def _os_release() -> set[str]:
    try:
        told = platform.freedesktop_os_release()
    except OSError:
        return set()
    return {told.get("ID", ""), *told.get("ID_LIKE", "").split()}


def _mirror(distribution: str) -> str:
    """The archive that apt uses here already; empty: none is known."""
    places = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [place.read_text(encoding="utf-8", errors="replace") for place in places if place.is_file()]
    found = re.search(rf"https?://\S+/{distribution}/?(?=\s)", "\n".join(texts)) if distribution else None
    return found[0] if found else ""


def _cannot(making: Making, why: str) -> UsageError:
    debs = ", ".join(f"{name}_*.deb" for name in _DEBS)
    return UsageError(
        f"setup {making.environment.name}: its programs need glibc 2.38 or newer, this machine has an older one, and "
        f"{why}; expected a newer system, or dpkg-deb and --wheels DIR with the wheels and {debs} of one"
    )
