"""Target files that extend another: what they inherit, what they replace, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.machine import catalogue as targets
from opscope.machine.target import Target

BASE = """\
schema = "opscope.target/1"
name = "base"
title = "A chip"

[sources]
sheet = "data sheet"
clock = "a measurement"

[clocks]
core_hz = { value = 1e6, low = 0.5e6, high = 2e6, source = "clock" }

[topology]
devices = { value = 1, source = "sheet" }
cores = { value = 2, source = "sheet" }

[[engines]]
name = "npu"
accelerator = true
ops = ["conv", "matmul"]
macs_per_cycle = { i8 = { value = 8, source = "sheet" }, f16 = { value = 4, source = "sheet" } }

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
HEAD = 'schema = "opscope.target/1"\nname = "child"\nextends = "base.toml"\n'


def child(folder: Path, text: str, *, head: str = HEAD) -> Target:
    (folder / "base.toml").write_text(BASE)
    (folder / "child.toml").write_text(head + text)
    return targets.load(str(folder / "child.toml"))


def test_what_is_not_said_is_inherited(tmp_path: Path) -> None:
    made = child(tmp_path, '[topology]\ncores = { value = 4, source = "sheet" }\n')
    base = targets.load(str(tmp_path / "base.toml"))
    assert (made.name, made.title, made.topology.cores.value) == ("child", "A chip", 4)
    assert made.topology.devices == base.topology.devices
    assert (made.engines, made.memories, made.clocks) == (base.engines, base.memories, base.clocks)


def test_rows_merge_by_name_and_new_ones_come_last(tmp_path: Path) -> None:
    rows = """\
[[engines]]
name = "dsp"
accelerator = true
ops = ["*"]
[[engines]]
name = "cpu"
ops = ["add"]
macs_per_cycle = { i8 = { value = 2, source = "sheet" } }
"""
    npu, cpu, dsp = child(tmp_path, rows).engines
    assert (npu.name, cpu.name, dsp.name) == ("npu", "cpu", "dsp")
    assert cpu.ops == ("add",)  # a list of words is replaced whole
    assert {key: figure.value for key, figure in cpu.macs_per_cycle.items()} == {"*": 1, "i8": 2}
    assert cpu.accelerator is False


def test_a_figure_is_replaced_whole_and_an_unused_source_is_dropped(tmp_path: Path) -> None:
    made = child(tmp_path, '[sources]\nnew = "here"\n[clocks]\ncore_hz = { value = 3e6, source = "new" }\n')
    assert (made.clocks.core_hz.value, made.clocks.core_hz.low) == (3e6, None)
    assert dict(made.sources) == {"sheet": "data sheet", "new": "here"}


def test_a_changed_base_is_seen(tmp_path: Path) -> None:
    child(tmp_path, "")
    (tmp_path / "base.toml").write_text(BASE.replace('title = "A chip"', 'title = "Another"'))
    assert targets.load(str(tmp_path / "child.toml")).title == "Another"


@pytest.mark.parametrize(
    ("head", "text", "message"),
    [
        (HEAD.replace("base.toml", "gone.toml"), "", "child.toml: key extends: 'gone.toml': no such file; expected a"),
        (
            HEAD.replace("base.toml", "aic100-st"),
            "",
            "child.toml: key extends: 'aic100-st': no such target; did you mean aic100-std? known: ",
        ),
        (HEAD.replace('"base.toml"', "3"), "", "child.toml: key extends: found 3; expected the name of a target"),
        (HEAD.replace("base.toml", "child.toml"), "", "child.toml: key extends: child.toml → child.toml; expected at"),
        (HEAD.replace('name = "child"\n', ""), "", "child.toml: key name: is missing; expected a name"),
        (HEAD, "[zzz]\n", "child.toml: key zzz: is not a key of the schema; expected one of schema, name"),
        (HEAD, '[topology]\ncores = { value = 0, source = "sheet" }\n', "child.toml: key topology.cores: found 0; exp"),
        (HEAD, '[topology]\ncores = { value = 1, source = "x" }\n', "key topology.cores.source: 'x' is not a key of"),
        (HEAD, '[[engines]]\nname = "cpu"\n[[engines]]\nname = "cpu"\nops = ["*"]\naccelerator = true\n', "is taken"),
    ],
)
def test_a_bad_extension_is_refused_with_its_file_and_key(tmp_path: Path, head: str, text: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        child(tmp_path, text, head=head)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_circle_of_two_is_named(tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        text = HEAD.replace("base.toml", f"{other}.toml").replace("child", name)
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(TargetError, match=r"one\.toml: key extends: one\.toml → two\.toml → one\.toml; expected"):
        targets.load(str(tmp_path / "one.toml"))


def test_a_mistake_in_the_base_names_the_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE.replace("[topology]", "[zzz]"))
    (tmp_path / "child.toml").write_text(HEAD)
    with pytest.raises(TargetError, match=r"base\.toml: key zzz: is not a key of the schema"):
        targets.load(str(tmp_path / "child.toml"))
