"""AIPerf and GenAI-Perf: statistics of every metric over all requests.

The form is that of docs/tutorials/working-with-profile-exports.md in github.com/ai-dynamo/aiperf; GenAI-Perf wrote it
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...recording.language_model import Ranged, inverse
from ...recording.recording import Metric, Recording
from .benchmark import SERVED, Fields, measured_point, number, part, read_fields, recording, whole

_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}
_CONCURRENCY = (("loadgen",), ("perf_analyzer", "stimulus"), ())  # where versions have it, in `input_config`
_MODELS = (("endpoint", "model_names"), ("model_names",), ("model",))


class AiPerf:
    """Medians with the 1st and 99th percentile, as far as the export has them."""

    name = "aiperf"

    def read(self, path: Path) -> Recording:
        """One point: the mean prompt, and a cache that is half way through the mean answer."""
        fields = read_fields(path)
        config = part(fields, "input_config")
        batch = next((n for keys in _CONCURRENCY if (n := whole(part(config, *keys), "concurrency"))), None)
        prompt, answer = (
            whole(part(fields, name), "avg") for name in ("input_sequence_length", "output_sequence_length")
        )
        ttft, tpot = _time(fields, "time_to_first_token"), _time(fields, "inter_token_latency")
        users = None if batch is None or tpot is None else inverse(tpot, 1e3 * batch)
        point = measured_point(
            batch=batch,
            prompt=prompt,
            context=None if prompt is None or answer is None else prompt + answer // 2,
            ttft_ms=ttft,
            tpot_ms=tpot,
            decode_tokens_per_s=users,
        )
        latency = _time(fields, "request_latency")
        return recording(
            path,
            self.name,
            "AIPerf or GenAI-Perf",
            model=_model(config),
            points=(point,) if ttft or tpot else (),
            metrics=(
                Metric("requests per second", number(part(fields, "request_throughput"), "avg"), "1/s"),
                Metric("output tokens per second", number(part(fields, "output_token_throughput"), "avg"), "1/s"),
                Metric("requests", number(part(fields, "request_count"), "avg"), "1"),
                Metric("request latency", None if latency is None else latency.value * 1e6, "ns"),
            ),
            notes=tuple(_notes(fields, batch, streamed=ttft is not None)),
            fields=fields,
        )


def _time(fields: Fields, name: str) -> Ranged | None:
    """In ms; None: it is not there, or in a unit that is not known."""
    found = part(fields, name)
    factor = _MS.get(str(found.get("unit", "ms")))
    value = number(found, "p50", "avg")
    if not value or factor is None:
        return None
    low, high = number(found, "p1", "min"), number(found, "p99", "max")
    return Ranged(value * factor, None if low is None else low * factor, None if high is None else high * factor)


def _model(config: Fields) -> str:
    for keys in _MODELS:
        found = part(config, *keys[:-1]).get(keys[-1])
        first = found[0] if isinstance(found, list) and found else found
        if isinstance(first, str):
            return first
    return ""


def _notes(fields: Fields, batch: int | None, *, streamed: bool) -> Iterator[str]:
    yield SERVED
    yield "prompt and answer are means of the requests; the context is the prompt and half of the answer"
    if batch is None:
        yield "the export has no concurrency: how many users were served at once is not known"
    if not streamed:
        yield "no time to the first token: answers were not streamed"
    errors = fields.get("error_summary")
    for error in errors if isinstance(errors, list) else ():
        count = whole(error, "count") if isinstance(error, dict) else None
        yield f"{count or 'some'} requests failed, and are in no figure"
    if fields.get("was_cancelled"):
        yield "the benchmark was stopped before its end"
