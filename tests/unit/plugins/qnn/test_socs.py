from __future__ import annotations

import pytest

from opscope.core.errors import TargetError
from opscope.plugins.qnn.socs import SOCS, find_soc, proxy_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("52", 52),
        ("SA8255", 52),
        ("sa8255p", 52),
        ("Snapdragon 8 Gen 3", 57),
        ("8 gen 3", 57),
        ("snapdragon-8-elite", 69),
        ("8 Elite Gen 5", 87),
        ("Snapdragon 8+ Gen 1", 42),
        ("8 Gen 1", 36),
        ("Cloud AI 100", 63),
        ("x elite", 60),
        ("SXR2230P", 53),
        ("123", 123),
    ],
)
def test_names_marketing_names_and_ids_find_the_part(text: str, number: int) -> None:
    assert find_soc(text).id == number


def test_an_unknown_part_lists_the_known_ones() -> None:
    with pytest.raises(
        TargetError, match=r"^SoC SM8651: not known; did you mean SM8650\? known names: SM8350, .* 123$"
    ):
        find_soc("SM8651")


@pytest.mark.parametrize("text", ["", "0", "33", "85", "v73"])
def test_what_the_library_would_take_for_its_default_part_is_refused(text: str) -> None:
    if text == "85":
        assert find_soc(text).arch == 73  # an id, not an architecture
    else:
        with pytest.raises(TargetError, match="not known"):
            find_soc(text)


def test_every_id_stands_once_and_every_name_too() -> None:
    assert len({soc.id for soc in SOCS}) == len(SOCS) == 69
    names = [word.lower() for soc in SOCS for word in (soc.name, *soc.marketing) if word]
    assert len(set(names)) == len(names)


def test_a_part_without_a_model_has_a_proxy_with_one() -> None:
    assert sorted(soc.id for soc in SOCS if soc.has_model) == [52, 62, 63, 72, 77, 95, 114]
    assert all(proxy_of(soc).has_model for soc in SOCS)
    assert proxy_of(find_soc("SA8797")) is find_soc("72")
