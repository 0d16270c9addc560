"""`opscope llm`: a language model on a target, from its description alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from ..core.files import sha256_of
from ..machine import catalogue as targets
from ..machine.target import Target
from ..options import LlmOptions, chosen
from ..recording.language_model import LanguageModel, LargestFit
from ..recording.recording import Value
from ..workflows.record import Recorded, analysed
from .architecture import Architecture, Mixture
from .built_in import BUILT_IN, BuiltIn
from .config import FILE, load
from .decoder import Routing
from .decoder_graph import Storage
from .decoder_parts import expected_experts
from .memory import Deployment, Parallel
from .point import Point
from .points import PIPELINE, Estimator, Serving, find_points
from .record import step_recording, token_point
from .step_ops import ops_of

_MOST_FIGURES = 3  # that a note names


def llm(
    config: str | Path,
    target: str | Path | Target,
    options: LlmOptions | None = None,
    *,
    run: str | Path | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **named: object,
) -> Recorded:
    """Estimate a language model on a target, for every batch, prompt and context in the options.

    `config` is a Hugging Face config.json, a folder with one, or a built-in name (`known_models`). Options are
    LlmOptions, or its fields by name, as `weights="mxfp6", batch=(1, 8)`. `language_model_of` gives the points of the
    result. `run` is the folder of a run to write, with a timeline of the first point.

    Example:
        >>> found = opscope.llm("llama-3.1-8b", "aic100-ultra", devices=4, weights="mxfp6", batch=(1, 8))
    """
    choice = chosen(LlmOptions, options, named)
    machine = target if isinstance(target, Target) else targets.load(str(target))
    model, storage = load(config), Storage.of(choice.weights, choice.kv)
    serving = Serving(storage, choice.devices, choice.parallel, choice.chunk, choice.simulate)
    points = find_points(model, machine, serving, choice.points, progress=progress or (lambda done, of: None))
    steps = Estimator(model, machine, serving)
    found = LanguageModel(
        model=model.name,
        target=machine.name,
        devices=choice.devices,
        cards=ceil(choice.devices / machine.topology.devices.value),
        weights=choice.weights,
        kv=choice.kv,
        parallel=choice.parallel,
        points=tuple(map(token_point, points)),
        largest=tuple(_largest(steps, choice)),
        notes=tuple(_notes(model, steps, points)),
    )
    path = _file_of(config)
    recording = step_recording(
        found,
        points[0],
        ops_of(steps, points[0]),
        model,
        steps.target,
        path=str(config),
        options=_options(choice),
    )
    return analysed(
        recording,
        None if run is None else Path(run),
        command=tuple(command),
        created=created or datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=None if path is None else sha256_of(path),
    )


def language_model_of(found: Recorded) -> LanguageModel:
    """What `llm` found at every point."""
    told = found.run.summary.language_model
    if told is None:
        raise ValueError("the run tells nothing of a language model")
    return told


def known_models() -> tuple[BuiltIn, ...]:
    """Models that need no file."""
    return tuple(BUILT_IN.values())


def _file_of(config: str | Path) -> Path | None:
    path = Path(config)
    path = path / FILE if path.is_dir() else path
    return path if path.is_file() else None


def _options(choice: LlmOptions) -> Mapping[str, Value]:
    more: dict[str, Value] = {"parallel": choice.parallel} if choice.devices > 1 else {}
    more |= {} if choice.chunk is None else {"chunk": choice.chunk}
    more |= {"simulate": True} if choice.simulate else {}
    return {"weights": choice.weights, "kv": choice.kv, "devices": choice.devices, **more}


def _largest(steps: Estimator, choice: LlmOptions) -> Iterator[LargestFit]:
    """Of every batch the longest context, and of every context the largest batch, while the longest prompt is read."""
    parallel = Parallel.PIPELINE if choice.parallel == PIPELINE else Parallel.TENSOR
    held = Deployment(steps.model, steps.held, steps.target, choice.devices, parallel)
    prompt = min(max(choice.prompt), steps.chunk or max(choice.prompt))
    contexts = sorted({context for _, _, context in choice.points})
    pairs: list[tuple[int | None, int | None]] = [
        (batch, held.largest_context(batch, prompt=prompt)) for batch in choice.batch
    ]
    pairs += [(held.largest_batch(context, prompt=prompt), context) for context in contexts]
    found = dict.fromkeys(LargestFit(batch, context) for batch, context in pairs if batch and context)
    return (one for one in found if not any(_holds(other, one) for other in found))


def _holds(other: LargestFit, one: LargestFit) -> bool:
    """Whether what fits besides says more."""
    return other != one and other.batch >= one.batch and other.context >= one.context


def _said_of_experts(model: Architecture, batches: Sequence[int]) -> Iterator[str]:
    """How many experts steps of decode read: none is favoured, and the range says what it would be if some were."""
    part = next((layer.feed_forward for layer in model.repeats if isinstance(layer.feed_forward, Mixture)), None)
    if part is None:
        return
    yield f"each token goes to {part.active} of {part.experts} experts, and none is favoured"
    for batch in batches:
        if batch > 1:
            even, alike, apart = (expected_experts(part, batch, each) for each in Routing)
            yield (
                f"batch {batch:,}: a layer reads {even:.1f} experts, {alike:.1f} where tokens choose among half of "
                f"them, {apart:.0f} where no two share one; ranges hold both"
            )


def _own_figures(target: Target) -> Iterator[str]:
    """Why a file of the same decoder takes another time: figures that the target has for language models alone."""
    own = {} if target.language_models is None else target.language_models.figures
    if own:
        first = [f"{key} {figure.value:.4g}" for key, figure in list(own.items())[:_MOST_FIGURES]]
        more = [f"{len(own) - len(first)} more"] if len(own) > len(first) else []
        words = ", ".join(first + more)
        yield f"figures for language models alone, which report and profile of a file do not use: {words}"


def _notes(model: Architecture, steps: Estimator, points: Sequence[Point]) -> Iterator[str]:
    """What was taken for granted."""
    yield "the host, its queue and the network are not in these times"
    if steps.serving.simulate:
        yield "blocks have simulated times; within a block, ops share its time as formulas have it"
    if steps.machine.devices > round(steps.target.topology.devices.value):
        yield "devices of several cards reach each other as those of one do"
    if steps.chunk is not None:
        yield f"a prompt is read in chunks of {steps.chunk:,} tokens"
    yield from _own_figures(steps.target)
    yield from _said_of_experts(model, sorted({point.batch for point in points}))
    if any(point.ttft_ms is None or point.tpot_ms is None for point in points):
        yield "a time that is not known: the target has no figures for an op of the model, or no link between devices"
    if any(point.decode.energy_mj is None for point in points):
        yield "energy per token is not known: the target has no figures for memory, or for idle power"
