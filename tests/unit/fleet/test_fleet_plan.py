"""Which cells a sweep has, and what their keys depend on."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import ProfilerError, UsageError
from opscope.fleet import plan
from opscope.fleet.plan import Cell, planned
from opscope.fleet.rows import options_text
from opscope.fleet.spec import Pattern, Spec, pattern, read_spec
from support.plugins.toolchains import STUB, offer, program

TARGETS = ("aic100-std", "aic100-pro", "max32690-cm4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.onnx", "b.onnx", "deep/c.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def spec(folder: Path, models: tuple[str, ...] = ("a.onnx",), **fields: object) -> Spec:
    axes = fields.pop("axes", {"target": TARGETS[:1], "backend": ("estimate",)})
    return Spec(models, folder, axes, **fields)  # type: ignore[arg-type]


def choices(cells: list[Cell]) -> list[tuple[object, ...]]:
    return [(cell.model, cell.target, *cell.options.values()) for cell in cells]


def test_every_combination_model_by_model(folder: Path) -> None:
    axes = {"target": TARGETS[:2], "backend": ("estimate",), "cores": (1, "2")}
    cells = planned(spec(folder, ("*.onnx", "**/c.onnx"), axes=axes))
    assert choices(cells)[:4] == [("a", t, c) for t in TARGETS[:2] for c in (1, 2)]
    assert [cell.model for cell in cells] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert len({cell.id for cell in cells}) == 12
    assert cells[-1].shown_path == "deep/c.onnx"


def test_lists_that_are_zipped_go_together(folder: Path) -> None:
    axes = {"target": TARGETS[:1], "backend": ("estimate",), "cores": (1, 2), "batch": (8, 16)}
    cells = planned(spec(folder, axes=axes, zipped=(("cores", "batch"),)))
    assert [(cell.options["cores"], cell.options["batch"]) for cell in cells] == [(1, 8), (2, 16)]


def test_patterns_choose_cells(folder: Path) -> None:
    axes = {"target": TARGETS[:2], "backend": ("estimate",), "cores": (1, 2)}
    models = ("*.onnx", "deep/*.onnx")
    cells = planned(spec(folder, models, axes=axes, exclude=(pattern({"target": "aic100-pro", "cores": 1}),)))
    assert len(cells) == 9
    cells = planned(spec(folder, models, axes=axes, only=(pattern({"model": ["a", "deep/*"]}),)))
    assert {cell.model for cell in cells} == {"a", "c"}
    with pytest.raises(UsageError, match="every combination is excluded"):
        planned(spec(folder, exclude=(pattern({"model": "*"}),)))


def test_an_axis_is_for_the_backends_that_have_it(folder: Path) -> None:
    axes = {"target": TARGETS[:1], "backend": ("sim", "estimate"), "num-iter": (1, 2)}
    cells = planned(spec(folder, axes=axes))
    assert [(cell.backend, cell.options) for cell in cells] == [
        ("sim", {"num-iter": 1}),
        ("sim", {"num-iter": 2}),
        ("estimate", {}),
    ]


def test_without_a_backend_the_target_decides(folder: Path) -> None:
    cells = planned(spec(folder, axes={"target": TARGETS}))
    assert [cell.backend for cell in cells] == ["sim", "sim", "estimate"]


def test_a_target_is_any_entry_of_the_catalogue(folder: Path) -> None:
    cells = planned(spec(folder, axes={"target": ("cpu", "aic100-std")}), versions=lambda _: "1")
    assert [(cell.backend, cell.target, cell.target_name) for cell in cells] == [
        ("ort", "cpu", "cpu"),
        ("sim", "aic100-std", "aic100-std"),
    ]


def test_keys_tell_parts_of_a_backend_apart(folder: Path) -> None:
    axes = {"target": ("ethos-u55-128", "ethos-u55-256"), "backend": ("vela",)}
    cells = planned(spec(folder, axes=axes), versions=lambda _: "1")
    assert [(cell.backend, cell.target) for cell in cells] == [("vela", name) for name in axes["target"]]
    assert len({cell.key for cell in cells}) == len({cell.id for cell in cells}) == 2


def test_a_backend_that_does_not_know_a_target_has_its_own_choice_of_hardware(folder: Path) -> None:
    axes = {"target": ("aic100-std",), "backend": ("sim", "ort")}
    cells = planned(spec(folder, axes=axes), versions=lambda _: "1")
    assert [(cell.backend, cell.target) for cell in cells] == [("sim", "aic100-std"), ("ort", "")]
    with pytest.raises(UsageError, match="axis target: no backend of the sweep has it"):
        planned(spec(folder, axes={"target": ("aic100-std",), "backend": ("ort",)}), versions=lambda _: "1")


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "no target and no backend"),
        ({"backend": ("sim",)}, "backend sim: needs a target"),
        ({"target": ("aic100-std",), "colour": ("red",)}, "axis colour: no backend of the sweep has it"),
        ({"target": ("aic100-std",), "core": (1,)}, "did you mean cores"),
        ({"target": ("aic100-std",), "cores": (0,)}, "axis cores: '0'; expected a whole number"),
        ({"target": ("aic100-std",), "parallel": ("sideways",)}, "axis parallel: 'sideways': not known"),
        ({"target": ("no-such-chip",)}, "no-such-chip"),
        ({"target": ("aic100-std",), "backend": ("warp",)}, "backend 'warp': not known"),
        ({"target": ()}, "axis target: has no value"),
        ({"target": ("aic100-std", "aic100-std")}, "axis target: has a value twice"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(folder: Path, axes: dict[str, tuple[str, ...]], words: str) -> None:
    with pytest.raises(ProfilerError, match=words):
        planned(spec(folder, axes=axes))


def test_models_that_are_not_there_are_told(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\*\.onnx: no such file"):
        planned(spec(folder, ("nothing*.onnx",)))
    with pytest.raises(UsageError, match="no models"):
        spec(folder, ())


def test_zips_that_cannot_be_are_told(folder: Path) -> None:
    axes = {"target": TARGETS[:1], "cores": (1, 2), "batch": (1, 2, 3)}
    with pytest.raises(UsageError, match="cores has 2, batch has 3"):
        spec(folder, axes=axes, zipped=(("cores", "batch"),))
    with pytest.raises(UsageError, match=r"zip: 'batches' is no axis of the sweep; did you mean batch"):
        spec(folder, axes=axes, zipped=(("cores", "batches"),))


def test_a_key_holds_until_something_that_it_depends_on_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key() -> str:
        return planned(spec(folder))[0].key

    first = key()
    assert key() == first
    (folder / "a.onnx").write_text("changed")
    second = key()
    assert second != first
    monkeypatch.setattr(plan, "code_digest", lambda: "other code")
    third = key()
    assert third not in (first, second)
    assert planned(spec(folder), versions=lambda _: "compiler 7")[0].key not in (first, second, third)
    again, before = planned(spec(folder), again="x")[0], planned(spec(folder))[0]
    assert (again.key, again.id == before.id) == (third, False)


def test_two_models_of_the_same_bytes_are_two_cells(folder: Path) -> None:
    (folder / "b.onnx").write_text((folder / "a.onnx").read_text())
    one, other = planned(spec(folder, ("*.onnx",)))
    assert (one.key == other.key, one.id == other.id) == (True, False)


def test_a_series_stays_the_same_when_the_model_changes(folder: Path) -> None:
    first = planned(spec(folder))[0]
    (folder / "a.onnx").write_text("changed")
    second = planned(spec(folder))[0]
    assert (first.series == second.series, first.key == second.key) == (True, False)


def test_the_file_of_a_target_is_named_from_the_folder_of_the_spec(folder: Path) -> None:
    (folder / "mine.toml").write_text(
        'schema = "opscope.target/1"\nname = "mine"\nextends = "aic100-std"\ntitle = "mine"\n'
    )
    (cell,) = planned(spec(folder, axes={"target": ("mine.toml",), "backend": ("estimate",)}))
    assert (cell.target, cell.target_name) == (str(folder.resolve() / "mine.toml"), "mine")


def test_needs_of_cells(folder: Path) -> None:
    needs = ((Pattern({"target": ("aic100-pro",)}), {"board": 1.0}),)
    cells = planned(spec(folder, axes={"target": TARGETS[:2]}, resources=needs))
    assert [cell.resources for cell in cells] == [{}, {"board": 1.0}]


NAMES = st.sampled_from(["cores", "batch", "num-iter", "threads"])


@given(st.dictionaries(NAMES, st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True)))
def test_there_are_as_many_cells_as_combinations_all_different(axes: dict[str, list[int]]) -> None:
    chosen = {name: tuple(values) for name, values in axes.items()}
    made = Spec(("*",), Path(), {"target": TARGETS[:1], "backend": ("sim",), **chosen})
    found = [options_text(choice) for choice in plan._applied(list(plan._choices(made)), plan.Sources(None))]
    assert len(set(found)) == len(found) == prod(map(len, axes.values()))


VALUES = st.one_of(st.integers(), st.booleans(), st.text(max_size=5))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.randoms())
def test_the_order_of_options_does_not_matter(options: dict[str, object], random: object) -> None:
    names = list(options)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert options_text({name: options[name] for name in names}) == options_text(options)  # type: ignore[misc]


@given(*[st.dictionaries(st.text("ab=\n'1", max_size=4), VALUES, max_size=3)] * 2)
def test_different_options_have_different_texts(one: dict[str, object], other: dict[str, object]) -> None:
    same = {k: (type(v), v) for k, v in one.items()} == {k: (type(v), v) for k, v in other.items()}
    assert (options_text(one) == options_text(other)) is same  # type: ignore[arg-type]


def test_a_spec_is_read_from_a_file(folder: Path) -> None:
    (folder / "sweep.toml").write_text(
        """
        models = ["*.onnx"]
        zip = [["cores", "batch"]]
        [axes]
        target = ["aic100-std", "aic100-pro"]
        backend = "estimate"
        cores = [1, 2]
        batch = [4, 8]
        [[exclude]]
        target = "aic100-pro"
        cores = [2]
        [[shapes]]
        when = { model = "a" }
        shape = { images = "1x3x32x32", width = 64 }
        [[resources]]
        when = { target = "aic100-pro" }
        needs = { board = 1 }
        """
    )
    cells = planned(read_spec(folder / "sweep.toml"))
    assert len(cells) == 6
    assert [cell.options.get("shape") for cell in cells] == ["images=1x3x32x32;width=64"] * 3 + [None] * 3
    assert [cell.resources for cell in cells[:3]] == [{}, {}, {"board": 1.0}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models = 3", "models"),
        ("models = []", "no models"),
        ("models = ['a.onnx']\nfoo = 1", "foo"),
        ("models = [", "expected models, axes"),
        ("models = ['a']\n[axes]\ntarget = { a = 1 }", "axes"),
        ("\x00", "expected models"),
        ("models = ['a']\n[[shapes]]\nshape = { x = '1xtwo' }", "shape of x: '1xtwo'; expected extents"),
    ],
)
def test_a_broken_spec_is_one_line(folder: Path, text: str, words: str) -> None:
    (folder / "sweep.toml").write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_spec(folder / "sweep.toml")
    assert "\n" not in str(caught.value)


def test_the_version_behind_a_cell_is_that_of_the_tool_that_it_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, STUB)
    for name in STUB.programs:
        program(tmp_path / "new" / name, "echo stub 7.1")
        program(tmp_path / "old" / name, "echo stub 6.0")
    axes = {"backend": ("stub",), "tool": (str(tmp_path / "new"), str(tmp_path / "old"))}
    assert [cell.version for cell in planned(spec(folder, axes=axes))[:2]] == ["7.1", "6.0"]
    with pytest.raises(UsageError, match=r"^--tool /gone: stub-compile, stub-run not found; expected"):
        planned(spec(folder, axes={**axes, "tool": ("/gone",)}))
