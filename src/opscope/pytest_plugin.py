"""For users of pytest: the fixture `opscope`, and budgets of pyproject.toml as tests.

    def test_it_is_fast_enough(opscope):
        assert opscope("kws.tflite", target="cortex-m4").latency < "100 ms"

A measured figure breaks a limit only where its samples confirm it; one that is not known breaks every limit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .gate.figures import Figure, Figures
    from .recording.finding import Findings
    from .workflows.record import Recorded

_OPTION = "--opscope-budgets"
_EXPECTED = 'expected [[tool.opscope.budgets]] with model = "FILE", target = "NAME" and limits such as latency = "5 ms"'
_PLACES = ("model", "target", "backend")  # of a budget; other keys are metrics, or options of the backend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("opscope").addoption(
        _OPTION, action="store_true", help="also test every budget of [[tool.opscope.budgets]] in pyproject.toml"
    )


@pytest.fixture
def opscope(request: pytest.FixtureRequest) -> Profiler:
    """Profiles a model: `opscope(model, target="NAME", …)` takes what `opscope.profile` takes."""
    return Profiler(request.config.rootpath)


class Profiler:
    """Profiles models; a path is looked for where the test runs, then at the root of the project."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, model: str | Path, target: str | None = None, **options: str | int | bool | None) -> Profiled:
        from .api import profile

        path = Path(model)
        beside = self._root / path
        backend = options.pop("backend", None)
        found = profile(
            path if path.exists() or not beside.exists() else beside,
            target,
            backend=None if backend is None else str(backend),
            options=options,
        )
        return Profiled(found)


class Profiled:
    """A profile whose figures can be held against limits: `latency`, `peak_memory`, `energy`, `throughput` and more."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded

    @property
    def findings(self) -> Findings:
        return self.recorded.findings

    @cached_property
    def figures(self) -> Figures:
        from .gate.run_figures import of_run

        return of_run(self.recorded.run, label=self.recorded.run.info.model)

    def metric(self, name: str) -> Quantity:
        """A metric by the name that limits use, such as `memory_read:DDR`."""
        from .core.errors import UsageError

        found = self.figures.metric(name)
        if found is None:
            known = ", ".join(dict.fromkeys(each.name for each in self.figures.metrics))
            raise UsageError(f"metric {name!r}: the run has none; expected one of {known}")
        return Quantity(found, self)

    def __getattr__(self, name: str) -> Quantity:
        from .gate.metrics import METRICS

        if name not in METRICS:
            raise AttributeError(f"no metric {name!r}; expected one of {', '.join(METRICS)}")
        return self.metric(name)


class Quantity:
    """A figure that compares with a limit: a text with a unit (`"5 ms"`), or a number in ns, bytes, J or per second."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, figure: Figure, of: Profiled) -> None:
        self._figure, self._of = figure, of

    def __lt__(self, limit: str | float) -> bool:
        value, bound = self._least, self._limit(limit)
        return value is not None and value < bound

    def __le__(self, limit: str | float) -> bool:
        value, bound = self._least, self._limit(limit)
        return value is not None and value <= bound

    def __gt__(self, limit: str | float) -> bool:
        value, bound = self._most, self._limit(limit)
        return value is not None and value > bound

    def __ge__(self, limit: str | float) -> bool:
        value, bound = self._most, self._limit(limit)
        return value is not None and value >= bound

    @property
    def value(self) -> float | None:
        """In ns, bytes, J or per second; None: not known."""
        return self._figure.value

    @cached_property
    def _interval(self) -> tuple[float, float] | None:
        """Where the median of repeated samples lies; None where there are none, or too few."""
        from .gate.bootstrap import median_interval

        return None if self._figure.spread is None else median_interval(self._figure.spread, seed=0)

    @property
    def _least(self) -> float | None:
        return self._figure.value if self._interval is None else self._interval[0]

    @property
    def _most(self) -> float | None:
        return self._figure.value if self._interval is None else self._interval[1]

    def _limit(self, limit: str | float) -> float:
        from .gate.limits import parse_value

        return float(limit) if isinstance(limit, (int, float)) else parse_value(limit, self._figure.name)

    def __repr__(self) -> str:
        """What a failed assertion shows: the figure, how it was found, and where the time goes."""
        from .gate.comparison import show_value

        figure, figures = self._figure, self._of.figures
        if figure.value is None:
            return f"<{figure.name} of {figures.model} on {figures.target} is not known: {figures.unknown}>"
        unit = figure.unit
        shown = show_value(figure.value, unit)
        if self._interval is not None:
            shown += f" ({show_value(self._interval[0], unit)} to {show_value(self._interval[1], unit)})"
        cause = next((f"; {finding.title}" for finding in self._of.findings.findings), "")
        return f"<{figure.name} of {figures.model} on {figures.target}: {shown}, {figure.provenance}{cause}>"


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for every budget."""
    path = config.rootpath / "pyproject.toml"
    if config.getoption(_OPTION) and path.exists():
        items += list(BudgetFile.from_parent(session, path=path).collect())


class BudgetFile(pytest.File):
    """The budgets of a pyproject.toml."""

    def collect(self) -> Iterator[BudgetItem]:
        table = tomllib.loads(self.path.read_text(encoding="utf-8")).get("tool", {}).get("opscope", {})
        for number, budget in enumerate(table.get("budgets", ())):
            if not isinstance(budget, Mapping) or not isinstance(budget.get("model"), str):
                raise pytest.UsageError(f"{self.path}: budget {number + 1} has no model; {_EXPECTED}")
            where = budget.get("target") or budget.get("backend") or ""
            yield BudgetItem.from_parent(self, name=f"{budget['model']}[{where}]", budget=budget)


class BudgetItem(pytest.Item):
    """One budget: all limits of a model on a target."""

    def __init__(self, *, budget: Mapping[str, str | int | bool], **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self._budget = budget

    def runtest(self) -> None:
        from .gate.metrics import METRICS

        limits = {key: value for key, value in self._budget.items() if key.partition(":")[0] in METRICS}
        if not limits:
            raise pytest.UsageError(f"{self.path}: {self.name} has no limit; {_EXPECTED}")
        options = {key: value for key, value in self._budget.items() if key not in limits and key not in _PLACES}
        target, backend = (self._budget.get(key) for key in _PLACES[1:])
        found = Profiler(self.config.rootpath)(
            str(self._budget["model"]), None if target is None else str(target), backend=backend, **options
        )
        broken = [
            f"{found.metric(name)!r}, limit {limit}"
            for name, limit in limits.items()
            if not _holds(found.metric(name), str(limit), METRICS[name.partition(":")[0]].better)
        ]
        if broken:
            pytest.fail("\n".join(broken), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"budget of {self.name}"


def _holds(found: Quantity, limit: str, better: str) -> bool:
    return found >= limit if better == "more" else found <= limit
