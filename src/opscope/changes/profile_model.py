"""`opscope profile` behind `api.profile`: model → recorded Run on our own backends, with changes tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends import registry as backends
from ..core.errors import UsageError
from ..core.files import sha256_of
from ..core.manifest import Can, Value
from ..graph.graph import Graph
from ..machine.target import Target
from ..options import ProfileOptions, Shapes
from ..workflows import catalogue, own_backends, profiling
from ..workflows.own_backends import SIMULATE
from ..workflows.record import Recorded, analysed

if TYPE_CHECKING:
    from ..readers.torch import TorchModel
    from ..workflows.simulated_run import Tell

COMPILING = "compiling"  # what `step` is told while our own compiler is at work


@dataclass(frozen=True, slots=True)
class Request:
    """What to profile, and where to leave it."""

    model: Path | Graph
    target: Target
    options: ProfileOptions
    folder: Path | None
    command: tuple[str, ...]
    created: str
    target_file: str = ""  # where the target came from; empty: the catalogue
    fresh: bool = False  # re-use nothing
    trials: bool = True  # also try changes, and tell what each would gain

    @property
    def path(self) -> Path:
        """File of the model, or that its graph was read from."""
        return Path(self.model.source) if isinstance(self.model, Graph) else self.model


def profile_by(
    backend: str | None,
    model: Path | Graph | TorchModel,
    target: str | Path | Target | None,
    options: ProfileOptions | Mapping[str, Value],
    *,
    shapes: Shapes | None = None,
    advise: bool = False,
    advise_if_able: bool = False,
    folder: Path | None = None,
    fresh: bool = False,
    trials: bool = True,
    command: tuple[str, ...] = (),
    created: str,
    step: Tell | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recorded:
    """Profile by any backend: our own, or a plug-in's; None: the best source of the target that works here.

    Args:
        advise: also try other choices; a backend of a plug-in that cannot is an error, unless `advise_if_able`.
    """
    by_name = None if isinstance(options, ProfileOptions) else options
    file = None if isinstance(model, Graph) else model
    own_only = by_name is None or file is None
    choice = catalogue.choose(target, backend=backend, options=by_name, model=file, own_only=own_only)
    if choice.backend not in own_backends.OWN:
        if by_name is None or file is None:
            raise UsageError(f"backend {choice.backend}: expected a model file, and options by name")
        tell = step or (lambda _: None)
        result = profiling.profile(
            file,
            backend=choice.backend,
            options=choice.options,
            shapes=shapes,
            advise=advise and (Can.ADVISE in backends.find(choice.backend).can or not advise_if_able),
            step=step,
            progress=progress,
        )
        tell("analysing")
        return analysed(result, folder, command=command, created=created, sha256=_known_sha256(file))
    machine, place = own_backends.load_target(choice.target)[0], choice.file
    wanted = own_backends.profile_options(options if by_name is None else choice.options, shapes)
    given, wanted = _readable(model, wanted)
    request = Request(given, machine, wanted, folder, command, created, place, fresh, trials)
    return profile_model(request, choice.backend, step=step)


def _known_sha256(model: Path | TorchModel) -> str | None:
    return sha256_of(model) if isinstance(model, Path) and model.is_file() else None


def _readable(model: Path | Graph | TorchModel, options: ProfileOptions) -> tuple[Path | Graph, ProfileOptions]:
    """A model that is no file as a graph, read once; the shapes that were asked for are set in it then."""
    if isinstance(model, Graph) or (isinstance(model, Path) and model.exists()):
        return model, options
    from ..readers import graph_of, is_torch_model

    if isinstance(model, Path) and not is_torch_model(model):
        return model, options
    graph = graph_of(model, shapes=options.shapes, batch=options.batch, shapes_from_run=options.shapes_from_run)
    return graph, replace(options, shapes={}, batch=None, shapes_from_run=None)


def profile_model(request: Request, backend: str, *, step: Tell | None = None) -> Recorded:
    """Profile by the backend of that name: the simulated device, or the estimate; `step` is told of every stage."""
    tell = step or (lambda _: None)
    if backend != SIMULATE:
        return estimate_model(request, step=tell)
    from .simulate_model import simulate_model

    return simulate_model(request, step=tell)


def estimate_model(request: Request, *, step: Tell) -> Recorded:
    """The resource report as a recorded Run."""
    from ..estimate.build_report import report_model
    from ..options import ReportOptions, part_of
    from ..workflows.estimating import analysed_run

    step("estimating")
    options = replace(part_of(ReportOptions, request.options), advise=request.trials)
    found = report_model(request.model, request.target, options)
    step("analysing")
    return analysed_run(found, request.folder, command=request.command, created=request.created)
