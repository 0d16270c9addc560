"""What rewrites came to in an earlier search: read from `optimize.json` in the folders beside a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..core.files import sha256_of

MOST_BYTES = 1 << 28


class _Time(msgspec.Struct, frozen=True):
    latency_ns: int | None = None


class _Row(msgspec.Struct, frozen=True, rename={"with_": "with"}):
    rewrite: str
    before: _Time | None = None
    after: _Time | None = None
    with_: tuple[str, ...] = ()


class _Model(msgspec.Struct, frozen=True):
    sha256: str


class _File(msgspec.Struct, frozen=True):
    model: _Model
    steps: tuple[_Row, ...]
    tried: tuple[_Row, ...]


_DECODER = msgspec.json.Decoder(_File)


def times_of(model: Path, latency_ns: int | None) -> Mapping[str, int]:
    """What each rewrite alone made of a model that takes this long, by its name.

    The same file with the same time was judged by the same: a measured time does not come again.
    """
    found: dict[str, int] = {}
    own = sha256_of(model)
    for row in (row for file in _files(model) if file.model.sha256 == own for row in (*file.steps, *file.tried)):
        before, after = (None if time is None else time.latency_ns for time in (row.before, row.after))
        if before is not None and before == latency_ns and after is not None and not row.with_:
            found[row.rewrite] = min(after, found.get(row.rewrite, after))
    return found


def _files(model: Path) -> Iterator[_File]:
    """Searches whose results lie beside the model; a file that is none of ours says nothing."""
    for file in sorted(model.parent.glob("*.optimize/optimize.json")):
        with suppress(msgspec.MsgspecError, OSError):
            if file.stat().st_size <= MOST_BYTES:
                yield _DECODER.decode(file.read_bytes())
