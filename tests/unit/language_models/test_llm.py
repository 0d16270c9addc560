"""A language model on a target as a run: rows, timeline, gate, and cells of sweeps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.core.errors import UsageError
from opscope.fleet.plan import planned
from opscope.fleet.spec import Spec
from opscope.gate.run_figures import of_run
from opscope.language_models.cell import profile_point
from opscope.language_models.llm import language_model_of, llm
from opscope.options import LlmOptions
from opscope.recording.folder_reader import read_run
from support.recording.analyse_build import check_laws
from support.recording.token_points import CONFIG

TARGET = "aic100-std"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "net" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    return path


def test_a_prompt_goes_with_every_context_that_holds_it() -> None:
    options = LlmOptions(prompt=(128, 1024), context=(512, 1024), batch=(1, 4))
    assert options.points[:3] == ((1, 128, 512), (1, 128, 1024), (1, 1024, 1024))
    assert len(options.points) == 6
    assert LlmOptions().points == ((1, 128, 128), (1, 1024, 1024))


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({"prompt": (0,)}, "prompt 0: out of range"),
        ({"batch": ()}, "batch : out of range"),
        ({"prompt": (10,), "context": (5,)}, "context 5: is shorter than every prompt; expected at least 10"),
        ({"devices": 0}, "devices 0: out of range"),
        ({"parallel": "sideways"}, "parallel 'sideways': not known"),
        ({"prompt": range(1, 5000)}, "4,999 points; expected at most 4,096"),
    ],
)
def test_points_that_cannot_be_are_refused(named: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        LlmOptions(**named)  # type: ignore[arg-type]


@pytest.mark.parametrize("devices", [1, 4])
def test_a_run_and_its_rows_say_the_same_of_what_binds(config: Path, devices: int) -> None:
    found = llm(config, TARGET, prompt=(128,), context=(512,), devices=devices, created="")
    point = language_model_of(found).points[0]
    assert found.findings.bound in {point.bound_prefill, point.bound_decode}
    assert found.run.info.classified == ()


def test_the_timeline_is_one_prompt_and_one_token_layer_by_layer(config: Path) -> None:
    found = llm(config, TARGET, prompt=(128,), context=(512,), created="")
    run, point = found.run, language_model_of(found).points[0]
    assert point.ttft_ms is not None
    assert point.tpot_ms is not None
    both = (point.ttft_ms.value + point.tpot_ms.value) * 1e6
    assert run.summary.latency.value_ns == pytest.approx(both, abs=2)
    assert int(run.trace.spans["end_ns"].max()) == pytest.approx(both, abs=2)
    product = next(n for n, op in enumerate(run.ops) if op.name.startswith("decode/") and "q_proj" in op.name)
    assert int((run.commands.rows["op"] == product).sum()) == CONFIG["num_hidden_layers"]
    assert not [law for law in check_laws(run) if law.holds is False]


def test_ops_of_a_phase_add_up_to_its_time(config: Path) -> None:
    found = llm(config, TARGET, prompt=(1024,), created="")
    point = language_model_of(found).points[0]
    for phase, told in (("prefill", point.ttft_ms), ("decode", point.tpot_ms)):
        ns = sum(op.wall_ns or 0 for op in found.run.summary.ops if op.name.startswith(f"{phase}/"))
        assert told is not None
        assert ns == pytest.approx(told.value * 1e6, abs=1e3)


def test_ops_on_several_devices_are_those_of_the_step() -> None:
    """Products of many tokens take no less than those of one, and what crosses between devices is an op of its own."""
    found = llm(
        "llama-3.2-1b", "aic100-ultra", devices=4, prompt=(128,), context=(1024,), parallel="tensor", created=""
    )
    ops = {op.name: op.time_ns or 0 for op in found.recording.ops if "MatMul" in op.name and "proj" in op.name}
    prompt = {name: ns for name, ns in ops.items() if name.startswith("prefill/")}
    assert len(prompt) == 7
    assert all(ns >= 0.99 * ops[name.replace("prefill", "decode", 1)] for name, ns in prompt.items())


def test_a_run_keeps_every_point(config: Path, tmp_path: Path) -> None:
    found = llm(config, TARGET, prompt=(128, 256), batch=(1, 2), run=tmp_path / "a.run", created="")
    again = read_run(tmp_path / "a.run")
    assert again.summary.language_model == language_model_of(found)
    assert again.info.options["weights"] == "f16"
    figures = of_run(again, label="")
    assert {"ttft", "ttft:batch=2,prompt=256", "tpot", "weights", "kv_cache"} <= {each.name for each in figures.metrics}
    assert '"language_model"' in (tmp_path / "a.run" / "report.html").read_text()


def test_fewer_bits_are_fewer_bytes(config: Path) -> None:
    plain, packed = (
        language_model_of(llm(config, TARGET, weights=w, kv=k, created=""))
        for w, k in (("f16", "f16"), ("mxfp6", "mxint8"))
    )
    assert (packed.points[0].weight_bytes or 0) < (plain.points[0].weight_bytes or 0)
    assert (packed.points[0].kv_bytes or 0) < (plain.points[0].kv_bytes or 0)
    assert packed.largest[-1].batch > plain.largest[-1].batch


def test_a_cell_of_a_sweep_is_a_point(config: Path) -> None:
    axes = {"backend": ("llm",), "target": (TARGET,), "prompt": (128,), "context": (256,), "batch": (1, 4)}
    cells = planned(Spec((str(config),), Path(), axes))
    assert [(cell.model, cell.backend, cell.options["batch"]) for cell in cells] == [
        ("net", "llm", 1),
        ("net", "llm", 4),
    ]
    found = profile_point(Path(cells[1].path), cells[1].target, cells[1].options, folder=None, created="")
    assert language_model_of(found).points[0].words == "batch=4,prompt=128,context=256"


def test_the_verb_prints_json_and_holds_a_budget(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["llm", str(config.parent), "--target", TARGET, "--prompt", "64", "--json"]
    assert main([*words, "--budget", "ttft=1s,tpot=1ns"]) == 1
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert (data["schema"], data["model"], data["budget"]["verdict"]) == ("opscope.llm/1", "net", "fail")
    assert "ok    budget ttft" in err
    assert "FAIL  budget tpot" in err
    assert main(words) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "llm: no CONFIG; expected"),
        (["CONFIG"], "llm: no --target; expected"),
        (["CONFIG", "--target", TARGET, "--context", "8192"], "context 8192"),
        (["CONFIG", "--target", TARGET, "--budget", "speed=1"], "--budget 'speed=1': not understood"),
        (["no-such-model", "--target", TARGET], "neither a file nor a built-in model"),
    ],
)
def test_wrong_usage_is_one_line(
    config: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["llm", *(str(config) if word == "CONFIG" else word for word in words)]) == 2
    err = capsys.readouterr().err
    assert problem in err
    assert len(err.strip().splitlines()) == 1


def test_built_in_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm", "--list"]) == 0
    assert "llama-3.1-8b" in capsys.readouterr().out


def test_simulated_steps_make_a_run_too(config: Path, tmp_path: Path) -> None:
    llm(config, TARGET, prompt=(64,), simulate=True, run=tmp_path / "s.run", created="")
    assert read_run(tmp_path / "s.run").info.provenance == "simulated"


def test_figures_that_a_profile_of_the_same_decoder_does_not_have_are_told(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "figures for language models alone, which report and profile of a file do not use: "
    assert main(["llm", str(config), "--target", "aic100-pro", "--prompt", "128", "--context", "512"]) == 0
    assert words + "engines[0].weight_bytes_per_cycle 13.3, clocks.core_hz 1.03e+09\n" in capsys.readouterr().out
    assert main(["llm", str(config), "--target", "snapdragon-x-elite", "--prompt", "128", "--context", "512"]) == 0
    assert re.search(r", \d+ more\n", capsys.readouterr().out)
    assert main(["llm", str(config), "--target", "nvidia-h200", "--prompt", "128", "--context", "512"]) == 0
    assert words not in capsys.readouterr().out
