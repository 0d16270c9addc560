"""`opscope optimize`: a model, a judge → the model rewritten, proven equal and proven faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from ..core.errors import ModelError, UsageError, did_you_mean
from ..core.files import check_apart, sha256_of, write_bytes, write_whole
from ..core.manifest import RewriteEntry, Value
from ..core.provenance import Provenance
from ..graph.graph import Graph
from ..options import OptimizeOptions, Shapes, chosen
from ..readers import model_format, read_model, unpacked
from ..workflows import catalogue, own_backends
from . import catalogue as rewrites
from .editors import FORMATS, editor_of
from .judge import Judge, Judged
from .outcome import Optimized, TrialResult, Tried
from .proof import Prover
from .rewrite import Editor, RewriteContext
from .search import Search, State, words_of
from .steps import RewriteStep, fitting, read_steps, steps_bytes
from .trials import Trials

Tell = Callable[[str], None]
_Found = tuple[State[Any], tuple[Tried, ...], list[str]]  # the result, what else was tried, and notes


def folder_of(output: Path) -> Path:
    """Where trials, steps and runs of a result lie."""
    return output.with_name(f"{output.stem}.optimize")


def optimize(
    model: str | Path,
    output: str | Path,
    target: str | Path | None = None,
    *,
    backend: str | None = None,
    options: Mapping[str, Value] | None = None,
    choice: OptimizeOptions | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    step: Tell | None = None,
    **named: object,
) -> Optimized:
    """Rewrite a model to run faster on a target or backend, with the same outputs.

    `target`, `backend` and `options` are as for `profile`: they time every trial. `choice` are OptimizeOptions, or
    their fields by name: `shapes` of open dimensions are those of trials, and are also set in the result, as many
    rewrites need them. `allow` are kinds of rewrites that are not exact,
    "approximate" and "quantize"; none of them changes outputs by more than `max_error` (noise over signal). Outputs
    are compared for random inputs and for `data`, an .npz or a folder as for `quantize`. No trial starts after
    `budget_minutes`; a later call with the same output continues. With `replay`, the steps of a file are applied
    without a search, and no target is needed.

    Example:
        >>> opscope.optimize("model.onnx", "better.onnx", target="aic100-std", budget_minutes=10)
    """
    path, place = Path(model), Path(output)
    check_apart([place], [path])
    asked = chosen(OptimizeOptions, choice, named)
    steps = None if asked.replay is None else read_steps(asked.replay)
    judge = _judge(path, target, backend, options) if target or backend or steps is None else None
    with unpacked(path) as file, TemporaryDirectory(prefix="opscope-optimize-") as scratch:
        context = RewriteContext(asked.data, Path(scratch) / "whole")
        job = _job(file, path, place, shapes=asked.shapes, context=context, tell=step or (lambda _: None))
        _check_allowed(asked.allow, job.entries)
        prover = Prover(file, job.form, job.graph, Path(scratch), context.data, asked.max_error)
        judge = None if judge is None else replace(judge, shapes=job.shapes)
        budget_s = asked.budget_minutes * 60
        trials = None if judge is None else Trials(judge, folder_of(place), place.name, asked.jobs, budget_s)
        before = None if trials is None else _first(trials, job)
        if steps is None and trials is not None:
            state, tried, notes = _searched(job, trials, prover, asked.allow, before or Judged())
        else:
            state, tried, notes = _replayed(job, steps or (), prover, Path(scratch) / "replay")
        after = _written(job, state, trials, searched=steps is None)
        found = Optimized(
            model=str(path),
            sha256=sha256_of(path),
            output=str(place),
            judge="" if judge is None else judge.told,
            before=before,
            after=after,
            steps=state.steps,
            tried=tried,
            checked_with=prover.samples.calibration.told,
            max_error=asked.max_error,
            trials=0 if trials is None else trials.asked,
            stopped=trials is not None and trials.stopped,
            budget_minutes=asked.budget_minutes,
            notes=(*job.graph.assumptions, *prover.notes, *notes, *_foreign(job.graph, place, job.shapes)),
            folder=str(folder_of(place)),
        )
        return _kept(found, judge, job, command=command, created=created)


@dataclass(frozen=True, slots=True)
class _Job:
    """A model that is being rewritten, and what is known of it."""

    file: Path
    model: Path  # as the user calls it
    output: Path
    form: str  # onnx, tflite
    editor: Editor[Any]
    graph: Graph
    shapes: Shapes  # of inputs, where the user set them
    context: RewriteContext
    tell: Tell

    @property
    def entries(self) -> tuple[RewriteEntry, ...]:
        return rewrites.known(self.form)

    def opened(self, judged: Judged) -> State[Any]:
        return State(self.editor.open_model(self.file, self.shapes), self.file, judged)


def _job(file: Path, model: Path, output: Path, *, shapes: Shapes | None, context: RewriteContext, tell: Tell) -> _Job:
    form = model_format(file).name.lower()
    editor = editor_of(form)
    if output.suffix.lower().removeprefix(".") in set(FORMATS) - {form}:
        raise UsageError(f"{output}: the result is of the model's own format; expected a name that ends in .{form}")
    tell("running the model")
    graph = read_model(file, shapes=shapes)
    inputs = [graph.tensors[number] for number in graph.inputs if shapes]
    fixed = {tensor.name: tensor.shape for tensor in inputs if tensor.shape is not None}
    return _Job(file, model, output, form, editor, graph, fixed, context, tell)


def _searched(job: _Job, trials: Trials, prover: Prover, allow: Sequence[str], before: Judged) -> _Found:
    """What a search finds, what else it tried, and what it was not allowed to."""
    usable = [entry for entry in job.entries if not entry.needs or entry.needs in allow]
    search = Search(job.editor, usable, trials, prover, job.tell, job.context)
    state = search.run(job.opened(before))
    return state, tuple(search.tried), _held_back(job, state, allow)


def _written(job: _Job, state: State[Any], trials: Trials | None, *, searched: bool) -> Judged | None:
    """Leave the result where it belongs; what the judge says of it."""
    job.tell("writing")
    _write(job.editor, state, job.file, job.output)
    if trials is None:
        return None
    trials.discard(state.file)
    return state.judged if searched else trials.judged(job.output)


def _judge(
    model: Path,
    target: str | Path | None,
    backend: str | None,
    options: Mapping[str, Value] | None,
) -> Judge:
    """Who judges, chosen once: every trial asks the same."""
    choice = catalogue.choose(target, backend=backend, options=options or {}, model=model)
    asked = {name: value for name, value in choice.options.items() if value is not None}
    named = str(target) if target is not None else None
    return Judge(choice.backend, named if choice.backend in own_backends.OWN else None, asked)


def _foreign(before: Graph, result: Path, shapes: Shapes) -> Iterator[str]:
    """Operators of other domains than the format's own that came: not every runtime knows them."""
    known = {op.type for op in before.ops}
    came = {op.type for op in read_model(result, shapes=shapes, folds=False).ops if ":" in op.type} - known
    if came:
        yield f"the result has operators that not every runtime knows: {', '.join(sorted(came))}"


