"""Rows of language models: what columns mean, what was measured, and what is wrong with a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import api
from opscope.calibration.calibrate import judged
from opscope.calibration.measurements import Steps
from opscope.calibration.write import Writer
from opscope.core.errors import ImportFileError, UsageError
from opscope.language_models.measured_rows import read_rows
from opscope.machine import catalogue

HEADER = "model,precision,chip,context,decode_tok_s"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def told(path: Path) -> list[tuple[str, str, tuple[int, ...], float, str | None]]:
    """Network, phase, point, milliseconds and precision of every row."""
    found = []
    for row in read_rows([path]):
        assert isinstance(row.model, Steps)
        found.append((row.network, row.phase, row.model.point, round(row.seconds * 1e3, 3), row.precision))
    return found


def test_a_rate_and_a_context_are_a_token(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "qwen3_0_6b,w4a16,qcs8275,1024,50")
    assert told(path) == [("qwen3-0.6b", "decode", (1, 1, 1024), 20.0, "w4a16")]


def test_names_and_precisions_are_read_however_they_are_written(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "model,size,dtype,chipset,seqlen,ttft_ms,tokens_per_s",
        "Qwen2,0.5B,w4a16_g128,acme-RK3576,128,361.78,30.33",
        "Llama_v3_2,1B,q4_0,other,128,10,100",
    )
    rows = told(path)
    assert rows[:2] == [
        ("qwen2-0.5b", "decode", (1, 1, 128), 32.971, "w4a16"),
        ("qwen2-0.5b", "prefill", (1, 128, 128), 361.78, "w4a16"),
    ]
    assert rows[2] == ("llama-3.2-1b", "decode", (1, 1, 128), 10.0, "w4")
    assert [row.chip for row in read_rows([path])[::2]] == ["rk3576", "other"]


def test_a_rate_and_a_time_tell_how_long_the_prompt_was(tmp_path: Path) -> None:
    """Few tokens were alone in the smallest context there is; else a rate is of prompts as long as the context."""
    path = write(
        tmp_path,
        "model,precision,context_length,prefill_tok_s,decode_tok_s,ttft_min_ms",
        "qwen3_0_6b,w4a16,4096,900,77,40",
        "qwen3_0_6b,w4a16,512,4000,62,32",
    )
    assert told(path) == [
        ("qwen3-0.6b", "decode", (1, 1, 512), 12.987, "w4a16"),
        ("qwen3-0.6b", "prefill", (1, 36, 512), 40.0, "w4a16"),
        ("qwen3-0.6b", "decode", (1, 1, 512), 16.129, "w4a16"),
        ("qwen3-0.6b", "prefill", (1, 512, 512), 128.0, "w4a16"),
    ]


def test_a_config_in_the_folder_of_models_is_found(tmp_path: Path) -> None:
    sizes = '"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128'
    text = f'{{"model_type": "llama", {sizes}, "vocab_size": 100, "max_position_embeddings": 256}}'
    (tmp_path / "mine.json").write_text(text, encoding="utf-8")
    row = read_rows([write(tmp_path, HEADER, "mine,f16,,128,50")])[0]
    assert isinstance(row.model, Steps)
    assert len(row.model.graphs(catalogue.load("rk3588"))) == 1


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("qwen3_0_6b,w4a16,x,1024,fast", r"line 2: decode_tok_s is 'fast'; expected a number above 0"),
        ("qwen3_0_6b,w4a16,x,-1,50", r"line 2: context is '-1'; expected a number above 0"),
        ("qwen3_0_6b,w4a16,x,1.5,50", r"line 2: context is 1.5; expected a whole number"),
        ("qwen3_0_6b,w3a5,x,1024,50", r"line 2: precision is 'w3a5': .*expected one of"),
        ("qwen3_0_6b,w4a16,x,1024,", r"line 2: says nothing; expected decode_tok_s and a context"),
    ],
)
def test_a_row_with_a_mistake_is_refused_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(ImportFileError, match=problem):
        read_rows([write(tmp_path, HEADER, row)])


@pytest.mark.parametrize("damage", [b"\xff\xfe", b'"' + b"x" * 200_000])
def test_text_that_is_no_csv_is_refused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER.encode() + b"\n" + damage + b",w4a16,x,64,50\n")
    with pytest.raises(ImportFileError, match=r"rows\.csv: "):
        read_rows([path])


def test_a_name_that_no_file_can_have_is_a_model_that_is_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "x" * 5000 + ",w4a16,x,64,50")
    row = read_rows([path])[0]
    assert isinstance(row.model, Steps)
    with pytest.raises(UsageError, match="neither built in nor in"):
        row.model.graphs(catalogue.load("rk3588"))


def test_kinds_of_rows_are_not_mixed(tmp_path: Path) -> None:
    other = tmp_path / "networks.csv"
    other.write_text("model,latency_ms\nnet,1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has rows of language models, others have networks"):
        read_rows([write(tmp_path, HEADER, "qwen3_0_6b,w4a16,x,64,50"), other])


def test_a_fit_finds_the_figures_that_rows_were_made_with(tmp_path: Path) -> None:
    """Rows of a machine that is slower than the target says, and bound by memory: the bandwidth is what gives."""
    names = ("qwen3-0.6b", "llama-3.2-1b", "qwen3-4b", "qwen2-1.5b", "unheard-of")
    lines = [f"{name},w8a8,rk3588,{context},10" for name in names for context in (128, 1024)]
    rows = read_rows([write(tmp_path, HEADER, *lines)])
    base = catalogue.for_language_models(catalogue.load("rk3588"))
    predicted, skipped = api.validate("rk3588", [tmp_path / "rows.csv"])
    assert len(skipped) == 2
    assert "neither built in nor in" in skipped[0]
    assert base.calibration is not None
    slower = [
        f"{row.measurement.network},w8a8,rk3588,{row.measurement.model.point[2]},{0.92 / row.fitted}"
        for row in predicted
        if isinstance(row.measurement.model, Steps)
    ]
    assert len(rows) == len(slower) + 2
    path = write(tmp_path, HEADER, *slower)
    found = api.calibrate("rk3588", [path])
    assert judged(found.predictions).median_error < 0.05
    key = "memories[0].bytes_per_second"
    before = dict(catalogue.figures(base))[key].value
    assert found.figures[0][key].value == pytest.approx(0.92 * before, rel=0.04)
    Writer(found, "rk3588", "rows.csv").target(tmp_path / "mine.toml")
    mine = catalogue.read(tmp_path / "mine.toml")
    assert mine.language_models is not None
    assert mine.language_models.calibration is not None
    assert mine.calibration == catalogue.load("rk3588").calibration  # of other networks: as it was
    errors = [row.error for row in api.validate(mine, [path])[0]]
    assert max(map(abs, errors)) < 0.04
