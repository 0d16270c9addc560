"""Parts as entries of the catalogue."""

from __future__ import annotations

import pytest

from opscope.core.entries import called
from opscope.core.provenance import Provenance
from opscope.machine.catalogue import figures
from opscope.plugins.qnn.entries import ENTRIES, figures_of
from opscope.plugins.qnn.socs import SOCS, find_soc


def test_every_part_is_one_entry_that_its_option_takes() -> None:
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES) == len(SOCS)
    assert [find_soc(entry.part) for entry in ENTRIES] == list(SOCS)


@pytest.mark.parametrize(
    "text",
    [word for soc in SOCS for word in (str(soc.id), *soc.words)] + ["SA8255P", "8 Gen 3", "qualcomm sm8750"],
)
def test_whatever_names_a_part_names_its_entry(text: str) -> None:
    (known, *others) = called(text)
    assert find_soc(known.entry.part) == find_soc(text)
    assert not others


def test_boards_that_stand_in_for_a_part_are_called_like_it() -> None:
    assert [known.entry.name for known in called("qcs8550-proxy")] == ["qcs8550"]


def test_times_are_the_vendors_own_for_parts_that_its_model_knows() -> None:
    told = {entry.part: entry.tells[0] for entry in ENTRIES}
    assert (told["SA8255"], told["SM8750"]) == (Provenance.VENDOR_MODEL, Provenance.ESTIMATED)


def test_every_figure_of_a_part_has_its_source() -> None:
    for entry in ENTRIES:
        known = figures_of(entry.part)
        assert all(figure.source in known.sources for _, figure in figures(known))