def _check_allowed(allow: Sequence[str], entries: Sequence[RewriteEntry]) -> None:
    known = sorted({entry.needs for entry in entries if entry.needs} | {"approximate", "quantize"})
    for word in allow:
        if word not in known:
            raise UsageError(f"--allow {word!r}: not known; {did_you_mean(word, known)}expected of {', '.join(known)}")


def _first(trials: Trials, job: _Job) -> Judged:
    """The model as it is; one that the judge refuses cannot be made faster by its word."""
    job.tell("judging the model")
    found = trials.judged(job.file)
    if found is None:
        raise UsageError("--budget-minutes: is over before the model itself is judged; expected more")
    if found.problem:
        raise ModelError(str(job.model), "", found.problem)
    if found.provenance is Provenance.MEASURED:  # which nothing else may disturb
        trials.jobs = 1
    return found


def _held_back(job: _Job, state: State[Any], allow: Sequence[str]) -> list[str]:
    """Rewrites that fit and were not tried, as they are not exact."""
    words: dict[str, list[str]] = {}
    for entry in job.entries:
        if entry.needs and entry.needs not in allow:
            with suppress(Exception):  # one that fails was not asked for
                count = 0 if job.editor.takes_whole(entry) else len(job.editor.sites(state.model, entry))
                if count:
                    words.setdefault(entry.needs, []).append(f"{entry.name} ({count})")
    return [f"not tried without --allow {need}: {', '.join(names)}" for need, names in words.items()]


def _replayed(job: _Job, steps: Sequence[RewriteStep], prover: Prover, scratch: Path) -> _Found:
    """The steps of a file, each proven; those that do not fit or do not hold are left out, and told."""
    failed: list[Tried] = []
    editor, state = job.editor, job.opened(Judged())
    for number, step in enumerate(steps):
        entry = rewrites.named(step.rewrite, job.form)
        job.tell(f"step {number + 1} of {len(steps)}: {entry.name}")
        try:
            wanted, problem = fitting(step, editor.sites(state.model, entry, job.context))
            model, sites = editor.apply(editor.copy(state.model), entry, wanted, job.context)
        except Exception as error:  # of a rule, whatever it is: the other steps go on
            failed.append(Tried(entry.name, step.groups, (), TrialResult.FAILED, reason=words_of(error)))
            continue
        row = Tried(entry.name, step.groups, sites, TrialResult.TAKEN, is_exact=not entry.needs, reason=problem)
        if not sites:
            failed.append(replace(row, verdict=TrialResult.FAILED, reason=problem or "fits nowhere any more"))
            continue
        file = scratch / str(number) / "model"
        file.parent.mkdir(parents=True)
        editor.save(model, file)
        exact = not entry.needs
        proof = prover.prove(file, exact=exact, since=None if state.is_exact else state.outputs)
        row = replace(row, error=proof.error, rounding=proof.used)
        if proof.problem:
            failed.append(replace(row, verdict=TrialResult.WRONG, reason=proof.problem))
            continue
        taken = (*state.steps, row)
        state = State(model, file, state.judged, taken, proof.outputs, state.is_exact and exact)
    return state, tuple(failed), []


def _write(editor: Editor[Any], state: State[Any], model: Path, output: Path) -> None:
    """The result; where nothing was changed and weights beside the model stay in reach, the model byte by byte."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if state.steps or output.parent.resolve() != model.parent.resolve():
        editor.save(state.model, output)
    else:
        with model.open("rb") as source:
            write_whole(output, lambda out: copyfileobj(source, out))


def _kept(
    found: Optimized, judge: Judge | None, job: _Job, *, command: Sequence[str], created: str | None
) -> Optimized:
    """With the files that lie beside the result."""
    from .views import OptimizedJson

    folder = Path(found.folder)
    files = {"steps": "steps.json"}
    write_bytes(folder / "steps.json", steps_bytes(found))
    if judge is not None and found.steps:
        from .runs import write_runs

        job.tell("profiling before and after")
        files |= write_runs(found, judge, job.file, command=command, created=created or _now())
    found = replace(found, files=files)
    write_bytes(folder / "optimize.json", OptimizedJson().bytes(found))
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
