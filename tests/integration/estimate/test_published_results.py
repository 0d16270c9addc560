"""The table of docs/trust.md: published results on hardware, what opscope says, and whether they are in its range.

`pytest tests/integration/estimate/test_published_results.py -m '' --update-golden` writes the table again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil, exp, log
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from opscope import api
from opscope.core.units import format_seconds
from opscope.device.host.statistics import run_statistics
from opscope.machine import catalogue
from opscope.machine.corners import Corner, range_with
from opscope.machine.figure import Figure as Number
from opscope.options import CompileOptions, RunOptions
from opscope.program.program import Program
from opscope.recording.host_times import between
from opscope.simulation import simulate
from opscope.workflows.execution import Execution, loaded_from
from opscope.workflows.model_compiler import ModelCompiler
from opscope.zoo import make
from support.estimate.published_rows import ROWS, Figure, Published

PAGE = Path(__file__).parents[3] / "docs" / "trust.md"
# Of the results that judge, at least so many are inside the range, and the median error is at most so large.
INSIDE, ERROR = 0.80, 0.15

QUICK = (
    "bert-base",
    "bert-base-2x7",
    "resnet50-std",
    "resnet50-pro",
    "resnet50-ultra",
    "resnet50-offline-std",
    "kws",
    "ic",
)
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class Ours:
    """What comes out here: seconds, or per second; without a range where the target has none."""

    value: float
    low: float | None
    high: float | None
    provenance: str


# ---- what comes out ----------------------------------------------------------------------------------------------


def simulated(row: Published, model: Path) -> Ours:
    """At the usual figures of the target, and at both ends of their ranges.

    The host of a whole system is not that of the target's figures, and is not published: beside a latency stands the
    card with its link, with a range from the device alone to what an application sees behind the target's host. Only
    the run that was profiled had statistics compiled in.
    """
    level = 70 if row.figure is Figure.DEVICE else 0
    options = CompileOptions(cores=row.cores, precision=row.precision, stats_level=level)
    compiler = ModelCompiler(model)
    found = []
    for corner in (Corner.TYPICAL, Corner.FAST, Corner.SLOW):
        program, _ = compiler.compile(row.target, options, corner=corner)
        found += _figures(row, program)
    return Ours(found[0], min(found), max(found), "simulated")


def _figures(row: Published, program: Program) -> tuple[float, ...]:
    """What is held against a published figure; of a latency also the device alone, and what an application sees."""
    seconds = simulate(program).total_cycles / program.clock_hz
    if row.figure in (Figure.DEVICE, Figure.TOKENS):
        return (program.batch / seconds if row.figure.is_rate else seconds,)
    alone = row.figure is Figure.LATENCY
    options = RunOptions(activations=row.instances * row.devices, set_size=1 if alone else row.set_size, num_iter=100)
    times = Execution(loaded_from(program, Path()), options).times()
    if alone:
        spans = between(times.rows, "channel_ns", "completed_ns"), times.latencies_ns()
        card, application = (float(np.percentile(span, 90)) / 1e9 for span in spans)
        return card, seconds, application
    rate = run_statistics(program, times, ()).inferences_per_s
    assert rate is not None
    return (rate / row.per_sample,)


def estimated(row: Published, model: Path) -> Ours:
    run = api.profile(model, row.target).run
    latency = run.summary.latency
    low, high = (None if end is None else end / 1e9 for end in (latency.low_ns, latency.high_ns))
    return Ours(latency.known_ns / 1e9, low, high, str(run.info.provenance))


def ours_of(row: Published, folder: Path) -> Ours:
    model = folder / f"model.{row.recipe.format}"
    make(replace(row.recipe, batch=row.batch or 1), model)
    return estimated(row, model) if row.figure is Figure.BOARD else simulated(row, model)


# ---- how far the model itself is off -------------------------------------------------------------------------------

COVERAGE = 0.8  # of rows that lie inside the error of the model alone


def model_error(text: str, *, without: str = "") -> Number:
    """The factor that simulated results of most rows lie within: of networks other than one, as the page has them.

    A row counts once, with the middle of its published results, however many systems it is of.
    """
    errors = sorted(
        abs(log(ours_on(text, row) / _published(row)[len(row.values) // 2]))
        for row in ROWS.values()
        if row.figure is not Figure.BOARD and not row.sets and row.recipe.name != without
    )
    reach = exp(errors[min(len(errors) - 1, ceil(COVERAGE * len(errors)))])
    return Number(1.0, "published-errors", round(1 / reach, 3), round(reach, 3))


def _published(row: Published) -> list[float]:
    """Its results in seconds, or per second."""
    return [value if row.figure.is_rate else value / 1e3 for value in row.values]


# ---- the page ----------------------------------------------------------------------------------------------------


def line_of(row: Published, ours: Ours) -> str:
    """The row of the table."""
    published = _published(row)
    ratios = [ours.value / value for value in published]
    about = "; ".join(filter(None, (row.figure.value, row.note)))
    has_range = ours.low is not None and ours.high is not None
    inside = sum((ours.low or 0) <= value <= (ours.high or 0) for value in published) if has_range else "—"
    cells = (
        row.network,
        row.hardware,
        f"{_span(row, published[0], published[-1])} ({about})",
        f"{_text(row, ours.value)} ({ours.provenance})",
        _span(row, ours.low or 0, ours.high or 0) if has_range else "none",
        " – ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (min(ratios), max(ratios)))),
        f"{inside} of {len(published)}",
        f"**sets** {row.sets}" if row.sets else "judges",
    )
    return f"| {' | '.join(cells)} |"


def start_of(row: Published) -> str:
    return f"| {row.network} | {row.hardware} |"


def _text(row: Published, value: float) -> str:
    if not row.figure.is_rate:
        return format_seconds(value)
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def _span(row: Published, low: float, high: float) -> str:
    return " – ".join(dict.fromkeys((_text(row, low), _text(row, high))))


def check(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    row = ROWS[name]
    ours = ours_of(row, folder)
    if row.figure is not Figure.BOARD and ours.low is not None and ours.high is not None:
        error = model_error(PAGE.read_text(encoding="utf-8"), without=row.recipe.name)
        low, high = range_with(error, ours.value, (ours.low, ours.high))
        ours = replace(ours, low=low, high=high)
    line = line_of(row, ours)
    if request.config.getoption("--update-golden"):
        start = start_of(row)
        kept = [line if old.startswith(start) else old for old in PAGE.read_text(encoding="utf-8").splitlines()]
        PAGE.write_text("\n".join(kept) + "\n", encoding="utf-8", newline="\n")
    assert line in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", QUICK)
def test_the_page_says_what_comes_out(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    check(name, tmp_path, request)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROWS if name not in QUICK])
def test_the_page_says_what_comes_out_of_all_others(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    check(name, tmp_path, request)


# ---- what the table says all together ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """Over all published results that no figure of a target comes from."""

    inside: int
    count: int
    error: float  # median of |ours ÷ published − 1|
    rows_inside: int  # rows of the table with most of their results inside
    rows: int

    @classmethod
    def of(cls, text: str) -> Verdict:
        inside, errors, rows = 0, list[float](), list[bool]()
        for row in ROWS.values():
            found = _cells(text, row)[6].split(" of ")[0]
            if row.sets or found == "—":
                continue
            errors += [abs(ours_on(text, row) / each - 1) for each in _published(row)]
            inside += int(found)
            rows.append(2 * int(found) > len(row.values))
        return cls(inside, len(errors), median(errors), sum(rows), len(rows))

    def words(self) -> str:
        return (
            f"**{self.inside} of {self.count}** published results that judge ({self.rows_inside} of {self.rows} rows) "
            f"lie inside the range; the median error is **{self.error:.0%}**."
        )


def _cells(text: str, row: Published) -> list[str]:
    return next(line.split(" | ") for line in text.splitlines() if line.startswith(start_of(row)))


def ours_on(text: str, row: Published) -> float:
    """What a page says of our own result, in seconds or per second."""
    return _value(_cells(text, row)[3])


def _value(cell: str) -> float:
    number, unit = re.match(r"([\d.,]+)(?: (\w+)|/s)", cell).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * (UNITS[unit] if unit else 1.0)


def test_the_page_counts_its_own_table(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    words = Verdict.of(text).words()
    if request.config.getoption("--update-golden"):
        text = re.sub(r"\*\*\d+ of \d+\*\* published results that judge .*\*\*\d+%\*\*\.", words, text)
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    assert words in text


def test_every_row_of_the_page_is_of_one_result() -> None:
    assert len({start_of(row) for row in ROWS.values()}) == len(ROWS)


def test_published_results_are_as_near_as_they_should_be() -> None:
    verdict = Verdict.of(PAGE.read_text(encoding="utf-8"))
    assert verdict.inside >= INSIDE * verdict.count, verdict
    assert verdict.error <= ERROR, verdict


def test_the_run_that_the_figures_come_from_is_matched() -> None:
    row = ROWS["bert-base"]
    assert ours_on(PAGE.read_text(encoding="utf-8"), row) * 1e3 == pytest.approx(row.values[0], rel=0.05)


@pytest.mark.parametrize("name", ["aic100-std", "aic100-pro", "aic100-ultra"])
def test_the_error_of_the_model_that_targets_state_is_what_the_page_shows(name: str) -> None:
    stated = catalogue.load(name).model_error
    assert stated is not None
    found = model_error(PAGE.read_text(encoding="utf-8"))
    assert (stated.low, stated.high) == (pytest.approx(found.low, abs=0.01), pytest.approx(found.high, abs=0.01))
