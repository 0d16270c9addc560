"""Target files: all that are shipped load, and a bad one is refused with its place and what was expected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.core.meaning import Carries
from opscope.estimate.price import Machine
from opscope.graph.graph import DType
from opscope.graph.work_families import WorkFamily
from opscope.machine import catalogue as targets
from opscope.machine.corners import Corner, at_corner
from opscope.machine.target import Engine, Figure, Holds, Memory, Route, Scope
from opscope.plugins.cfs.flat import vendor_machine
from opscope.workflows.catalogue import find

GOOD = """\
schema = "opscope.target/1"
name = "chip"
title = "A chip"

[sources]
sheet = "data sheet"

[clocks]
core_hz = { value = 1e6, source = "sheet" }

[topology]
devices = { value = 1, source = "sheet" }
cores = { value = 1, source = "sheet" }

[[engines]]
name = "cpu"
accelerator = false
ops = ["*"]
macs_per_cycle = { "*" = { value = 1, source = "sheet" } }

[[memories]]
name = "RAM"
scope = "device"
holds = ["activations", "constants"]
bytes = { value = 1024, source = "sheet" }
"""


def refusal(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(TargetError) as caught:
        targets.parse(raw, source="chip.toml")
    message = str(caught.value)
    assert message.startswith("chip.toml: ")
    assert "\n" not in message
    return message


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_the_smallest_target_loads() -> None:
    target = targets.parse(GOOD.encode(), source="chip.toml")
    assert (target.name, target.clocks.core_hz.value) == ("chip", 1e6)
    assert target.home(Holds.CONSTANTS).name == "RAM"


@pytest.mark.parametrize("name", list(targets.catalogue()))
def test_every_shipped_target_loads_under_its_own_name_with_a_source_for_every_figure(name: str) -> None:
    target = targets.load(name)
    assert target.name == name
    assert target.schema == targets.SCHEMA
    found = list(targets.figures(target))
    assert len(found) > 5
    for place, figure in found:
        assert target.sources.get(figure.source), place
        assert figure.smallest <= figure.value <= figure.largest, place


@pytest.mark.parametrize("name", list(targets.catalogue()))
def test_every_source_that_is_listed_is_used(name: str) -> None:
    target = targets.load(name)
    used = {figure.source for _, figure in targets.figures(target)} | {target.runtime.source}
    assert set(target.sources) <= used


@pytest.mark.parametrize(
    ("name", "megahertz", "flash", "ram", "macs_per_cycle", "nanojoules"),
    [  # hardware profiles of analogdevicesinc/codefusion-studio: clock, flash and RAM in KB, cycles and nJ per MAC
        ("max32657-cm33", 50, 1024, 256, 1 / 2, 0.1448),
        ("max32690-cm4", 120, 3072, 1024, 1 / 2, 0.17),
        ("max78002-cm4", 120, 2560, 284, 1 / 2, 0.17),
        ("adsp-21834-fx", 800, 0, 1536, 1, 1.5),
        ("adsp-21836-fx", 800, 0, 1536, 1, 1.5),
        ("adsp-21835-fx", 1000, 0, 2560, 1, 1.5),
        ("adsp-21837-fx", 1000, 0, 2560, 1, 1.5),
        ("adsp-sc834-second", 400, 0, 1536, 1 / 2, 0.1448),
        ("adsp-sc835-second", 400, 0, 2560, 1 / 2, 0.1448),
        ("cfs-sample", 100, 1024, 1024, 1, 0.25),
    ],
)
def test_shipped_profiles_have_their_published_figures(  # noqa: PLR0917 - a row of the published table
    name: str, megahertz: int, flash: int, ram: int, macs_per_cycle: float, nanojoules: float
) -> None:
    target = vendor_machine(Machine(targets.load(name))).target
    store, core = target.home(Holds.CONSTANTS), target.engines[-1]
    assert target.clocks.core_hz.value == megahertz * 1e6
    assert target.home(Holds.ACTIVATIONS).bytes.value == ram * 1024
    assert (0 if Holds.ACTIVATIONS in store.holds else store.bytes.value) == flash * 1024
    assert core.rate(core.macs_per_cycle, DType.F32).value == macs_per_cycle
    assert core.rate(core.picojoules_per_mac, DType.F32).value == pytest.approx(nanojoules * 1000)
    assert any(engine.accelerator for engine in target.engines) == (name == "cfs-sample")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A chip"', 'title = "A chip', "not valid TOML: Illegal character '\\n' (at line 3, column 16)"),
        ('name = "cpu"', 'nam = "cpu"', "key engines[0].nam: is not a key of the schema; did you mean name?"),
        ("[topology]", "[zzz]", "key zzz: is not a key of the schema; expected one of schema, name, title"),
        ("value = 1e6", 'value = "fast"', "key clocks.core_hz.value: expected `float`, got `str`"),
        ("value = 1e6, ", "", "key clocks.core_hz: object missing required field `value`"),
        (
            'scope = "device"',
            'scope = "moon"',
            "key memories[0].scope: 'moon' is not known; exp",
        ),
        ('ops = ["*"]', 'ops = ["convv"]', "key engines[0].ops: 'convv' is not known; did you mean conv?"),
        ('{ "*" = { value = 1,', '{ "i9" = { value = 1,', "key engines[0].macs_per_cycle: 'i9' is not known; exp"),
        ('value = 1e6, source = "sheet"', 'value = 1e6, source = "blog"', "key clocks.core_hz.source: 'blog' is not a"),
        ('holds = ["activations", "constants"]', 'holds = ["constants"]', "no memory holds activations; expected one"),
        ("value = 1e6", "value = 1e6, low = 2e6", "key clocks.core_hz: value 1000000.0 lies outside its range 2000000"),
        ("value = 1e6", "value = nan", "key clocks.core_hz: value nan lies outside its range"),
        ("value = 1e6", "value = inf", "key clocks.core_hz: found inf; expected a number above 0"),
        ("value = 1e6", "value = 0", "key clocks.core_hz: found 0; expected a number above 0"),
        ("value = 1e6", f"value = 1{'0' * 400}", "key clocks.core_hz"),
        ("value = 1e6", f"value = 1{'0' * 5000}", "not valid TOML"),
        ('{ "*" = { value = 1,', '{ "*" = { value = 0,', "key engines[0].macs_per_cycle.*: found 0; expected a number"),
        ("value = 1024", "value = -5", "key memories[0].bytes: found -5; expected a number above 0"),
        ('schema = "opscope.target/1"', 'schema = "opscope.target/9"', "key schema: found 'opscope.target/9'; exp"),
        ('schema = "opscope.target/1"\n', "", "key schema: found None; expected 'opscope.target/1'"),
        ('title = "A chip"', '"a\\nb" = 1', "key a\\nb: is not a key of the schema"),
        ("[sources]", '[precision]\nf32 = "f99"\n[sources]', "key precision: 'f99' is not known; exp"),
        ("[sources]", '[runtime]\nfuses = ["rellu"]\n[sources]', "key runtime.fuses: 'rellu' is not known; did"),
        ("[sources]", '[support]\ndtypes = ["int8"]\n[sources]', "key support.dtypes: 'int8' is not known; did"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_a_bad_file_is_refused_with_its_place_and_what_was_expected(old: str, new: str, message: str) -> None:
    assert message in refusal(changed(old, new))


def test_a_target_without_an_engine_is_refused() -> None:
    start, end = GOOD.index("[[engines]]"), GOOD.index("[[memories]]")
    assert "object missing required field `engines`" in refusal(GOOD[:start] + GOOD[end:])
    bare = GOOD[:start].replace("title", "engines = []\ntitle")
    assert "a target needs at least one engine" in refusal(bare + GOOD[end:])


def test_two_engines_of_one_name_are_refused() -> None:
    engine = GOOD[GOOD.index("[[engines]]") : GOOD.index("[[memories]]")]
    assert "key engines[1].name: 'cpu' is taken; expected a name of its own" in refusal(GOOD + engine)


def test_two_routes_of_one_name_are_refused() -> None:
    rate = 'bytes_per_second = { value = 1, source = "sheet" }'
    routes = "".join(f'[[routes]]\nname = "dma"\ncarries = "{way}"\n{rate}\n' for way in ("read", "write"))
    assert "key routes[1].name: 'dma' is taken; expected a name of its own" in refusal(GOOD + routes)


def test_both_kinds_of_bandwidth_at_once_are_refused() -> None:
    both = 'bytes_per_second = { value = 1, source = "sheet" }\nbytes_per_cycle = { value = 1, source = "sheet" }\n'
    assert "has both bytes_per_second and bytes_per_cycle; expected one" in refusal(GOOD + both)


REACHED = """macs_per_cycle = { "*" = { value = 1, source = "sheet" } }
vector_bytes_per_cycle = { value = 64, source = "sheet" }
reached = { softmax = { "*" = { value = 0.5, source = "sheet" } } }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value = 0.5", "value = 1.5", "engine 'cpu' reaches more than its peak for softmax; expected at most 1"),
        ("value = 0.5", "value = 0.5, high = 2", "engine 'cpu' reaches more than its peak for softmax"),
        ("value = 0.5", "value = 0", "key engines[0].reached.softmax.*: found 0; expected a number above 0"),
        ("softmax", "softmacks", "key engines[0].reached: 'softmacks' is not known; did you mean softmax?"),
        ('"*" = { value = 0.5', "f17 = { value = 0.5", "key engines[0].reached.softmax: 'f17' is not known"),
        ("value = 64", "value = 0", "key engines[0].vector_bytes_per_cycle: found 0; expected a number above 0"),
    ],
)
def test_shares_of_families_of_work_are_checked(old: str, new: str, message: str) -> None:
    good = changed('macs_per_cycle = { "*" = { value = 1, source = "sheet" } }\n', REACHED)
    unit = targets.parse(good.encode(), source="chip.toml").engines[0]
    found = unit.rate_of(WorkFamily.SOFTMAX, DType.F32)
    assert found is not None
    assert [figure.value for figure in found] == [64, 0.5]
    assert unit.rate_of(WorkFamily.COPY, DType.F32) is None
    assert message in refusal(good.replace(old, new))


