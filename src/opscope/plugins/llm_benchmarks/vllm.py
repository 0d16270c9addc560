"""vLLM `bench serve`, `bench latency`, `bench throughput` (https://docs.vllm.ai/en/latest/cli/bench/serve.html)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from ...importers.reading import to_ns
from ...recording.language_model import Ranged, inverse
from ...recording.recording import LATENCY, Metric, Recording
from .benchmark import SERVED, Fields, measured_point, number, read_fields, recording, whole, word

TOOL = "vLLM bench"


class VllmServe:
    """Requests to a server: percentiles of the time to the first token and from token to token."""

    name = "vllm-serve"

    def read(self, path: Path) -> Recording:
        """One point: the mean prompt, and a cache that is half way through the mean answer."""
        fields = read_fields(path)
        done = whole(fields, "completed") or whole(fields, "num_prompts")
        prompt, answer = (_each(fields, name, done) for name in ("total_input_tokens", "total_output_tokens"))
        batch = whole(fields, "max_concurrency")
        tpot = _percentiles(fields, "tpot") or _percentiles(fields, "itl")
        notes = [SERVED, *_notes(fields, batch, done)]
        users = None if batch is None or tpot is None else inverse(tpot, 1e3 * batch)
        point = measured_point(
            batch=batch,
            prompt=prompt,
            context=None if prompt is None or answer is None else prompt + answer // 2,
            ttft_ms=_percentiles(fields, "ttft"),
            tpot_ms=tpot,
            decode_tokens_per_s=users,
        )
        return recording(
            path,
            self.name,
            TOOL,
            model=word(fields, "model_id", "model"),
            points=(point,) if point.ttft_ms or point.tpot_ms else (),
            metrics=(
                Metric("requests per second", number(fields, "request_throughput"), "1/s"),
                Metric("output tokens per second", number(fields, "output_throughput"), "1/s", note="of the whole run"),
                Metric("tokens per second", number(fields, "total_token_throughput", "total_throughput"), "1/s"),
                Metric("requests", done, "1"),
                Metric("duration", _scaled(number(fields, "duration"), 1e9), "ns"),
                Metric("request latency", _scaled(number(fields, "median_e2el_ms", "mean_e2el_ms"), 1e6), "ns"),
            ),
            notes=tuple(notes),
            fields=fields,
        )


def _each(fields: Fields, name: str, count: int | None) -> int | None:
    total = number(fields, name)
    return None if total is None or not count else max(round(total / count), 1)


def _percentiles(fields: Fields, what: str) -> Ranged | None:
    """The median, or the mean; the high end is the 99th percentile where that is told."""
    value = number(fields, f"median_{what}_ms", f"mean_{what}_ms")
    return Ranged(value, None, number(fields, f"p99_{what}_ms")) if value else None


def _notes(fields: Fields, batch: int | None, done: int | None) -> Iterator[str]:
    yield "prompt and answer are means of the requests; the context is the prompt and half of the answer"
    if batch is None:
        yield "the file has no max_concurrency: how many users were served at once is not known"
    failed = whole(fields, "failed") or (whole(fields, "num_prompts") or 0) - (done or 0)
    if failed > 0:
        yield f"{failed} requests failed, and are in no figure"


class VllmLatency:
    """One batch again and again: the file has times of whole answers, and no lengths."""

    name = "vllm-latency"

    def read(self, path: Path) -> Recording:
        """Samples of the latency; first and next token cannot be told apart."""
        fields = read_fields(path)
        listed = fields.get("latencies")
        seconds = [value for value in listed if isinstance(value, int | float)] if isinstance(listed, list) else []
        samples = tuple(ns for value in seconds if (ns := to_ns(float(value), 1e9)) is not None)
        typical = round(median(samples)) if samples else _scaled(number(fields, "avg_latency"), 1e9)
        return recording(
            path,
            self.name,
            TOOL,
            model=word(fields, "model", "model_id"),
            points=(),
            metrics=(Metric(LATENCY, typical, "ns", note="of a whole batch with its answers"),),
            notes=("the file does not say how long prompts and answers were: there are no times of tokens",),
            fields={name: value for name, value in fields.items() if name != "latencies"},
            samples_ns=samples,
        )


class VllmThroughput:
    """Many requests at once, without a server."""

    name = "vllm-throughput"

    def read(self, path: Path) -> Recording:
        """Rates of the whole run."""
        fields = read_fields(path)
        return recording(
            path,
            self.name,
            TOOL,
            model=word(fields, "model", "model_id"),
            points=(),
            metrics=(
                Metric("tokens per second", number(fields, "tokens_per_second"), "1/s", note="prompts and answers"),
                Metric("requests per second", number(fields, "requests_per_second"), "1/s"),
                Metric("requests", number(fields, "num_requests"), "1"),
                Metric("tokens", number(fields, "total_num_tokens"), "1", note="prompts and answers"),
                Metric("duration", _scaled(number(fields, "elapsed_time"), 1e9), "ns"),
            ),
            notes=("the file does not tell prompts from answers: there are no times of tokens",),
            fields=fields,
        )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
