"""The catalogue: what its entries are, who can tell about them, and whom `--target` asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from opscope.backends import registry
from opscope.backends.registry import BackendState
from opscope.core import plugins
from opscope.core.entries import called, entry_problems
from opscope.core.errors import ModelError, TargetError, UsageError
from opscope.core.manifest import BackendEntry, Entry, Manifest, Option
from opscope.core.provenance import Provenance
from opscope.machine import catalogue as targets
from opscope.machine.entry import WHY
from opscope.workflows.catalogue import choose, find, listed, search

CHIP = targets.catalogue()["adsp-21834-fx"].read_text(encoding="utf-8")
BOARD = Option("board", "which one")
ENTRIES = (
    Entry("n1", "Chip One", "lab", (Provenance.MEASURED,), part="N-1", aliases=("Number One",), spellings=("N1X",)),
    Entry("n2", "Chip Two", "lab", (Provenance.MEASURED,), part="N-2", aliases=("Number Two",)),
    Entry("n1", "Chip One", "tool", (Provenance.VENDOR_MODEL,)),
    Entry("n3", "Chip Three", "tool", (Provenance.ESTIMATED, Provenance.COMPILER_FACT)),
    Entry("n4", "Chip Four", "gone", (Provenance.MEASURED,)),
    Entry("number-two", "Chip Two", "gone", (Provenance.MEASURED,)),
)


def state_of(name: str, works: bool) -> type:
    class Fake:
        def state(self) -> BackendState:
            return BackendState(
                name, name, works, "1" if works else "", f"{name} has no licence", "" if works else "buy"
            )

    return Fake


@pytest.fixture(autouse=True)
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One plug-in, with three backends and a target file that is called like the alias of a part."""
    module = ModuleType("toys")
    for name, works in (("lab", True), ("tool", True), ("gone", False)):
        setattr(module, name, state_of(name, works))
    monkeypatch.setitem(sys.modules, "toys", module)
    (tmp_path / "number-two.toml").write_text(CHIP.replace('name = "adsp-21834-fx"', 'name = "number-two"'))
    (tmp_path / "n3.toml").write_text(CHIP.replace('name = "adsp-21834-fx"', 'name = "n3"'))
    backends = (
        BackendEntry("lab", "A laboratory", "toys:lab", (BOARD, Option("speed", "s")), models=("onnx",), part="board"),
        BackendEntry("tool", "A tool", "toys:tool"),
        BackendEntry("gone", "Not here", "toys:gone"),
        BackendEntry("lonely", "Without entries", "toys:lab"),
    )
    found = ((Manifest("toys", "Toys", "toys", targets=tmp_path, backends=backends, entries=ENTRIES),), ())
    monkeypatch.setattr(plugins, "_found", lambda: found)
    registry.state.cache_clear()
    yield
    registry.state.cache_clear()


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    from opscope.zoo import Recipe, make

    make(Recipe("kws-cnn", weights=False), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def sources(name: str) -> list[str]:
    return [source.backend for source in find(name).sources]


def test_every_backend_target_file_and_entry_is_listed_once() -> None:
    assert {entry.name for entry in listed()} == {"n1", "n3", "n4", "number-two", "lonely"}
    assert {entry.group for entry in listed()} == {"Toys"}


def test_what_is_called_alike_is_one_entry_with_its_best_source_first() -> None:
    assert sources("n1") == ["lab", "tool"]
    assert sources("n3") == ["tool", "estimate"]  # of two estimates, the one that has facts of a compiler too
    assert sources("number-two") == ["lab", "gone", "estimate"]
    assert find("n2") == find("number-two")  # the one target file that is called like the part
    assert find("n2").aliases == ("n2",)


@pytest.mark.parametrize("name", ["n1", "N1", "N-1", "number one", "NUMBER-ONE", "n1x"])
def test_case_spaces_and_dashes_of_a_name_do_not_matter(name: str) -> None:
    assert find(name).name == "n1"


def test_a_search_looks_at_names_titles_and_aliases() -> None:
    assert [entry.name for entry in search(listed(), "chip one")] == ["n1"]
    assert [entry.name for entry in search(listed(), "number TWO")] == ["number-two"]
    assert [entry.name for entry in search(listed(), "toys four")] == ["n4"]
    assert search(listed(), "nobody") == ()


def test_the_best_source_tells_and_the_others_are_named() -> None:
    choice = choose("n1")
    assert (choice.backend, choice.options) == ("lab", {"board": "N-1"})
    assert choice.note == "n1: numbers come from lab (measured, on the hardware); --backend tool has some too"


def test_a_source_that_is_asked_for_tells() -> None:
    assert choose("n1", backend="tool") == choose("n1", backend="tool", options={"board": "N1X"})
    assert choose("n1", backend="tool").backend == "tool"
    with pytest.raises(UsageError, match=r"^--backend gone: does not know n1; expected of lab, tool$"):
        choose("n1", backend="gone")
    with pytest.raises(UsageError, match=r"^backend 'lob': not known; did you mean lab\? known: sim, estimate, lab"):
        choose("n1", backend="lob")


def test_a_target_in_memory_is_for_our_own_backends() -> None:
    chip = targets.load("n3")
    assert choose(chip).backend == "estimate"
    with pytest.raises(UsageError, match=r"^--backend lab: does not know n3; expected of estimate$"):
        choose(chip, backend="lab")


def test_every_kind_of_number_has_its_rank() -> None:
    assert set(WHY) == set(Provenance)


def test_what_is_missing_is_said_where_it_would_be_better() -> None:
    choice = choose("number-two", options={"cores": 1})
    assert choice.backend == "estimate"
    assert choice.note == (
        "number-two: numbers come from estimate (estimated, by formulas); a better source cannot be used: "
        "lab has no --cores, gone is missing (gone has no licence: buy)"
    )
    with pytest.raises(
        UsageError, match=r"^n4: no source of numbers can be used here: gone is missing \(gone has no licence: buy\)"
    ):
        choose("n4")


def test_a_model_that_the_best_source_does_not_take_is_told_by_the_next(onnx: Path, tmp_path: Path) -> None:
    other = tmp_path / "m.tflite"
    other.write_bytes(b"\0\0\0\0TFL3" + bytes(64))
    assert choose("n1", model=onnx).backend == "lab"
    choice = choose("n1", model=other)
    assert choice.backend == "tool"
    assert choice.note.endswith("; a better source cannot be used: lab takes onnx models, and this one is tflite")


def test_a_model_that_cannot_be_read_is_said_before_anybody_is_chosen(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.onnx: cannot be read \(No such file or directory\)"):
        choose("n1", model=tmp_path / "gone.onnx")


def test_an_option_that_only_one_source_has_decides() -> None:
    assert choose("n1", options={"speed": 3}).backend == "lab"
    assert choose("n3", options={"cores": 1}).backend == "estimate"
    assert choose("n1", options={"colour": "red"}).backend == "lab"  # nobody has it, which is said when it is used


def test_our_own_backends_alone_can_be_asked() -> None:
    assert choose("n3", own_only=True).backend == "estimate"
    with pytest.raises(
        UsageError, match=r"^n1: no source of numbers can be used here: lab takes a model file, and options by name;"
    ):
        choose("n1", own_only=True)


def test_the_option_for_a_part_is_another_spelling_of_the_target() -> None:
    assert choose(None, options={"board": "Number One"}) == choose("n1")
    assert choose("n1", options={"board": "n1"}) == choose("n1")
    assert choose(None, backend="lab", options={"board": "x"}).options == {"board": "x"}  # the backend knows best
    for name in ("n1", "n3"):
        with pytest.raises(UsageError, match=rf"^--board n2: is not the target {name}; expected one of them, or the"):
            choose(name, options={"board": "n2"})


def test_a_name_without_a_target_file_is_for_those_who_can_tell() -> None:
    with pytest.raises(TargetError, match=r"^n1: has no target file: only .* can tell \(--backend lab or tool\);"):
        targets.load("n1")
    assert targets.load("n2").name == "number-two"  # the one file that is called like the part
    with pytest.raises(TargetError, match=r"^number-tw: no such target; did you mean number-two\? expected"):
        targets.load("number-tw")
    with pytest.raises(TargetError, match=r"^nn4: no such target; did you mean n4\? expected"):
        find("nn4")


def test_a_part_that_several_target_files_are_called_like_is_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").mkdir()
    for name in ("number-one", "n1x"):
        (tmp_path / "more" / f"{name}.toml").write_text(CHIP.replace('name = "adsp-21834-fx"', f'name = "{name}"'))
    (toys,) = plugins.manifests()
    more = toys._replace(targets=tmp_path / "more")
    monkeypatch.setattr(plugins, "_found", lambda: ((more,), ()))
    assert sources("n1") == ["lab", "tool"]
    assert sources("n1x") == ["lab", "tool", "estimate"]
    with pytest.raises(
        TargetError, match=r"^n1: is called like several target files; expected one of n1x, number-one$"
    ):
        targets.load("n1")


def test_entries_that_cannot_be_used_are_left_out_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Manifest("broken", "Broken", "toys", entries="toys.nowhere:ENTRIES")
    strange = Manifest("strange", "Strange", "toys", entries=(Entry("x", "X", "nobody", ()),))
    monkeypatch.setattr(plugins, "_found", lambda: ((broken, strange), ()))
    assert called("x") == ()
    first, second = entry_problems()
    assert first.startswith("plug-in broken (toys.nowhere:ENTRIES): cannot be loaded (ModuleNotFoundError")
    assert second == "plug-in strange: has no backend nobody; entry x is left out"