def test_binary_junk_is_refused_with_the_byte() -> None:
    assert refusal(b"schema\xff\xfe") == "chip.toml: byte 0x6: not UTF-8 text; expected a target TOML file"
    assert "not valid TOML" in refusal(bytes(100))


@pytest.mark.parametrize("deep", ["x = " + "[" * 100_000, "x = " + "{a=" * 100_000, "[" + "a." * 20_000 + "a]"])
def test_deep_nesting_is_refused(deep: str) -> None:
    assert len(refusal(deep)) < 500


def test_a_huge_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: a terabyte of nothing
    with pytest.raises(TargetError, match="larger than 65536 bytes; expected a target TOML file"):
        targets.load(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"gone\.toml: cannot be read \(No such file or directory\); expected"):
        targets.load(str(tmp_path / "gone.toml"))
    with pytest.raises(TargetError, match="Is a directory"):
        targets.load(f"{tmp_path}/")


def test_an_unknown_name_lists_the_known_ones_and_guesses() -> None:
    with pytest.raises(
        TargetError, match=r"^max32690: no such target; did you mean max32690-cm4\? expected one of the catalogue"
    ):
        targets.load("max32690")


def test_a_path_is_read_like_a_name(tmp_path: Path) -> None:
    path = tmp_path / "mychip.toml"
    path.write_text(GOOD)
    assert targets.load(str(path)).name == "chip"


