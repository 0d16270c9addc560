"""The file for a bug report: what is installed and how a command ended; nothing of a model, no name of a user.

What leaves this machine is listed here, piece by piece, and not filtered out of everything: an error line names ops of
the model, so that none is kept; of a path, its suffix.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError, requires, version
from io import StringIO
from pathlib import Path
from traceback import extract_tb
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ... import __version__
from ...core.errors import ProfilerError, UsageError
from ...core.files import replacing

_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD", re.IGNORECASE)
_PREFIX = "OPSCOPE_"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same content
_PACKAGE = Path(__file__).parents[2]


def write_bundle(place: Path, doctor: Mapping[str, object], command: str | None) -> None:
    """Write the file; a command that is given is run once more."""
    parts: dict[str, object] = {
        "doctor.json": doctor,
        "platform.json": _platform(),
        "versions.json": _versions(),
        "variables.json": _variables(os.environ),
    }
    if command is not None:
        parts["command.json"] = _ended(_words(command))
    hide = _hidden()
    with replacing(place) as raw, ZipFile(raw, "w", ZIP_DEFLATED) as file:
        for name, found in parts.items():
            text = hide(json.dumps(found, indent=1, ensure_ascii=False, default=str))
            file.writestr(ZipInfo(name, _WHEN), text)


def _platform() -> dict[str, object]:
    """Without the name of the machine."""
    return {
        "opscope": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "cpus": os.cpu_count(),
        "encoding": sys.stdout.encoding,
    }


def _versions() -> dict[str, str | None]:
    """Of the packages that opscope and its extras name; None: not installed."""
    names = {re.split(r"[^\w.-]", line)[0] for line in requires("opscope") or ()}
    return {name: _version(name) for name in sorted(names)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _variables(variables: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in sorted(variables.items()) if name.startswith(_PREFIX)}
    return {name: "(set)" if _SECRET.search(name) else _shown(value) for name, value in own.items()}


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command: {error}; expected the words of a command") from error
    return words[1:] if words[:1] == ["opscope"] else words


def _ended(words: Sequence[str]) -> dict[str, object]:
    """The options of a command, its exit code, and where in opscope an error came from; none of its text."""
    from .. import _run

    found: dict[str, object] = {"words": [_shown(word) for word in words], "exit": 0}
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            found["exit"] = _run(list(words))
    except SystemExit as stop:
        found["exit"] = stop.code
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
        found["exit"] = 2 if isinstance(error, ProfilerError) else "crash"
        found["error"] = type(error).__name__
        found["at"] = [f"{Path(f.filename).relative_to(_PACKAGE).as_posix()}:{f.lineno} {f.name}" for f in own]
    return found


def _shown(word: str) -> str:
    """A word as it is; of one that names a file, what kind of file."""
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    if value and (os.sep in value or "\\" in value or Path(value).exists()):
        value = f"FILE{Path(value).suffix if len(Path(value).suffix) <= 8 else ''}"
    return f"{option}{equals}{value}"


def _hidden() -> Callable[[str], str]:
    """Replaces the home, the working and the temporary folder, and the name of the user, wherever they stand."""
    home, here = Path.home(), Path.cwd()
    folders = {str(home): "~", str(here): ".", tempfile.gettempdir(): "TMP", str(Path(sys.prefix)): "PREFIX"}
    names = {_user(), home.name} - {""}
    ordered = sorted(folders.items(), key=lambda item: -len(item[0]))

    def hide(text: str) -> str:
        for folder, shown in ordered:
            if folder.strip(os.sep):
                text = text.replace(folder, shown)
        for name in names:
            text = re.sub(rf"\b{re.escape(name)}\b", "USER", text)
        return text

    return hide


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
