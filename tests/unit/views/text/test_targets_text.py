"""The catalogue on a terminal, and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO

from opscope.core.provenance import Provenance
from opscope.machine.entry import CatalogueEntry, Source
from opscope.views.json.targets_json import TargetJson, TargetsJson
from opscope.views.text.targets_text import TargetsText, TargetText
from support.build import engine, target

OWN = Source("estimate", (Provenance.ESTIMATED,))
GONE = Source("lab", (Provenance.MEASURED,), "board", "N-1", ("onnx",), "no licence", "buy one")
ENTRIES = (
    CatalogueEntry("chip", "A chip", "Files", (GONE, OWN), ("Number One",), target(engine())),
    CatalogueEntry("board", "A board", "Boards", (GONE,)),
    CatalogueEntry("id-7", "Something", "Boards", (Source("lab", ()),), is_minor=True),
)


@dataclass(frozen=True)
class Validated(CatalogueEntry):
    """As a target file says it."""

    @dataclass(frozen=True)
    class Table:
        networks: int = 12
        median_error: float = 0.123
        p90_error: float = 0.4
        coverage: float = 0.9
        source: str = "a paper"

    @property
    def validation(self) -> object:
        return self.Table()


def text(**options: bool) -> str:
    out = StringIO()
    TargetsText(**options).render(ENTRIES, out)
    return out.getvalue()


def test_entries_stand_in_groups_and_what_is_missing_below() -> None:
    lines = text().splitlines()
    assert [line.split() for line in lines if line.startswith(("[", "chip", "board", "id-7"))] == [
        ["[Files]"],
        ["chip", "A", "chip", "measured,", "estimated", "yes", "—"],
        ["[Boards]"],
        ["board", "A", "board", "measured", "no", "—"],
    ]
    assert lines[-3:] == [
        "lab is missing: no licence; install it: buy one",
        "1 more are known by number alone: --all lists them",
        "3 entries; `opscope targets show NAME` has the figures and who can tell",
    ]


def test_entries_without_a_name_are_shown_where_all_are_asked_for() -> None:
    assert "\nid-7 " in text(minor=True)
    assert "--all" not in text(minor=True)


def test_one_entry_is_shown_with_who_can_tell_about_it() -> None:
    out = StringIO()
    TargetText().render(ENTRIES[0], ENTRIES[0].target, out)
    assert out.getvalue().splitlines()[:4] == [
        "chip: A chip",
        "also called Number One",
        "--backend lab --board N-1: measured of onnx models; missing here: no licence (buy one)",
        "--backend estimate: estimated",
    ]
    assert "\nclocks.core_hz " in out.getvalue()


def test_a_validated_error_is_shown_and_one_that_is_not_known_is_a_dash() -> None:
    entry = Validated("chip", "A chip", "Files", (OWN,))
    out = StringIO()
    TargetsText().render([entry], out)
    assert "12% (p90 40%)" in out.getvalue()
    shown = StringIO()
    TargetText().render(entry, None, shown)
    assert shown.getvalue().endswith("validated error 12% (p90 40%) of 12 networks: a paper\n")


def test_json_has_all_that_is_known_and_null_for_the_rest() -> None:
    out = StringIO()
    TargetsJson().render(ENTRIES, out)
    chip, board, _ = json.loads(out.getvalue())
    assert (chip["works"], chip["backend"], chip["clock_hz"], chip["cores"]) == (True, "estimate", 1e6, 1)
    assert (board["works"], board["backend"], board["clock_hz"], board["validation"]) == (False, None, None, None)
    assert board["sources"] == [
        {
            "backend": "lab",
            "tells": ["measured"],
            "option": "board",
            "part": "N-1",
            "models": ["onnx"],
            "works": False,
            "missing": "no licence",
            "install": "buy one",
        }
    ]
    one = StringIO()
    TargetJson().render(ENTRIES[1], None, one)
    assert json.loads(one.getvalue()) == {"name": "board", "title": "A board", "entry": board}
    valid = StringIO()
    TargetsJson().render([Validated("chip", "A chip", "Files", (OWN,))], valid)
    assert json.loads(valid.getvalue())[0]["validation"]["median_error"] == 0.123
