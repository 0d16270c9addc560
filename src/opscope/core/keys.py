"""What a result depends on, as a hash: the same key, the same bytes."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path


def digest_of(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def code_of(*parts: str) -> str:
    """Of the code itself, nouns included, so that a changed compiler is not taken for the one of yesterday."""
    package = Path(__file__).parents[1]
    digest = sha256()
    for file in (
        *sorted(package.glob("*.py")),
        *(file for part in parts for file in sorted((package / part).rglob("*"))),
    ):
        if file.is_file() and file.suffix not in (".pyc", ".so", ".pyd"):
            digest.update(file.read_bytes())
    return digest.hexdigest()
