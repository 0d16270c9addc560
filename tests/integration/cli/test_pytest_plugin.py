"""The pytest plug-in, in a pytest of its own: limits that hold and break, budgets, figures that are not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.cli import main
from opscope.core.provenance import Provenance
from opscope.gate.bootstrap import spread_of
from opscope.gate.figures import NS, Figure
from opscope.pytest_plugin import Quantity

pytest_plugins = ["pytester"]
TARGET = "cortex-m4"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "kws.tflite"
    assert main(["zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", str(path)]) == 0
    return path


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:xdist", *arguments)


def test_limits_hold_and_break(pytester: pytest.Pytester, model: Path) -> None:
    pytester.makepyfile(
        f"""
        MODEL = {str(model)!r}

        def test_holds(opscope):
            found = opscope(MODEL, target="{TARGET}")
            assert found.latency < "10 s"
            assert found.latency > 1_000
            assert found.metric("peak_memory") <= "1 MB"

        def test_breaks(opscope):
            assert opscope(MODEL, target="{TARGET}").latency < "5 us"
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"*<latency of *kws* on {TARGET}*ms*>*"])


def test_budgets_are_tests_where_they_are_asked_for(pytester: pytest.Pytester, model: Path) -> None:
    (pytester.path / "kws.tflite").write_bytes(model.read_bytes())
    pytester.makepyprojecttoml(
        f"""
        [[tool.opscope.budgets]]
        model = "kws.tflite"
        target = "{TARGET}"
        latency = "10 s"

        [[tool.opscope.budgets]]
        model = "kws.tflite"
        target = "{TARGET}"
        latency = "5 us"
        peak_memory = "1 MB"
        """
    )
    run(pytester).assert_outcomes()
    result = run(pytester, "--opscope-budgets")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*latency of *, limit 5 us"])


def test_a_budget_without_a_limit_or_a_model_is_a_mistake(pytester: pytest.Pytester, model: Path) -> None:
    pytester.makepyprojecttoml(f'[[tool.opscope.budgets]]\nmodel = "{model}"\ntarget = "{TARGET}"\n')
    result = run(pytester, "--opscope-budgets")
    result.stdout.fnmatch_lines(["*has no limit; expected*"])
    assert result.ret != 0


def test_samples_that_do_not_confirm_it_break_no_limit() -> None:
    def of(*samples: float) -> Quantity:
        spread = spread_of(samples)
        return Quantity(Figure("latency", spread.median, NS, Provenance.MEASURED, spread), None)  # type: ignore[arg-type]

    noisy, steady = of(900, 1100, 950, 1300, 1010, 990, 1200), of(1100, 1101, 1102, 1101, 1100, 1103, 1102)
    assert noisy < 1000  # the median is above, but it may as well be below
    assert noisy > 1000
    assert not steady < 1000


def test_what_is_not_known_breaks_every_limit() -> None:
    unknown = Quantity(Figure("latency", None, NS, Provenance.ESTIMATED), None)  # type: ignore[arg-type]
    assert not unknown < "1 s"
    assert not unknown > 0