def test_corners_take_the_fast_or_the_slow_end_of_every_figure() -> None:
    target = targets.load("aic100-std")
    fast, slow = at_corner(target, Corner.FAST), at_corner(target, Corner.SLOW)
    assert at_corner(target, Corner.TYPICAL) is target
    assert [t.clocks.core_hz.value for t in (slow, target, fast)] == [1030e6, 1233.12e6, 1450e6]
    assert [t.engines[0].efficiency.value for t in (slow, target, fast)] == [0.38, 0.70, 0.70]
    assert [t.engines[1].kernels["gather"].value for t in (fast, target, slow)] == [29.03, 29.03, 75.16]


WIDE = Figure(2, "by hand", 1, 3)
PARTS = (  # a part of a target, its figures that are fast where they are large, and those that are fast where small
    (
        Engine("cpu", ("*",), accelerator=False),
        ("efficiency", "weight_bytes_per_cycle"),
        ("launch_cycles", "command_cycles"),
    ),
    (
        Memory("RAM", Scope.CORE, WIDE, ()),
        ("bytes_per_second", "core_bytes_per_second", "efficiency"),
        ("picojoules_per_byte",),
    ),
    (Memory("ROM", Scope.CORE, WIDE, ()), ("bytes_per_cycle",), ()),
    (
        Route("dma", Carries.READ, bytes_per_second=WIDE),
        ("bytes_per_second", "efficiency"),
        ("issue_cycles", "latency_seconds"),
    ),
)
TABLES = {  # of an engine: whether they are fast where they are large
    "macs_per_cycle": True,
    "element_ops_per_cycle": True,
    "kernels": False,
    "picojoules_per_mac": False,
    "picojoules_per_element_op": False,
}


