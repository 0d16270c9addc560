from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.plugins.qnn.socs import SOCS, find_soc


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
        ("QCS6490", 93),
        ("QCM6490", 93),
        ("qcs8550", 66),
        ("QCS8275", 82),
        ("QCS9075", 77),
        ("SA8775P", 52),
        ("Snapdragon 7c+ Gen 3", 35),
        ("Snapdragon 8 Gen 3 for Galaxy", 57),
        ("X Plus", 60),
        ("Qualcomm Snapdragon X2 Elite", 88),
        ("IQ-9075", 77),
        ("Snapdragon 8 Gen 5", 97),
    ],
)
def test_names_marketing_names_and_ids_find_the_part(text: str, number: int) -> None:
    assert find_soc(text).id == number


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SM8651", "SM8650"),
        ("QCS6491", "QCS6490"),
        ("QCS6409", "QCS6490"),
        ("SM8560", "SM8550"),
        ("SA8256P", "SA8255"),
        ("Snapdragon 8 Gen 4", "Snapdragon 8 Gen 3"),
        ("8s Gen 2", "Snapdragon 8s Gen 3"),
        ("8 elite gen 6", "Snapdragon 8 Elite Gen 5"),
    ],
)
def test_an_unknown_part_gets_the_one_that_is_meant_and_the_list(text: str, meant: str) -> None:
    with pytest.raises(TargetError) as error:
        find_soc(text)
    words = str(error.value)
    assert words.startswith(f"SoC {text}: not known; did you mean {meant}? known names: SM8350 = Snapdragon 888 = ")
    assert words.endswith(" 123")


@pytest.mark.parametrize("text", ["QCS4290", "Kirin 9000", "A17", "QCS410"])
def test_a_part_that_is_like_none_gets_no_suggestion(text: str) -> None:
    with pytest.raises(TargetError, match=r"not known; known names: "):
        find_soc(text)


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


def test_seven_parts_have_a_model() -> None:
    assert sorted(soc.id for soc in SOCS if soc.has_model) == [52, 62, 63, 72, 77, 95, 114]


def test_the_page_lists_every_part_that_has_a_name() -> None:
    page = (Path(__file__).parents[4] / "docs" / "htp.md").read_text(encoding="utf-8")
    for soc in SOCS:
        if soc.words:
            assert f"| {soc.id} | {', '.join(soc.words)} | v{soc.arch} | {soc.vtcm_mb} MB |" in page
