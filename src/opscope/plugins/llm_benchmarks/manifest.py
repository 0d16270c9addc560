"""What benchmarks of language models write: vLLM, AIPerf and GenAI-Perf, efficient-transformers, llama-bench."""

from __future__ import annotations

from ...core.manifest import Format, Hint, Manifest, Signature

_LLAMA_KEYS = (b'"build_commit"', b'"n_prompt"', b'"n_gen"', b'"avg_ts"')

MANIFEST = Manifest(
    name="llm_benchmarks",
    title="Benchmarks of language models",
    package=__package__,
    order=60,
    formats=(
        Format(
            "vllm-serve",
            "vLLM `bench serve` result (JSON), and SGLang's bench_serving",
            (Signature(rb"\s*\{", contains=(b'_ttft_ms"', b'"output_throughput"')),),
            ".vllm:VllmServe",
        ),
        Format(
            "vllm-latency",
            "vLLM `bench latency` result (JSON)",
            (Signature(rb"\s*\{", contains=(b'"avg_latency"', b'"latencies"', b'"percentiles"')),),
            ".vllm:VllmLatency",
        ),
        Format(
            "vllm-throughput",
            "vLLM `bench throughput` result (JSON)",
            (Signature(rb"\s*\{", contains=(b'"requests_per_second"', b'"tokens_per_second"', b'"num_requests"')),),
            ".vllm:VllmThroughput",
        ),
        Format(
            "aiperf",
            "AIPerf and GenAI-Perf export (profile_export_aiperf.json, …_genai_perf.json)",
            (Signature(rb"\s*\{", contains=(b'"request_latency"', b'"avg"', b'"unit"', b'"input_config"')),),
            ".aiperf:AiPerf",
        ),
        Format(
            "efficient-transformers",
            "efficient-transformers: what a run on the card prints",
            (Signature(finds=(rb"Prefill time a\.k\.a TTFT",)),),
            ".efficient_transformers:EfficientTransformers",
        ),
        Format(
            "llama-bench",
            "llama-bench results (-o json, jsonl, csv)",
            (
                Signature(rb"\s*[\[{]", contains=_LLAMA_KEYS),
                Signature(rb"build_commit,build_number,", finds=(rb"\An?[^\n]*,avg_ts",)),
            ),
            ".llama_bench:LlamaBench",
        ),
    ),
    hints=(
        Hint(
            (Signature(rb"\s*\{", contains=(b'"metadata"', b'"request_start_ns"', b'"benchmark_phase"')),),
            "records of single requests of AIPerf",
            "its profile_export_aiperf.json, which has the totals",
        ),
    ),
)