@pytest.mark.parametrize(("corner", "rate", "cost"), [(Corner.FAST, 3, 1), (Corner.SLOW, 1, 3)])
def test_no_figure_is_left_where_it_was(corner: Corner, rate: float, cost: float) -> None:
    parts = [replace(part, **dict.fromkeys((*rates, *costs), WIDE)) for part, rates, costs in PARTS]
    engine = replace(parts[0], **{name: {"*": WIDE} for name in TABLES})
    whole = replace(
        targets.load("aic100-std"),
        engines=(engine,),
        memories=(*parts[1:3], *targets.load("aic100-std").memories),
        routes=(parts[3],),
        idle_watts=WIDE,
    )
    moved = at_corner(whole, corner)
    assert moved.idle_watts.value == cost
    found = (moved.engines[0], *moved.memories[:2], moved.routes[0])
    for part, (_, rates, costs) in zip(found, PARTS, strict=True):
        assert [getattr(part, name).value for name in (*rates, *costs)] == [rate] * len(rates) + [cost] * len(costs)
    for name, is_rate in TABLES.items():
        assert getattr(moved.engines[0], name)["*"].value == (rate if is_rate else cost), name
    assert moved.memories[0].bytes == WIDE


def test_what_a_route_carries_and_serves_is_checked() -> None:
    raw = targets.catalogue()["aic100-std"].read_text(encoding="utf-8")
    for old, new, message in (
        ('carries = "read"', 'carries = "raed"', "key routes[0].carries: 'raed' is not known; did you mean read?"),
        ('carries = "read"', 'carries = "read"\nmemory = "moon"', "serves 'moon'; expected one of"),
        (
            'carries = "read"',
            "core_bytes_per_second = 1",
            "routes[0].core_bytes_per_second: is not a key of the schema",
        ),
    ):
        with pytest.raises(TargetError) as caught:
            targets.parse(raw.replace(old, new).encode(), source="t.toml")
        assert message in str(caught.value)
    target = targets.load("torq-sl2610")
    assert [target.memory_of(route) for route in target.routes] == ["XRAM", "XRAM", "DTCM", "DTCM"]


def test_a_core_has_one_rate_with_a_memory_by_whichever_route() -> None:
    target = targets.load("aic100-std")
    rates = [target.core_rate(route) for route in target.routes]
    assert [rate.value for rate in rates if rate is not None] == [32e9, 32e9, 97.5e9, 97.5e9]
    assert all(targets.load("torq-sl2610").core_rate(route) is None for route in targets.load("torq-sl2610").routes)


@pytest.mark.parametrize("name", [name for name in targets.catalogue() if targets.load(name).calibration])
def test_what_a_fitted_target_was_before_is_no_fit(name: str) -> None:
    sheet = targets.data_sheet(name)
    assert sheet.calibration is None
    before = dict(targets.figures(sheet))
    for key, figure in targets.figures(targets.load(name)):
        if figure.source not in ("fit", "llm-fit"):
            assert before[key].value == figure.value, key
        assert key not in before or before[key].source != "fit"


def test_a_special_family_has_the_rate_of_its_general_one_where_a_target_tells_them_not_apart() -> None:
    table = {"transposition": {"*": Figure(0.5, "s")}, "transcendental": {"*": Figure(0.1, "s")}}
    engine = Engine("e", ("*",), True, vector_bytes_per_cycle=Figure(64, "s"), reached=table)
    for family in (WorkFamily.ROW_TRANSPOSITION, WorkFamily.ERROR_FUNCTION):
        assert engine.rate_of(family, DType.I8) == engine.rate_of(family.general, DType.I8) is not None
        apart = replace(engine, reached={**table, family.value: {"*": Figure(0.9, "s")}})
        rate = apart.rate_of(family, DType.I8)
        assert rate is not None
        assert rate[1].value == 0.9


def test_a_file_of_the_catalogue_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages of one command ask for the same target."""
    first = targets.load("aic100-std")
    monkeypatch.setattr(targets, "_bytes_of", lambda path: pytest.fail(f"{path} is read again"))
    assert targets.load("aic100-std") is first
    assert find("aic100-std").target is first
