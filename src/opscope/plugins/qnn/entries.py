"""Every part as an entry of the catalogue: `--target snapdragon-8-elite`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.manifest import Entry
from ...core.provenance import Provenance
from .manifest import BACKEND
from .socs import SOCS, Soc, find_soc

if TYPE_CHECKING:
    from .hexagon import Hexagon


def figures_of(part: str) -> Hexagon:
    """What a part can do at the most, with sources."""
    from .hexagon import hexagon_of  # every command that takes a target looks at the entries

    return hexagon_of(find_soc(part))


def _entry(soc: Soc) -> Entry:
    """Times are the vendor model's own, or scaled from those of a part that it knows; the compiler knows all."""
    brand = next((word for word in soc.marketing if " " in word), "")
    times = Provenance.VENDOR_MODEL if soc.has_model else Provenance.ESTIMATED
    return Entry(
        soc.name.lower() or f"htp-id-{soc.id}",
        f"{brand or soc.label}, HTP v{soc.arch}, {soc.vtcm_mb} MB VTCM",
        BACKEND.name,
        (times, Provenance.COMPILER_FACT),
        part=soc.name or str(soc.id),
        aliases=soc.marketing,
        spellings=(str(soc.id), *_spellings(soc)),
        is_minor=not soc.name,
    )


def _spellings(soc: Soc) -> tuple[str, ...]:
    """Part numbers with or without the P that some have behind them, or as boards that stand in for the part; and names
    without the brand."""
    numbers = [word for word in soc.words if " " not in word]
    brands = [word.partition(" ")[2] for word in soc.marketing if word.startswith(("Snapdragon ", "Dragonwing "))]
    makers = [f"Qualcomm {word}" for word in soc.words] + [f"{word} (Proxy)" for word in numbers]
    return (*(word.removesuffix("P") if word.endswith("P") else f"{word}P" for word in numbers), *brands, *makers)


ENTRIES = tuple(_entry(soc) for soc in SOCS)
