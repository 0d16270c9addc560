"""Files of benchmarks of language models. All samples are made by hand, after what is public of each tool's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.core.provenance import Provenance
from opscope.importers.combine import combine
from opscope.importers.formats import find_format, read_profile, read_profiles
from opscope.recording.language_model import Ranged, TokenPoint
from opscope.recording.recording import Recording

SERVE = {  # keys as in benchmark results of vLLM 0.9 (`vllm bench serve --save-result`)
    "date": "20260101-000000",
    "model_id": "org/net",
    "num_prompts": 64,
    "request_rate": "inf",
    "max_concurrency": 8,
    "duration": 40.0,
    "completed": 63,
    "total_input_tokens": 64512,
    "total_output_tokens": 8064,
    "request_throughput": 1.575,
    "output_throughput": 201.6,
    "total_token_throughput": 1814.4,
    "mean_ttft_ms": 310.0,
    "median_ttft_ms": 300.0,
    "p99_ttft_ms": 390.0,
    "mean_tpot_ms": 42.0,
    "median_tpot_ms": 40.0,
    "p99_tpot_ms": 50.0,
    "input_lens": [1024, 1024],
}
AIPERF = {  # keys as in profile_export_aiperf.json
    "request_throughput": {"unit": "requests/sec", "avg": 1.5},
    "request_latency": {"unit": "ms", "avg": 4100.0, "p50": 4090.0},
    "time_to_first_token": {"unit": "s", "avg": 0.31, "p1": 0.28, "p50": 0.3, "p99": 0.38},
    "inter_token_latency": {"unit": "ms", "avg": 36.0, "p1": 32.0, "p50": 40.0, "p99": 50.0},
    "output_sequence_length": {"unit": "tokens", "avg": 128.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "error_summary": [{"error_details": {"code": 500}, "count": 3}],
    "input_config": {"endpoint": {"model_names": ["org/net"]}, "loadgen": {"concurrency": 8}},
}
EFFICIENT = """\
python -m QEfficient.cloud.infer --model_name org/net --batch_size 4 --prompt_len 128 --ctx_len 1024 --mxfp6
Prompt : hello
Average Prefill time a.k.a TTFT is= 0.05 sec
Decode is= 80.0 tokens/sec
Total is= 76.1 tokens/sec
Total (E2E) inference time is= 12.4 sec
"""
LLAMA = {  # keys as in tools/llama-bench/README.md
    "build_commit": "8cf427ff",
    "build_number": 5163,
    "gpu_info": "a GPU",
    "model_filename": "net.gguf",
    "model_type": "llama 8B Q4_0",
    "model_size": 4_677_120_000,
    "type_k": "f16",
    "type_v": "f16",
    "n_prompt": 512,
    "n_gen": 0,
    "n_depth": 0,
    "avg_ts": 5120.0,
    "stddev_ts": 10.0,
    "samples_ts": [5000.0, 5240.0],
}


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def point_of(recording: Recording) -> TokenPoint:
    assert recording.language_model is not None
    assert recording.provenance is Provenance.MEASURED
    return recording.language_model.points[0]


def test_vllm_serve_gives_medians_at_the_mean_prompt(tmp_path: Path) -> None:
    found = read_profile(write(tmp_path / "r.json", SERVE))
    point = point_of(found)
    assert (point.batch, point.prompt, point.context) == (8, 1024, 1088)
    assert (point.ttft_ms, point.tpot_ms) == (Ranged(300.0, None, 390.0), Ranged(40.0, None, 50.0))
    assert point.decode_tokens_per_s == Ranged(200.0, 160.0, None)
    assert point.weight_bytes is None
    assert found.value("output tokens per second") == 201.6
    assert found.details["benchmark"]["request_rate"] == "inf"  # type: ignore[index]
    assert "1 requests failed, and are in no figure" in found.notes
    assert "lists that are not kept: input_lens" in found.notes


def test_without_a_concurrency_the_batch_is_not_known(tmp_path: Path) -> None:
    found = read_profile(write(tmp_path / "r.json", {**SERVE, "max_concurrency": None}))
    assert point_of(found).batch is None
    assert point_of(found).decode_tokens_per_s is None
    assert any("max_concurrency" in note for note in found.notes)


def test_vllm_latency_has_samples_and_no_tokens(tmp_path: Path) -> None:
    file = {"avg_latency": 2.5, "latencies": [2.4, 2.5, 2.6], "percentiles": {"99": 2.6}}
    found = read_profile(write(tmp_path / "r.json", file))
    assert (found.language_model, found.latency_ns) == (None, 2_500_000_000)
    assert found.samples_ns == (2_400_000_000, 2_500_000_000, 2_600_000_000)


def test_vllm_throughput_has_rates_alone(tmp_path: Path) -> None:
    file = {"elapsed_time": 10.0, "num_requests": 100, "requests_per_second": 10.0, "tokens_per_second": 2560.0}
    found = read_profile(write(tmp_path / "r.json", file))
    assert (found.language_model, found.value("tokens per second")) == (None, 2560.0)


def test_aiperf_gives_percentiles_in_its_own_units(tmp_path: Path) -> None:
    found = read_profile(write(tmp_path / "profile_export_aiperf.json", AIPERF))
    point = point_of(found)
    assert (point.batch, point.prompt, point.context) == (8, 1024, 1088)
    assert point.ttft_ms == Ranged(300.0, 280.0, 380.0)
    assert point.tpot_ms == Ranged(40.0, 32.0, 50.0)
    assert found.network == "org/net"
    assert "3 requests failed, and are in no figure" in found.notes


def test_efficient_transformers_prints_two_decimals_and_no_more(tmp_path: Path) -> None:
    found = read_profile(write(tmp_path / "log.txt", EFFICIENT))
    point = point_of(found)
    assert (found.network, point.batch, point.prompt, point.context) == ("org/net", 4, 128, 1024)
    assert point.ttft_ms == Ranged(50.0, pytest.approx(45.0), pytest.approx(55.0))
    assert point.decode_tokens_per_s == Ranged(80.0, 79.995, 80.005)
    assert point.tpot_ms is not None
    assert point.tpot_ms.value == 50.0


@pytest.mark.parametrize(
    ("prefill", "decode"),
    [
        ("Prefill time a.k.a TTFT is= 0.25", "Decode token/sec is= 71.2"),
        ("Prefill time a.k.a TTFT (batch) is : 0.25 s", "Decode (batch): 71.2 tok/s"),
        ("Prefill time a.k.a TTFT is= 0.25 s", "Decode: 71.2 tok/s"),
    ],
)
def test_earlier_words_of_efficient_transformers_are_read_too(tmp_path: Path, prefill: str, decode: str) -> None:
    point = point_of(read_profile(write(tmp_path / "log.txt", f"{prefill}\n{decode}\n")))
    assert point.ttft_ms is not None
    assert point.decode_tokens_per_s is not None
    assert (point.ttft_ms.value, point.decode_tokens_per_s.value) == (250.0, 71.2)
    assert (point.batch, point.tpot_ms) == (None, None)


def test_a_time_that_rounds_to_nothing_is_not_known(tmp_path: Path) -> None:
    text = EFFICIENT.replace("0.05 sec", "0.0 sec")
    found = read_profile(write(tmp_path / "log.txt", text))
    assert point_of(found).ttft_ms is None
    assert any("below 5 ms" in note for note in found.notes)


def llama_rows() -> list[dict[str, object]]:
    return [
        LLAMA,
        {**LLAMA, "n_prompt": 0, "n_gen": 128, "n_depth": 1024, "avg_ts": 100.0, "samples_ts": []},
        {**LLAMA, "n_prompt": 512, "n_gen": 128, "avg_ts": 900.0},
    ]


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_llama_bench_is_one_point_for_each_phase(tmp_path: Path, form: str) -> None:
    rows = llama_rows()
    columns = [name for name in LLAMA if name != "samples_ts"]
    text = {
        "json": json.dumps(rows),
        "jsonl": "\n".join(json.dumps(row) for row in rows),
        "csv": "\n".join([",".join(columns), *(",".join(f'"{row[name]}"' for name in columns) for row in rows)]),
    }[form]
    found = read_profile(write(tmp_path / f"b.{form}", text))
    assert found.language_model is not None
    first, second = found.language_model.points
    assert first.ttft_ms is not None
    assert (first.batch, first.prompt, first.ttft_ms.value) == (1, 512, 100.0)
    assert first.prefill_tokens_per_s == (
        Ranged(5120.0, 5110.0, 5130.0) if form == "csv" else Ranged(5120.0, 5000.0, 5240.0)
    )
    assert (second.context, second.tpot_ms) == (1088, Ranged(10.0, 1000 / 110, 1000 / 90))
    assert (found.language_model.weights, found.language_model.kv, first.weight_bytes) == ("w4", "f16", 4_677_120_000)
    assert found.value("tokens per second, 512 read and 128 made") == 900.0


def test_a_test_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    rows = [*llama_rows(), {**LLAMA, "avg_ts": "fast"}, 7]
    found = read_profile(write(tmp_path / "b.json", rows))
    assert any(note.startswith("2 tests could not be read") for note in found.notes)


def test_files_of_one_benchmark_are_points_of_one_run(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{users}.json", {**SERVE, "max_concurrency": users, "median_tpot_ms": 30.0 + users})
        for users in (1, 8)
    ]
    whole = combine(read_profiles(paths))
    assert whole.language_model is not None
    assert [point.batch for point in whole.language_model.points] == [1, 8]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("r.json", {**dict.fromkeys(SERVE), "mean_ttft_ms": -1, "output_throughput": None}, "no times and no rates"),
        ("r.json", '{"mean_ttft_ms": 1, "output_throughput": 2', "cut short"),
        ("log.txt", "Prefill time a.k.a TTFT\n", "no figures"),
        ("b.json", [{**LLAMA, "avg_ts": None}], "no tests"),
        ("b.json", [LLAMA, {**LLAMA, "model_type": "other"}], "several models"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, name: str, content: object, problem: str) -> None:
    with pytest.raises(ImportFileError, match=problem):
        read_profile(write(tmp_path / name, content))


def test_records_of_single_requests_are_known_and_refused(tmp_path: Path) -> None:
    record = {"metadata": {"request_start_ns": 1, "benchmark_phase": "profiling"}, "metrics": {}}
    with pytest.raises(ImportFileError, match=r"profile_export_aiperf\.json"):
        find_format(write(tmp_path / "profile_export.jsonl", record))
